//! Identities in certificates, and the patterns by which an operator trusts them.

use std::fmt;

use sigstore_verify::SubjectAltName;

use crate::{artifact::Signer, root::Root};

/// The longest identity or issuer that is compared, in bytes.
const MAX_BYTES: usize = 1024;
/// What precedes a tag in the identity of a workflow.
const TAGS: &str = "@refs/tags/";
/// What precedes a tag or a branch.
const REFS: &str = "@refs/";

/// Somebody whom an authority issued a certificate to.
#[derive(Clone, Debug)]
pub struct SignerIdentity {
    subject: Subject,
    issuer: String,
    root: Root,
}

/// Which subjects of certificates are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Subject {
    /// This e-mail address.
    Email(String),
    /// Every e-mail address in this domain. It begins with `@`.
    Domain(String),
    /// This URI.
    Uri(String),
    /// Every URI that begins with this, and has more characters.
    UriPrefix(String),
}

/// Why an identity cannot be trusted as it is written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnusableIdentity {
    /// It is empty, too long, or has characters that no identity has.
    #[error("an identity and its issuer have 1 to 1024 visible ASCII characters and no spaces")]
    Unreadable,
    /// It is neither an e-mail address nor a URI.
    #[error(
        "`{0}` is neither an e-mail address nor a URI; write the subject of the certificate, such as \
         `https://github.com/OWNER/REPOSITORY/.github/workflows/FILE.yml@refs/tags/*`"
    )]
    NoSubject(String),
    /// The `*` is not where it may be.
    #[error("in `{0}`, `*` may only be the last character of a URI, after `/` or `@`, or the first of `*@DOMAIN`")]
    Star(String),
    /// It would trust people who have nothing to do with each other.
    #[error(
        "`{0}` trusts everyone at that host; write at least the first folder of the path, such as `https://github.com/OWNER/*`"
    )]
    Everyone(String),
    /// The identity of a workflow contains the branch or tag that it ran for.
    #[error("the identity of a workflow ends with its branch or tag; write `{0}@refs/tags/*` for all tags")]
    NoRef(String),
    /// Issuers are URLs.
    #[error(
        "the issuer `{0}` is not an https URL; it is who logged the signer in, such as `https://token.actions.githubusercontent.com` \
         for workflows at GitHub"
    )]
    Issuer(String),
}

/// Whether a text can be an identity, or a part of one.
fn is_visible(text: &str) -> bool {
    text.len() <= MAX_BYTES && text.bytes().all(|byte| byte.is_ascii_graphic())
}

impl Subject {
    fn parse(text: &str) -> Result<Self, UnusableIdentity> {
        let own = || text.to_owned();
        if let Some(domain) = text.strip_prefix("*@") {
            let is_domain = !domain.is_empty() && !domain.contains(['*', '@', '/', ':']);
            return if is_domain { Ok(Self::Domain(format!("@{domain}"))) } else { Err(UnusableIdentity::Star(own())) };
        }
        let Some((_, rest)) = text.split_once("://") else {
            return match text.split_once('@') {
                Some((name, domain)) if !name.is_empty() && !domain.is_empty() && !domain.contains('@') => {
                    if text.contains('*') { Err(UnusableIdentity::Star(own())) } else { Ok(Self::Email(own())) }
                }
                _ => Err(UnusableIdentity::NoSubject(own())),
            };
        };
        match text.strip_suffix('*') {
            Some(prefix) if prefix.contains('*') || !prefix.ends_with(['/', '@']) => Err(UnusableIdentity::Star(own())),
            Some(prefix) => {
                // The host, and a folder that somebody owns.
                let mut parts = rest.trim_end_matches('*').split('/').filter(|part| !part.is_empty());
                match (parts.next(), parts.next()) {
                    (Some(_), Some(_)) => Ok(Self::UriPrefix(prefix.to_owned())),
                    _ => Err(UnusableIdentity::Everyone(own())),
                }
            }
            None if text.contains('*') => Err(UnusableIdentity::Star(own())),
            None if text.ends_with(".yml") || text.ends_with(".yaml") => Err(UnusableIdentity::NoRef(own())),
            None => Ok(Self::Uri(own())),
        }
    }

    fn matches(&self, subject: &SubjectAltName) -> bool {
        match (self, subject) {
            (Self::Email(own), SubjectAltName::Email(other)) | (Self::Uri(own), SubjectAltName::Uri(other)) => {
                own == other
            }
            (Self::Domain(domain), SubjectAltName::Email(other)) => {
                other.strip_suffix(domain.as_str()).is_some_and(|name| !name.is_empty() && !name.contains('@'))
            }
            (Self::UriPrefix(prefix), SubjectAltName::Uri(other)) => {
                // A path with `..` would name a place outside the folder that the operator trusts, and a second ref would let a file name pose
                // as a tag.
                let is_plain = other.matches(REFS).count() < 2 && other.split('/').all(|part| part != "..");
                other.strip_prefix(prefix.as_str()).is_some_and(|rest| !rest.is_empty() && is_plain)
            }
            _ => false,
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Email(text) | Self::Uri(text) => f.write_str(text),
            Self::Domain(text) => write!(f, "*{text}"),
            Self::UriPrefix(text) => write!(f, "{text}*"),
        }
    }
}

