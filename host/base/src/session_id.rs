//! Sealed ids of sessions over HTTP. An id is the record from which any wharf with the key makes the session again: the revision, what the
//! client declared, a digest of its lists, and when the id was issued.
//!
//! The client can neither read nor change the record. An id is bound to the principal and the profile for which it was issued: for any
//! other, it is the same as an unknown one. An id that is sealed for another purpose, or has expired, is unknown too.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::digest::InvalidLength;
use wharf_protocol::{Revision, RpcError, capability::ClientCapabilities, revision::Era};

use super::{
    principal::Principal,
    state_keys::{Ciphers, NONCE_BYTES, StateKeys},
};

/// What the key for these ids is derived with.
const PURPOSE: &str = "wharf session id 1";
/// The version of the format.
const VERSION: &str = "s1.";
/// The longest id, in characters: some clients and proxies take no more.
pub const MAX_ID_CHARS: usize = 511;
const TAG_BYTES: usize = 16;
/// The most that can be sealed in such an id, since base64 writes three bytes as four characters.
const MAX_RECORD_BYTES: usize = (MAX_ID_CHARS - VERSION.len()) / 4 * 3 - NONCE_BYTES - TAG_BYTES;
/// How much of a client's name and version is sealed if not all that the client declared fits.
const MAX_NAME_BYTES: usize = 100;
const MAX_VERSION_BYTES: usize = 60;

/// Digests of the lists of tools, resources and prompts.
pub type ListDigests = [u32; 3];

/// What a client says it is.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientInfo {
    pub name: String,
    pub version: String,
    pub title: Option<String>,
}

/// What an id says about its session.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionRecord {
    pub revision: Revision,
    pub capabilities: ClientCapabilities,
    pub client: Option<ClientInfo>,
    /// The lists as they were when the id was issued. None: the client could not have seen any yet.
    pub lists: Option<ListDigests>,
    /// When the id was issued, in milliseconds since 1970.
    pub issued: u64,
}

/// Whom an id is issued for.
#[derive(Debug, Clone, Copy)]
pub struct IssuedTo<'a> {
    pub principal: &'a Principal,
    pub profile: Option<&'a str>,
}

/// Seals and opens ids.
pub struct SessionIds {
    ciphers: Ciphers,
    lifetime: Duration,
}

/// Returns the current time, in milliseconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, millis)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Whether an id that was issued at this time can still be opened.
pub fn lives(now: u64, issued: u64, lifetime: Duration) -> bool {
    now.saturating_sub(issued) <= millis(lifetime)
}

impl SessionIds {
    /// `lifetime`: how long after it was issued an id can be opened.
    pub fn new(keys: &StateKeys, lifetime: Duration) -> Result<Self, InvalidLength> {
        Ok(Self { ciphers: keys.derived(PURPOSE)?, lifetime })
    }

    /// Makes an id of at most [`MAX_ID_CHARS`] characters, all of them visible ASCII. If the record is too long for that, the id has the
    /// capabilities that wharf itself uses, the beginnings of the client's name and version, and no title.
    pub fn seal(&self, record: &SessionRecord, to: IssuedTo<'_>) -> Result<String, RpcError> {
        let failed = || RpcError::internal("the id of this session cannot be sealed");
        let whole = written(record, &record.capabilities.text, record.client.as_ref());
        let text = match whole.filter(|text| text.len() <= MAX_RECORD_BYTES) {
            Some(text) => text,
            None => {
                let brief = record.client.as_ref().map(|client| ClientInfo {
                    name: beginning(&client.name, MAX_NAME_BYTES),
                    version: beginning(&client.version, MAX_VERSION_BYTES),
                    title: None,
                });
                written(record, &record.capabilities.brief(), brief.as_ref()).ok_or_else(failed)?
            }
        };
        let sealed = self.ciphers.seal(&text, &to.bytes()).ok_or_else(failed)?;
        Ok(format!("{VERSION}{}", URL_SAFE_NO_PAD.encode(sealed)))
    }

