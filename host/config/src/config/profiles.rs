//! `[profiles.NAME]`, and `catalog` in `[server]`: which part of the catalog a client gets, and how its tools are listed.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::{Context, Result, ensure};

use super::{raw, roles};
use wharf_base::text::{MAX_SEGMENT_BYTES, is_segment, toml_header};
use wharf_policy::profiles::{Profile, Profiles, SEARCH, Style};

const MAX_PROFILES: usize = 64;

pub fn resolve(style: Style, raw: Vec<(String, raw::Profile)>) -> Result<Arc<Profiles>> {
    ensure!(raw.len() <= MAX_PROFILES, "there are more than {MAX_PROFILES} profiles");
    let named = raw.into_iter().map(|(name, raw)| {
        let profile = profile(&name, raw).with_context(|| toml_header(&["profiles", &name]))?;
        Ok((name, profile))
    });
    Ok(Arc::new(Profiles::new(style, named.collect::<Result<BTreeMap<_, _>>>()?)))
}

fn profile(name: &str, raw: raw::Profile) -> Result<Arc<Profile>> {
    let raw::Profile { plugins, tools, prompts, resources, catalog } = raw;
    ensure!(
        is_segment(name),
        "its name is part of URLs, so it has 1 to {MAX_SEGMENT_BYTES} lower-case letters, digits and `-`"
    );
    ensure!(name != SEARCH, "this name is taken by the built-in profile");
    let selection = roles::selection(plugins, tools, prompts, resources)?;
    ensure!(
        !selection.is_empty(),
        "it has nothing: name `plugins`, `tools`, `prompts` or `resources`; plugins = [\"*\"] is everything"
    );
    Ok(Profile::new(Some(selection), catalog))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_url_or_client_could_name_is_refused() {
        let all = || raw::Profile { plugins: Some(vec!["*".into()]), ..raw::Profile::default() };
        for (name, raw, expected) in [
            ("search", all(), "taken"),
            ("", all(), "lower-case"),
            ("Review", all(), "lower-case"),
            ("a/b", all(), "lower-case"),
            ("empty", raw::Profile::default(), "it has nothing"),
        ] {
            let error = format!("{:#}", resolve(Style::Full, vec![(name.into(), raw)]).unwrap_err());
            assert!(error.contains(expected) && error.contains("[profiles"), "{name}: {error}");
        }
    }

    #[test]
    fn a_profile_that_is_gone_is_empty_and_no_profile_is_everything() {
        let raw = raw::Profile { tools: Some(vec!["git_*".into()]), ..raw::Profile::default() };
        let profiles = resolve(Style::Full, vec![("review".into(), raw)]).unwrap();
        let entry = |name| wharf_policy::roles::Entry::new(wharf_policy::roles::EntryKind::Tool, "git", name);
        assert!(profiles.find(None).is_none());
        let review = profiles.find(Some("review")).unwrap();
        assert!(review.has(&entry("git_log")) && !review.has(&entry("files_read")));
        assert!(!profiles.find(Some("gone")).unwrap().has(&entry("git_log")));
        let search = profiles.find(Some("search")).unwrap();
        assert!(search.has(&entry("git_log")) && search.style == Style::Search);
        assert_eq!(resolve(Style::Search, vec![]).unwrap().find(None).unwrap().style, Style::Search);
    }
}
