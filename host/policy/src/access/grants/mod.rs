//! `[plugins.<id>.grants]`: the permissions that the operator grants to a plugin. Without this table, a plugin has no permissions.
//!
//! Each kind of grant is one file here, and [`Capability`] is the trait that it implements. The functions here always destructure
//! [`Grants`] completely, so that a new kind fails to compile until every function handles it.

use anyhow::Result;
use serde::Deserialize;

use self::dirs::Dir;
use super::capability::{Absolute, Access, Capability};
use wharf_egress::rule::{self, Rule};

pub mod ask;
pub mod dirs;
pub mod env;
pub mod hint;
pub mod http;
pub mod roots;

/// The grants as written in the config.
#[derive(Debug, Clone, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RawGrants {
    /// The access to the folders that the client has opened (roots): `"read"` or `"read-write"`. Without this key, none.
    pub roots: Option<String>,
    /// Folders that the operator opens.
    ///
    /// Default: `[]`
    pub dirs: Vec<dirs::RawDir>,
    /// Environment variables: a name, whose value the plugin sees, or `{ name = "API_KEY", secret = "github" }`, a placeholder that is
    /// replaced by the secret in headers.
    ///
    /// Default: `[]`
    pub env: Vec<env::RawEnv>,
    /// What the plugin may ask the client: `"elicitation"`, `"sampling"`, `"roots"`.
    ///
    /// Default: `[]`
    pub ask: Vec<String>,
    /// The HTTP requests that the plugin may send: a URL, which allows `GET` and `HEAD` for everything below it; `"any"`, which
    /// allows both for every public address; or a table.
    ///
    /// Default: `[]`
    pub http: Vec<rule::RawRule>,
}

/// Everything that a plugin is granted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Grants {
    pub roots: roots::Grant,
    pub dirs: dirs::Grant,
    pub env: env::Grant,
    pub ask: ask::Grant,
    pub http: http::Grant,
}

impl Grants {
    pub fn parse(written: RawGrants, absolute: Absolute<'_>) -> Result<Self> {
        let RawGrants { roots, dirs, env, ask, http } = written;
        let (env, placeholders) = env::separate(env)?;
        let http: http::Grant = Capability::parse(http, absolute)?;
        Ok(Self {
            roots: Capability::parse(roots, absolute)?,
            dirs: Capability::parse(dirs, absolute)?,
            env: Capability::parse(env, absolute)?,
            ask: Capability::parse(ask, absolute)?,
            http: http.with_placeholders(placeholders)?,
        })
    }

    /// Whether `before` granted anything that this does not.
    pub fn take_away_from(&self, before: &Self) -> bool {
        let Self { roots, dirs, env, ask, http } = before;
        roots.exceeds(&self.roots)
            || dirs.exceeds(&self.dirs)
            || env.exceeds(&self.env)
            || ask.exceeds(&self.ask)
            || http.exceeds(&self.http)
    }

    /// Describes all that is granted, one short phrase for each permission.
    pub fn describe(&self) -> Vec<String> {
        let Self { roots, dirs, env, ask, http } = self;
        [roots.describe(), dirs.describe(), env.describe(), ask.describe(), http.describe()].concat()
    }

    /// Returns the grants reduced to reading: nothing outside the sandbox can be changed. HTTP is removed, since any request may change
    /// something on the server.
    pub fn only_reading(&self) -> Self {
        Self { http: http::Grant::default(), ..self.with_read_only_folders() }
    }

    /// Returns the grants with no folder writable.
    pub fn with_read_only_folders(&self) -> Self {
        let Self { roots, dirs, env, ask, http } = self;
        let dirs = dirs.0.iter().map(|dir| Dir { access: Access::Read, ..dir.clone() }).collect();
        Self {
            roots: roots::Grant(roots.0.map(|_| Access::Read)),
            dirs: dirs::Grant(dirs),
            env: env.clone(),
            ask: *ask,
            http: http.clone(),
        }
    }

    /// Whether the plugin could change anything outside its sandbox. `has_roots`: whether the client of the call has opened folders.
    pub fn can_write(&self, has_roots: bool) -> bool {
        let Self { roots, dirs, env: _, ask: _, http } = self;
        (has_roots && roots.0 == Some(Access::ReadWrite))
            || dirs.0.iter().any(|dir| dir.access == Access::ReadWrite)
            || http.0.rules.iter().any(Rule::can_write)
    }

    /// Whether the plugin could ever be given a directory.
    pub fn any_directory(&self) -> bool {
        self.roots.is_given() || !self.dirs.0.is_empty()
    }

    /// Returns the abilities that a component with these imports could use but is not granted.
    pub fn unused(&self, imports: &[String]) -> Vec<&'static str> {
        let Self { roots: _, dirs: _, env, ask: _, http } = self;
        let mut uses = could_use(imports);
        uses.retain(|ability| match *ability {
            dirs::FILES => !self.any_directory(),
            env::VARIABLES => env.0.is_empty() && http.0.placeholders.is_empty(),
            http::HTTP => http.0.is_empty(),
            _ => true,
        });
        uses
    }
}

/// Returns the abilities that a component with these imports could use if they were granted. Nothing grants sockets, which Python imports.
pub fn could_use(imports: &[String]) -> Vec<&'static str> {
    let known =
        [roots::Grant::IMPORTS, dirs::Grant::IMPORTS, env::Grant::IMPORTS, ask::Grant::IMPORTS, http::Grant::IMPORTS];
    let mut uses: Vec<&str> = known
        .iter()
        .flat_map(|known| known.iter())
        .filter(|(prefix, _)| imports.iter().any(|import| import.starts_with(prefix)))
        .map(|(_, ability)| *ability)
        .collect();
    uses.dedup();
    uses
}
