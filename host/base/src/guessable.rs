//! Keys and secrets that everybody can guess, since they stand in examples or are what a person types in their place. Only by their exact form:
//! what merely looks simple may be the secret that a service has issued.

/// The texts that people type in the order of the keyboard or the alphabet.
const ORDERS: [&[u8]; 3] = [b"0123456789", b"0123456789abcdef", b"abcdefghijklmnopqrstuvwxyz"];
/// What stands for a secret in examples.
const STANDS_FOR_ANOTHER: [&str; 4] = ["changeme", "change-me", "change_me", "changeit"];

/// Says what a key or secret is, if everybody can guess it.
pub fn why(text: &str) -> Option<&'static str> {
    let text = text.to_ascii_lowercase();
    let bytes = text.as_bytes();
    let stands = |word: &&str| text.contains(word) && text.replace(word, "").bytes().all(|byte| b"-_".contains(&byte));
    if is_repeated(bytes) {
        Some("one character again and again")
    } else if ORDERS.iter().any(|order| is_in_order(bytes, order)) {
        Some("characters in their order")
    } else if STANDS_FOR_ANOTHER.iter().any(stands) {
        Some("what stands for a secret")
    } else {
        decoded(bytes)
            .is_some_and(|bytes| is_repeated(&bytes) || counts(&bytes))
            .then_some("one byte again and again, or bytes in their order")
    }
}

fn is_repeated(bytes: &[u8]) -> bool {
    bytes.array_windows().all(|[one, next]| one == next)
}

/// Whether each byte is the next one, upwards or downwards.
fn counts(bytes: &[u8]) -> bool {
    [1, u8::MAX].iter().any(|by| bytes.array_windows().all(|[one, next]| one.wrapping_add(*by) == *next))
}

/// Whether a text goes through an order, forwards or backwards, from anywhere in it and from its other end again.
fn is_in_order(text: &[u8], order: &[u8]) -> bool {
    let goes = |order: Vec<u8>| {
        let Some(at) = text.first().and_then(|first| order.iter().position(|one| one == first)) else { return false };
        order.iter().cycle().skip(at).zip(text).all(|(expected, one)| expected == one)
    };
    goes(order.to_vec()) || goes(order.iter().rev().copied().collect())
}

/// Returns the bytes of hexadecimal digits.
fn decoded(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, rest) = text.as_chunks();
    let bytes = pairs.iter().map(|[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect();
    if rest.is_empty() { bytes } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_everybody_knows_can_be_guessed() {
        let counting: String = (0..32).map(|byte| format!("{byte:02x}")).collect();
        let downwards: String = (0..32).rev().map(|byte| format!("{byte:02X}")).collect();
        for text in [
            &"0".repeat(64),
            &"f".repeat(64),
            &"07".repeat(32),
            &"AB".repeat(32),
            &counting,
            &downwards,
            &"0123456789abcdef".repeat(4),
            &"fedcba9876543210".repeat(4),
            "1234567890123456",
            "abcdefghijklmnop",
            "xxxxxxxxxxxxxxxx",
            "changemechangeme",
            "CHANGE-ME-CHANGE-ME",
        ] {
            assert!(why(text).is_some(), "{text}");
        }
        for text in [
            "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            &"0f1e".repeat(16),
            "0123456789abcdeg",
            "sk-test-0123456789abcdef",
            "ghp_000000000000000000000000000000000001",
            "correct horse battery staple",
            "please-changeme-soon",
            "1122334455667788",
            "00000000-0000-4000-8000-000000000000",
            "----------------x",
        ] {
            assert_eq!(why(text), None, "{text}");
        }
    }
}
