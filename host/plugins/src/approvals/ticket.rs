//! Single-use tickets, against replay. A ticket is the proof of an approval that a modern client carries through the rounds of one call
//! (MRTR). It is accepted once, and only by the process that issued it, which other replicas ask. So one approval never runs a call twice.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use wharf_base::{
    party::Party,
    places::{Place, Places, PoolRule},
    request_state::{LIFETIME, Ticket},
};

/// The most used tickets that are remembered, each for as long as its sealed request state is valid.
const MAX_USED: usize = 1 << 18;

/// The limit of used tickets.
pub static USED: PoolRule = PoolRule {
    of: "used approvals of modern clients",
    number: "262144",
    taker: "client",
    until: "the request state that carries the approval expires",
    asking: "not held: it is taken when the answer arrives",
    gone: "held until then, since the approval could otherwise be used again",
    gives_way: "nothing; the person is asked again",
    old: Duration::MAX,
};

pub struct Tickets {
    /// Identifies this process.
    process: [u8; 16],
    places: Arc<Places>,
    used: Mutex<Used>,
}

#[derive(Default)]
struct Used {
    numbers: HashSet<[u8; 16]>,
    in_order: VecDeque<(Instant, [u8; 16], Place)>,
}

/// The outcome of redeeming a ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Redeemed {
    Accepted,
    /// Another process issued it, or it can no longer be told whether it was used.
    Unknown,
    Used,
}

impl Tickets {
    pub fn new(process: [u8; 16]) -> Self {
        Self { process, places: Places::new(&USED, MAX_USED), used: Mutex::default() }
    }

    pub fn issue(&self) -> Result<Ticket> {
        Ok(Ticket { process: self.process, number: random()? })
    }

    /// Redeems a ticket. The same ticket succeeds once.
    pub fn redeem(&self, ticket: &Ticket, party: Party) -> Redeemed {
        self.redeem_at(Instant::now(), ticket, party)
    }

    /// Redeems a ticket of this process by its number.
    pub fn redeem_number(&self, number: [u8; 16], party: Party) -> Redeemed {
        self.redeem(&Ticket { process: self.process, number }, party)
    }

    fn redeem_at(&self, now: Instant, ticket: &Ticket, party: Party) -> Redeemed {
        if ticket.process != self.process {
            return Redeemed::Unknown;
        }
        let mut used = self.used.lock();
        // A little longer than tickets are valid, since the two times are measured by different clocks.
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
        Redeemed::Accepted
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
    use wharf_base::party::named;

    #[test]
    fn a_client_that_uses_many_leaves_room_for_others() {
        let tickets = Tickets::new([1; 16]);
        let redeem = |name: &str| tickets.redeem(&tickets.issue().unwrap(), named(name));
        let good = (0..MAX_USED).take_while(|_| redeem("ann") == Redeemed::Accepted).count();
        assert_eq!(good, MAX_USED / 4 * 3);
        assert_eq!(redeem("ben"), Redeemed::Accepted);
    }

    #[test]
    fn a_ticket_is_good_once_and_here() {
        let (here, elsewhere) = (Tickets::new([1; 16]), Tickets::new([2; 16]));
        let (one, other) = (here.issue().unwrap(), here.issue().unwrap());
        let ann = named("ann");
        assert_eq!(elsewhere.redeem(&one, ann), Redeemed::Unknown);
        assert_eq!(here.redeem(&one, ann), Redeemed::Accepted);
        assert_eq!(here.redeem(&one, ann), Redeemed::Used);
        assert_eq!(here.redeem(&other, ann), Redeemed::Accepted);
        // The request state that was sealed with the ticket has expired by then.
        let late = Instant::now() + LIFETIME + Duration::from_secs(120);
        assert_eq!(here.redeem_at(late, &here.issue().unwrap(), ann), Redeemed::Accepted);
        assert_eq!(here.used.lock().numbers.len(), 1);
    }

    #[test]
    fn of_many_at_once_one_is_good() {
        let tickets = Tickets::new([1; 16]);
        let ticket = tickets.issue().unwrap();
        let good = std::thread::scope(|scope| {
            let all: Vec<_> =
                (0..8).map(|_| scope.spawn(|| tickets.redeem(&ticket, named("ann")) == Redeemed::Accepted)).collect();
            all.into_iter().map(|one| one.join().unwrap()).filter(|good| *good).count()
        });
        assert_eq!(good, 1);
    }
}
