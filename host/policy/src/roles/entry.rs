//! The subject of an access check: one tool, prompt or resource.

use wharf_base::{
    pattern::Pattern,
    reading::{Doubt, doubt_of_uri},
};

/// The kinds of entries that a role can give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    Tool,
    Prompt,
    /// A resource, by its URI, or a template, by its text.
    Resource,
}

/// One entry of the catalog that a caller wants to use or see.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    pub kind: EntryKind,
    /// The id of its plugin.
    pub plugin: &'a str,
    /// The name that clients see.
    pub name: &'a str,
    /// Why the URI is ambiguous, if it is. Patterns with `*` do not match the beginning of an ambiguous URI.
    pub doubt: Option<Doubt>,
    /// The template that serves a URI. A caller that may use the template may use it with every URI that it matches.
    pub template: Option<&'a str>,
}

impl<'a> Entry<'a> {
    pub fn new(kind: EntryKind, plugin: &'a str, name: &'a str) -> Self {
        Self { kind, plugin, name, doubt: None, template: None }
    }

    /// Returns the entry of a resource, by its URI.
    pub fn read(plugin: &'a str, uri: &'a str, template: Option<&'a str>) -> Self {
        Self { kind: EntryKind::Resource, plugin, name: uri, doubt: doubt_of_uri(uri), template }
    }

    /// Whether a pattern matches it.
    pub fn fits(&self, pattern: &Pattern) -> bool {
        match (self.doubt, self.template) {
            // A pattern matches ambiguous URIs of a template only if it names the template, not if their texts begin alike by chance.
            (Some(doubt), template) => {
                pattern.is_everything()
                    || template.is_some_and(|text| pattern.is(text))
                    || (doubt != Doubt::Dots && pattern.is(self.name))
            }
            (None, Some(template)) => pattern.matches(self.name) || pattern.matches(template),
            (None, None) => pattern.matches(self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_testing::paths::{PLAIN, leaving};

    #[test]
    fn a_uri_that_leads_back_up_is_found_out() {
        let pattern = Pattern::new("notes:///public/*".into());
        let fits = |path: &str| Entry::read("notes", &format!("notes://{path}"), None).fits(&pattern);
        for path in PLAIN {
            assert!(fits(path), "{path}");
        }
        for path in leaving() {
            assert!(!fits(&path), "{path}");
        }
    }

    /// A pattern that is a whole URI matches that URI, unless the URI leads elsewhere.
    #[test]
    fn a_pattern_without_a_star_means_one_uri() {
        for (uri, expected) in [
            ("notes:///a%2Fb", true),
            ("notes:///a/b", true),
            ("notes:///a/../b", false),
            ("notes:///a/%2e%2e/b", false),
        ] {
            assert_eq!(Entry::read("notes", uri, None).fits(&Pattern::new(uri.into())), expected, "{uri}");
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