    /// Opens an id. None, whatever the reason: it was not sealed with one of these keys, not for this principal and profile, or it has
    /// expired.
    pub fn open(&self, id: &str, to: IssuedTo<'_>) -> Option<SessionRecord> {
        self.open_at(now(), id, to)
    }

    fn open_at(&self, now: u64, id: &str, to: IssuedTo<'_>) -> Option<SessionRecord> {
        let body = id.strip_prefix(VERSION).filter(|_| id.len() <= MAX_ID_CHARS)?;
        let text = self.ciphers.open(&URL_SAFE_NO_PAD.decode(body).ok()?, &to.bytes())?;
        let record = read(&text)?;
        lives(now, record.issued, self.lifetime).then_some(record)
    }
}

impl IssuedTo<'_> {
    fn bytes(&self) -> Vec<u8> {
        let principal = self.principal.to_string();
        let mut bytes = [VERSION.as_bytes(), &(principal.len() as u64).to_be_bytes(), principal.as_bytes()].concat();
        // No name of a profile is empty, but a client without a profile is marked all the same.
        bytes.push(u8::from(self.profile.is_some()));
        bytes.extend_from_slice(self.profile.unwrap_or_default().as_bytes());
        bytes
    }
}

/// Returns the beginning of a text that has at most `most` bytes.
fn beginning(text: &str, most: usize) -> String {
    let end = text.floor_char_boundary(most);
    text.get(..end).unwrap_or_default().to_owned()
}

/// The bits that say which parts a record has.
const HAS_LISTS: u8 = 1;
const HAS_CLIENT: u8 = 2;
const HAS_TITLE: u8 = 4;

/// Writes a record: one byte for the revision, one for the parts it has, the time, the parts, and the text of the capabilities. None: a
/// text of the client is longer than 255 bytes.
fn written(record: &SessionRecord, capabilities: &str, client: Option<&ClientInfo>) -> Option<Vec<u8>> {
    let revision = Revision::ALL.iter().position(|revision| *revision == record.revision)?;
    let title = client.and_then(|client| client.title.as_deref());
    let bit = |has: bool, bit: u8| if has { bit } else { 0 };
    let parts =
        bit(record.lists.is_some(), HAS_LISTS) | bit(client.is_some(), HAS_CLIENT) | bit(title.is_some(), HAS_TITLE);
    let mut out = vec![u8::try_from(revision).ok()?, parts];
    out.extend_from_slice(&record.issued.to_be_bytes());
    out.extend(record.lists.iter().flatten().flat_map(|digest| digest.to_be_bytes()));
    let texts = client.map(|client| [client.name.as_str(), client.version.as_str()]);
    for text in texts.iter().flatten().copied().chain(title) {
        out.push(u8::try_from(text.len()).ok()?);
        out.extend_from_slice(text.as_bytes());
    }
    out.extend_from_slice(capabilities.as_bytes());
    Some(out)
}

