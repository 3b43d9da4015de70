//! What roles are asked about: one tool, prompt or resource.

use crate::base::pattern::Pattern;

/// What a role can be for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Tool,
    Prompt,
    /// A resource, by its URI, or a template, by its text.
    Resource,
}

/// One thing that a caller wants to use or see.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    pub kind: Kind,
    /// The id of its plugin.
    pub plugin: &'a str,
    /// As clients know it.
    pub name: &'a str,
    /// Whether it is a URI that leads back up, so that its beginning says nothing of it.
    leads_up: bool,
    /// The template that serves a URI. Who may use the template may use it with every URI that it matches.
    pub template: Option<&'a str>,
}

impl<'a> Entry<'a> {
    pub fn new(kind: Kind, plugin: &'a str, name: &'a str) -> Self {
        Self { kind, plugin, name, leads_up: false, template: None }
    }

    /// A resource that is to be read.
    pub fn read(plugin: &'a str, uri: &'a str, template: Option<&'a str>) -> Self {
        Self { kind: Kind::Resource, plugin, name: uri, leads_up: leads_up(uri), template }
    }

    /// Whether a pattern means it.
    pub fn fits(&self, pattern: &Pattern) -> bool {
        match self.template {
            // A pattern is for the URIs of a template only if it names the template, not if their texts happen to begin alike.
            _ if self.leads_up => pattern.is_everything() || self.template.is_some_and(|text| pattern.is(text)),
            Some(template) => pattern.matches(self.name) || pattern.matches(template),
            None => pattern.matches(self.name),
        }
    }
}

/// Whether a URI has a segment `.` or `..`, however it is written.
fn leads_up(uri: &str) -> bool {
    let path = uri.split_once(':').map_or(uri, |(_, rest)| rest);
    let mut plain = path.as_bytes().to_vec();
    // What is encoded twice may be decoded twice by whoever reads it.
    for _ in 0..3 {
        // Many readers leave out what cannot be seen.
        plain.retain(|byte| !byte.is_ascii_control());
        if plain.split(|byte| matches!(byte, b'/' | b'\\' | b'?' | b'#')).any(|part| part == b"." || part == b"..") {
            return true;
        }
        let decoded: Vec<u8> = percent_encoding::percent_decode(&plain).collect();
        if decoded == plain {
            return false;
        }
        plain = decoded;
    }
    // Nobody has a reason to encode more often.
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_that_leads_back_up_is_found_out() {
        for (uri, up) in [
            ("notes:///public/a", false),
            ("notes:///public/a.b..c", false),
            ("notes:///public/../secret", true),
            ("notes:///public/./a", true),
            ("notes:///public/%2e%2e/secret", true),
            ("notes:///public/%2E./secret", true),
            ("notes:///public/..%2fsecret", true),
            ("notes:///public/a%2f..%2f..%2fsecret", true),
            ("notes:///public/..\\secret", true),
            ("notes:///public/%252e%252e/secret", true),
            ("notes:///public/.\t./secret", true),
            ("notes:///public/%25252e", true),
            ("notes:///public/100%25", false),
            ("notes:..", true),
            ("notes:///public?..", true),
        ] {
            assert_eq!(leads_up(uri), up, "{uri}");
        }
    }

    #[test]
    fn a_pattern_means_a_template_only_if_it_names_it() {
        let template = Some("notes:///public/{+path}");
        let (inside, above) = ("notes:///public/a", "notes:///public/../secret");
        for (pattern, inside_fits, above_fits) in [
            ("notes:///public/*", true, false),
            ("notes:///public/{+path}", true, true),
            ("notes:///other/*", false, false),
            ("*", true, true),
            ("notes:///public/../secret", false, false),
        ] {
            let fits = |uri| Entry::read("notes", uri, template).fits(&Pattern::new(pattern.into()));
            assert_eq!((fits(inside), fits(above)), (inside_fits, above_fits), "{pattern}");
        }
        assert!(!Entry::read("notes", above, None).fits(&Pattern::new("notes:///public/*".into())));
    }
}
