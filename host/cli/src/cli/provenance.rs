//! What a component says about how it was made: its version, source and licence, the tools that produced it, and the packages that went
//! into it. All of it is the author's word.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use wasm_metadata::{Metadata, Payload};

use wharf_base::text::{clip, escaped};

/// The beginning of the names that OCI has for annotations.
pub const ANNOTATION: &str = "org.opencontainers.image.";

/// What a component and the modules in it say.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// Lines such as `version: 1.2.0`.
    pub about: BTreeSet<String>,
    /// Such as `language Rust`, `processed-by rustc 1.97.0`.
    pub producers: BTreeSet<String>,
    /// The packages that cargo-auditable has recorded, such as `serde 1.0.228`; `None` if it has recorded nothing.
    pub packages: Option<BTreeSet<String>>,
}

impl Provenance {
    /// Reads what a component says.
    pub fn of(component: &[u8]) -> Result<Self> {
        let mut provenance = Self::default();
        let mut left = vec![Payload::from_binary(component)?];
        while let Some(one) = left.pop() {
            provenance.add(one.metadata());
            if let Payload::Component { children, .. } = one {
                left.extend(children);
            }
        }
        Ok(provenance)
    }

    fn add(&mut self, metadata: &Metadata) {
        let shown = |text: &dyn ToString| clip(&escaped(&text.to_string()));
        let Metadata { authors, description, licenses, source, homepage, revision, version, .. } = metadata;
        let about = [
            ("version", version.as_ref().map(|one| shown(one))),
            ("revision", revision.as_ref().map(|one| shown(one))),
            ("source", source.as_ref().map(|one| shown(one))),
            ("homepage", homepage.as_ref().map(|one| shown(one))),
            ("licenses", licenses.as_ref().map(|one| shown(one))),
            ("authors", authors.as_ref().map(|one| shown(one))),
            ("description", description.as_ref().map(|one| shown(one))),
        ];
        self.about.extend(about.into_iter().filter_map(|(name, value)| Some(format!("{name}: {}", value?))));
        for (field, tools) in metadata.producers.iter().flat_map(|producers| producers.iter()) {
            for (tool, version) in tools.iter() {
                self.producers
                    .insert(format!("{} {} {}", shown(field), shown(tool), shown(version)).trim_end().to_owned());
            }
        }
        if let Some(dependencies) = &metadata.dependencies {
            let packages = &dependencies.version_info().packages;
            let names = packages.iter().map(|package| format!("{} {}", shown(&package.name), package.version));
            self.packages.get_or_insert_default().extend(names);
        }
    }

    /// Returns what it says as the annotations that OCI has names for.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        let known = |name: &str| match name {
            "homepage" => Some("url"),
            name => ["version", "revision", "source", "licenses", "authors", "description"]
                .into_iter()
                .find(|one| *one == name),
        };
        let pairs = self.about.iter().filter_map(|line| line.split_once(": "));
        pairs.filter_map(|(name, value)| Some((format!("{ANNOTATION}{}", known(name)?), value.to_owned()))).collect()
    }

    /// Returns the lines to print. `all`: whether each package has a line.
    pub fn lines(&self, all: bool) -> Vec<String> {
        let mut lines: Vec<String> = self.about.iter().map(|line| format!("it says: {line}")).collect();
        if !self.producers.is_empty() {
            let producers: Vec<&str> = self.producers.iter().map(String::as_str).collect();
            lines.push(format!("made by: {}", producers.join(", ")));
        }
        match &self.packages {
            Some(packages) if all => {
                lines.push("packages:".into());
                lines.extend(packages.iter().map(|package| format!("  {package}")));
            }
            Some(packages) => lines.push(format!("packages: {}; --packages lists them", packages.len())),
            None if all => lines.push("packages: it does not say; cargo-auditable records them".into()),
            None => {}
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A custom section of a component.
    fn section(name: &str, contents: &[u8]) -> Vec<u8> {
        let name = [&[u8::try_from(name.len()).unwrap()], name.as_bytes()].concat();
        [&[0, u8::try_from(name.len() + contents.len()).unwrap()], name.as_slice(), contents].concat()
    }

    #[test]
    fn what_a_component_says_is_read() {
        const HEAD: [u8; 8] = [0, b'a', b's', b'm', 13, 0, 1, 0];
        assert_eq!(Provenance::of(&HEAD).unwrap(), Provenance::default());
        let producers = b"\x01\x08language\x01\x04Rust\x042021";
        // zlib's format for data that is not compressed.
        let json = br#"{"packages":[{"name":"serde","version":"1.0.1","source":"crates.io"}]}"#;
        let length = u16::try_from(json.len()).unwrap();
        let checksum = json.iter().fold((1_u32, 0_u32), |(a, b), byte| {
            let a = (a + u32::from(*byte)) % 65521;
            (a, (b + a) % 65521)
        });
        let packed = [
            &[0x78, 0x01, 0x01][..],
            &length.to_le_bytes(),
            &(!length).to_le_bytes(),
            json,
            &(checksum.1 << 16 | checksum.0).to_be_bytes(),
        ]
        .concat();
        let component = [
            HEAD.to_vec(),
            section("version", "1.2\u{202e}".as_bytes()),
            section("producers", producers),
            section(".dep-v0", &packed),
        ]
        .concat();
        let provenance = Provenance::of(&component).unwrap();
        assert_eq!(
            provenance.lines(true),
            ["it says: version: 1.2\\u{202e}", "made by: language Rust 2021", "packages:", "  serde 1.0.1"]
        );
        assert_eq!(provenance.lines(false).last().map(String::as_str), Some("packages: 1; --packages lists them"));
        let broken = [HEAD.to_vec(), section(".dep-v0", b"x")].concat();
        assert!(Provenance::of(&broken).is_err());
    }
}
