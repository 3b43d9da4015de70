//! Which folders a role opens: the roots of its calls may lie there, and nowhere else.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};

use crate::{
    access::{capability::Access, within::Within},
    auth::Identity,
};
use wharf_base::{principal::Principal, text::is_deceptive};

/// The longest name of a folder.
const MAX_NAME_BYTES: usize = 255;

#[derive(Debug, PartialEq, Eq)]
pub struct Ceiling {
    /// None: roots may be wherever the config allows.
    within: Option<Vec<Component>>,
    access: Access,
}

/// One component of a path.
#[derive(Debug, PartialEq, Eq)]
enum Component {
    Plain(String),
    /// The caller's name: its subject at the identity provider, or the id of its API key.
    Subject,
    /// The value of this claim of the caller.
    Claim(String),
}

impl Ceiling {
    /// `within`: an absolute path, in which a whole component may be a placeholder for data of the caller: `{sub}`, or `{NAME}` for the
    /// claim of that name.
    pub fn new(within: Option<&Path>, access: Access) -> Result<Self> {
        let component = |text: &str| match text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            Some("sub") => Ok(Component::Subject),
            Some(name) if !name.is_empty() && !name.contains(['{', '}']) => Ok(Component::Claim(name.to_owned())),
            None if !text.contains(['{', '}']) => Ok(Component::Plain(text.to_owned())),
            _ => bail!(
                "`within`: `{text}` has to be a plain name, or one `{{claim}}` that is the whole name of a folder"
            ),
        };
        let within = match within {
            None => None,
            Some(path) => {
                let text = path.to_str().filter(|text| text.starts_with('/'));
                let Some(text) = text else { bail!("`within`: {} is not an absolute path", path.display()) };
                let parts = text.split('/').filter(|part| !part.is_empty());
                let components: Vec<Component> = parts.map(component).collect::<Result<_>>()?;
                let plain =
                    |one: &Component| matches!(one, Component::Plain(name) if !matches!(name.as_str(), "." | ".."));
                ensure!(
                    components.iter().all(|one| plain(one) || !matches!(one, Component::Plain(_))),
                    "`within`: {text} has `.` or `..` in it"
                );
                Some(components)
            }
        };
        Ok(Self { within, access })
    }

    /// Returns the beginning of the path that is the same for every caller. None: the role names no folder.
    pub fn base(&self) -> Option<PathBuf> {
        let plain = |component: &Component| match component {
            Component::Plain(name) => Some(name.clone()),
            Component::Subject | Component::Claim(_) => None,
        };
        self.within.as_ref().map(|within| Path::new("/").join(within.iter().map_while(plain).collect::<PathBuf>()))
    }

    /// Whether the folder depends on the caller's name or claims.
    pub fn depends_on_caller(&self) -> bool {
        self.within.iter().flatten().any(|component| !matches!(component, Component::Plain(_)))
    }

    /// Returns the folder for this caller. None: the caller lacks a claim, or one of its claims cannot be the name of a folder.
    pub fn of(&self, identity: &Identity) -> Option<Within> {
        let (mut base, mut rest) = (PathBuf::from("/"), PathBuf::new());
        let components = self.within.as_deref().unwrap_or_default();
        let first = components.iter().position(|one| !matches!(one, Component::Plain(_))).unwrap_or(components.len());
        for (at, component) in components.iter().enumerate() {
            let name = match component {
                Component::Plain(name) => name.as_str(),
                Component::Subject => match &identity.principal {
                    Principal::User(user) => folder(&user.subject)?,
                    Principal::Key(id) => folder(id)?,
                    _ => return None,
                },
                Component::Claim(name) => match identity.claim(name) {
                    [only] => folder(only)?,
                    _ => return None,
                },
            };
            if at < first { base.push(name) } else { rest.push(name) }
        }
        Some(Within { base, rest, access: self.access })
    }
}

/// Returns an untrusted text if it can only be the name of a single folder (path traversal).
fn folder(text: &str) -> Option<&str> {
    let plain = !text.is_empty() && text.len() <= MAX_NAME_BYTES && !text.starts_with('.');
    (plain && !text.contains(['/', '\\']) && !text.contains(is_deceptive)).then_some(text)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use wharf_base::principal::User;

    #[test]
    fn what_a_caller_is_called_never_leads_elsewhere() {
        let identity = |subject: &str, tenant: &[&str]| {
            let user = User::new("https://id.example", subject);
            let mut identity = Identity::of(Principal::User(Arc::new(user)));
            identity.claims.insert("tenant".into(), tenant.iter().map(|&one| one.to_owned()).collect());
            identity
        };
        let ceiling = Ceiling::new(Some(Path::new("/srv/{tenant}/home/{sub}")), Access::Read).unwrap();
        let path = |subject: &str, tenant: &[&str]| {
            ceiling.of(&identity(subject, tenant)).map(|within| within.base.join(within.rest))
        };
        assert_eq!(path("ann", &["acme"]).unwrap(), Path::new("/srv/acme/home/ann"));
        for (subject, tenant) in [
            ("ann", &[][..]),
            ("ann", &["acme", "other"]),
            ("ann", &[""]),
            ("ann", &[".."]),
            ("ann", &["."]),
            ("ann", &["../acme"]),
            ("ann", &["/etc"]),
            ("ann", &["a/b"]),
            ("ann", &["a\0b"]),
            ("ann", &["a\nb"]),
            ("ann", &["a\u{200b}b"]),
            ("ann", &["a\u{202e}b"]),
            ("../..", &["acme"]),
            (".ssh", &["acme"]),
            ("a/../../etc", &["acme"]),
        ] {
            assert_eq!(path(subject, tenant), None, "{subject} {tenant:?}");
        }
        assert_eq!(ceiling.of(&Identity::of(Principal::Anonymous)), None);
        let everywhere = Ceiling::new(None, Access::Read).unwrap();
        assert_eq!(
            everywhere.of(&Identity::of(Principal::Anonymous)),
            Some(Within { base: "/".into(), rest: PathBuf::new(), access: Access::Read })
        );
    }

    #[test]
    fn mistakes_are_named() {
        for path in ["srv", "", "/srv/a-{tenant}", "/srv/{}", "/srv/{a}{b}", "/srv/../etc", "/srv/{a"] {
            assert!(Ceiling::new(Some(Path::new(path)), Access::Read).is_err(), "{path}");
        }
    }
}
