//! Sealed values in Redis, each for a limited time. What a value takes there is charged to the party that has stored it, until it expires, by
//! the clock of Redis: a pool with the same rules as the memory of a process. A value is a hash with a sealed text for each of its fields, and
//! one field that says what is charged to whom.

use std::{collections::HashMap, sync::LazyLock, time::Duration};

use redis::{Script, cmd};
use serde::{Serialize, de::DeserializeOwned};
use wharf_base::{party::Party, state_keys::NONCE_BYTES};

use crate::{
    cluster::{Cluster, millis},
    silent::{NotStored, Silent},
};

/// How often a change is tried while others change the same value.
const MAX_ATTEMPTS: usize = 16;
/// The largest field, in bytes.
const MAX_FIELD_BYTES: usize = 16 << 20;
/// The field of a value that has only one.
const ONLY: &str = "";
/// What comes before the name of a field, so that none is the one with the charge.
const FIELD_MARK: &str = "=";

/// Writes fields of a value, and charges them. Keys: the value; what all parties hold. Arguments: the party; the beginning of the keys with
/// what each party holds; the bytes for all parties; for how many milliseconds the value lives, 0 to remove it; the least that is charged
/// for it; what must be so (`any`, `absent`, `there`, or the nonce of its only field); whether all other fields go; then the name and the
/// text of each field, without a text to remove it. Returns 1, or 0 if it is not as it must be, or -1 if the party may not hold as much.
///
/// An account is a hash: for each moment at which charges end, their bytes; `total`, their sum; and `next`, the first of these moments.
/// Moments are rounded up by at most an eighth of the time that the value lives, so that an account has few of them.
const WRITE: &str = "
local MARK, OVERHEAD, FIELD = '.', 640, 96
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function text(number) return string.format('%d', number) end
local function held(account)
  local got = redis.call('HMGET', account, 'total', 'next')
  local total, first = tonumber(got[1] or 0), tonumber(got[2] or 0)
  if first == 0 or first > now then return total end
  total, first = 0, 0
  local all = redis.call('HGETALL', account)
  for i = 1, #all, 2 do
    local ends = tonumber(all[i])
    if ends and ends <= now then
      redis.call('HDEL', account, all[i])
    elseif ends then
      total = total + all[i + 1]
      if first == 0 or ends < first then first = ends end
    end
  end
  if total > 0 then redis.call('HSET', account, 'total', text(total), 'next', text(first)) else redis.call('DEL', account) end
  return total
end
local function add(account, bytes, ends)
  bytes = math.max(bytes, -tonumber(redis.call('HGET', account, text(ends)) or 0))
  if bytes == 0 then return end
  if redis.call('HINCRBY', account, text(ends), text(bytes)) <= 0 then redis.call('HDEL', account, text(ends)) end
  if redis.call('HINCRBY', account, 'total', text(bytes)) <= 0 then
    redis.call('DEL', account)
    return
  end
  local first = tonumber(redis.call('HGET', account, 'next') or 0)
  if first == 0 or ends < first then redis.call('HSET', account, 'next', text(ends)) end
  if redis.call('PEXPIRETIME', account) < ends then redis.call('PEXPIREAT', account, text(ends)) end
end
local value, all, party, lives, must = KEYS[1], KEYS[2], ARGV[1], tonumber(ARGV[4]), ARGV[6]
local there = redis.call('EXISTS', value) == 1
if must == 'absent' then
  if there then return 0 end
elseif must == 'there' then
  if not there then return 0 end
