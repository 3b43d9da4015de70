//! Who may use what: the roles of the config. Those that are for a caller add up; what none of them names is not there for it. Roles
//! narrow what plugins are granted and never widen it.
//!
//! `condition` says for whom a role is, `selection` what it gives, `ceiling` which folders it opens, `allowance` how often it may be
//! used. [`Rights`] is what comes of it for one caller; `plugins::view` shows the catalog with it.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

pub mod allowance;
pub mod ceiling;
pub mod condition;
mod entry;
mod selection;

use self::{allowance::Allowance, ceiling::Ceiling, condition::Condition};
pub use self::{
    entry::{Entry, Kind},
    selection::Selection,
};
use crate::{
    access::within::Within,
    auth::Identity,
    base::{paths::is_folder, principal::Principal},
};

/// The most roles of a config: each has a bit in [`Rights`].
pub const MAX_ROLES: usize = 64;

/// One `[roles.NAME]`.
#[derive(Debug, PartialEq, Eq)]
pub struct Role {
    pub name: String,
    /// It is for whoever meets any of these.
    pub when: Vec<Condition>,
    pub selection: Selection,
    /// Whether those see it who lack nothing but its scopes. If they use it, they are told which scopes to ask for.
    pub step_up: bool,
    /// Which roots its calls get. None: those of the plugin.
    pub ceiling: Option<Ceiling>,
    pub allowance: Allowance,
}

impl Role {
    /// Whether it gives everything to everybody, as often as they like.
    fn is_open(&self) -> bool {
        // Destructured completely, so that a new way to narrow a role is decided on here.
        let Self { name: _, when, selection, step_up: _, ceiling, allowance } = self;
        when.contains(&Condition::default())
            && selection.is_everything()
            && ceiling.is_none()
            && allowance.is_unlimited()
    }
}

/// A key that narrows a role, and what the role gives without it.
type Narrowing = (&'static str, &'static str);

impl Role {
    /// A key that narrowed the role before and is not there any more. What a role lacks gives more, so a config that was cut off in the
    /// middle of a role would open what was closed.
    fn lost_since(&self, before: &Self) -> Option<Narrowing> {
        let (now, then) = (&self.selection, &before.selection);
        let lists = [
            (&now.plugins, &then.plugins, ("plugins", "what it names of every plugin")),
            (&now.tools, &then.tools, ("tools", "all tools of its plugins")),
            (&now.prompts, &then.prompts, ("prompts", "all prompts of its plugins")),
            (&now.resources, &then.resources, ("resources", "all resources of its plugins")),
        ];
        // Without `plugins`, a list that is left out gives nothing.
        let gives = |key: &str| key == "plugins" || now.plugins.is_some();
        let mut lists = lists.into_iter().filter(|(now, then, (key, _))| now.is_none() && then.is_some() && gives(key));
        let ceiling = self.ceiling.is_none() && before.ceiling.is_some();
        let limits = self.allowance.is_unlimited() && !before.allowance.is_unlimited();
        lists
            .next()
            .map(|(_, _, narrowing)| narrowing)
            .or(ceiling.then_some(("roots", "the folders of its plugins")))
            .or(limits.then_some(("limits", "any number of calls")))
    }
}

/// All roles of a config.
#[derive(Debug, Default)]
pub struct Roles {
    all: Vec<Role>,
    /// Whether one of them gives everything to everybody.
    open: bool,
    /// No other set of roles has the same number.
    number: u64,
}

/// How many sets of roles there have been.
static SETS: AtomicU64 = AtomicU64::new(0);

/// A set of roles, by their places in the config.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Set(u64);

impl Set {
    fn with(self, at: usize) -> Self {
        Self(self.0 | 1_u64.checked_shl(u32::try_from(at).unwrap_or(u32::MAX)).unwrap_or_default())
    }

    fn has(self, at: usize) -> bool {
        Self::default().with(at).0 & self.0 != 0
    }
}

/// What a caller may use and see.
#[derive(Debug, Clone)]
pub struct Rights {
    roles: Arc<Roles>,
    identity: Arc<Identity>,
    /// The roles that are for the caller.
    uses: Set,
    /// Those, and the ones that it would have with more scopes and may know of.
    sees: Set,
}

/// Why something is not for a caller.
#[derive(Debug, PartialEq, Eq)]
pub enum Denied {
    /// For all that the caller knows, it does not exist.
    Hidden,
    /// It would take these scopes.
    Scopes(Vec<String>),
}

impl Roles {
    pub fn new(all: Vec<Role>) -> Self {
        let open = all.iter().any(Role::is_open);
        Self { all, open, number: SETS.fetch_add(1, Ordering::Relaxed) + 1 }
    }

    pub fn are_there(&self) -> bool {
        !self.all.is_empty()
    }

    /// Whether they give anybody less than everything.
    pub fn narrow(&self) -> bool {
        self.are_there() && !self.open
    }

    /// A role that lost a key which narrowed it before: its name, the key, and what it gives without.
    pub fn lost_since(&self, before: &Self) -> Option<(&str, &'static str, &'static str)> {
        self.all.iter().find_map(|role| {
            let (key, gives) = role.lost_since(before.all.iter().find(|one| one.name == role.name)?)?;
            Some((role.name.as_str(), key, gives))
        })
    }

