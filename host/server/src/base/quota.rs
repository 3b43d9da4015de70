//! How often something may be done, and how often at once: by one caller, or by all together. The numbers stand in the config; what was
//! used of them is kept in [`Quotas`], whatever later configs say, so that reading a config again gives nobody new calls.
//!
//! Libraries for rates decide about one limit at a time and count at once. A call that one of several limits refuses must not use up the
//! others, so all of them are asked before any counts.

use std::{
    collections::{HashMap, hash_map::RandomState},
    fmt,
    hash::BuildHasher,
    num::NonZeroU32,
    sync::Arc,
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::principal::Principal;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: u64 = 60 * 60;
const DAY: u64 = 24 * HOUR;

/// From how many users on those are looked for who have all of their calls again.
const MANY: usize = 1024;
/// Of how many it is known what they used.
const MOST: usize = 65_536;

/// How often something may be done. None: any number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// They may also come all at once; then one more comes free after each part of a minute.
    pub per_minute: Option<NonZeroU32>,
    /// In each hour of UTC.
    pub per_hour: Option<NonZeroU32>,
    /// In each day of UTC.
    pub per_day: Option<NonZeroU32>,
    pub at_once: Option<NonZeroU32>,
}

impl Limits {
    /// Whether there is any.
    pub fn are_there(&self) -> bool {
        *self != Self::default()
    }
}

/// Limits, and the name under which what was used of them is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota {
    /// No other quota of a config has the same. A changed config means the same quota by it.
    pub name: String,
    pub limits: Limits,
}

/// What a limit is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    AtOnce,
    Minute,
    Hour,
    Day,
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AtOnce => "at once",
            Self::Minute => "a minute",
            Self::Hour => "an hour",
            Self::Day => "a day",
        })
    }
}

/// A limit that is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spent {
    pub most: NonZeroU32,
    pub span: Span,
    /// When to try again.
    pub after: Duration,
}

/// What was used of one quota: by one caller, or by all together.
#[derive(Debug, Default)]
struct Used {
    running: u32,
    /// Whether all callers use it together. There are as many of these as the config has, so none is forgotten.
    shared: bool,
    /// When all calls of a minute are there again, as a time since 1970.
    whole_at: Duration,
    hour: Window,
    day: Window,
}

/// The calls in one stretch of the clock, such as one day.
#[derive(Debug, Default)]
struct Window {
    number: u64,
    calls: u32,
}

impl Window {
    /// When there are calls again, if there are none.
    fn check(&self, most: NonZeroU32, seconds: u64, now: Duration) -> Result<(), Duration> {
        let number = now.as_secs() / seconds;
        if self.number != number || self.calls < most.get() {
            return Ok(());
        }
        Err(Duration::from_secs((number + 1) * seconds).saturating_sub(now))
    }

    fn count(&mut self, seconds: u64, now: Duration) {
        let number = now.as_secs() / seconds;
        if self.number != number {
            *self = Self { number, calls: 0 };
        }
        self.calls = self.calls.saturating_add(1);
    }

    /// How many calls of now it has.
    fn calls(&self, seconds: u64, now: Duration) -> u32 {
        if self.number == now.as_secs() / seconds { self.calls } else { 0 }
    }
}

impl Used {
    /// When the calls of a minute would be there again after one more.
    fn whole_after_one_more(&self, most: NonZeroU32, now: Duration) -> Duration {
        // It is never more than a minute ahead, unless the clock was set back.
        self.whole_at.clamp(now, now + MINUTE) + MINUTE / most.get()
    }