elseif must ~= 'any' then
  if string.sub(redis.call('HGET', value, '=') or '', 1, #must) ~= must then return 0 end
end
local size, charged, ends = 0, 0, 0
local mark = there and redis.call('HGET', value, MARK)
if mark then
  local was, fields, bytes, moment = string.match(mark, '^(%x+) (%d+) (%d+) (%d+)$')
  if was then party, size, charged, ends = was, tonumber(fields), tonumber(bytes), tonumber(moment) end
end
local own = ARGV[2] .. party
local function settle()
  if charged > 0 and ends > now then
    add(all, -charged, ends)
    add(own, -charged, ends)
  end
end
if lives == 0 then
  settle()
  redis.call('DEL', value)
  return 1
end
local whole = ARGV[7] == '1'
if whole then size = 0 end
for i = 8, #ARGV, 2 do
  local name, field = ARGV[i], ARGV[i + 1]
  local before = whole and 0 or redis.call('HSTRLEN', value, name)
  if before > 0 then size = size - FIELD - math.ceil((#name + before) * 1.25) end
  if #field > 0 then size = size + FIELD + math.ceil((#name + #field) * 1.25) end
end
size = math.max(size, 0)
local bytes = OVERHEAD + math.max(size, tonumber(ARGV[5]))
local held_by_all, held_by_party = held(all), held(own)
local gone = ends > now and charged or 0
if bytes > gone then
  local limit, sum, left = tonumber(ARGV[3]), held_by_party - gone + bytes, 0
  left = limit - (held_by_all - gone + bytes)
  if sum > left or (sum > limit / 64 and left < limit / 8) then return -1 end
end
local step = 1
while step * 16 < lives do step = step * 2 end
local moment = math.ceil((now + lives) / step) * step
settle()
if whole and there then redis.call('DEL', value) end
for i = 8, #ARGV, 2 do
  if #ARGV[i + 1] > 0 then
    redis.call('HSET', value, ARGV[i], ARGV[i + 1])
  else
    redis.call('HDEL', value, ARGV[i])
  end
end
redis.call('HSET', value, MARK, party .. ' ' .. text(size) .. ' ' .. text(bytes) .. ' ' .. text(moment))
redis.call('PEXPIRE', value, text(lives))
add(all, bytes, moment)
add(own, bytes, moment)
return 1";

static STORE: LazyLock<Script> = LazyLock::new(|| Script::new(&format!("#!lua\n{WRITE}")));
/// The same, also while Redis is full: for what makes room.
static REMOVE: LazyLock<Script> = LazyLock::new(|| Script::new(&format!("#!lua flags=allow-oom\n{WRITE}")));

/// Adds a member to a list, keeps the list at least this long, and removes some members whose values are gone.
static LIST: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "#!lua
redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2])
local lives = redis.call('PTTL', KEYS[1])
if lives < tonumber(ARGV[3]) then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
for _, member in ipairs(redis.call('ZRANDMEMBER', KEYS[1], 4)) do
  if redis.call('EXISTS', ARGV[4] .. member) == 0 then redis.call('ZREM', KEYS[1], member) end
end
return 1",
    )
});

/// What becomes of a value that is there when fields are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// It goes, with all its fields.
    Goes,
    /// Its other fields stay.
    Stays,
    /// It stays as it is, and nothing is stored.
    Wins,
}

/// What must be so for a value to be written.
#[derive(Clone, Copy)]
enum Must<'a> {
    Any,
    Absent,
    There,
    /// The only field still begins with this nonce, so it is the one that was read.
    Unchanged(&'a [u8]),
}

/// A value that is about to be written.
struct Write<'a> {
    party: Party,
    /// `None`: the value is removed.
    lives: Option<Duration>,
    /// The least that is charged, in bytes, for what the value may become.
    least: usize,
    must: Must<'a>,
    /// Whether these are all fields.
    whole: bool,
    /// The name and the sealed text of each field; without a text, the field is removed.
    fields: Vec<(String, Vec<u8>)>,
}

impl Cluster {
    /// Returns a value. `None`: nothing is stored under this name.
    pub async fn get<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Silent> {
        let key = self.key(name);
        let sealed = self.sealed(&key, ONLY).await?;
        sealed.map(|sealed| self.read(&sealed, &key, ONLY)).transpose()
    }

