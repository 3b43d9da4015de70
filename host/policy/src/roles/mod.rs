//! Access control: the roles of the config, which say who may use what. The roles that apply to a caller add up. Anything that no
//! matching role grants is invisible to the caller. Roles narrow what plugins are granted and never widen it.
//!
//! `condition` says to whom a role applies, `selection` what it gives, `ceiling` which folders it opens, `rate_limits` how often it may
//! be used. [`Rights`] is the result for one caller; `plugins::view` shows the part of the catalog that the rights allow.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

pub mod ceiling;
pub mod condition;
mod entry;
pub mod rate_limits;
mod selection;

use self::{ceiling::Ceiling, condition::Condition, rate_limits::RateLimits};
pub use self::{
    entry::{Entry, EntryKind},
    selection::Selection,
};
use crate::{access::within::Within, auth::Identity};
use wharf_base::{paths::is_folder, principal::Principal};

/// The most roles of a config: each has a bit in [`Rights`].
pub const MAX_ROLES: usize = 64;

/// One `[roles.NAME]`.
#[derive(Debug, PartialEq, Eq)]
pub struct Role {
    pub name: String,
    /// The role applies to callers that meet any of these.
    pub when: Vec<Condition>,
    pub selection: Selection,
    /// Whether callers that lack only its scopes see what it gives. If such a caller uses it, the error names the scopes to ask for.
    pub step_up: bool,
    /// Which roots its calls get. None: those of the plugin.
    pub ceiling: Option<Ceiling>,
    pub rate_limits: RateLimits,
}

impl Role {
    /// Whether it gives everything to everybody, as often as they like.
    fn is_open(&self) -> bool {
        // Destructured completely, so that a new way to narrow a role is decided on here.
        let Self { name: _, when, selection, step_up: _, ceiling, rate_limits } = self;
        when.contains(&Condition::default())
            && selection.is_everything()
            && ceiling.is_none()
            && rate_limits.is_unlimited()
    }
}

/// A key that narrows a role, and what the role gives without it.
type Narrowing = (&'static str, &'static str);

