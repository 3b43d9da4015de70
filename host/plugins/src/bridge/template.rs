//! Matches URIs against RFC 6570 templates. Templates are never expanded: wharf only checks whether a URI could come from a template.

use regex::{Regex, RegexBuilder};

use wharf_base::text::clean;

/// The maximum memory of a compiled template. Matching may use the same amount again.
const MAX_PATTERN_BYTES: usize = 32 << 10;

/// A compiled template.
#[derive(Debug)]
pub struct Template {
    /// The literal text before the first expression. If several templates of a plugin match, the one with the longest prefix is used.
    pub prefix: String,
    pattern: Regex,
}

impl Template {
    /// Compiles a template. It must begin with a literal scheme or a `/`, which no absolute URI begins with: otherwise, it could match every
    /// URI.
    pub fn compile(text: &str) -> Result<Self, String> {
        let prefix = text.split('{').next().unwrap_or_default();
        if !has_scheme(prefix) && !prefix.starts_with('/') {
            return Err("it must begin with a literal scheme, such as note:///{day}, or with a slash".into());
        }
        let mut pattern = String::from("^");
        let mut rest = text;
        while let Some((literal, after)) = rest.split_once('{') {
            if literal.contains('}') {
                return Err("it has a `}` without a `{`".into());
            }
            pattern.push_str(&regex::escape(literal));
            let (expression, after) = after.split_once('}').ok_or("it has a `{` without a `}`")?;
            pattern.push_str(expression_pattern(expression)?);
            rest = after;
        }
        pattern.push_str(&regex::escape(rest));
        pattern.push('$');
        let pattern = RegexBuilder::new(&pattern)
            .size_limit(MAX_PATTERN_BYTES)
            .dfa_size_limit(MAX_PATTERN_BYTES)
            .build()
            .map_err(|_| "it is too large")?;
        Ok(Self { prefix: prefix.to_owned(), pattern })
    }

    pub fn matches(&self, uri: &str) -> bool {
        self.pattern.is_match(uri)
    }
}

/// Whether a text begins with a URI scheme and a colon.
pub fn has_scheme(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.chars().all(|character| character.is_ascii_alphanumeric() || matches!(character, '+' | '-' | '.'))
    })
}

/// Whether a URI or a template is one of a file.
pub fn is_file(uri: &str) -> bool {
    uri.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"))
}

/// Returns the regular expression that matches all expansions of a template expression.
fn expression_pattern(expression: &str) -> Result<&'static str, String> {
    let names = expression.trim_start_matches(['+', '#', '.', '/', ';', '?', '&']);
    let valid = !names.is_empty()
        && names.chars().all(|character| {
            character.is_ascii_alphanumeric() || matches!(character, '_' | '.' | ',' | '%' | '*' | ':')
        });
    if !valid || expression.contains('{') {
        return Err(format!("`{{{}}}` is not an expression of RFC 6570", clean(expression)));
    }
    Ok(match expression.chars().next() {
        Some('+') => "(.+)",
        Some('#') => "(#.*)?",
        Some('.') => r"(\.[^/?#]*)?",
        Some('/') => "(/[^?#]*)?",
        Some(';') => "(;[^/?#]*)?",
        Some('?') => r"(\?[^#]*)?",
        Some('&') => "(&[^#]*)?",
        _ => "([^/?#]+)",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matching() {
        for (template, uri, matches) in [
            ("note:///{day}", "note:///today", true),
            ("note:///{day}", "note:///", false),
            ("note:///{day}", "note:///a/b", false),
            ("file:///{+path}", "file:///a/b c.txt", true),
            ("test://template/{id}/data", "test://template/7/data", true),
            ("test://template/{id}/data", "test://template/7/other", false),
            ("x://q{?a,b}", "x://q?a=1&b=2", true),
            ("x://q{?a,b}", "x://q", true),
            ("x://a.b/{c}", "x://aXb/1", false),
            ("/search/{query}", "/search/wharf", true),
            ("/search/{query}", "x:///search/wharf", false),
            ("/{+all}", "note:///today", false),
        ] {
            assert_eq!(Template::compile(template).unwrap().matches(uri), matches, "{template} {uri}");
        }
        for bad in ["{+x}", "{x}://a", "no-scheme/{x}", "x://{", "x://}{a}", "x://{}", "x://{a b}", "x://{{a}}"] {
            assert!(Template::compile(bad).is_err(), "{bad}");
        }
    }
}
