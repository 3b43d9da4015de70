//! Rate limits and concurrency limits on calls, for each caller or for all callers together. The limits come from the config; their usage
//! is stored in [`Quotas`] and outlives changes of the config, so that reloading a config gives no caller new calls.
//!
//! The limit per minute is a token bucket (GCRA); those per hour and per day are fixed windows. Libraries for rate limits check one limit
//! at a time and count at the same time. A call that one of several limits refuses must not count towards the others, so all limits are
//! checked before the call counts towards any of them.

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

/// From this number of tracked callers on, callers that have all of their calls again are looked for and forgotten.
const SWEEP_ABOVE_CALLERS: usize = 1024;
/// The maximum number of callers whose usage is tracked.
const MAX_TRACKED_CALLERS: usize = 65_536;

/// The limits on calls. None: any number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QuotaLimits {
    /// All of them may come at once (a burst); calls are refilled evenly over a minute.
    pub per_minute: Option<NonZeroU32>,
    /// The calls in each hour of UTC.
    pub per_hour: Option<NonZeroU32>,
    /// The calls in each day of UTC.
    pub per_day: Option<NonZeroU32>,
    pub at_once: Option<NonZeroU32>,
}

impl QuotaLimits {
    /// Whether there is any limit.
    pub fn is_limited(&self) -> bool {
        *self != Self::default()
    }
}

/// Limits, and the name under which their usage is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota {
    /// The name is unique within a config. A later config refers to the same quota by the same name.
    pub name: String,
    pub limits: QuotaLimits,
}

/// The period that a limit applies to.
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
    /// How long to wait before the next attempt.
    pub after: Duration,
}

/// The usage of one quota: by one caller, or by all callers together.
#[derive(Debug, Default)]
struct Usage {
    running: u32,
    /// Whether all callers share it. Their number is bounded by the config, so these are never forgotten.
    shared: bool,
    /// When all calls of the limit per minute are refilled, as a time since 1970 (the theoretical arrival time of GCRA).
    refilled_at: Duration,
    hour: Window,
    day: Window,
}

/// The calls in a fixed window of time, such as one day.
#[derive(Debug, Default)]
struct Window {
    number: u64,
    calls: u32,
}

impl Window {
    /// Checks whether there are calls left. The error is how long to wait for new ones.
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

    /// Takes over a larger number of calls in the current window.
    fn know(&mut self, calls: u32, seconds: u64, now: Duration) {
        let calls = calls.max(self.calls(seconds, now));
        *self = Self { number: now.as_secs() / seconds, calls };
    }

    /// Returns the number of calls in the current window.
    fn calls(&self, seconds: u64, now: Duration) -> u32 {
        if self.number == now.as_secs() / seconds { self.calls } else { 0 }
    }
}

impl Usage {
    /// Returns when all calls of the limit per minute would be refilled if one more call were made.
    fn refilled_after_one_more(&self, most: NonZeroU32, now: Duration) -> Duration {
        // This is at most a minute ahead, unless the clock was set back.
        self.refilled_at.clamp(now, now + MINUTE) + MINUTE / most.get()
    }

    /// Checks all limits. The error is the limit that is used up; of several, the one with the longest wait.
    fn check(&self, limits: &QuotaLimits, now: Duration) -> Result<(), Spent> {
        let QuotaLimits { per_minute, per_hour, per_day, at_once } = limits;
        let spent = |most: &NonZeroU32, span, after: Result<(), Duration>| {
            after.err().map(|after| Spent { most: *most, span, after })
        };
        let all = [
            at_once.as_ref().and_then(|most| {
                let full = self.running >= most.get();
                spent(most, Span::AtOnce, if full { Err(Duration::from_secs(1)) } else { Ok(()) })
            }),
            per_minute.as_ref().and_then(|most| {
                let after = self.refilled_after_one_more(*most, now).checked_sub(now + MINUTE);
                spent(most, Span::Minute, after.filter(|after| !after.is_zero()).map_or(Ok(()), Err))
            }),
            per_hour.as_ref().and_then(|most| spent(most, Span::Hour, self.hour.check(*most, HOUR, now))),
            per_day.as_ref().and_then(|most| spent(most, Span::Day, self.day.check(*most, DAY, now))),
        ];
        all.into_iter().flatten().max_by_key(|spent| spent.after).map_or(Ok(()), Err)
    }

