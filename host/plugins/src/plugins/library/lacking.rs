//! Logs the grants that a plugin wants but does not have, when its code is loaded. A new version that wants more than the previous one
//! runs with the existing grants.

use crate::plugins::served::Served;
use wharf_config::{access::wants::want::WantedGrant, config::Origin};

/// Logs, once for each version of a plugin, what it wants and is not granted. `before`: the version that was served until now.
pub(super) fn log(before: Option<&Served>, now: &Served) {
    let same = |before: &&Served| before.plugin.code().digest() == now.plugin.code().digest();
    let Some(wants) = now.wants.as_ref().filter(|_| before.filter(same).is_none()) else { return };
    let known = |what: &WantedGrant| {
        let before = before.and_then(|before| before.wants.as_ref());
        before.is_some_and(|before| before.grants.iter().any(|want| want.what == *what))
    };
    // The command line cannot grant variables.
    let grantable = |what: &&WantedGrant| {
        now.config.origin != Origin::CommandLine || !matches!(what, WantedGrant::Env(_) | WantedGrant::Ask(_))
    };
    let lacking = wants.grants.iter().map(|want| &want.what).filter(|what| !what.is_granted(&now.config.grants));
    let lacking = lacking.filter(grantable);
    let words: Vec<String> = lacking.filter(|what| !known(what)).map(WantedGrant::words).collect();
    if words.is_empty() {
        return;
    }
    let (id, words) = (&now.config.id, words.join("; "));
    // `wharf grant` writes into a config, which a plugin of the command line does not have.
    let remedy = match now.config.origin {
        Origin::CommandLine => "`wharf run --help` names the options that grant it".to_owned(),
        Origin::Configured | Origin::DroppedIn => format!("`wharf grant {id}` asks for it"),
    };
    match before {
        Some(_) => tracing::warn!(plugin = id, "it now also wants {words}, which is not granted; {remedy}"),
        None => tracing::info!(plugin = id, "it wants {words}, which is not granted; {remedy}"),
    }
}
