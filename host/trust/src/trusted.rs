//! The signers that an operator trusts.

use std::fmt;

use crate::{
    identity::SignerIdentity,
    key::{MinisignKey, PublicKey},
};

/// A signer that the operator trusts. `Display` gives the text of [`Signer`].
#[derive(Clone, Debug)]
pub enum Trusted {
    /// Who has the private key of this public key.
    Key(PublicKey),
    /// Who has the private key of this public key of minisign.
    Minisign(MinisignKey),
    /// Who an authority issued a certificate to, such as a workflow or the owner of an e-mail address.
    Identity(SignerIdentity),
}

impl Trusted {
    /// Whether a signer that this trusts can have this text. It proves nothing: it tells a text that was kept from one that does not fit.
    pub fn could_be(&self, signer: &str) -> bool {
        match self {
            Self::Key(key) => key.signer().as_str() == signer,
            Self::Minisign(key) => key.signer().as_str() == signer,
            Self::Identity(identity) => identity.could_be(signer),
        }
    }
}

impl fmt::Display for Trusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => key.fmt(f),
            Self::Minisign(key) => key.fmt(f),
            Self::Identity(identity) => identity.fmt(f),
        }
    }
}