impl SignerIdentity {
    /// Trusts a subject of certificates, if this issuer logged it in and an authority in `root` issued the certificate.
    ///
    /// The subject is an e-mail address (`me@example.com`), all those of a domain (`*@example.com`), a URI, or a URI with one `*` at its
    /// end, after `/` or `@`, which stands for one or more characters. The identity of a workflow is the URL of its file with the branch
    /// or tag that it ran for: `https://github.com/acme/fetch/.github/workflows/release.yml@refs/tags/*`.
    ///
    /// # Errors
    /// If it names nobody, or would trust everybody.
    pub fn new(subject: &str, issuer: &str, root: Root) -> Result<Self, UnusableIdentity> {
        if subject.is_empty() || !is_visible(subject) || !is_visible(issuer) {
            return Err(UnusableIdentity::Unreadable);
        }
        if issuer.strip_prefix("https://").is_none_or(str::is_empty) {
            return Err(UnusableIdentity::Issuer(issuer.to_owned()));
        }
        Ok(Self { subject: Subject::parse(subject)?, issuer: issuer.to_owned(), root })
    }

    /// The authorities that vouch for it.
    pub(crate) fn root(&self) -> &Root {
        &self.root
    }

    /// Whether it is the one in a certificate that was verified.
    pub(crate) fn matches(&self, subject: &SubjectAltName, issuer: &str) -> bool {
        self.issuer == issuer && is_visible(subject.as_str()) && self.subject.matches(subject)
    }
}

impl SignerIdentity {
    /// Whether it trusts the signer with this text, as far as the text says: a tag is not part of it.
    pub(crate) fn could_be(&self, text: &str) -> bool {
        let Some((subject, issuer)) = text.rsplit_once(", issuer ") else { return false };
        let is_same = |own: &SubjectAltName| signer(own, &self.issuer).as_str() == text;
        match &self.subject {
            Subject::Email(own) => is_same(&SubjectAltName::Email(own.clone())),
            Subject::Uri(own) => is_same(&SubjectAltName::Uri(own.clone())),
            Subject::Domain(_) => self.matches(&SubjectAltName::Email(subject.to_owned()), issuer),
            Subject::UriPrefix(_) => self.matches(&SubjectAltName::Uri(subject.to_owned()), issuer),
        }
    }
}

impl fmt::Display for SignerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, issuer {}", self.subject, self.issuer)
    }
}

