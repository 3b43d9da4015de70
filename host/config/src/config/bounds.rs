//! Checks the numbers in the config file against their bounds.

use std::{num::NonZeroU32, time::Duration};

use anyhow::{Context, Result, bail, ensure};

use wharf_base::{guessable, quota::QuotaLimits};

/// The largest value of a limit on calls.
const MAX_CALLS: u32 = 1_000_000;

pub fn within_bounds(key: &str, value: Option<usize>, default: usize, most: usize) -> Result<usize> {
    let value = value.unwrap_or(default);
    ensure!((1..=most).contains(&value), "`{key}` is from 1 to {most}");
    Ok(value)
}

pub fn mib(key: &str, value: Option<usize>, default: usize) -> Result<usize> {
    Ok(within_bounds(key, value, default, 1 << 20)? << 20)
}

pub fn kib(key: &str, value: Option<usize>, default: usize) -> Result<usize> {
    Ok(within_bounds(key, value, default, 1 << 20)? << 10)
}

pub fn duration_ms(key: &str, value: Option<u64>, default: Duration) -> Result<Duration> {
    let duration = value.map_or(default, Duration::from_millis);
    let most = Duration::from_secs(24 * 3600);
    ensure!(duration >= Duration::from_millis(1) && duration <= most, "`{key}` is from 1 to {}", most.as_millis());
    Ok(duration)
}

/// Checks the limits on calls: in a minute, an hour, a day, and at once.
pub fn calls([minute, hour, day, at_once]: [Option<u32>; 4]) -> Result<QuotaLimits> {
    let limit = |key: &str, value: Option<u32>| -> Result<Option<NonZeroU32>> {
        let Some(value) = value else { return Ok(None) };
        let limit = NonZeroU32::new(value).filter(|limit| limit.get() <= MAX_CALLS);
        Ok(Some(limit.with_context(|| format!("`{key}` is from 1 to {MAX_CALLS}"))?))
    };
    Ok(QuotaLimits {
        per_minute: limit("calls_per_minute", minute)?,
        per_hour: limit("calls_per_hour", hour)?,
        per_day: limit("calls_per_day", day)?,
        at_once: limit("concurrency", at_once)?,
    })
}

/// Parses 32 bytes, written as 64 hexadecimal digits.
pub fn parse_hex32(key: &str, text: &str) -> Result<[u8; 32]> {
    let wrong = || anyhow::anyhow!("`{key}` is 64 hexadecimal digits");
    ensure!(text.len() == 64 && text.is_ascii(), wrong());
    let mut digest = [0; 32];
    for (byte, at) in digest.iter_mut().zip((0..64).step_by(2)) {
        let digits = text.get(at..at + 2).ok_or_else(wrong)?;
        *byte = u8::from_str_radix(digits, 16).map_err(|_| wrong())?;
    }
    Ok(digest)
}

/// Parses a key, written as 64 hexadecimal digits. The error does not contain it.
pub fn parse_key(name: &str, text: &str) -> Result<[u8; 32]> {
    let key = parse_hex32(name, text)?;
    match guessable::why(text) {
        None => Ok(key),
        Some(why) => bail!("{name}: the key is {why}, so everybody can guess it"),
    }
}

/// Whether a name of a plugin or a tool may have this character.
pub fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-' | '.')
}
