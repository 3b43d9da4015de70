//! Checks the signature of a token, with the same library as TLS.

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

/// Whether the holder of this key signed these bytes, by this algorithm. A key for another algorithm signed nothing.
pub fn is_good(algorithm: Algorithm, key: &DecodingKey, signed: &[u8], signature: &[u8]) -> bool {
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
        // Those with a shared secret: whoever checks such a signature could have made it.
        _ => return false,
    };
    if key.family() != algorithm.family() {
        return false;
    }
    match (check, key.kind()) {
        (Check::Rsa(check), DecodingKeyKind::RsaModulusExponent { n, e }) => {
            RsaPublicKeyComponents { n: number(n), e: number(e) }.verify(check, signed, signature).is_ok()
        }
        (Check::Other(check), DecodingKeyKind::SecretOrDer(key)) => {
            UnparsedPublicKey::new(check, key).verify(signed, signature).is_ok()
        }
        _ => false,
    }
}

/// The digits of a number. Some issuers write a zero before them, which the standard forbids and the library refuses.
fn number(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    bytes.get(zeros..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
    use serde_json::Value;

    use super::*;

    /// Keys, and tokens that another library signed with them.
    struct Signed {
        algorithm: Algorithm,
        key: DecodingKey,
        message: String,
        signature: Vec<u8>,
    }

    impl Signed {
        fn is_good(&self) -> bool {
            is_good(self.algorithm, &self.key, self.message.as_bytes(), &self.signature)
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
            assert!(one.is_good(), "{:?}", one.algorithm);
        }
    }

    #[test]
    fn a_key_may_begin_with_a_zero() {
        let one = signed("good").swap_remove(0);
        let DecodingKeyKind::RsaModulusExponent { n, e } = one.key.kind() else { panic!("it is for RSA") };
        let zero = |bytes: &[u8]| [&[0], bytes].concat();
        let key = DecodingKey::from_rsa_raw_components(&zero(n), &zero(e));
        assert!(is_good(one.algorithm, &key, one.message.as_bytes(), &one.signature));
    }

    #[test]
    fn nothing_else_is_taken() {
        let all = signed("good");
        for one in &all {
            let told = |what: &str, taken: bool| assert!(!taken, "{:?}: {what}", one.algorithm);
            let changed = format!("{}A", one.message);
            told("another message", is_good(one.algorithm, &one.key, changed.as_bytes(), &one.signature));
            let message = one.message.as_bytes();
            told("no signature", is_good(one.algorithm, &one.key, message, &[]));
            let (_, short) = one.signature.split_last().unwrap();
            told("a part of the signature", is_good(one.algorithm, &one.key, message, short));
            let zeros = vec![0; one.signature.len()];
            told("zeros", is_good(one.algorithm, &one.key, message, &zeros));
            for other in all.iter().filter(|other| other.algorithm != one.algorithm) {
                told("another algorithm", is_good(other.algorithm, &one.key, message, &one.signature));
                told("another's signature", is_good(one.algorithm, &one.key, message, &other.signature));
                if other.key.family() != one.key.family() || one.signature.len() != other.signature.len() {
                    told("another's key", is_good(one.algorithm, &other.key, message, &one.signature));
                }
            }
        }
        // The public key, which everybody has, as the secret of a signature that everybody can make.
        let secret = DecodingKey::from_secret(b"public");
        assert!(!is_good(Algorithm::HS256, &secret, b"message", b"signature"));
        // A key of 1024 bits, which is too short to be trusted.
        assert!(signed("weak").iter().all(|one| !one.is_good()));
    }
}