    /// Which limit is used up; of several, the one that takes longest.
    fn check(&self, limits: &Limits, now: Duration) -> Result<(), Spent> {
        let Limits { per_minute, per_hour, per_day, at_once } = limits;
        let spent = |most: &NonZeroU32, span, after: Result<(), Duration>| {
            after.err().map(|after| Spent { most: *most, span, after })
        };
        let all = [
            at_once.as_ref().and_then(|most| {
                let full = self.running >= most.get();
                spent(most, Span::AtOnce, if full { Err(Duration::from_secs(1)) } else { Ok(()) })
            }),
            per_minute.as_ref().and_then(|most| {
                let after = self.whole_after_one_more(*most, now).checked_sub(now + MINUTE);
                spent(most, Span::Minute, after.filter(|after| !after.is_zero()).map_or(Ok(()), Err))
            }),
            per_hour.as_ref().and_then(|most| spent(most, Span::Hour, self.hour.check(*most, HOUR, now))),
            per_day.as_ref().and_then(|most| spent(most, Span::Day, self.day.check(*most, DAY, now))),
        ];
        all.into_iter().flatten().max_by_key(|spent| spent.after).map_or(Ok(()), Err)
    }

    fn count(&mut self, limits: &Limits, now: Duration) {
        if let Some(most) = limits.per_minute {
            self.whole_at = self.whole_after_one_more(most, now);
        }
        if limits.per_hour.is_some() {
            self.hour.count(HOUR, now);
        }
        if limits.per_day.is_some() {
            self.day.count(DAY, now);
        }
        if limits.at_once.is_some() {
            self.running += 1;
        }
    }

    /// Whether all calls are there again, so that it may be forgotten.
    fn is_nothing(&self, now: Duration) -> bool {
        self.running == 0 && self.whole_at <= now && self.calls(now) == 0
    }

    /// How many calls are counted for longer than a minute.
    fn calls(&self, now: Duration) -> u32 {
        self.hour.calls(HOUR, now).max(self.day.calls(DAY, now))
    }
}

/// What was used of all quotas. It lives in memory: a new start gives everybody all calls.
#[derive(Default)]
pub struct Quotas {
    /// Users and quotas are known by a number that nobody can foresee, so that long names take no memory.
    numbers: RandomState,
    used: Mutex<Book>,
    /// Told when a call that counts as running has ended.
    ended: Notify,
}

#[derive(Default)]
struct Book {
    used: HashMap<u64, Used>,
    /// At how many entries those are looked for that can be forgotten.
    tidy_at: usize,
}

/// One of the calls that may run at once, until this is dropped.
pub struct Turn {
    quotas: Arc<Quotas>,
    /// The entries in which it is counted, each with how many may run at once.
    entries: Vec<(u64, NonZeroU32)>,
}

/// A call that does not count as running, because it waits for an answer.
pub struct Resting {
    quotas: Arc<Quotas>,
    entries: Vec<(u64, NonZeroU32)>,
}

impl Turn {
    /// The call does not run for now.
    pub fn rest(mut self) -> Resting {
        self.give_back();
        Resting { quotas: Arc::clone(&self.quotas), entries: std::mem::take(&mut self.entries) }
    }

