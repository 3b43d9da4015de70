//! `[plugins.<id>.grants]`: what the operator lets a plugin touch. Without it, nothing.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

use super::raw;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Grants {
    pub roots: Option<Access>,
    pub dirs: Vec<DirGrant>,
    pub env: Vec<String>,
    pub ask: AskGrant,
}

impl Grants {
    /// Whether any file could ever be within reach.
    pub fn any_directory(&self) -> bool {
        self.roots.is_some() || !self.dirs.is_empty()
    }

    /// Whether something that was granted before no longer is.
    pub fn take_away_from(&self, before: &Self) -> bool {
        let Self { roots, dirs, env, ask } = before;
        *roots > self.roots
            || dirs.iter().any(|dir| !self.dirs.contains(dir))
            || env.iter().any(|name| !self.env.contains(name))
            || ask.exceeds(self.ask)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    Read,
    ReadWrite,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirGrant {
    pub host: PathBuf,
    pub guest: String,
    pub access: Access,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AskGrant {
    pub elicitation: bool,
    pub sampling: bool,
    pub roots: bool,
}

impl AskGrant {
    /// Whether something may be asked that may not by the other.
    fn exceeds(self, other: Self) -> bool {
        let Self { elicitation, sampling, roots } = self;
        (elicitation && !other.elicitation) || (sampling && !other.sampling) || (roots && !other.roots)
    }
}

pub fn resolve(raw: raw::Grants, absolute: &dyn Fn(&str) -> Result<PathBuf>) -> Result<Grants> {
    ensure!(raw.http.is_empty(), "`http`: plugins cannot be given network access yet; leave it empty");
    let mut ask = AskGrant::default();
    for ability in &raw.ask {
        match ability.as_str() {
            "elicitation" => ask.elicitation = true,
            "sampling" => ask.sampling = true,
            "roots" => ask.roots = true,
            other => bail!("`ask`: `{other}` is none of elicitation, sampling, roots"),
        }
    }
    let mut dirs = Vec::new();
    for dir in raw.dirs {
        let host = absolute(&dir.host)?;
        let guest = match dir.guest {
            Some(guest) => guest,
            None => host.to_str().context("`dirs`: a path that is not UTF-8 needs a `guest` path")?.to_owned(),
        };
        ensure!(guest.starts_with('/'), "`dirs`: the guest path `{guest}` must begin with /");
        ensure!(
            dirs.iter().all(|other: &DirGrant| other.guest != guest),
            "`dirs`: two directories share the guest path `{guest}`"
        );
        dirs.push(DirGrant { host, guest, access: parse_access(&dir.access)? });
    }
    for name in &raw.env {
        ensure!(!name.is_empty() && !name.contains('='), "`env`: `{name}` is no name of a variable");
    }
    Ok(Grants { roots: raw.roots.as_deref().map(parse_access).transpose()?, dirs, env: raw.env, ask })
}

pub fn parse_access(text: &str) -> Result<Access> {
    match text {
        "read" => Ok(Access::Read),
        "read-write" => Ok(Access::ReadWrite),
        other => bail!("`{other}` is neither \"read\" nor \"read-write\""),
    }
}
