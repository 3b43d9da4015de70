//! What a plugin's listing costs while it is checked, and which of its entries are left out, renamed or not checked.

use std::collections::HashSet;

use serde_json::value::RawValue;
use wharf_protocol::Shown;
use wharf_sandbox::json::Room;

use wharf_base::{ledger::Account, text::clean};
use wharf_schema::{self as schema, Schema};

/// The memory charge for an entry without its texts, and the number of copies charged for each text: as listed, as published, and in the
/// pages of each revision.
const ENTRY_BYTES: usize = 1024;
const TEXT_COPIES: usize = 4;
/// The memory charge for a schema that is published but not compiled, for each byte of its text.
const UNCHECKED_COPIES: usize = 20;
/// The maximum number of odd entries that are named. The others are counted.
const MAX_ODD: usize = 10;

/// The memory charge for a listing, and what is left out of it. Both grow while the listing is checked.
pub struct OfferCharge {
    pub account: Account,
    pub room: Room,
    pub icons_left_out: usize,
    /// The names of the entries that are taken, each with its kind.
    names: HashSet<(&'static str, String)>,
    odd: Vec<String>,
    /// The number of odd entries, also of those that are not named.
    odd_count: usize,
    /// Why the first entry that is left out is.
    pub refused: Option<String>,
    /// Why nothing at all can be offered.
    full: Option<String>,
}

impl OfferCharge {
    pub fn new(account: &Account) -> Self {
        let (account, room) = (account.clone(), Room::of(account));
        let names = HashSet::new();
        Self { account, room, icons_left_out: 0, names, odd: Vec::new(), odd_count: 0, refused: None, full: None }
    }

    /// Returns what is odd, in sentences.
    pub fn told(&mut self) -> Vec<String> {
        let mut odd = std::mem::take(&mut self.odd);
        if let Some(more @ 1..) = self.odd_count.checked_sub(odd.len()) {
            odd.push(format!("{more} more entries are left out, renamed or not checked"));
        }
        odd
    }

    pub fn pay(&mut self, bytes: usize) -> Result<(), String> {
        self.room.pay(bytes).map_err(|full| {
            let full = format!(
                "there is not enough memory for the plugin's lists: {full} (of total_host_memory_mib in [limits])"
            );
            self.full = Some(full.clone());
            full
        })
    }

    fn odd(&mut self, text: String) {
        self.odd_count += 1;
        if self.odd.len() < MAX_ODD {
            self.odd.push(text);
        }
    }

    /// Takes an entry, or leaves it out: one odd entry takes no other away. Fails only if no entry can be taken.
    pub fn take<T>(
        &mut self,
        (kind, own): (&'static str, &str),
        taken: &mut Vec<T>,
        offered: Result<(String, T), String>,
    ) -> Result<(), String> {
        let why = match offered {
            Ok((name, entry)) if self.names.insert((kind, name.clone())) => {
                if !name.ends_with(own) {
                    self.odd(format!("the {kind} `{}` is published as `{}`", shown(own), shown(&name)));
                }
                taken.push(entry);
                return Ok(());
            }
            Ok((name, _)) => format!("the {kind} `{}` is listed twice", shown(&name)),
            Err(why) => why,
        };
        if let Some(full) = self.full.take() {
            return Err(full);
        }
        self.odd(format!("the {kind} `{}` is left out: {why}", shown(own)));
        self.refused.get_or_insert_with(|| format!("{kind} `{}`: {why}", shown(own)));
        Ok(())
    }

    /// Pays for an entry, except for the tree of `more`, for which parsing it pays.
    pub fn entry(&mut self, texts: &[&str], more: Option<&String>) -> Result<(), String> {
        let texts: usize = texts.iter().map(|text| text.len()).sum();
        self.pay(ENTRY_BYTES + TEXT_COPIES * texts + more.map_or(0, String::len))
    }
}

/// Compiles a schema of a tool. One that wharf cannot check with is published nevertheless if the tool checks its arguments itself.
pub fn tool_schema(
    (which, tool): (&str, &str),
    text: &str,
    validates: bool,
    charge: &mut OfferCharge,
) -> Result<(Shown<Box<RawValue>>, Schema), String> {
    let why = match paid_schema(text, which == "input", charge) {
        Ok(both) => return Ok(both),
        Err(why) => why,
    };
    if !validates || charge.full.is_some() {
        return Err(format!("{which} schema: {why}"));
    }
    let mut as_it_is = || {
        let schema = Schema::unchecked(text, which == "input")?;
        charge.pay(UNCHECKED_COPIES * text.len())?;
        let shown = Shown::schema_text(text)?;
        let schema = if shown.get() == text { schema } else { Schema::unchecked(shown.get(), which == "input")? };
        Ok((shown, schema))
    };
    let both = as_it_is().map_err(|error: String| format!("{which} schema: {error}"))?;
    charge.odd(format!("the {which} schema of the tool `{}` is left to the tool to check: {why}", shown(tool)));
    Ok(both)
}

/// Compiles a schema and pays for it. Returns the text to publish, and the compiled schema.
fn paid_schema(
    text: &str,
    object_root: bool,
    charge: &mut OfferCharge,
) -> Result<(Shown<Box<RawValue>>, Schema), String> {
    // Schemas that are too large or too deep are refused before the text is processed.
    let plan = schema::Plan::of(text, object_root)?;
    charge.pay(plan.bytes())?;
    let shown = Shown::schema_text(text)?;
    let plan = if shown.get() == text { plan } else { schema::Plan::of(shown.get(), object_root)? };
    Ok((shown, plan.compile()?))
}

/// Returns a name without deceptive characters, shortened for an error message.
pub fn shown(name: &str) -> String {
    let mut short: String = clean(name).chars().take(100).collect();
    if short.len() < name.len() {
        short.push('…');
    }
    short
}