    fn give_back(&self) {
        if self.entries.is_empty() {
            return;
        }
        {
            let mut book = self.quotas.used.lock();
            for (entry, _) in &self.entries {
                if let Some(used) = book.used.get_mut(entry) {
                    used.running = used.running.saturating_sub(1);
                }
            }
        }
        self.quotas.ended.notify_waiters();
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl Resting {
    /// Waits until the call may run again. The caller bounds how long.
    pub async fn run(self) -> Turn {
        loop {
            let mut ended = std::pin::pin!(self.quotas.ended.notified());
            // From here on it is told of every end.
            ended.as_mut().enable();
            {
                let mut book = self.quotas.used.lock();
                let full = |(entry, most): &(u64, NonZeroU32)| {
                    book.used.get(entry).is_some_and(|used| used.running >= most.get())
                };
                if !self.entries.iter().any(full) {
                    for (entry, _) in &self.entries {
                        book.used.entry(*entry).or_default().running += 1;
                    }
                    return Turn { quotas: Arc::clone(&self.quotas), entries: self.entries };
                }
            }
            ended.await;
        }
    }
}

impl Quotas {
    /// Counts a call towards all these quotas, unless one of them is used up: then towards none of them, and the error says which one.
    /// Each comes with the caller by whom it is used; none: it is for all callers together.
    pub fn begin<'a>(
        self: &Arc<Self>,
        quotas: impl IntoIterator<Item = (&'a Quota, Option<&'a Principal>)>,
    ) -> Result<Option<Turn>, (&'a Quota, Spent)> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.begin_at(now, quotas)
    }

    fn begin_at<'a>(
        self: &Arc<Self>,
        now: Duration,
        quotas: impl IntoIterator<Item = (&'a Quota, Option<&'a Principal>)>,
    ) -> Result<Option<Turn>, (&'a Quota, Spent)> {
        let limited = quotas.into_iter().filter(|(quota, _)| quota.limits.are_there());
        let all: Vec<(u64, &Quota, bool)> = limited
            .map(|(quota, caller)| (self.numbers.hash_one((&quota.name, caller)), quota, caller.is_none()))
            .collect();
        if all.is_empty() {
            return Ok(None);
        }
        let mut book = self.used.lock();
        let spent = |(entry, quota, _): &(u64, &'a Quota, bool)| {
            let spent = book.used.get(entry)?.check(&quota.limits, now).err()?;
            Some((*quota, spent))
        };
        // Whoever comes back when one of several is there again would be told of the next.
        if let Some(spent) = all.iter().filter_map(spent).max_by_key(|(_, spent)| spent.after) {
            return Err(spent);
        }
        book.tidy(all.len(), now);
        for (entry, quota, shared) in &all {
            let used = book.used.entry(*entry).or_default();
            used.shared = *shared;
            used.count(&quota.limits, now);
        }
        let entries: Vec<(u64, NonZeroU32)> =
            all.iter().filter_map(|(entry, quota, _)| Some((*entry, quota.limits.at_once?))).collect();
        Ok((!entries.is_empty()).then(|| Turn { quotas: Arc::clone(self), entries }))
    }
}

