//! The arguments of the commands that add plugins, grant and revoke, and take published versions.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::run::ConfigFile;

#[derive(Debug, Args)]
pub struct Add {
    /// The component: a file, or where it is published: oci://REGISTRY/REPOSITORY:VERSION, https://… or file:PATH. Or an existing MCP server,
    /// which is built: its file, npm:NAME or pypi:NAME
    #[arg(value_name = "PLUGIN.wasm | SOURCE | SERVER.py | SERVER.ts | npm:NAME | pypi:NAME")]
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
    /// Say which versions there are, and change nothing
    #[arg(long, conflicts_with_all = ["to", "digest", "accept_signer", "print"])]
    pub dry_run: bool,
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

/// A plugin of a config.
#[derive(Debug, Args)]
pub struct OnePlugin {
    /// The plugin's id
    pub id: String,
    #[command(flatten)]
    pub config: ConfigFile,
}

#[derive(Debug, Args)]
pub struct Grant {
    #[command(flatten)]
    pub of: OnePlugin,
    /// Ask nothing, and revoke this: http, roots, dirs, env, ask, or one entry, such as a URL, a folder or the name of a variable (TZ,
    /// not $TZ); may be given more than once. `roots` revokes access to the roots, and asking the client for them
    #[arg(long, value_name = "WHAT")]
    pub revoke: Vec<String>,
    /// Ask nothing, and revoke everything
    #[arg(long, conflicts_with = "revoke")]
    pub revoke_all: bool,
}

#[derive(Debug, Subcommand)]
pub enum Lock {
    /// Fetch the locked versions that are not in the store yet, and check who signed them
    Fetch(ConfigFile),
    /// Check that wharf.lock fits the config, and say what it means; for reviews, without a network and secrets
    Check {
        /// An earlier wharf.lock, to print only what has changed since
        #[arg(long, value_name = "FILE")]
        since: Option<PathBuf>,
        #[command(flatten)]
        config: ConfigFile,
    },
    /// Check the stored components and their signatures again, without a network
    Verify(ConfigFile),
    /// Show what a pinned plugin tells models and wants that nobody has accepted yet, ask, and write it into wharf.lock
    Accept {
        #[command(flatten)]
        of: OnePlugin,
        /// Print the new contents of wharf.lock, and neither ask nor write
        #[arg(long)]
        print: bool,
    },
    /// Go back to the version of a published plugin that was used before
    Rollback(OnePlugin),
    /// Remove the stored components that wharf.lock does not name, as a version in use or an earlier one
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
