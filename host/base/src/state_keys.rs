//! The keys that seal what clients carry for wharf: the state of requests, and the ids of sessions.

use std::fmt;

use chacha20poly1305::{
    XChaCha20Poly1305, XNonce,
    aead::{Aead, KeyInit, Payload},
};
use hmac::{Hmac, Mac, digest::InvalidLength};
use sha2::Sha256;

/// The size of a key.
pub const KEY_BYTES: usize = 32;
pub const NONCE_BYTES: usize = 24;

pub type StateKey = [u8; KEY_BYTES];

/// One key or more. The first seals; what any of them has sealed can be opened. So a key is replaced without a break: the new one is put
/// before the old one, and the old one is removed when nothing that it sealed is valid any more.
#[derive(Clone, PartialEq, Eq)]
pub struct StateKeys {
    first: StateKey,
    others: Vec<StateKey>,
}

impl StateKeys {
    pub fn new(first: StateKey, others: Vec<StateKey>) -> Self {
        Self { first, others }
    }

    /// Makes a random key, for a process that shares its key with no other.
    pub fn random() -> Result<Self, getrandom::Error> {
        Ok(Self::new(random_key()?, Vec::new()))
    }

    /// Returns the key that seals.
    pub fn first(&self) -> &StateKey {
        &self.first
    }

    /// Returns the ciphers of the keys themselves.
    pub(crate) fn plain(&self) -> Ciphers {
        let cipher = |key: &StateKey| XChaCha20Poly1305::new(&(*key).into());
        Ciphers { first: cipher(&self.first), others: self.others.iter().map(cipher).collect() }
    }

    /// Returns ciphers for one purpose: what they seal, those for other purposes cannot open.
    pub fn derived(&self, purpose: &str) -> Result<Ciphers, InvalidLength> {
        Ok(self.for_purpose(purpose)?.plain())
    }

    /// Returns signers for one purpose: what they sign, those for other purposes do not accept.
    pub fn signers(&self, purpose: &str) -> Result<Signers, InvalidLength> {
        let Self { first, others } = self.for_purpose(purpose)?;
        let others = others.iter().map(keyed).collect::<Result<_, _>>()?;
        Ok(Signers { first: keyed(&first)?, others })
    }

    /// Returns a key for one purpose for each key.
    fn for_purpose(&self, purpose: &str) -> Result<Self, InvalidLength> {
        let derived = |key: &StateKey| Ok(keyed(key)?.chain_update(purpose).finalize().into_bytes().into());
        Ok(Self::new(derived(&self.first)?, self.others.iter().map(derived).collect::<Result<_, _>>()?))
    }
}

fn keyed(key: &StateKey) -> Result<Hmac<Sha256>, InvalidLength> {
    <Hmac<Sha256> as Mac>::new_from_slice(key)
}

impl fmt::Debug for StateKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StateKeys(…)")
    }
}

pub fn random_key() -> Result<StateKey, getrandom::Error> {
    let mut key = [0; KEY_BYTES];
    getrandom::fill(&mut key)?;
    Ok(key)
}

/// The ciphers of several keys, of which the first seals.
pub struct Ciphers {
    first: XChaCha20Poly1305,
    others: Vec<XChaCha20Poly1305>,
}

impl Ciphers {
    /// Encrypts a text under a random nonce, which comes first in the result. `bound`: what has to be the same to open it. None: there is
    /// no randomness, or the text is too long.
    pub fn seal(&self, text: &[u8], bound: &[u8]) -> Option<Vec<u8>> {
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).ok()?;
        let encrypted = self.first.encrypt(XNonce::from_slice(&nonce), Payload { msg: text, aad: bound }).ok()?;
        Some([nonce.as_slice(), &encrypted].concat())
    }

    /// Opens what one of the keys has sealed with the same `bound`.
    pub fn open(&self, sealed: &[u8], bound: &[u8]) -> Option<Vec<u8>> {
        let (nonce, encrypted) = sealed.split_at_checked(NONCE_BYTES)?;
        let nonce = XNonce::from_slice(nonce);
        let open = |cipher: &XChaCha20Poly1305| cipher.decrypt(nonce, Payload { msg: encrypted, aad: bound }).ok();
        std::iter::once(&self.first).chain(&self.others).find_map(open)
    }
}

/// The signers of several keys, of which the first signs.
pub struct Signers {
    first: Hmac<Sha256>,
    others: Vec<Hmac<Sha256>>,
}

impl Signers {
    /// Returns the code that shows that a holder of the keys has signed this text.
    pub fn sign(&self, text: &[u8]) -> [u8; KEY_BYTES] {
        self.first.clone().chain_update(text).finalize().into_bytes().into()
    }

    /// Whether one of the keys has signed this text. `code`: the beginning of the code, as long as the caller takes for enough.
    pub fn has_signed(&self, text: &[u8], code: &[u8]) -> bool {
        let fits = |signer: &Hmac<Sha256>| signer.clone().chain_update(text).verify_truncated_left(code).is_ok();
        std::iter::once(&self.first).chain(&self.others).any(fits)
    }
}