    fn count(&mut self, limits: &QuotaLimits, now: Duration) {
        if let Some(most) = limits.per_minute {
            self.refilled_at = self.refilled_after_one_more(most, now);
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

    /// Whether all calls are available again, so that the entry may be forgotten.
    fn is_unused(&self, now: Duration) -> bool {
        self.running == 0 && self.refilled_at <= now && self.calls(now) == 0
    }

    /// Returns the number of calls that count for longer than a minute.
    fn calls(&self, now: Duration) -> u32 {
        self.hour.calls(HOUR, now).max(self.day.calls(DAY, now))
    }
}

/// The usage of all quotas. It is stored in memory only: after a restart, all callers have all of their calls again.
#[derive(Default)]
pub struct Quotas {
    /// Identifies callers and quotas by a keyed hash, so that long names take no memory and collisions cannot be chosen.
    hasher: RandomState,
    usages: Mutex<Usages>,
    /// Notified when a call that counts as running has ended.
    ended: Notify,
}

#[derive(Default)]
struct Usages {
    entries: HashMap<u64, Usage>,
    /// The number of entries above which unused entries are removed.
    sweep_at: usize,
}

/// A call that is counted as running elsewhere, over several processes.
pub trait SharedTurn: Send + Sync {
    /// Counts the call as running, or not any more.
    fn set_running(&self, running: bool);
}

/// A running call that counts towards concurrency limits until this is dropped (RAII).
pub struct Turn {
    quotas: Arc<Quotas>,
    /// The entries in which the call is counted, each with its concurrency limit.
    entries: Vec<(u64, NonZeroU32)>,
    shared: Option<Arc<dyn SharedTurn>>,
}

/// A call that does not count as running, because it waits for an answer.
pub struct Resting {
    quotas: Arc<Quotas>,
    entries: Vec<(u64, NonZeroU32)>,
    shared: Option<Arc<dyn SharedTurn>>,
}

impl Turn {
    /// Stops counting the call as running until [`Resting::run`].
    pub fn rest(mut self) -> Resting {
        self.release();
        let (entries, shared) = (std::mem::take(&mut self.entries), self.shared.take());
        Resting { quotas: Arc::clone(&self.quotas), entries, shared }
    }

    fn release(&self) {
        if let Some(shared) = &self.shared {
            shared.set_running(false);
        }
        if self.entries.is_empty() {
            return;
        }
        {
            let mut usages = self.quotas.usages.lock();
            for (entry, _) in &self.entries {
                if let Some(usage) = usages.entries.get_mut(entry) {
                    usage.running = usage.running.saturating_sub(1);
                }
            }
        }
        self.quotas.ended.notify_waiters();
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.release();
    }
}

impl Resting {
    /// Waits until the call may run again. The caller has to bound the wait. A call that is counted over several processes runs at once.
    pub async fn run(self) -> Turn {
        if let Some(shared) = self.shared {
            shared.set_running(true);
            return Turn { quotas: self.quotas, entries: self.entries, shared: Some(shared) };
        }
        loop {
            let mut ended = std::pin::pin!(self.quotas.ended.notified());
            // From here on, no notification is missed.
            ended.as_mut().enable();
            {
                let mut usages = self.quotas.usages.lock();
                let full = |(entry, most): &(u64, NonZeroU32)| {
                    usages.entries.get(entry).is_some_and(|usage| usage.running >= most.get())
                };
                if !self.entries.iter().any(full) {
                    for (entry, _) in &self.entries {
                        usages.entries.entry(*entry).or_default().running += 1;
                    }
                    return Turn { quotas: Arc::clone(&self.quotas), entries: self.entries, shared: None };
                }
            }
            ended.await;
        }
    }
}

impl Quotas {
    /// Returns the turn of a call that is counted elsewhere.
    pub fn shared_turn(self: &Arc<Self>, shared: Arc<dyn SharedTurn>) -> Turn {
        Turn { quotas: Arc::clone(self), entries: Vec::new(), shared: Some(shared) }
    }

    /// Takes over what is known to be used of a quota that is counted elsewhere: the calls in this hour and on this day, and the time after
    /// which all calls of the limit per minute are there again. What is used here does not become less by it.
    pub fn know(&self, quota: &Quota, caller: Option<&Principal>, (hours, days): (u32, u32), refilled_after: Duration) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let mut usages = self.usages.lock();
        usages.sweep(1, now);
        let usage = usages.entries.entry(self.hasher.hash_one((&quota.name, caller))).or_default();
        usage.shared = caller.is_none();
        usage.refilled_at = usage.refilled_at.max(now + refilled_after.min(MINUTE));
        usage.hour.know(hours, HOUR, now);
        usage.day.know(days, DAY, now);
    }

    /// Counts a call towards all these quotas. If one of them is used up, the call counts towards none of them, and the error says
    /// which quota it is. Each quota comes with the caller that uses it; `None`: all callers share it.
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
        let limited = quotas.into_iter().filter(|(quota, _)| quota.limits.is_limited());
        let all: Vec<(u64, &Quota, bool)> = limited
            .map(|(quota, caller)| (self.hasher.hash_one((&quota.name, caller)), quota, caller.is_none()))
            .collect();
        if all.is_empty() {
            return Ok(None);
        }
        let mut usages = self.usages.lock();
        let spent = |(entry, quota, _): &(u64, &'a Quota, bool)| {
            let spent = usages.entries.get(entry)?.check(&quota.limits, now).err()?;
            Some((*quota, spent))
        };
        // If the shortest wait were reported, the next attempt would be refused by another quota.
        if let Some(spent) = all.iter().filter_map(spent).max_by_key(|(_, spent)| spent.after) {
            return Err(spent);
        }
        usages.sweep(all.len(), now);
        for (entry, quota, shared) in &all {
            let usage = usages.entries.entry(*entry).or_default();
            usage.shared = *shared;
            usage.count(&quota.limits, now);
        }
        let entries: Vec<(u64, NonZeroU32)> =
            all.iter().filter_map(|(entry, quota, _)| Some((*entry, quota.limits.at_once?))).collect();
        Ok((!entries.is_empty()).then(|| Turn { quotas: Arc::clone(self), entries, shared: None }))
    }
}

