//! Chooses the rule that applies to a request.

use http::Method;
use wharf_scope::network::HttpRefusal;

use super::{Rule, is_never};
use crate::target::Target;
use wharf_base::reading::Doubt;

/// Returns the rule that takes precedence among those that include `other`.
pub fn strongest<'a>(rules: &'a [Rule], other: &Rule) -> Option<&'a Rule> {
    most_specific(rules.iter().filter(|rule| rule.includes(other)))
}

/// Returns the most specific rule; of several, the first.
fn most_specific<'a>(rules: impl Iterator<Item = &'a Rule>) -> Option<&'a Rule> {
    rules.reduce(|best, rule| if rule.is_more_specific(best) { rule } else { best })
}

/// Returns the rule for a request. If several allow it, the one with the longest path wins, then one with a host rather than a pattern,
/// then the first. The error says why no rule allows it.
pub fn find<'a>(rules: &'a [Rule], method: &Method, target: &Target) -> Result<&'a Rule, HttpRefusal> {
    if is_never(method) {
        return Err(HttpRefusal::Malformed("the methods CONNECT and TRACE are never allowed"));
    }
    let best = most_specific(rules.iter().filter(|rule| rule.methods.allow(method) && rule.covers(target)));
    let doubt = || target.doubt.filter(|_| rules.iter().any(|rule| !rule.segments.is_empty()));
    best.ok_or_else(|| doubt().map_or(HttpRefusal::NoRule, |doubt| HttpRefusal::Malformed(doubt_message(doubt))))
}

/// Explains why no rule with a path allows a request.
fn doubt_message(doubt: Doubt) -> &'static str {
    match doubt {
        Doubt::Dots => "the path has a segment of dots or an encoded dot, so no rule with a path allows it",
        Doubt::Slash => "the path has an encoded slash, so no rule with a path allows it",
        Doubt::Backslash => "the path has a backslash, so no rule with a path allows it",
        Doubt::Unseen => "the path has invisible characters, so no rule with a path allows it",
        Doubt::NotUtf8 => "the path is not UTF-8, so no rule with a path allows it",
        Doubt::TooDeep => "the path is encoded more than three times over, so no rule with a path allows it",
    }
}
