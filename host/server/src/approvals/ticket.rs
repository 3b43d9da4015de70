//! Tickets: what a modern client carries of an approval, from round to round of one call, is good once, in the process that
//! sealed it. So nobody can have a call run twice for one approval, and not at all in a process that does not know of it.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};
use parking_lot::Mutex;
use wharf_sandbox::places::{Place, Places, Rule};

use crate::base::{
    party::Party,
    request_state::{LIFETIME, Ticket},
};

/// How many used tickets are remembered, each for as long as what was sealed with it is good.
const MAX_USED: usize = 1 << 18;

/// Tickets that were used.
pub static USED: Rule = Rule {
    of: "approvals of modern clients that were used",
    number: "262144",
    taker: "client",
    until: "what was sealed with the approval is not good any more",
    asking: "not held: it is taken when the answer comes",
    gone: "held until then, or the approval could be used again",
    gives_way: "nothing; the person is asked again",
    old: Duration::MAX,
};

pub struct Tickets {
    /// Names this process.
    process: [u8; 16],
    places: Arc<Places>,
    used: Mutex<Used>,
}

#[derive(Default)]
struct Used {
    numbers: HashSet<[u8; 16]>,
    in_order: VecDeque<(Instant, [u8; 16], Place)>,
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
        Ok(Self { process: random()?, places: Places::new(&USED, MAX_USED), used: Mutex::default() })
    }

    pub fn issue(&self) -> Result<Ticket> {
        Ok(Ticket { process: self.process, number: random()? })
    }

    /// Takes a ticket. The same ticket is good once.
    pub fn redeem(&self, ticket: &Ticket, party: Party) -> Redeemed {
        self.redeem_at(Instant::now(), ticket, party)
    }

    fn redeem_at(&self, now: Instant, ticket: &Ticket, party: Party) -> Redeemed {
        if ticket.process != self.process {
            return Redeemed::Unknown;
        }
        let mut used = self.used.lock();
        // A little longer than they are good, since the two are measured by different clocks.
        let kept = LIFETIME + Duration::from_secs(60);
        while let Some((_, number, _)) = used.in_order.pop_front_if(|(at, ..)| now.duration_since(*at) > kept) {
            used.numbers.remove(&number);
        }
        if used.numbers.contains(&ticket.number) {
            return Redeemed::Used;
        }
        let Ok(place) = self.places.take(party) else { return Redeemed::Unknown };
        used.numbers.insert(ticket.number);
        used.in_order.push_back((now, ticket.number, place));
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
    use crate::base::party::named;

    #[test]
    fn a_client_that_uses_many_leaves_room_for_others() {
        let tickets = Tickets::new().unwrap();
        let redeem = |name: &str| tickets.redeem(&tickets.issue().unwrap(), named(name));
        let good = (0..MAX_USED).take_while(|_| redeem("ann") == Redeemed::Good).count();
        assert_eq!(good, MAX_USED / 4 * 3);
        assert_eq!(redeem("ben"), Redeemed::Good);
    }

    #[test]
    fn a_ticket_is_good_once_and_here() {
        let (here, elsewhere) = (Tickets::new().unwrap(), Tickets::new().unwrap());
        let (one, other) = (here.issue().unwrap(), here.issue().unwrap());
        let ann = named("ann");
        assert_eq!(elsewhere.redeem(&one, ann), Redeemed::Unknown);
        assert_eq!(here.redeem(&one, ann), Redeemed::Good);
        assert_eq!(here.redeem(&one, ann), Redeemed::Used);
        assert_eq!(here.redeem(&other, ann), Redeemed::Good);
        // What was sealed with it is too old by then.
        let late = Instant::now() + LIFETIME + Duration::from_secs(120);
        assert_eq!(here.redeem_at(late, &here.issue().unwrap(), ann), Redeemed::Good);
        assert_eq!(here.used.lock().numbers.len(), 1);
    }

    #[test]
    fn of_many_at_once_one_is_good() {
        let tickets = Tickets::new().unwrap();
        let ticket = tickets.issue().unwrap();
        let good = std::thread::scope(|scope| {
            let all: Vec<_> =
                (0..8).map(|_| scope.spawn(|| tickets.redeem(&ticket, named("ann")) == Redeemed::Good)).collect();
            all.into_iter().map(|one| one.join().unwrap()).filter(|good| *good).count()
        });
        assert_eq!(good, 1);
    }
}
