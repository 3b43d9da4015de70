//! Pseudo-random numbers that are the same in every run (xorshift64*), and random damage to messages.

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn draw(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a number below `limit`, which must not be 0.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.draw() >> 33).unwrap() % limit
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.draw().to_le_bytes()[3]).collect()
    }

    /// Returns the bytes with a few of them changed, removed, doubled or swapped.
    pub fn damage(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for _ in 0..=self.below(4) {
            if bytes.is_empty() {
                return bytes;
            }
            let at = self.below(bytes.len());
            match self.below(6) {
                0 => bytes[at] = self.draw().to_le_bytes()[3],
                1 => bytes[at] = *self.pick(b"{}[]\",:\\0-e."),
                2 => drop(bytes.remove(at)),
                3 => bytes.truncate(at),
                4 => {
                    let piece = bytes[at..(at + 1 + self.below(16)).min(bytes.len())].to_vec();
                    bytes.splice(at..at, piece);
                }
                _ => {
                    let other = self.below(bytes.len());
                    bytes.swap(at, other);
                }
            }
        }
        bytes
    }
}
