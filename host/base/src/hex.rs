//! Bytes as hexadecimal digits, in lower case.

/// Formats bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.extend(digits(*byte).map(char::from));
    }
    text
}

/// Formats a digest as hexadecimal digits, without allocating.
pub fn hex_digest(digest: &[u8; 32]) -> [u8; 64] {
    let mut text = [0; 64];
    for (pair, byte) in text.as_chunks_mut().0.iter_mut().zip(digest) {
        *pair = digits(*byte);
    }
    text
}

fn digits(byte: u8) -> [u8; 2] {
    let digit = |value: u8| value + if value < 10 { b'0' } else { b'a' - 10 };
    [digit(byte >> 4), digit(byte & 15)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_two_digits() {
        assert_eq!(hex(&[0, 0x1f, 0xff]), "001fff");
        let digest = std::array::from_fn(|at| (at * 8) as u8);
        assert_eq!(str::from_utf8(&hex_digest(&digest)).unwrap(), hex(&digest));
    }
}
