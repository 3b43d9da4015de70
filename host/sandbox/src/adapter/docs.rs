//! Reads the documentation of functions that WIT tools store in the section `package-docs`. It is read leniently, because the section comes
//! from many tools: missing or malformed entries are skipped.

use std::collections::HashMap;

use serde_json::Value;

/// The maximum length of the documentation of one function.
const MAX_BYTES: usize = 4 << 10;

/// The documentation of functions: by name for functions of a world, and by interface and name for others.
#[derive(Default)]
pub(crate) struct Docs {
    world: HashMap<String, String>,
    interfaces: HashMap<(String, String), String>,
}

impl Docs {
    pub(crate) fn of(json: Option<&str>) -> Self {
        let mut docs = Self::default();
        let Some(Ok(value)) = json.map(serde_json::from_str::<Value>) else { return docs };
        for (_, world) in members(value.get("worlds")) {
            for key in ["func_exports", "funcs"] {
                docs.world.extend(functions(world.get(key)));
            }
            for (name, interface) in members(world.get("interface_exports")) {
                docs.add(name, interface);
            }
        }
        for (name, interface) in members(value.get("interfaces")) {
            docs.add(name, interface);
        }
        docs
    }

    fn add(&mut self, interface: &str, value: &Value) {
        let functions = functions(value.get("funcs")).map(|(name, docs)| ((interface.to_owned(), name), docs));
        self.interfaces.extend(functions);
    }

    /// Returns the documentation of a function. `interface`: the name of the exported interface, such as `acme:clock/time@1.0.0`.
    pub(crate) fn function(&self, interface: Option<&str>, name: &str) -> Option<&str> {
        let Some(interface) = interface else { return self.world.get(name).map(String::as_str) };
        // The section holds the docs of one package, and names interfaces without it.
        let short = interface.rsplit('/').next().unwrap_or(interface);
        let short = short.split('@').next().unwrap_or(short);
        let of = |interface: &str| self.interfaces.get(&(interface.to_owned(), name.to_owned()));
        of(interface).or_else(|| of(short)).map(String::as_str)
    }
}

fn members(value: Option<&Value>) -> impl Iterator<Item = (&str, &Value)> {
    value.and_then(Value::as_object).into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

fn functions(value: Option<&Value>) -> impl Iterator<Item = (String, String)> {
    members(value).filter_map(|(name, function)| {
        // Older tools store the text itself here.
        let docs = function.as_str().or_else(|| function.get("docs").and_then(Value::as_str))?.trim();
        let docs = docs.get(..docs.floor_char_boundary(MAX_BYTES)).unwrap_or(docs);
        (!docs.is_empty()).then(|| (name.to_owned(), docs.to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worlds_and_interfaces_are_found_and_nonsense_is_nothing() {
        let docs = Docs::of(Some(
            r#"{"worlds":{"w":{"func_exports":{"fetch":{"docs":" Fetches. "},"odd":7},
                "interface_exports":{"a:b/c@0.1.0":{"funcs":{"f":{"docs":"Of c."}}}}}},
                "interfaces":{"clock":{"docs":"x","funcs":{"now":"Says the time.","none":{"docs":""}}}}}"#,
        ));
        assert_eq!(docs.function(None, "fetch"), Some("Fetches."));
        assert_eq!(docs.function(None, "odd"), None);
        assert_eq!(docs.function(Some("a:b/c@0.1.0"), "f"), Some("Of c."));
        assert_eq!(docs.function(Some("acme:time/clock@1.0.0"), "now"), Some("Says the time."));
        assert_eq!(docs.function(Some("acme:time/clock@1.0.0"), "none"), None);
        for odd in ["", "7", "{\"worlds\":[]}", "{\"worlds\":{\"w\":{\"func_exports\":7}}}", &"[".repeat(10_000)] {
            assert_eq!(Docs::of(Some(odd)).function(None, "fetch"), None);
        }
    }
}