impl Usages {
    /// Makes room for this many more entries.
    fn sweep(&mut self, more: usize, now: Duration) {
        if self.entries.len() + more <= self.sweep_at.max(SWEEP_ABOVE_CALLERS) {
            return;
        }
        self.entries.retain(|_, usage| !usage.is_unused(now));
        if self.entries.len() > MAX_TRACKED_CALLERS / 2 {
            // A caller that can appear under this many identities gets enough calls anyway; forget those that used least.
            let mut calls: Vec<u32> = self.entries.values().map(|usage| usage.calls(now)).collect();
            let at = calls.len() - MAX_TRACKED_CALLERS / 2;
            let (_, least, more) = calls.select_nth_unstable(at);
            let least = *least;
            // Among callers that used exactly `least`, as many are remembered as there is room for.
            let mut room = MAX_TRACKED_CALLERS / 2 - more.iter().filter(|calls| **calls > least).count();
            self.entries.retain(|_, usage| {
                let calls = usage.calls(now);
                let has_room = calls == least && room > 0;
                room -= usize::from(has_room);
                usage.running > 0 || usage.shared || calls > least || has_room
            });
        }
        self.sweep_at = (self.entries.len() * 2).clamp(SWEEP_ABOVE_CALLERS, MAX_TRACKED_CALLERS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A day in the afternoon.
    const NOON: Duration = Duration::from_secs(20_000 * DAY + 12 * HOUR);

    fn limits([per_minute, per_hour, per_day, at_once]: [u32; 4]) -> QuotaLimits {
        let [per_minute, per_hour, per_day, at_once] = [per_minute, per_hour, per_day, at_once].map(NonZeroU32::new);
        QuotaLimits { per_minute, per_hour, per_day, at_once }
    }

    fn quota(name: &str, numbers: [u32; 4]) -> Quota {
        Quota { name: name.into(), limits: limits(numbers) }
    }

    fn caller(name: &str) -> Principal {
        Principal::Named(name.into())
    }

    /// Returns which limit is used up after this many seconds, and for how many seconds. None: the call was counted.
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
    fn what_is_known_to_be_used_elsewhere_is_used_here() {
        let quotas = Arc::new(Quotas::default());
        let (hourly, ann) = (quota("q", [0, 3, 0, 0]), caller("ann"));
        let passes = || (0..5).filter(|_| quotas.begin([(&hourly, Some(&ann))]).is_ok()).count();
        quotas.know(&hourly, Some(&ann), (2, 0), Duration::ZERO);
        assert_eq!(passes(), 1);
        quotas.know(&hourly, Some(&ann), (1, 0), Duration::ZERO);
        assert_eq!(passes(), 0, "it does not become less");
        let minutely = quota("m", [60, 0, 0, 0]);
        quotas.know(&minutely, None, (0, 0), MINUTE);
        assert!(matches!(quotas.begin([(&minutely, None)]), Err((_, spent)) if spent.span == Span::Minute));
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
            // The calls of an hour are available again in the next hour, whenever in the hour they were made.
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
            // Of several limits, the one with the longest wait is reported.
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
        assert!(quotas.usages.lock().entries.values().all(|usage| usage.is_unused(NOON)));
        assert!(quotas.begin_at(NOON, [(&quota("none", [0; 4]), None)]).unwrap().is_none());
    }

    /// A changed limit of the same quota takes previous usage into account, and setting the clock back locks no caller out.
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
        for number in 0..3 * MAX_TRACKED_CALLERS {
            quotas.begin_at(NOON, [(&one, Some(&caller(&number.to_string())))]).unwrap();
            assert!(quotas.usages.lock().entries.len() <= MAX_TRACKED_CALLERS, "{number}");
        }
        assert_eq!(quotas.begin_at(NOON, [(&one, Some(&ann))]).err().unwrap().1.span, Span::Day);
        assert_eq!(quotas.begin_at(NOON, [(&one, Some(&zoe))]).err().unwrap().1.span, Span::AtOnce);
        drop(turn);
        // A day later, no usage is left.
        let tomorrow = NOON + Duration::from_secs(DAY);
        quotas.usages.lock().sweep(MAX_TRACKED_CALLERS, tomorrow);
        assert!(quotas.usages.lock().entries.is_empty());
    }
}