impl Role {
    /// Returns a key that narrowed the role before and is missing now, if the role gives more without it: a config that was cut off in the
    /// middle of a role would open what was closed.
    fn lost_since(&self, before: &Self) -> Option<Narrowing> {
        let (now, then) = (&self.selection, &before.selection);
        if now.is_nothing() {
            return None;
        }
        let lists = [
            (&now.plugins, &then.plugins, ("plugins", "what it names of every plugin")),
            (&now.tools, &then.tools, ("tools", "all tools of its plugins")),
            (&now.prompts, &then.prompts, ("prompts", "all prompts of its plugins")),
            (&now.resources, &then.resources, ("resources", "all resources of its plugins")),
        ];
        let gives = |key: &str| match key {
            "plugins" => now.has_lost_its_plugins_since(then),
            // Without `plugins`, a list that is left out gives nothing.
            _ => now.plugins.is_some(),
        };
        let mut lists = lists.into_iter().filter(|(now, then, (key, _))| now.is_none() && then.is_some() && gives(key));
        let ceiling = self.ceiling.is_none() && before.ceiling.is_some();
        // Somebody has written a role that gives less: no file that was cut off gives less of what plugins offer.
        let limits =
            self.rate_limits.is_unlimited() && !before.rate_limits.is_unlimited() && !now.is_narrower_than(then);
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

/// How many sets of roles have been created.
static SET_COUNT: AtomicU64 = AtomicU64::new(0);

/// A set of roles: a bit for each role, by its position in the config.
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
    /// The roles that apply to the caller.
    uses: Set,
    /// These roles, and the roles with `step_up` that would apply to the caller if it had more scopes.
    sees: Set,
}

/// Why a caller may not use an entry.
#[derive(Debug, PartialEq, Eq)]
pub enum RoleDenied {
    /// The entry is invisible to the caller, as if it did not exist.
    Hidden,
    /// The caller needs these scopes.
    Scopes(Vec<String>),
}

impl Roles {
    pub fn new(all: Vec<Role>) -> Self {
        let open = all.iter().any(Role::is_open);
        Self { all, open, number: SET_COUNT.fetch_add(1, Ordering::Relaxed) + 1 }
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether some caller gets less than everything.
    pub fn narrow(&self) -> bool {
        !self.is_empty() && !self.open
    }

    /// Returns a role that gives more because a key is missing: its name, the key, and what it gives without the key.
    pub fn lost_since(&self, before: &Self) -> Option<(&str, &'static str, &'static str)> {
        self.all.iter().find_map(|role| {
            let (key, gives) = role.lost_since(before.all.iter().find(|one| one.name == role.name)?)?;
            Some((role.name.as_str(), key, gives))
        })
    }

    /// Returns the roles whose folders do not exist, with the beginning of the path that is the same for every caller.
    pub fn missing_folders(&self) -> impl Iterator<Item = (&str, PathBuf)> {
        let base = |role: &Role| role.ceiling.as_ref()?.base();
        let all = self.all.iter().filter_map(move |role| Some((role.name.as_str(), base(role)?)));
        all.filter(|(_, folder)| !is_folder(folder))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Role> {
        self.all.iter()
    }

    /// Whether the config says the same about both.
    pub fn are_alike(&self, other: &Self) -> bool {
        self.all == other.all
    }

    /// Returns a role whose folder depends on the caller's name, but whose conditions do not say who assigned that name.
    pub fn with_ambiguous_names(&self) -> Option<&str> {
        let ambiguous = |role: &&Role| {
            role.ceiling.as_ref().is_some_and(Ceiling::depends_on_caller)
                && role.when.iter().any(|one| one.issuer.is_none() && one.key.is_none())
        };
        self.all.iter().find(ambiguous).map(|role| role.name.as_str())
    }

    /// Returns the rights of a caller. None: the caller may use everything. A config with `[auth]` has roles, so there the caller may use
    /// everything only if a role says so.
    pub fn rights(self: &Arc<Self>, identity: &Arc<Identity>) -> Option<Rights> {
        if !self.narrow() {
            return None;
        }
        // Only users of an identity provider can get more scopes by logging in again.
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

    /// Whether the roles still give what a call was admitted with: the use of the entry and, if `roots`, the folders. `before`: the
    /// rights of the caller at that time. `None`: everything was allowed, in all folders.
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
    /// Returns a key for caches: callers with the same key see the same entries.
    pub fn key(&self) -> (u64, u64) {
        (self.roles.number, self.sees.0)
    }

    /// Whether the caller may see nothing at all.
    pub fn is_nothing(&self) -> bool {
        self.sees == Set::default()
    }

    fn of(&self, set: Set) -> impl Iterator<Item = &Role> {
        self.roles.all.iter().enumerate().filter(move |(at, _)| set.has(*at)).map(|(_, role)| role)
    }

    fn for_entry<'a>(&'a self, entry: &'a Entry<'_>) -> impl Iterator<Item = &'a Role> {
        self.of(self.uses).filter(move |role| role.selection.has(entry))
    }

    /// Whether the entry is in the caller's lists.
    pub fn sees(&self, entry: &Entry<'_>) -> bool {
        self.of(self.sees).any(|role| role.selection.has(entry))
    }

    /// Whether one of the roles whose entries are in the caller's lists has a selection for which `fits` returns true.
    pub fn sees_any(&self, fits: impl Fn(&Selection) -> bool) -> bool {
        self.of(self.sees).any(|role| fits(&role.selection))
    }

    /// Checks whether the caller may use the entry.
    pub fn check(&self, entry: &Entry<'_>) -> Result<(), RoleDenied> {
        if self.for_entry(entry).next().is_some() {
            return Ok(());
        }
        let mut out_of_reach = self.of(Set(self.sees.0 & !self.uses.0)).filter(|role| role.selection.has(entry));
        let scopes = out_of_reach.find_map(|role| role.when.iter().find_map(|one| one.lacks(&self.identity)));
        Err(scopes.map_or(RoleDenied::Hidden, RoleDenied::Scopes))
    }

    /// Returns the folders in which the roots of a call may be. None: in any folder.
    pub fn ceilings(&self, entry: &Entry<'_>) -> Option<Vec<Within>> {
        let mut all = Vec::new();
        for role in self.for_entry(entry) {
            // One role without a ceiling is enough, since roles add up.
            all.extend(role.ceiling.as_ref()?.of(&self.identity));
        }
        Some(all)
    }

    /// Returns who makes the calls.
    pub fn principal(&self) -> &Principal {
        &self.identity.principal
    }

    /// Returns the limits for an entry, one of each role that gives it. A call counts towards one of them.
    pub fn rate_limits<'a>(&'a self, entry: &'a Entry<'_>) -> impl Iterator<Item = &'a RateLimits> {
        self.for_entry(entry).map(|role| &role.rate_limits)
    }

    /// Returns the names of the roles that apply to the caller.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.of(self.uses).map(|role| role.name.as_str())
    }
}
