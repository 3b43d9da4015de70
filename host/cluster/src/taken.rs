//! Which messages of each replica were taken already, so that none counts twice if Redis repeats it.

use std::collections::HashMap;

/// How many numbers below the highest one of a sender are told apart. A message that comes later than so many others is not taken.
const WINDOW: u64 = 1024;
/// How many senders are remembered. Each replica has another address after a restart.
const MAX_SENDERS: usize = 256;

#[derive(Default)]
pub struct Taken {
    senders: HashMap<String, Numbers>,
}

struct Numbers {
    highest: u64,
    /// A bit for each of the numbers up to the highest one, by its remainder.
    taken: [u64; (WINDOW / 64) as usize],
    /// When the sender was last heard of.
    at: u64,
}

impl Taken {
    /// Takes a message with this number of a sender. Returns false if it was taken before. `now`: in milliseconds.
    pub fn take(&mut self, sender: &str, number: u64, now: u64) -> bool {
        if let Some(numbers) = self.senders.get_mut(sender) {
            numbers.at = now;
            return numbers.take(number);
        }
        if self.senders.len() >= MAX_SENDERS {
            let oldest = self.senders.iter().min_by_key(|(_, numbers)| numbers.at);
            if let Some(oldest) = oldest.map(|(sender, _)| sender.clone()) {
                self.senders.remove(&oldest);
            }
        }
        let mut numbers = Numbers { highest: 0, taken: [0; (WINDOW / 64) as usize], at: now };
        numbers.take(number);
        self.senders.insert(sender.to_owned(), numbers);
        true
    }
}

impl Numbers {
    fn take(&mut self, number: u64) -> bool {
        if number > self.highest {
            let passed = (number - self.highest).min(WINDOW);
            for later in 0..passed {
                self.set(number - later, false);
            }
            self.highest = number;
        } else if self.highest - number >= WINDOW || self.has(number) {
            return false;
        }
        self.set(number, true);
        true
    }

    fn has(&self, number: u64) -> bool {
        let (word, bit) = place(number);
        self.taken.get(word).is_some_and(|word| word & bit != 0)
    }

    fn set(&mut self, number: u64, is: bool) {
        let (word, bit) = place(number);
        if let Some(word) = self.taken.get_mut(word) {
            *word = if is { *word | bit } else { *word & !bit };
        }
    }
}

fn place(number: u64) -> (usize, u64) {
    let at = number % WINDOW;
    (usize::try_from(at / 64).unwrap_or(usize::MAX), 1 << (at % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_of_a_sender_is_taken_once_in_whatever_order() {
        let mut taken = Taken::default();
        for number in [3, 1, 2, 70, 5, 1000, 900, 1200] {
            assert!(taken.take("a", number, 0), "{number}");
        }
        for number in [3, 70, 1000, 900, 1200] {
            assert!(!taken.take("a", number, 0), "{number}");
        }
        assert!(taken.take("a", 999, 0) && !taken.take("a", 999, 0));
        assert!(taken.take("b", 3, 0), "another sender has numbers of its own");
        // What is older than the window is not taken, whether it was or not.
        assert!(taken.take("a", 1_000_000, 0) && !taken.take("a", 1, 0) && !taken.take("a", 1_000_000 - WINDOW, 0));
        assert!(taken.take("a", 1_000_001 - WINDOW, 0));
    }

    #[test]
    fn the_sender_that_was_silent_for_longest_is_forgotten_first() {
        let mut taken = Taken::default();
        for sender in 0..=MAX_SENDERS {
            assert!(taken.take(&sender.to_string(), 1, u64::try_from(sender).unwrap()));
        }
        assert_eq!(taken.senders.len(), MAX_SENDERS);
        assert!(!taken.take("1", 1, 0) && taken.take("0", 1, 0));
    }
}
