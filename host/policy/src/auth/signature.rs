//! Verifies the signature of a token, with the cryptography library that TLS uses.

use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
    RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512,
    RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};

enum Check {
    Rsa(&'static RsaParameters),
    Other(&'static dyn VerificationAlgorithm),
}

/// Whether the holder of this key signed these bytes with this algorithm. False if the key is for another algorithm.
pub fn is_valid(algorithm: Algorithm, key: &DecodingKey, signed: &[u8], signature: &[u8]) -> bool {
    let check = match algorithm {
        Algorithm::RS256 => Check::Rsa(&RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => Check::Rsa(&RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => Check::Rsa(&RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => Check::Rsa(&RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => Check::Rsa(&RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => Check::Rsa(&RSA_PSS_2048_8192_SHA512),
        Algorithm::ES256 => Check::Other(&ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => Check::Other(&ECDSA_P384_SHA384_FIXED),
        Algorithm::EdDSA => Check::Other(&ED25519),
        // Algorithms with a shared secret: everybody that can verify such a signature could have made it.
        _ => return false,
    };
    if key.family() != algorithm.family() {
        return false;
    }
    match (check, key.kind()) {
        (Check::Rsa(check), DecodingKeyKind::RsaModulusExponent { n, e }) => {
            RsaPublicKeyComponents { n: strip_leading_zeros(n), e: strip_leading_zeros(e) }
                .verify(check, signed, signature)
                .is_ok()
        }
        (Check::Other(check), DecodingKeyKind::SecretOrDer(key)) => {
            UnparsedPublicKey::new(check, key).verify(signed, signature).is_ok()
        }
        _ => false,
    }
}

/// Strips leading zeros from a number. Some issuers write one, which the standard forbids and the library refuses.
fn strip_leading_zeros(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    bytes.get(zeros..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
    use serde_json::Value;

    use super::*;

    /// A key, and a token that another library signed with it.
    struct Signed {
        algorithm: Algorithm,
        key: DecodingKey,
        message: String,
        signature: Vec<u8>,
    }

    impl Signed {
        fn is_valid(&self) -> bool {
            is_valid(self.algorithm, &self.key, self.message.as_bytes(), &self.signature)
        }
    }

    fn signed(group: &str) -> Vec<Signed> {
        let all: Value = serde_json::from_str(include_str!("../../../../tests/data/signatures.json")).unwrap();
        let one = |pair: &Value| {
            let (message, signature) = pair[1].as_str().unwrap().rsplit_once('.').unwrap();
            let header = URL_SAFE_NO_PAD.decode(message.split('.').next().unwrap()).unwrap();
            let header: Value = serde_json::from_slice(&header).unwrap();
            let jwk = serde_json::from_value(all["keys"][pair[0].as_str().unwrap()].clone()).unwrap();
            Signed {
                algorithm: header["alg"].as_str().unwrap().parse().unwrap(),
                key: DecodingKey::from_jwk(&jwk).unwrap(),
                message: message.to_owned(),
                signature: URL_SAFE_NO_PAD.decode(signature).unwrap(),
            }
        };
        all[group].as_array().unwrap().iter().map(one).collect()
    }

    #[test]
    fn each_algorithm_takes_what_was_signed_by_it() {
        let all = signed("good");
        assert_eq!(all.len(), 9);
        for one in &all {
            assert!(one.is_valid(), "{:?}", one.algorithm);
        }
    }

    #[test]
    fn a_key_may_begin_with_a_zero() {
        let one = signed("good").swap_remove(0);
        let DecodingKeyKind::RsaModulusExponent { n, e } = one.key.kind() else { panic!("it is for RSA") };
        let zero = |bytes: &[u8]| [&[0], bytes].concat();
        let key = DecodingKey::from_rsa_raw_components(&zero(n), &zero(e));
        assert!(is_valid(one.algorithm, &key, one.message.as_bytes(), &one.signature));
    }

    #[test]
    fn nothing_else_is_taken() {
        let all = signed("good");
        for one in &all {
            let told = |what: &str, taken: bool| assert!(!taken, "{:?}: {what}", one.algorithm);
            let changed = format!("{}A", one.message);
            told("another message", is_valid(one.algorithm, &one.key, changed.as_bytes(), &one.signature));
            let message = one.message.as_bytes();
            told("no signature", is_valid(one.algorithm, &one.key, message, &[]));
            let (_, short) = one.signature.split_last().unwrap();
            told("a part of the signature", is_valid(one.algorithm, &one.key, message, short));
            let zeros = vec![0; one.signature.len()];
            told("zeros", is_valid(one.algorithm, &one.key, message, &zeros));
            for other in all.iter().filter(|other| other.algorithm != one.algorithm) {
                told("another algorithm", is_valid(other.algorithm, &one.key, message, &one.signature));
                told("another's signature", is_valid(one.algorithm, &one.key, message, &other.signature));
                if other.key.family() != one.key.family() || one.signature.len() != other.signature.len() {
                    told("another's key", is_valid(one.algorithm, &other.key, message, &one.signature));
                }
            }
        }
        // The public key, which is known to everybody, used as the shared secret of an HMAC.
        let secret = DecodingKey::from_secret(b"public");
        assert!(!is_valid(Algorithm::HS256, &secret, b"message", b"signature"));
        // An RSA key of 1024 bits, which is too short.
        assert!(signed("weak").iter().all(|one| !one.is_valid()));
    }
}
