//! Limits on calls that count over all replicas. They are numbers in Redis, checked and counted by one script, by its clock: a call that one
//! of several limits refuses counts towards none of them. The rules are those of `wharf_base::quota`.

use std::{sync::LazyLock, time::Duration};

use redis::Script;

use crate::{cluster::Cluster, silent::Silent};

/// The longest wait that is reported: a day.
const MAX_WAIT_MS: u64 = 86_400_000;

/// Arguments: this replica's address; then, for each key after the first (the replicas that run), its limits for a minute, an hour, a day,
/// and at once, where 0 stands for any number. Returns 0 if the call was counted, else the number of the key, which limit it is, and after
/// how many milliseconds to try again; and then for each key the calls in this hour and on this day, and how many milliseconds of the limit
/// for a minute are used.
static COUNT: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "#!lua flags=allow-oom
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local HOUR, DAY = 3600000, 86400000
local function running(key)
  local sum = 0
  local all = redis.call('HGETALL', key)
  for i = 1, #all, 2 do
    local address = string.match(all[i], '^at:(.*)$')
    if address then
      local lease = redis.call('ZSCORE', KEYS[1], address)
      if lease and tonumber(lease) > now then
        sum = sum + math.max(0, tonumber(all[i + 1]))
      else
        redis.call('HDEL', key, all[i])
      end
    end
  end
  return sum
end
local worst = {0, 0, -1}
local function spent(index, span, after)
  if after > worst[3] then worst = {index, span, after} end
end
local refilled = {}
for i = 2, #KEYS do
  local at = 2 + (i - 2) * 4
  local minute, hour, day, once = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local got = redis.call('HMGET', KEYS[i], 'refilled', 'hour', 'hours', 'day', 'days')
  if minute > 0 then
    local from = math.min(math.max(tonumber(got[1] or 0), now), now + 60000)
    refilled[i] = from + 60000 / minute
    -- A little is left to rounding.
    local after = refilled[i] - (now + 60000)
    if after > 0.5 then spent(i - 1, 1, math.ceil(after)) end
  end
  if hour > 0 and tonumber(got[2] or -1) == math.floor(now / HOUR) and tonumber(got[3] or 0) >= hour then
    spent(i - 1, 2, (math.floor(now / HOUR) + 1) * HOUR - now)
  end
  if day > 0 and tonumber(got[4] or -1) == math.floor(now / DAY) and tonumber(got[5] or 0) >= day then
    spent(i - 1, 3, (math.floor(now / DAY) + 1) * DAY - now)
  end
  if once > 0 and running(KEYS[i]) >= once then spent(i - 1, 0, 1000) end
end
local function known()
  local all = {}
  for i = 2, #KEYS do
    local got = redis.call('HMGET', KEYS[i], 'refilled', 'hour', 'hours', 'day', 'days')
    local hours = tonumber(got[2] or -1) == math.floor(now / HOUR) and tonumber(got[3] or 0) or 0
    local days = tonumber(got[4] or -1) == math.floor(now / DAY) and tonumber(got[5] or 0) or 0
    all[#all + 1] = {hours, days, math.floor(math.max(tonumber(got[1] or 0) - now, 0))}
  end
  return all
end
if worst[1] > 0 then return {worst[1], worst[2], worst[3], known()} end
for i = 2, #KEYS do
  local at = 2 + (i - 2) * 4
  local hour, day, once = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  if refilled[i] then redis.call('HSET', KEYS[i], 'refilled', string.format('%.3f', refilled[i])) end
  for _, window in ipairs({{hour, 'hour', 'hours', HOUR}, {day, 'day', 'days', DAY}}) do
    if window[1] > 0 then
      local number = string.format('%d', math.floor(now / window[4]))
      if redis.call('HGET', KEYS[i], window[2]) == number then
        redis.call('HINCRBY', KEYS[i], window[3], 1)
      else
        redis.call('HSET', KEYS[i], window[2], number, window[3], 1)
      end
    end
  end
  if once > 0 then redis.call('HINCRBY', KEYS[i], 'at:' .. ARGV[1], 1) end
  redis.call('PEXPIRE', KEYS[i], 2 * DAY)
end
return {0, 0, 0, known()}",
    )
});

/// Adds a number, 1 or -1, to the calls of this replica that run.
static RELEASE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "#!lua flags=allow-oom
for i = 1, #KEYS do
  if redis.call('HINCRBY', KEYS[i], 'at:' .. ARGV[1], ARGV[2]) < 1 then redis.call('HDEL', KEYS[i], 'at:' .. ARGV[1]) end
end
return 1",
    )
});

/// The limits under one name; 0 stands for any number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    pub name: String,
    pub per_minute: u32,
    pub per_hour: u32,
    pub per_day: u32,
    pub at_once: u32,
}

/// What all replicas have used of one limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Used {
    /// The calls in this hour, and on this day, if there are limits for them.
    pub hours: u32,
    pub days: u32,
    /// How far the limit for a minute is used, as the time after which it is not.
    pub refilled_after: Duration,
}

/// Whether a call was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    Yes,
    /// This limit is used up, of these spans: 0 at once, 1 a minute, 2 an hour, 3 a day.
    Spent {
        limit: usize,
        span: u8,
        after_ms: u64,
    },
}

impl Cluster {
    /// Counts a call towards all limits, or towards none of them. Returns also what is used of each.
    pub async fn count(&self, limits: &[Limit]) -> Result<(Counted, Vec<Used>), Silent> {
        let mut script = COUNT.key(self.key("replicas"));
        for limit in limits {
            script.key(self.limit_key(&limit.name));
        }
        script.arg(self.address());
        for limit in limits {
            script.arg(limit.per_minute).arg(limit.per_hour).arg(limit.per_day).arg(limit.at_once);
        }
        let (limit, span, after, used): (usize, u8, u64, Vec<(u32, u32, u64)>) = self.link.script(&script).await?;
        let counted = match limit.checked_sub(1) {
            None => Counted::Yes,
            Some(limit) => Counted::Spent { limit, span, after_ms: after.min(MAX_WAIT_MS) },
        };
        let used = used.into_iter().map(|(hours, days, millis)| Used {
            hours,
            days,
            refilled_after: Duration::from_millis(millis.min(MAX_WAIT_MS)),
        });
        Ok((counted, used.collect()))
    }

    /// Counts a call as running, or not any more.
    pub async fn count_running(&self, names: &[String], by: i8) -> Result<(), Silent> {
        let Some((first, others)) = names.split_first() else { return Ok(()) };
        let mut script = RELEASE.key(self.limit_key(first));
        for name in others {
            script.key(self.limit_key(name));
        }
        script.arg(self.address()).arg(by);
        self.link.script::<u8>(&script).await.map(drop)
    }

    fn limit_key(&self, name: &str) -> String {
        self.key(&format!("limit:{name}"))
    }
}