    /// Stores a value. `least`: how many bytes are charged at least, since it may become as large.
    pub async fn put<T: Serialize + ?Sized>(
        &self,
        name: &str,
        value: &T,
        lives: Duration,
        (party, least): (Party, usize),
    ) -> Result<(), NotStored> {
        let key = self.key(name);
        let fields = vec![self.written(&key, ONLY, value)?];
        let write = Write { party, lives: Some(lives), least, must: Must::Any, whole: true, fields };
        self.write(&key, write).await.map(drop)
    }

    pub async fn delete(&self, name: &str) -> Result<(), Silent> {
        let key = self.key(name);
        let removed =
            Write { party: Party::SOLE, lives: None, least: 0, must: Must::Any, whole: true, fields: Vec::new() };
        // Nothing is charged, so this fails only without an answer.
        self.write(&key, removed).await.map(drop).map_err(|_| Silent)
    }

    /// Changes a value atomically, and returns what it is then. `change` gets the current value, and may be called more than once. If it
    /// returns `None`, or there is no value, nothing is changed. The value is charged to the party that has stored it. `least`: how many bytes
    /// are charged at least.
    pub async fn change<T: Serialize + DeserializeOwned + Send>(
        &self,
        name: &str,
        least: usize,
        change: impl Fn(T) -> Option<(T, Duration)> + Send + Sync,
    ) -> Result<Option<T>, NotStored> {
        let key = self.key(name);
        for _ in 0..MAX_ATTEMPTS {
            let Some(before) = self.sealed(&key, ONLY).await? else { return Ok(None) };
            let Some((value, lives)) = change(self.read(&before, &key, ONLY)?) else { return Ok(None) };
            let must = Must::Unchanged(before.get(..NONCE_BYTES).unwrap_or_default());
            let fields = vec![self.written(&key, ONLY, &value)?];
            let written = Write { party: Party::SOLE, lives: Some(lives), least, must, whole: true, fields };
            if self.write(&key, written).await? {
                return Ok(Some(value));
            }
        }
        Err(Silent.into())
    }

    /// Takes a name for a while, and returns whether nobody had it.
    pub async fn claim(&self, name: &str, lives: Duration, party: Party) -> Result<bool, NotStored> {
        let key = self.key(name);
        let fields = vec![self.written(&key, ONLY, &())?];
        self.write(&key, Write { party, lives: Some(lives), least: 0, must: Must::Absent, whole: true, fields }).await
    }

    /// Stores fields of a value.
    pub async fn put_fields<T: Serialize + ?Sized>(
        &self,
        name: &str,
        fields: &[(&str, &T)],
        (lives, party): (Duration, Party),
        before: Before,
    ) -> Result<(), NotStored> {
        let key = self.key(name);
        let fields = fields.iter().map(|(field, value)| self.written(&key, field, value)).collect::<Result<_, _>>()?;
        let must = if before == Before::Wins { Must::Absent } else { Must::Any };
        let whole = before != Before::Stays;
        self.write(&key, Write { party, lives: Some(lives), least: 0, must, whole, fields }).await.map(drop)
    }

    /// Removes one field of a value, if there is one.
    pub async fn remove_field(&self, name: &str, field: &str, lives: Duration) -> Result<(), NotStored> {
        let key = self.key(name);
        let fields = vec![(field_name(field), Vec::new())];
        let removed =
            Write { party: Party::SOLE, lives: Some(lives), least: 0, must: Must::There, whole: false, fields };
        self.write(&key, removed).await.map(drop)
    }

    /// Returns all fields of a value by their names. `None`: nothing is stored under this name.
    pub async fn fields<T: DeserializeOwned>(&self, name: &str) -> Result<Option<HashMap<String, T>>, Silent> {
        let key = self.key(name);
        let turn = self.turns.take(&key).await;
        let all: HashMap<String, Vec<u8>> = self.link.run(cmd("HGETALL").arg(&key)).await?;
        drop(turn);
        if all.is_empty() {
            return Ok(None);
        }
        let named = |(name, sealed): (String, Vec<u8>)| Some((name.strip_prefix(FIELD_MARK)?.to_owned(), sealed));
        let opened = |(name, sealed): (String, Vec<u8>)| Ok((name.clone(), self.read(&sealed, &key, &name)?));
        all.into_iter().filter_map(named).map(opened).collect::<Result<_, _>>().map(Some)
    }

