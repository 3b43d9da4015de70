//! What roles are asked about: one tool, prompt or resource.

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
    /// The template that serves a URI. Who may use the template may use it with every URI that it matches.
    pub template: Option<&'a str>,
}

impl<'a> Entry<'a> {
    pub fn new(kind: Kind, plugin: &'a str, name: &'a str) -> Self {
        Self { kind, plugin, name, template: None }
    }

    /// A resource that is to be read.
    pub fn read(plugin: &'a str, uri: &'a str, template: Option<&'a str>) -> Self {
        // The beginning of a URI says nothing of one that leads back up, so only a role for everything is for it.
        let name = if leads_up(uri) { "" } else { uri };
        Self { kind: Kind::Resource, plugin, name, template }
    }

    pub fn names(&self) -> impl Iterator<Item = &'a str> {
        [Some(self.name), self.template].into_iter().flatten()
    }
}

/// Whether a URI has a segment `.` or `..`, however it is written.
fn leads_up(uri: &str) -> bool {
    let path = uri.split_once(':').map_or(uri, |(_, rest)| rest);
    path.split(['/', '\\', '?', '#']).any(|segment| {
        let plain: Vec<u8> = percent_encoding::percent_decode_str(segment).collect();
        let inner = |part: &[u8]| part == b"." || part == b"..";
        // What was encoded may hold separators of its own.
        plain.split(|byte| matches!(byte, b'/' | b'\\')).any(inner)
    })
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
            ("notes:..", true),
            ("notes:///public?..", true),
        ] {
            assert_eq!(leads_up(uri), up, "{uri}");
        }
    }
}
