//! Chooses the version that a reference means among the tags of a repository.

use semver::Version;

/// Parses a tag that is a version, with or without a leading `v`.
pub fn parse(tag: &str) -> Option<Version> {
    // `+` cannot be in a tag, so publishers write `_` for it.
    Version::parse(&tag.strip_prefix('v').unwrap_or(tag).replace('_', "+")).ok()
}

/// Whether a tag is the beginning of a version: `1` or `1.4`, with or without a leading `v`.
pub fn is_partial(tag: &str) -> bool {
    let parts: Vec<&str> = tag.strip_prefix('v').unwrap_or(tag).split('.').collect();
    let number = |part: &&str| !part.is_empty() && part.len() < 10 && part.bytes().all(|byte| byte.is_ascii_digit());
    matches!(parts.len(), 1 | 2) && parts.iter().all(number)
}

/// Returns the tag with the highest released version; with `beginning`, among those that begin so. Pre-releases are never chosen.
pub fn highest<'a>(tags: impl IntoIterator<Item = &'a str>, beginning: Option<&str>) -> Option<&'a str> {
    let beginning: Vec<u64> = beginning
        .map(|tag| tag.strip_prefix('v').unwrap_or(tag).split('.').filter_map(|part| part.parse().ok()).collect())
        .unwrap_or_default();
    let fits = |version: &Version| {
        version.pre.is_empty() && beginning.iter().zip([version.major, version.minor]).all(|(wanted, is)| *wanted == is)
    };
    let versions = tags.into_iter().filter_map(|tag| Some((parse(tag)?, tag)));
    versions.filter(|(version, _)| fits(version)).max_by(|(one, _), (other, _)| one.cmp(other)).map(|(_, tag)| tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_release_is_chosen() {
        let tags = ["latest", "1.4.2", "1.10.0", "v1.4.10", "2.0.0-rc.1", "0.9.0", "sha256-00"];
        for (beginning, expected) in [
            (None, Some("1.10.0")),
            (Some("1"), Some("1.10.0")),
            (Some("1.4"), Some("v1.4.10")),
            (Some("v0"), Some("0.9.0")),
            (Some("2"), None),
        ] {
            assert_eq!(highest(tags, beginning), expected, "{beginning:?}");
        }
        for (tag, partial) in
            [("1", true), ("v1.4", true), ("1.4.2", false), ("latest", false), ("1.", false), ("", false)]
        {
            assert_eq!(is_partial(tag), partial, "{tag}");
        }
    }
}
