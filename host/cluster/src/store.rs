//! Sealed values in Redis, each for a limited time.

use std::{sync::LazyLock, time::Duration};

use redis::{Script, cmd};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    cluster::{Cluster, millis},
    silent::Silent,
};

/// How often a change is tried while others change the same value.
const MAX_ATTEMPTS: usize = 16;
/// The largest value, in bytes.
const MAX_VALUE_BYTES: usize = 16 << 20;

/// Replaces a value if it is still the one that was read.
static REPLACE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "
local now = redis.call('GET', KEYS[1])
if (now or '') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1",
    )
});

impl Cluster {
    /// Returns a value. `None`: nothing is stored under this name.
    pub async fn get<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Silent> {
        let key = self.key(name);
        let sealed: Option<Vec<u8>> = self.link.run(cmd("GET").arg(&key)).await?;
        sealed.map(|sealed| self.read(&sealed, &key)).transpose()
    }

    /// Stores a value.
    pub async fn put<T: Serialize + ?Sized>(&self, name: &str, value: &T, lives: Duration) -> Result<(), Silent> {
        let key = self.key(name);
        let sealed = self.written(value, &key)?;
        self.link.run(cmd("SET").arg(&key).arg(sealed).arg("PX").arg(millis(lives).max(1))).await
    }

    pub async fn delete(&self, name: &str) -> Result<(), Silent> {
        self.link.run(cmd("DEL").arg(self.key(name))).await
    }

    /// Changes a value atomically, and returns what it is then. `change` gets the current value, and may be called more than once. If it
    /// returns `None`, nothing is changed.
    pub async fn change<T: Serialize + DeserializeOwned + Send>(
        &self,
        name: &str,
        change: impl Fn(Option<T>) -> Option<(T, Duration)> + Send + Sync,
    ) -> Result<Option<T>, Silent> {
        let key = self.key(name);
        for _ in 0..MAX_ATTEMPTS {
            let before: Option<Vec<u8>> = self.link.run(cmd("GET").arg(&key)).await?;
            let read = before.as_ref().map(|sealed| self.read(sealed, &key)).transpose()?;
            let Some((value, lives)) = change(read) else { return Ok(None) };
            let sealed = self.written(&value, &key)?;
            let mut replaced = REPLACE.key(&key);
            replaced.arg(before.unwrap_or_default()).arg(sealed).arg(millis(lives).max(1));
            if self.link.script::<u8>(&replaced).await? == 1 {
                return Ok(Some(value));
            }
        }
        Err(Silent)
    }

    /// Takes a name for a while, and returns whether nobody had it.
    pub async fn claim(&self, name: &str, lives: Duration) -> Result<bool, Silent> {
        let set: Option<String> =
            self.link.run(cmd("SET").arg(self.key(name)).arg(1).arg("NX").arg("PX").arg(millis(lives).max(1))).await?;
        Ok(set.is_some())
    }

    /// Returns the next of a series of numbers.
    pub async fn next_number(&self, name: &str) -> Result<u64, Silent> {
        self.link.run(cmd("INCR").arg(self.key(name))).await
    }

    /// Adds a member with a number to a list that is sorted by the numbers, and keeps the list at least this long.
    pub async fn list_add(&self, name: &str, number: u64, member: &str, lives: Duration) -> Result<(), Silent> {
        let key = self.key(name);
        let () = self.link.run(cmd("ZADD").arg(&key).arg(number).arg(member)).await?;
        // Without a time of its own so far, or with a shorter one.
        for condition in ["NX", "GT"] {
            let () = self.link.run(cmd("PEXPIRE").arg(&key).arg(millis(lives).max(1)).arg(condition)).await?;
        }
        Ok(())
    }

    pub async fn list_remove(&self, name: &str, member: &str) -> Result<(), Silent> {
        self.link.run(cmd("ZREM").arg(self.key(name)).arg(member)).await
    }

    /// Returns members of a list with numbers above `after`, in order.
    pub async fn list_after(&self, name: &str, after: u64, limit: usize) -> Result<Vec<String>, Silent> {
        let range = [format!("({after}"), "+inf".into(), "LIMIT".into(), "0".into(), limit.to_string()];
        self.link.run(cmd("ZRANGEBYSCORE").arg(self.key(name)).arg(&range)).await
    }

    fn read<T: DeserializeOwned>(&self, sealed: &[u8], key: &str) -> Result<T, Silent> {
        // Only what another version of wharf wrote can be opened and not be read.
        serde_json::from_slice(&self.open(sealed, key)?).map_err(|_| Silent)
    }

    fn written<T: Serialize + ?Sized>(&self, value: &T, key: &str) -> Result<Vec<u8>, Silent> {
        let text = serde_json::to_vec(value).map_err(|_| Silent)?;
        if text.len() > MAX_VALUE_BYTES {
            tracing::warn!(
                "a value of {} bytes is not shared with other replicas, which is more than {MAX_VALUE_BYTES}",
                text.len()
            );
            return Err(Silent);
        }
        self.seal(&text, key)
    }
}
