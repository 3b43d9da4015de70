//! Implements `wasi:config/store`, in the draft version that existing components import, with the strings of the plugin's own config. It
//! reveals nothing that `wharf:plugin/environment.config` does not.

use std::collections::BTreeMap;

use serde_json::Value;
use wasmtime::component::{ComponentType, Lift, Linker, Lower};

use crate::wasi::store::State;

const STORE: &str = "wasi:config/store@0.2.0-draft";

/// The error type of the interface. It is never returned, because every value can be read.
#[derive(Debug, ComponentType, Lift, Lower)]
#[component(variant)]
enum Error {
    #[component(name = "upstream")]
    Upstream(String),
    #[component(name = "io")]
    Io(String),
}

type Found<T> = wasmtime::Result<(Result<T, Error>,)>;

pub(crate) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut store = linker.instance(STORE)?;
    store.func_wrap("get", |store, (key,): (String,)| -> Found<Option<String>> {
        Ok((Ok(store.data().settings().get(&key).cloned()),))
    })?;
    store.func_wrap("get-all", |store, (): ()| -> Found<Vec<(String, String)>> {
        let settings = store.data().settings();
        Ok((Ok(settings.iter().map(|(key, value)| (key.clone(), value.clone())).collect()),))
    })
}

/// Returns the members of a config whose values are strings.
pub(crate) fn texts(config: &str) -> BTreeMap<String, String> {
    // The config of a plugin is always an object; anything else has no strings.
    let members: BTreeMap<String, Value> = serde_json::from_str(config).unwrap_or_default();
    let text = |(key, value)| match value {
        Value::String(text) => Some((key, text)),
        _ => None,
    };
    members.into_iter().filter_map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_texts_are_shown() {
        let shown = texts(r#"{"url":"https://x","n":1,"t":{"a":"b"},"z":""}"#);
        assert_eq!(
            shown.into_iter().collect::<Vec<_>>(),
            [("url".into(), "https://x".into()), ("z".into(), String::new())]
        );
        assert!(texts("[]").is_empty());
    }
}
