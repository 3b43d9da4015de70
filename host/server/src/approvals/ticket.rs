//! Tickets: what a modern client carries of an approval, from round to round of one call, is good once, in the process that
//! sealed it. So nobody can have a call run twice for one approval, and not at all in a process that does not know of it.

use std::{
    collections::{HashSet, VecDeque},
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};
use parking_lot::Mutex;

use crate::base::request_state::{LIFETIME, Ticket};

/// How many used tickets are remembered, each for as long as what was sealed with it is good.
const MAX_USED: usize = 1 << 18;

pub struct Tickets {
    /// Names this process.
    process: [u8; 16],
    used: Mutex<Used>,
}

#[derive(Default)]
struct Used {
    numbers: HashSet<[u8; 16]>,
    in_order: VecDeque<(Instant, [u8; 16])>,
}

/// What became of a ticket.
#[derive(Debug, PartialEq, Eq)]
pub enum Redeemed {
    Good,
    /// Another process issued it, or there is no telling any more whether it was used.
    Unknown,
    Used,
}

impl Tickets {
    pub fn new() -> Result<Self> {
        Ok(Self { process: random()?, used: Mutex::default() })
    }

    pub fn issue(&self) -> Result<Ticket> {
        Ok(Ticket { process: self.process, number: random()? })
    }

    /// Takes a ticket. The same ticket is good once.
    pub fn redeem(&self, ticket: &Ticket) -> Redeemed {
        self.redeem_at(Instant::now(), ticket)
    }

    fn redeem_at(&self, now: Instant, ticket: &Ticket) -> Redeemed {
        if ticket.process != self.process {
            return Redeemed::Unknown;
        }
        let mut used = self.used.lock();
        // A little longer than they are good, since the two are measured by different clocks.
        let kept = LIFETIME + Duration::from_secs(60);
        while let Some((at, number)) = used.in_order.front().copied()
            && now.duration_since(at) > kept
        {
            used.in_order.pop_front();
            used.numbers.remove(&number);
        }
        if used.numbers.contains(&ticket.number) {
            return Redeemed::Used;
        }
        if used.numbers.len() >= MAX_USED {
            return Redeemed::Unknown;
        }
        used.numbers.insert(ticket.number);
        used.in_order.push_back((now, ticket.number));
        Redeemed::Good
    }
}

fn random() -> Result<[u8; 16]> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| anyhow!("no randomness: {error}"))?;
    Ok(random)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_good_once_and_here() {
        let (here, elsewhere) = (Tickets::new().unwrap(), Tickets::new().unwrap());
        let (one, other) = (here.issue().unwrap(), here.issue().unwrap());
        assert_eq!(elsewhere.redeem(&one), Redeemed::Unknown);
        assert_eq!(here.redeem(&one), Redeemed::Good);
        assert_eq!(here.redeem(&one), Redeemed::Used);
        assert_eq!(here.redeem(&other), Redeemed::Good);
        // What was sealed with it is too old by then.
        let late = Instant::now() + LIFETIME + Duration::from_secs(120);
        assert_eq!(here.redeem_at(late, &here.issue().unwrap()), Redeemed::Good);
        assert_eq!(here.used.lock().numbers.len(), 1);
    }

    #[test]
    fn of_many_at_once_one_is_good() {
        let tickets = Tickets::new().unwrap();
        let ticket = tickets.issue().unwrap();
        let good = std::thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(|| tickets.redeem(&ticket) == Redeemed::Good)).collect();
            all.into_iter().map(|one| one.join().unwrap()).filter(|good| *good).count()
        });
        assert_eq!(good, 1);
    }
}