    /// Returns the next of a series of numbers.
    pub async fn next_number(&self, name: &str) -> Result<u64, Silent> {
        self.link.run(cmd("INCR").arg(self.key(name))).await
    }

    /// Adds a member with a number to a list that is sorted by the numbers, and keeps the list at least this long. `values`: what comes
    /// before a member in the name of the value that it stands for. Members without a value are removed, a few at a time.
    pub async fn list_add(
        &self,
        name: &str,
        (number, member): (u64, &str),
        lives: Duration,
        values: &str,
    ) -> Result<(), Silent> {
        let mut add = LIST.key(self.key(name));
        add.arg(number).arg(member).arg(millis(lives).max(1)).arg(self.key(values));
        self.link.script::<u8>(&add).await.map(drop)
    }

    pub async fn list_remove(&self, name: &str, member: &str) -> Result<(), Silent> {
        self.link.run(cmd("ZREM").arg(self.key(name)).arg(member)).await
    }

    /// Returns members of a list with numbers above `after`, in order.
    pub async fn list_after(&self, name: &str, after: u64, limit: usize) -> Result<Vec<String>, Silent> {
        let range = [format!("({after}"), "+inf".into(), "LIMIT".into(), "0".into(), limit.to_string()];
        self.link.run(cmd("ZRANGEBYSCORE").arg(self.key(name)).arg(&range)).await
    }

    /// Writes a value. Returns whether it was as it must be.
    async fn write(&self, key: &str, write: Write<'_>) -> Result<bool, NotStored> {
        let Write { party, lives, least, must, whole, fields } = write;
        let removes = fields.iter().all(|(_, sealed)| sealed.is_empty());
        let script = if removes { &*REMOVE } else { &*STORE };
        let mut script = script.key(key);
        script.key(self.key("held"));
        script.arg(format!("{:016x}", party.number())).arg(self.key("held:"));
        script.arg(self.memory_bytes).arg(lives.map_or(0, |lives| millis(lives).max(1))).arg(least);
        match must {
            Must::Any => script.arg("any"),
            Must::Absent => script.arg("absent"),
            Must::There => script.arg("there"),
            Must::Unchanged(nonce) => script.arg(nonce),
        };
        script.arg(u8::from(whole));
        for (name, sealed) in fields {
            script.arg(name).arg(sealed);
        }
        match self.link.script::<i8>(&script).await? {
            -1 => Err(NotStored::NoRoom),
            written => Ok(written == 1),
        }
    }

    async fn sealed(&self, key: &str, field: &str) -> Result<Option<Vec<u8>>, Silent> {
        let _turn = self.turns.take(key).await;
        self.link.run(cmd("HGET").arg(key).arg(field_name(field))).await
    }

    fn read<T: DeserializeOwned>(&self, sealed: &[u8], key: &str, field: &str) -> Result<T, Silent> {
        // Only what another version of wharf wrote can be opened and not be read.
        serde_json::from_slice(&self.open(sealed, &place(key, field))?).map_err(|_| Silent)
    }

    /// Returns a field with its sealed text.
    fn written<T: Serialize + ?Sized>(&self, key: &str, field: &str, value: &T) -> Result<(String, Vec<u8>), Silent> {
        let text = serde_json::to_vec(value).map_err(|_| Silent)?;
        if text.len() > MAX_FIELD_BYTES {
            tracing::warn!(
                "a value of {} bytes is not shared with other replicas, which is more than {MAX_FIELD_BYTES}",
                text.len()
            );
            return Err(Silent);
        }
        Ok((field_name(field), self.seal(&text, &place(key, field))?))
    }
}

fn field_name(field: &str) -> String {
    format!("{FIELD_MARK}{field}")
}

/// Returns what the text of a field is bound to. Names of values have no line breaks.
fn place(key: &str, field: &str) -> String {
    format!("{key}\n{field}")
}
