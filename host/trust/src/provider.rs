//! The cryptography that sigstore's crates call: ring, which TLS uses as well. What ring does not do, which is to verify a signature by the
//! digest of a long message, p256 does.

use std::sync::Once;

use p256::ecdsa::{DerSignature, VerifyingKey, signature::hazmat::PrehashVerifier};
use ring::{
    digest,
    rand::SystemRandom,
    signature::{self, EcdsaKeyPair, Ed25519KeyPair, KeyPair},
};
use sigstore_verify::{
    crypto::{CryptoProvider, Error, HashContext, KeyAlgorithm, SigningKeyPair, SigningScheme},
    types::HashAlgorithm,
};

#[derive(Debug)]
struct Ring;

/// Makes ring the provider of the process, unless a program that embeds wharf has installed another one. Every function of this crate that
/// calls sigstore's crates calls this first.
pub fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // It fails if there is one already, which then serves as well.
        let _ = sigstore_verify::crypto::install_default_provider(&Ring);
    });
}

struct Context(digest::Context);

impl HashContext for Context {
    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn finalize(self: Box<Self>) -> Vec<u8> {
        self.0.finish().as_ref().to_vec()
    }
}

/// ring's name for a scheme, if ring has it.
fn algorithm(scheme: SigningScheme) -> Result<&'static dyn signature::VerificationAlgorithm, Error> {
    Ok(match scheme {
        SigningScheme::EcdsaP256Sha256 => &signature::ECDSA_P256_SHA256_ASN1,
        SigningScheme::EcdsaP256Sha384 => &signature::ECDSA_P256_SHA384_ASN1,
        SigningScheme::EcdsaP384Sha256 => &signature::ECDSA_P384_SHA256_ASN1,
        SigningScheme::EcdsaP384Sha384 => &signature::ECDSA_P384_SHA384_ASN1,
        SigningScheme::Ed25519 => &signature::ED25519,
        SigningScheme::RsaPssSha256 => &signature::RSA_PSS_2048_8192_SHA256,
        SigningScheme::RsaPssSha384 => &signature::RSA_PSS_2048_8192_SHA384,
        SigningScheme::RsaPssSha512 => &signature::RSA_PSS_2048_8192_SHA512,
        SigningScheme::RsaPkcs1Sha256 => &signature::RSA_PKCS1_2048_8192_SHA256,
        SigningScheme::RsaPkcs1Sha384 => &signature::RSA_PKCS1_2048_8192_SHA384,
        SigningScheme::RsaPkcs1Sha512 => &signature::RSA_PKCS1_2048_8192_SHA512,
        other => return Err(unsupported(other)),
    })
}

fn unsupported(scheme: SigningScheme) -> Error {
    Error::UnsupportedAlgorithm(format!("wharf does not verify {}", scheme.name()))
}

fn invalid(scheme: SigningScheme) -> Error {
    Error::Verification(format!("{} signature invalid", scheme.name()))
}

impl CryptoProvider for Ring {
    fn hash(&self, algorithm: HashAlgorithm) -> Result<Box<dyn HashContext>, Error> {
        let algorithm = match algorithm {
            HashAlgorithm::Sha2256 => &digest::SHA256,
            HashAlgorithm::Sha2384 => &digest::SHA384,
            HashAlgorithm::Sha2512 => &digest::SHA512,
            other => return Err(Error::UnsupportedAlgorithm(format!("wharf does not compute digests by {other}"))),
        };
        Ok(Box::new(Context(digest::Context::new(algorithm))))
    }

    fn verify_raw(&self, scheme: SigningScheme, key: &[u8], data: &[u8], signature: &[u8]) -> Result<(), Error> {
        signature::UnparsedPublicKey::new(algorithm(scheme)?, key).verify(data, signature).map_err(|_| invalid(scheme))
    }

    fn verify_prehashed(
        &self,
        scheme: SigningScheme,
        key: &[u8],
        digest: &[u8],
        signature: &[u8],
    ) -> Result<(), Error> {
        if scheme != SigningScheme::EcdsaP256Sha256 {
            return Err(unsupported(scheme));
        }
        let key = VerifyingKey::from_sec1_bytes(key).map_err(|_| invalid(scheme))?;
        let signature = DerSignature::from_bytes(signature).map_err(|_| invalid(scheme))?;
        key.verify_prehash(digest, &signature).map_err(|_| invalid(scheme))
    }

    fn key_pair_from_pkcs8_der(&self, pkcs8: &[u8]) -> Result<Box<dyn SigningKeyPair>, Error> {
        let random = SystemRandom::new();
        if let Ok(pair) = EcdsaKeyPair::from_pkcs8(&signature::ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8, &random) {
            return Ok(Box::new(P256(pair)));
        }
        // openssl writes Ed25519 keys without their public half, which ring computes.
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(pkcs8)
            .map_err(|error| Error::InvalidKeyFormat(error.to_string()))?;
        Ok(Box::new(Ed25519(pair)))
    }
}

struct P256(EcdsaKeyPair);

impl SigningKeyPair for P256 {
    fn algorithm(&self) -> KeyAlgorithm {
        KeyAlgorithm::EcdsaP256
    }

    fn public_key_bytes(&self) -> &[u8] {
        self.0.public_key().as_ref()
    }

    fn sign_raw(&self, data: &[u8]) -> Result<Vec<u8>, Error> {
        let signature = self.0.sign(&SystemRandom::new(), data);
        Ok(signature.map_err(|_| Error::Signing("the system has no random numbers".to_owned()))?.as_ref().to_vec())
    }

    fn sign_prehashed(&self, _digest: &[u8]) -> Result<Vec<u8>, Error> {
        Err(Error::Signing("wharf signs whole messages".to_owned()))
    }
}

struct Ed25519(Ed25519KeyPair);

impl SigningKeyPair for Ed25519 {
    fn algorithm(&self) -> KeyAlgorithm {
        KeyAlgorithm::Ed25519
    }

    fn public_key_bytes(&self) -> &[u8] {
        self.0.public_key().as_ref()
    }

    fn sign_raw(&self, data: &[u8]) -> Result<Vec<u8>, Error> {
        Ok(self.0.sign(data).as_ref().to_vec())
    }

    fn sign_prehashed(&self, _digest: &[u8]) -> Result<Vec<u8>, Error> {
        Err(Error::Signing("wharf signs whole messages".to_owned()))
    }
}