    /// The roles whose folders are not there now, as far as the path is the same for every caller.
    pub fn missing_folders(&self) -> impl Iterator<Item = (&str, PathBuf)> {
        let base = |role: &Role| role.ceiling.as_ref()?.base();
        let all = self.all.iter().filter_map(move |role| Some((role.name.as_str(), base(role)?)));
        all.filter(|(_, folder)| !is_folder(folder))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Role> {
        self.all.iter()
    }

    /// Whether the config says the same of both.
    pub fn are_alike(&self, other: &Self) -> bool {
        self.all == other.all
    }

    /// The role whose folders depend on what callers are called, but which does not say who gives these names.
    pub fn with_ambiguous_names(&self) -> Option<&str> {
        let ambiguous = |role: &&Role| {
            role.ceiling.as_ref().is_some_and(Ceiling::is_named)
                && role.when.iter().any(|one| one.issuer.is_none() && one.key.is_none())
        };
        self.all.iter().find(ambiguous).map(|role| role.name.as_str())
    }

    /// What the roles are for a caller. None: the caller may use everything. A config with `[auth]` has roles, so there this is so only
    /// if a role says it.
    pub fn rights(self: &Arc<Self>, identity: &Arc<Identity>) -> Option<Rights> {
        if !self.narrow() {
            return None;
        }
        // Nobody else gets more scopes by logging in again.
        let can_log_in = matches!(identity.principal, Principal::User(_));
        let (mut uses, mut sees) = (Set::default(), Set::default());
        for (at, role) in self.all.iter().enumerate() {
            if role.when.iter().any(|condition| condition.is_met(identity)) {
                uses = uses.with(at);
            } else if can_log_in
                && role.step_up
                && role.when.iter().any(|condition| condition.lacks(identity).is_some())
            {
                sees = sees.with(at);
            }
        }
        let sees = Set(sees.0 | uses.0);
        Some(Rights { roles: Arc::clone(self), identity: Arc::clone(identity), uses, sees })
    }

    /// Whether they still give what a caller was let in with: the use of something and, if roots matter, the folders. `before`: the
    /// rights that the caller had then; none: everything was allowed, in all folders.
    pub fn still_give(
        self: &Arc<Self>,
        identity: &Arc<Identity>,
        before: Option<&Rights>,
        entry: &Entry<'_>,
        roots: bool,
    ) -> bool {
        if before.is_some_and(|before| Arc::ptr_eq(&before.roles, self)) {
            return true;
        }
        let Some(now) = self.rights(identity) else { return true };
        let folders_stay = || match (before.and_then(|before| before.ceilings(entry)), now.ceilings(entry)) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(before), Some(now)) => before.iter().all(|one| now.contains(one)),
        };
        now.check(entry).is_ok() && (!roots || folders_stay())
    }
}

impl Rights {
    /// All callers with the same key see the same.
    pub fn key(&self) -> (u64, u64) {
        (self.roles.number, self.sees.0)
    }

    /// Whether there is nothing at all for the caller.
    pub fn is_nothing(&self) -> bool {
        self.sees == Set::default()
    }

    fn of(&self, set: Set) -> impl Iterator<Item = &Role> {
        self.roles.all.iter().enumerate().filter(move |(at, _)| set.has(*at)).map(|(_, role)| role)
    }

    fn for_entry<'a>(&'a self, entry: &'a Entry<'_>) -> impl Iterator<Item = &'a Role> {
        self.of(self.uses).filter(move |role| role.selection.has(entry))
    }

    /// Whether it stands in the caller's lists.
    pub fn sees(&self, entry: &Entry<'_>) -> bool {
        self.of(self.sees).any(|role| role.selection.has(entry))
    }

    /// Whether the caller may use it.
    pub fn check(&self, entry: &Entry<'_>) -> Result<(), Denied> {
        if self.for_entry(entry).next().is_some() {
            return Ok(());
        }
        let mut out_of_reach = self.of(Set(self.sees.0 & !self.uses.0)).filter(|role| role.selection.has(entry));
        let scopes = out_of_reach.find_map(|role| role.when.iter().find_map(|one| one.lacks(&self.identity)));
        Err(scopes.map_or(Denied::Hidden, Denied::Scopes))
    }

    /// In which folders the roots of a call may lie. None: wherever they are.
    pub fn ceilings(&self, entry: &Entry<'_>) -> Option<Vec<Within>> {
        let mut all = Vec::new();
        for role in self.for_entry(entry) {
            // One role without a ceiling is enough, since roles add up.
            all.extend(role.ceiling.as_ref()?.of(&self.identity));
        }
        Some(all)
    }

    /// Who makes the calls.
    pub fn principal(&self) -> &Principal {
        &self.identity.principal
    }

    /// What may be used of something: the quotas of each role that gives it. A call counts towards those of one role.
    pub fn allowances<'a>(&'a self, entry: &'a Entry<'_>) -> impl Iterator<Item = &'a Allowance> {
        self.for_entry(entry).map(|role| &role.allowance)
    }

    /// The names of the roles that are for the caller.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.of(self.uses).map(|role| role.name.as_str())
    }
}