/// The signer that a certificate names. Characters that no identity has are escaped, because this text is also shown for signers who are not
/// trusted.
pub fn signer(subject: &SubjectAltName, issuer: &str) -> Signer {
    let text = subject.as_str();
    let text = match (subject, text.split_once(TAGS)) {
        (SubjectAltName::Uri(_), Some((workflow, tag))) if !tag.is_empty() && text.matches(REFS).count() == 1 => {
            format!("{workflow}{TAGS}*")
        }
        _ => text.to_owned(),
    };
    let clip = |text: &str| text.chars().take(MAX_BYTES).collect::<String>().escape_default().to_string();
    Signer(format!("{}, issuer {}", clip(&text), clip(issuer)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ISSUER: &str = "https://token.actions.githubusercontent.com";
    const RELEASE: &str = "https://github.com/acme/fetch/.github/workflows/release.yml";

    fn trusts(pattern: &str, subject: &SubjectAltName) -> bool {
        SignerIdentity::new(pattern, ISSUER, Root::public().unwrap()).unwrap().matches(subject, ISSUER)
    }

    #[test]
    fn a_pattern_trusts_what_it_says_and_nothing_else() {
        let uri = |text: &str| SubjectAltName::Uri(text.replace("RELEASE", RELEASE));
        let email = |text: &str| SubjectAltName::Email(text.to_owned());
        let tags = format!("{RELEASE}@refs/tags/*");
        for (pattern, subject, expected) in [
            (tags.as_str(), uri("RELEASE@refs/tags/v1"), true),
            (&tags, uri("RELEASE@refs/tags/fetch@1.2.0"), true),
            (&tags, uri("RELEASE@refs/tags/"), false),
            (&tags, uri("RELEASE@refs/heads/v1"), false),
            (&tags, uri("RELEASE"), false),
            (&tags, email("RELEASE@refs/tags/v1"), false),
            // A file whose name poses as a tag, on a branch.
            (&tags, uri("RELEASE@refs/tags/x.yml@refs/heads/evil"), false),
            (&tags, uri("RELEASE@refs/tags/v1\u{202e}"), false),
            ("https://github.com/acme/*", uri("RELEASE@refs/tags/v1"), true),
            ("https://github.com/acme/*", uri("https://github.com/acme-evil/fetch"), false),
            ("https://github.com/acme/*", uri("https://github.com/acme/../evil/x"), false),
            ("https://github.com/acme/*", uri("https://github.com/acme/"), false),
            ("https://ci.example/jobs/1", uri("https://ci.example/jobs/1"), true),
            ("https://ci.example/jobs/1", uri("https://ci.example/jobs/12"), false),
            ("me@example.com", email("me@example.com"), true),
            ("me@example.com", email("Me@example.com"), false),
            ("me@example.com", uri("me@example.com"), false),
            ("*@example.com", email("me@example.com"), true),
            ("*@example.com", email("@example.com"), false),
            ("*@example.com", email("me@evil@example.com"), false),
            ("*@example.com", email("me@example.com.evil"), false),
            ("*@example.com", email("me@notexample.com"), false),
        ] {
            assert_eq!(trusts(pattern, &subject), expected, "{pattern} and {subject}");
        }
        let identity = SignerIdentity::new("me@example.com", ISSUER, Root::public().unwrap()).unwrap();
        assert!(!identity.matches(&email("me@example.com"), "https://login.example"));
    }

    #[test]
    fn the_text_of_a_signer_is_compared_with_a_pattern() {
        let tags = format!("{RELEASE}@refs/tags/*, issuer {ISSUER}");
        let branch = format!("{RELEASE}@refs/heads/main, issuer {ISSUER}");
        let mail = format!("me@example.com, issuer {ISSUER}");
        for (pattern, text, expected) in [
            (&*format!("{RELEASE}@refs/tags/*"), &tags, true),
            (&format!("{RELEASE}@refs/tags/v1"), &tags, true),
            (&format!("{RELEASE}@refs/tags/*"), &branch, false),
            (&format!("{RELEASE}@refs/heads/main"), &branch, true),
            ("https://github.com/acme/*", &branch, true),
            ("https://github.com/eve/*", &branch, false),
            ("me@example.com", &mail, true),
            ("*@example.com", &mail, true),
            ("you@example.com", &mail, false),
            ("me@example.com", &"me@example.com, issuer https://login.example".to_owned(), false),
            ("me@example.com", &"key sha256:00".to_owned(), false),
        ] {
            let identity = SignerIdentity::new(pattern, ISSUER, Root::public().unwrap()).unwrap();
            assert_eq!(identity.could_be(text), expected, "{pattern} and {text}");
        }
    }

    #[test]
    fn patterns_that_trust_too_many_or_nobody_are_refused() {
        let refused = |pattern: &str| SignerIdentity::new(pattern, ISSUER, Root::public().unwrap()).unwrap_err();
        let own = |pattern: &str| pattern.to_owned();
        for pattern in ["*", "acme", "@example.com", "me@", "a@b@c"] {
            assert_eq!(refused(pattern), UnusableIdentity::NoSubject(own(pattern)));
        }
        for pattern in [
            "m*@example.com",
            "https://github.com/acme*",
            "https://*/acme",
            "https://github.com/*/x/*",
            "*@",
            "*@*.com",
        ] {
            assert_eq!(refused(pattern), UnusableIdentity::Star(own(pattern)));
        }
        for pattern in ["https://github.com/*", "https://*", "https://github.com//*"] {
            assert!(matches!(refused(pattern), UnusableIdentity::Everyone(_) | UnusableIdentity::Star(_)), "{pattern}");
        }
        assert_eq!(refused(RELEASE), UnusableIdentity::NoRef(own(RELEASE)));
        for pattern in ["", "me@example.com ", "mé@example.com", &"x".repeat(2000)] {
            assert_eq!(refused(pattern), UnusableIdentity::Unreadable, "{pattern}");
        }
        for issuer in ["http://login.example", "https://", "login.example"] {
            let error = SignerIdentity::new("me@example.com", issuer, Root::public().unwrap()).unwrap_err();
            assert_eq!(error, UnusableIdentity::Issuer(own(issuer)));
        }
    }

    #[test]
    fn a_signer_is_one_visible_line() {
        let uri = |text: &str| signer(&SubjectAltName::Uri(text.to_owned()), ISSUER).to_string();
        assert_eq!(uri(&format!("{RELEASE}@refs/tags/v1")), format!("{RELEASE}@refs/tags/*, issuer {ISSUER}"));
        assert_eq!(uri(&format!("{RELEASE}@refs/heads/v1")), format!("{RELEASE}@refs/heads/v1, issuer {ISSUER}"));
        let posing = format!("{RELEASE}@refs/tags/x.yml@refs/heads/evil");
        assert_eq!(uri(&posing), format!("{posing}, issuer {ISSUER}"));
        assert_eq!(uri("https://a\n\u{202e}b"), format!("https://a\\n\\u{{202e}}b, issuer {ISSUER}"));
        let email = SubjectAltName::Email("me@example.com@refs/tags/v1".to_owned());
        assert_eq!(signer(&email, "i").as_str(), "me@example.com@refs/tags/v1, issuer i");
    }
}