/// Reads what [`written`] wrote.
fn read(text: &[u8]) -> Option<SessionRecord> {
    let mut rest = text;
    let [revision, parts] = *rest.split_off(..2)? else { return None };
    let revision = *Revision::ALL.get(usize::from(revision)).filter(|revision| revision.era() == Era::Legacy)?;
    let issued = u64::from_be_bytes(rest.split_off(..8)?.try_into().ok()?);
    let mut number = || Some(u32::from_be_bytes(rest.split_off(..4)?.try_into().ok()?));
    let lists = if parts & HAS_LISTS == 0 { None } else { Some([number()?, number()?, number()?]) };
    let mut string = || {
        let length = usize::from(*rest.split_off_first()?);
        Some(str::from_utf8(rest.split_off(..length)?).ok()?.to_owned())
    };
    let client = if parts & HAS_CLIENT == 0 {
        None
    } else {
        let (name, version) = (string()?, string()?);
        let title = if parts & HAS_TITLE == 0 { None } else { Some(string()?) };
        Some(ClientInfo { name, version, title })
    };
    let capabilities = ClientCapabilities::read(str::from_utf8(rest).ok()?, revision)?;
    Some(SessionRecord { revision, capabilities, client, lists, issued })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state_keys::random_key;

    const LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);

    /// What VS Code and the official SDKs declare is not longer than this.
    const DECLARED: &str =
        r#"{"roots":{"listChanged":true},"sampling":{"context":{},"tools":{}},"elicitation":{"form":{},"url":{}}}"#;

    fn record(revision: Revision, capabilities: &str, client: Option<(&str, &str, Option<&str>)>) -> SessionRecord {
        SessionRecord {
            revision,
            capabilities: ClientCapabilities::read(capabilities, revision).unwrap(),
            client: client.map(|(name, version, title)| ClientInfo {
                name: name.into(),
                version: version.into(),
                title: title.map(Into::into),
            }),
            lists: Some([1, u32::MAX, 7]),
            issued: now(),
        }
    }

    fn ids() -> SessionIds {
        SessionIds::new(&StateKeys::random().unwrap(), LIFETIME).unwrap()
    }

    const ANN: Principal = Principal::Anonymous;
    const TO: IssuedTo<'static> = IssuedTo { principal: &ANN, profile: None };

    #[test]
    fn an_id_has_everything_that_clients_declare() {
        let ids = ids();
        for revision in Revision::ALL.into_iter().filter(|revision| revision.era() == Era::Legacy) {
            for (capabilities, client) in [
                ("{}", None),
                (DECLARED, Some(("Visual Studio Code", "1.107.0", None))),
                (DECLARED, Some(("claude-code", "2.1.45 (cli)", Some("Claude Code")))),
                (r#"{"experimental":{"ü":{}}}"#, Some(("", "", Some("")))),
            ] {
                let record = record(revision, capabilities, client);
                let bare = SessionRecord { lists: None, ..record.clone() };
                for record in [record, bare] {
                    let id = ids.seal(&record, TO).unwrap();
                    assert!(id.len() <= MAX_ID_CHARS && id.bytes().all(|byte| byte.is_ascii_graphic()), "{id}");
                    assert_eq!(ids.open(&id, TO), Some(record));
                }
            }
        }
        let one = record(Revision::V2025_11_25, DECLARED, None);
        assert_ne!(ids.seal(&one, TO).unwrap(), ids.seal(&one, TO).unwrap(), "each id is another one");
    }

    #[test]
    fn of_long_declarations_what_wharf_reads_is_left() {
        let ids = ids();
        let long = "x".repeat(300);
        let padded = format!(r#"{{"roots":{{}},"elicitation":{{"url":{{}}}},"experimental":{{"{long}":{{}}}}}}"#);
        for (capabilities, client) in [
            (padded.as_str(), ("n", "1", Some("t"))),
            (DECLARED, (long.as_str(), long.as_str(), Some(long.as_str()))),
            (padded.as_str(), (long.as_str(), "1", None)),
            // The end of a name must not be in the middle of a character.
            (padded.as_str(), (&*"ü€".repeat(60), "1", None)),
        ] {
            let whole = record(Revision::V2025_11_25, capabilities, Some(client));
            let id = ids.seal(&whole, TO).unwrap();
            assert!(id.len() <= MAX_ID_CHARS, "{}", id.len());
            let opened = ids.open(&id, TO).unwrap();
            let text = opened.capabilities.text.clone();
            assert_eq!(ClientCapabilities { text, ..whole.capabilities }, opened.capabilities);
            let (short, long) = (opened.client.unwrap(), whole.client.unwrap());
            assert!(!short.name.is_empty() && long.name.starts_with(&short.name), "{short:?}");
            assert!(!short.version.is_empty() && long.version.starts_with(&short.version), "{short:?}");
            assert_eq!((opened.lists, opened.issued), (whole.lists, whole.issued));
        }
    }

    #[test]
    fn only_the_same_caller_opens_it_and_not_for_ever() {
        let (one, other) = (random_key().unwrap(), random_key().unwrap());
        let ids = |first, others: &[_]| SessionIds::new(&StateKeys::new(first, others.to_vec()), LIFETIME).unwrap();
        let user = |name: &str| Principal::from(name);
        let (ann, ben) = (user("ann"), user("ben"));
        let to = |principal, profile| IssuedTo { principal, profile };
        let record = record(Revision::V2025_06_18, DECLARED, None);
        let id = ids(one, &[]).seal(&record, to(&ann, Some("p"))).unwrap();
        let late = record.issued + millis(LIFETIME);
        for (what, ids, now, to, opens) in [
            ("the same", ids(one, &[]), record.issued, to(&ann, Some("p")), true),
            ("a key that was replaced", ids(other, &[one]), record.issued, to(&ann, Some("p")), true),
            ("a key that will be the first", ids(one, &[other]), record.issued, to(&ann, Some("p")), true),
            ("another key", ids(other, &[]), record.issued, to(&ann, Some("p")), false),
            ("another principal", ids(one, &[]), record.issued, to(&ben, Some("p")), false),
            ("another profile", ids(one, &[]), record.issued, to(&ann, Some("q")), false),
            ("no profile", ids(one, &[]), record.issued, to(&ann, None), false),
            ("a clock that is behind", ids(one, &[]), record.issued - 60_000, to(&ann, Some("p")), true),
            ("the last moment", ids(one, &[]), late, to(&ann, Some("p")), true),
            ("expired", ids(one, &[]), late + 1, to(&ann, Some("p")), false),
        ] {
            assert_eq!(ids.open_at(now, &id, to).is_some(), opens, "{what}");
        }
        // Names that continue into each other are still different.
        let (a, ab) = (user("a"), user("ab"));
        let joined = ids(one, &[]).seal(&record, to(&a, Some("bc"))).unwrap();
        assert_eq!(ids(one, &[]).open(&joined, to(&ab, Some("c"))), None);
    }

    #[test]
    fn nothing_else_is_an_id() {
        let keys = StateKeys::random().unwrap();
        let ids = SessionIds::new(&keys, LIFETIME).unwrap();
        let id = ids.seal(&record(Revision::V2025_11_25, DECLARED, None), TO).unwrap();
        for at in 0..id.len() {
            let mut altered = id.clone().into_bytes();
            altered[at] = if altered[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(ids.open(&String::from_utf8(altered).unwrap(), TO), None, "byte {at}");
            assert_eq!(ids.open(&id[..at], TO), None, "only {at} bytes");
        }
        for other in [format!("{id}A"), format!("{id}{}", "A".repeat(1 << 16)), id.replace("s1.", "s2.")] {
            assert_eq!(ids.open(&other, TO), None);
        }
        // The same key has sealed the same text, for another purpose.
        let record = record(Revision::V2025_11_25, "{}", None);
        let text = written(&record, "{}", None).unwrap();
        let other = keys.plain().seal(&text, &TO.bytes()).unwrap();
        assert_eq!(ids.open(&format!("{VERSION}{}", URL_SAFE_NO_PAD.encode(other)), TO), None);
        let own = keys.derived(PURPOSE).unwrap().seal(&text, &TO.bytes()).unwrap();
        assert_eq!(ids.open(&format!("{VERSION}{}", URL_SAFE_NO_PAD.encode(own)), TO), Some(record.clone()));
        // Sealed here, but not by `seal`: the record ends too early, or has a revision without sessions.
        let modern = written(&SessionRecord { revision: Revision::NEWEST, ..record }, "{}", None).unwrap();
        for wrong in [&modern[..], &[], &text[..1], &text[..12], b"\xff\xff"] {
            let sealed = keys.derived(PURPOSE).unwrap().seal(wrong, &TO.bytes()).unwrap();
            assert_eq!(ids.open(&format!("{VERSION}{}", URL_SAFE_NO_PAD.encode(sealed)), TO), None);
        }
    }
}