impl Book {
    /// Makes room for so many more entries.
    fn tidy(&mut self, more: usize, now: Duration) {
        if self.used.len() + more <= self.tidy_at.max(MANY) {
            return;
        }
        self.used.retain(|_, used| !used.is_nothing(now));
        if self.used.len() > MOST / 2 {
            // Whoever is so many callers has calls enough. Those who used the most are remembered.
            let mut calls: Vec<u32> = self.used.values().map(|used| used.calls(now)).collect();
            let at = calls.len() - MOST / 2;
            let (_, least, more) = calls.select_nth_unstable(at);
            let least = *least;
            // Of those who used as little as the last one that has room.
            let mut room = MOST / 2 - more.iter().filter(|calls| **calls > least).count();
            self.used.retain(|_, used| {
                let calls = used.calls(now);
                let has_room = calls == least && room > 0;
                room -= usize::from(has_room);
                used.running > 0 || used.shared || calls > least || has_room
            });
        }
        self.tidy_at = (self.used.len() * 2).clamp(MANY, MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A day in the afternoon.
    const NOON: Duration = Duration::from_secs(20_000 * DAY + 12 * HOUR);

    fn limits([per_minute, per_hour, per_day, at_once]: [u32; 4]) -> Limits {
        let [per_minute, per_hour, per_day, at_once] = [per_minute, per_hour, per_day, at_once].map(NonZeroU32::new);
        Limits { per_minute, per_hour, per_day, at_once }
    }

    fn quota(name: &str, numbers: [u32; 4]) -> Quota {
        Quota { name: name.into(), limits: limits(numbers) }
    }

    fn caller(name: &str) -> Principal {
        Principal::Named(name.into())
    }

    /// Which limit is used up after so many seconds, and for how many seconds; none if the call was counted.
    fn after(quotas: &Arc<Quotas>, seconds: u64, all: &[(&Quota, Option<&Principal>)]) -> Option<(String, Span, u64)> {
        let now = NOON + Duration::from_secs(seconds);
        let (quota, spent) = quotas.begin_at(now, all.iter().copied()).err()?;
        Some((quota.name.clone(), spent.span, spent.after.as_secs() + u64::from(spent.after.subsec_nanos() > 0)))
    }

    #[tokio::test]
    async fn a_call_that_waits_for_an_answer_does_not_count_as_running() {
        let (quotas, one) = (Arc::new(Quotas::default()), quota("one", [0, 0, 0, 1]));
        let begin = || quotas.begin_at(NOON, [(&one, None)]);
        let resting = begin().unwrap().unwrap().rest();
        let other = begin().unwrap().unwrap();
        assert!(begin().is_err());
        let mut again = Box::pin(resting.run());
        assert!(futures_util::poll!(&mut again).is_pending(), "the other one runs");
        drop(other);
        let again = again.await;
        assert!(begin().is_err());
        drop(again);
        assert!(begin().is_ok());
    }

    #[test]
    fn calls_come_back_in_time() {
        let (minute, hour, day) = (Some(Span::Minute), Some(Span::Hour), Some(Span::Day));
        for (numbers, calls) in [
            // Three at once, then one each 20 s.
            (
                [3, 0, 0, 0],
                &[
                    (0, None, 0),
                    (0, None, 0),
                    (0, None, 0),
                    (0, minute, 20),
                    (19, minute, 1),
                    (20, None, 0),
                    (20, minute, 20),
                    (200, None, 0),
                    (200, None, 0),
                    (200, None, 0),
                    (200, minute, 20),
                ][..],
            ),
            ([1, 0, 0, 0], &[(0, None, 0), (1, minute, 59), (60, None, 0)]),
            // What an hour has comes again with the next one, whenever in the hour it was used.
            (
                [0, 2, 0, 0],
                &[
                    (10, None, 0),
                    (3000, None, 0),
                    (3001, hour, 599),
                    (3600, None, 0),
                    (3600, None, 0),
                    (3600, hour, 3600),
                    (7200, None, 0),
                ],
            ),
            (
                [0, 0, 1, 0],
                &[(60, None, 0), (60, day, 43_140), (43_199, day, 1), (43_200, None, 0), (43_200, day, 86_400)],
            ),
            // Of several the one that takes longest is told.
            ([1, 1, 1, 0], &[(0, None, 0), (0, day, 43_200)]),
            ([1, 2, 9, 0], &[(0, None, 0), (0, minute, 60), (60, None, 0), (60, hour, 3540)]),
        ] {
            let (quotas, quota, ann) = (Arc::default(), quota("q", numbers), caller("ann"));
            for (at, span, wait) in calls {
                let expected = span.map(|span| ("q".to_owned(), span, *wait));
                assert_eq!(after(&quotas, *at, &[(&quota, Some(&ann))]), expected, "{numbers:?} at {at}");
            }
        }
    }

    #[test]
    fn callers_have_quotas_of_their_own_and_share_those_of_all() {
        let quotas = Arc::default();
        let (own, other, shared) =
            (quota("own", [0, 0, 2, 0]), quota("other", [0, 0, 2, 0]), quota("all", [0, 0, 3, 0]));
        let (ann, ben) = (caller("ann"), caller("ben"));
        for (one, who, refused) in [
            (&own, &ann, None),
            (&own, &ann, None),
            (&own, &ann, Some("own")),
            (&other, &ann, None),
            (&other, &ben, Some("all")),
            (&own, &ben, Some("all")),
        ] {
            let got = after(&quotas, 0, &[(one, Some(who)), (&shared, None)]);
            assert_eq!(got.map(|(name, ..)| name).as_deref(), refused, "{} {who}", one.name);
        }
    }

    #[test]
    fn a_refused_call_counts_nowhere() {
        let quotas = Arc::default();
        let (wide, narrow, ann) = (quota("wide", [2, 2, 2, 2]), quota("narrow", [0, 0, 1, 0]), caller("ann"));
        assert_eq!(after(&quotas, 0, &[(&wide, Some(&ann)), (&narrow, Some(&ann))]), None);
        for _ in 0..100 {
            let refused = after(&quotas, 0, &[(&wide, Some(&ann)), (&narrow, Some(&ann))]);
            assert_eq!(refused, Some(("narrow".into(), Span::Day, 43_200)));
        }
        assert_eq!(after(&quotas, 0, &[(&wide, Some(&ann))]), None);
        assert_eq!(after(&quotas, 0, &[(&wide, Some(&ann))]), Some(("wide".into(), Span::Day, 43_200)));
    }

    #[test]
    fn turns_come_back_when_they_are_dropped() {
        let quotas: Arc<Quotas> = Arc::default();
        let (two, ann, ben) = (quota("two", [0, 0, 0, 2]), caller("ann"), caller("ben"));
        let begin = |who| quotas.begin_at(NOON, [(&two, Some(who))]);
        let (one, other) = (begin(&ann).unwrap(), begin(&ann).unwrap());
        let (_, spent) = begin(&ann).err().unwrap();
        assert_eq!((spent.most.get(), spent.span, spent.after), (2, Span::AtOnce, Duration::from_secs(1)));
        assert!(begin(&ben).is_ok());
        drop(one);
        let again = begin(&ann).unwrap();
        assert!(begin(&ann).is_err());
        drop((other, again));
        assert!(quotas.used.lock().used.values().all(|used| used.is_nothing(NOON)));
        assert!(quotas.begin_at(NOON, [(&quota("none", [0; 4]), None)]).unwrap().is_none());
    }

    /// Another number for a quota of the same name counts from what was used, and a clock that is set back locks nobody out.
    #[test]
    fn what_was_used_outlasts_the_config_and_the_clock() {
        let (quotas, ann) = (Arc::default(), caller("ann"));
        for (seconds, numbers, expected) in [
            (0, [0, 0, 2, 0], None),
            (0, [0, 0, 2, 0], None),
            (0, [0, 0, 2, 0], Some(Span::Day)),
            (0, [0, 0, 3, 0], None),
            (0, [0, 0, 1, 0], Some(Span::Day)),
        ] {
            let got = after(&quotas, seconds, &[(&quota("q", numbers), Some(&ann))]);
            assert_eq!(got.map(|(_, span, _)| span), expected, "{numbers:?}");
        }
        let slow = quota("slow", [1, 0, 0, 0]);
        assert_eq!(after(&quotas, 100_000, &[(&slow, Some(&ann))]), None);
        assert_eq!(after(&quotas, 0, &[(&slow, Some(&ann))]), Some(("slow".into(), Span::Minute, 60)));
    }

    #[test]
    fn a_flood_of_callers_takes_no_more_room_and_forgives_nobody_who_used_much() {
        let quotas: Arc<Quotas> = Arc::default();
        let (one, ann, zoe) = (quota("q", [0, 0, 9, 1]), caller("ann"), caller("zoe"));
        for _ in 0..9 {
            quotas.begin_at(NOON, [(&one, Some(&ann))]).unwrap();
        }
        let turn = quotas.begin_at(NOON, [(&one, Some(&zoe))]).unwrap();
        for number in 0..3 * MOST {
            quotas.begin_at(NOON, [(&one, Some(&caller(&number.to_string())))]).unwrap();
            assert!(quotas.used.lock().used.len() <= MOST, "{number}");
        }
        assert_eq!(quotas.begin_at(NOON, [(&one, Some(&ann))]).err().unwrap().1.span, Span::Day);
        assert_eq!(quotas.begin_at(NOON, [(&one, Some(&zoe))]).err().unwrap().1.span, Span::AtOnce);
        drop(turn);
        // A day later nothing of it is left.
        let tomorrow = NOON + Duration::from_secs(DAY);
        quotas.used.lock().tidy(MOST, tomorrow);
        assert!(quotas.used.lock().used.is_empty());
    }
}
