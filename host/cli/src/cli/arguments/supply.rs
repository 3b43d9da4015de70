//! The arguments of the commands for published plugins.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::run::ConfigFile;

#[derive(Debug, Args)]
pub struct Add {
    /// The component: a file, or where it is published: oci://REGISTRY/REPOSITORY:VERSION, https://… or file:PATH
    #[arg(value_name = "PLUGIN.wasm | SOURCE")]
    pub plugin: String,
    /// The plugin's id (default: the file name without .wasm, or the last part of the repository's name)
    #[arg(long)]
    pub id: Option<String>,
    /// Who has to have signed a published component: key=FILE, minisign=RW…, or identity=…,issuer=https://…
    #[arg(long, value_name = "SIGNER")]
    pub signer: Option<String>,
    /// The SHA-256 of a published component that you vouch for yourself
    #[arg(long, value_name = "SHA256", conflicts_with = "signer")]
    pub digest: Option<String>,
    #[command(flatten)]
    pub config: ConfigFile,
}

#[derive(Debug, Args)]
pub struct Update {
    /// The ids of the plugins (default: all that have `source`)
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Take this version, even if it is lower or younger than others
    #[arg(long, value_name = "VERSION")]
    pub to: Option<String>,
    /// The SHA-256 of a new component that you vouch for yourself
    #[arg(long, value_name = "SHA256")]
    pub digest: Option<String>,
    /// Take a version that another trusted signer has signed than the one before
    #[arg(long)]
    pub accept_signer: bool,
    /// Print the new contents of wharf.lock for a review, and neither ask nor write it
    #[arg(long)]
    pub print: bool,
    #[command(flatten)]
    pub config: ConfigFile,
}

#[derive(Debug, Args)]
pub struct Lock {
    /// Check, and change nothing; `wharf update` changes wharf.lock
    #[arg(long, required = true)]
    pub check: bool,
    /// An earlier wharf.lock, to print only what has changed since
    #[arg(long, value_name = "FILE")]
    pub since: Option<PathBuf>,
    #[command(flatten)]
    pub config: ConfigFile,
}

#[derive(Debug, Subcommand)]
pub enum Store {
    /// Remove the components that wharf.lock does not name, as a version in use or an earlier one
    Prune {
        /// The config, or the wharf.lock, of another wharf that uses the same store; may be given more than once
        #[arg(long = "also", value_name = "FILE")]
        others: Vec<PathBuf>,
        #[command(flatten)]
        config: ConfigFile,
    },
}

#[derive(Debug, Args)]
pub struct Publish {
    /// Where to publish it: oci://REGISTRY/REPOSITORY:VERSION (default for the version: that of [package] in plugin.toml)
    #[arg(value_name = "oci://…")]
    pub to: String,
    /// The component, or the folder of a plugin project that is built (default: the current folder)
    #[arg(value_name = "PLUGIN.wasm | DIR")]
    pub from: Option<PathBuf>,
    /// Sign it with this private key: a PEM file (PKCS#8), ECDSA P-256 or Ed25519
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// An annotation of the manifest, NAME=VALUE; may be given more than once
    #[arg(long = "annotation", value_name = "NAME=VALUE")]
    pub annotations: Vec<String>,
    #[command(flatten)]
    pub config: ConfigFile,
}
