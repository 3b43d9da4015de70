//! Checks of values that several tables have.

use anyhow::{Result, bail, ensure};

use super::raw::{Calls, Number};
use wharf_base::{guessable, quota::QuotaLimits};

/// The limits on calls: in a minute, an hour, a day, and at once.
pub fn calls(limits: [Option<Calls>; 4]) -> QuotaLimits {
    let [per_minute, per_hour, per_day, at_once] = limits.map(|limit| limit.map(Number::get));
    QuotaLimits { per_minute, per_hour, per_day, at_once }
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

/// Checks the id of a plugin, which prefixes and `[plugins.<id>]` are made of.
pub fn check_id(id: &str) -> Result<()> {
    ensure!(
        !id.is_empty() && id.len() <= 64 && id.chars().all(is_name_character),
        "`{}` is not a valid id for a plugin; an id has 1 to 64 letters, digits, `_`, `-` and `.`",
        id.escape_debug()
    );
    let reserved = id.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("wharf"));
    ensure!(!reserved, "`{id}`: ids that begin with `wharf` are reserved for wharf itself; choose another");
    Ok(())
}
