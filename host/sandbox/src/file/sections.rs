//! The custom sections of a file in which a plugin describes itself. They can be read without running anything. They hold a paragraph of
//! instructions for the model, what the plugin wants to be granted, and whether it keeps state in memory.
//!
//! A section may be in the component itself, where `wharf build --embed` puts it, or in a core module directly inside the component, where a
//! compiler puts it. The component's own takes precedence. Both are claims of the plugin's author and grant nothing.

use wharf_scope::MAX_INSTRUCTIONS_BYTES;

use crate::file::load_error::LoadError;

/// The section in which WIT tools store documentation, and the maximum size that is read. Its first byte is its version.
const DOCS_SECTION: &str = "package-docs";
const MAX_DOCS_BYTES: usize = 256 << 10;

/// The name of the section with instructions for the model.
pub const INSTRUCTIONS: &str = "wharf:instructions";
/// The name of the section with what the plugin wants to be granted.
pub const WANTS: &str = "wharf:wants";

/// The name of the section of a plugin that keeps state in memory, and its contents.
const INSTANCES: &str = "wharf:instances";
const KEPT: &str = "kept";

/// The maximum length of what a plugin wants.
pub const MAX_WANTS_BYTES: usize = 16 << 10;

/// The texts of the sections; `None` where there is no such section, or an empty one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sections {
    /// What the model should know about all tools of the plugin together.
    pub instructions: Option<String>,
    /// What the plugin wants to be granted, as JSON. It has not been parsed.
    pub wants: Option<String>,
    /// Whether it keeps state in memory for a client, so that all calls of the client have to run in one instance.
    pub keeps_state: bool,
    /// The documentation of its functions, as JSON. It has not been parsed.
    pub docs: Option<String>,
}

impl Sections {
    /// Stores the contents of a section, if it is one that wharf reads. `own`: whether the section is in the component itself.
    pub(crate) fn take(&mut self, name: &str, bytes: &[u8], own: bool) -> Result<(), LoadError> {
        let wrong = |name, problem: String| LoadError::Section { name, problem };
        let (name, place, most) = match name {
            INSTRUCTIONS => (INSTRUCTIONS, &mut self.instructions, MAX_INSTRUCTIONS_BYTES),
            WANTS => (WANTS, &mut self.wants, MAX_WANTS_BYTES),
            INSTANCES if bytes == KEPT.as_bytes() => {
                self.keeps_state = true;
                return Ok(());
            }
            INSTANCES => return Err(wrong(INSTANCES, format!("it contains `{KEPT}`, or is left out"))),
            // This section is written by other tools, so the component is not refused if the section is malformed.
            DOCS_SECTION if own && bytes.len() <= MAX_DOCS_BYTES => {
                let text = bytes.get(1..).and_then(|text| std::str::from_utf8(text).ok());
                self.docs = text.filter(|text| !text.is_empty()).map(str::to_owned);
                return Ok(());
            }
            _ => return Ok(()),
        };
        if bytes.len() > most {
            return Err(wrong(name, format!("{} bytes are more than {most}", bytes.len())));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| wrong(name, "it is not UTF-8".into()))?;
        if own || place.is_none() {
            *place = Some(text.to_owned()).filter(|text| !text.trim().is_empty());
        }
        Ok(())
    }

    /// Encodes the texts for storage with compiled code: each with its length before it.
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut bytes = vec![u8::from(self.keeps_state)];
        for text in [&self.instructions, &self.wants, &self.docs] {
            let text = text.as_deref().unwrap_or_default();
            bytes.extend((text.len() as u64).to_le_bytes());
            bytes.extend(text.as_bytes());
        }
        bytes
    }

    /// Decodes what [`Sections::write`] wrote. Returns the sections and the number of bytes that were read, or `None` if the bytes are
    /// malformed.
    pub(crate) fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let (keeps_state, mut rest) = bytes.split_first()?;
        let keeps_state = *keeps_state == 1;
        let mut next = || {
            let (length, behind) = rest.split_first_chunk()?;
            let (text, behind) = behind.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
            rest = behind;
            Some(Some(String::from_utf8(text.to_vec()).ok()?).filter(|text| !text.is_empty()))
        };
        let sections = Self { instructions: next()?, wants: next()?, keeps_state, docs: next()? };
        Some((sections, bytes.len() - rest.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_components_own_section_takes_precedence() {
        let mut sections = Sections::default();
        sections.take(INSTRUCTIONS, b"inner", false).unwrap();
        sections.take("name", b"\xff", true).unwrap();
        assert_eq!(sections.instructions.as_deref(), Some("inner"));
        sections.take(INSTRUCTIONS, b"own", true).unwrap();
        sections.take(INSTRUCTIONS, b"inner again", false).unwrap();
        assert_eq!(sections.instructions.as_deref(), Some("own"));
        sections.take(INSTANCES, b"kept", false).unwrap();
        assert!(sections.keeps_state);
        sections.take(WANTS, b" ", true).unwrap();
        assert_eq!(sections.wants, None);
        sections.take(DOCS_SECTION, b"\0{}", true).unwrap();
        sections.take(DOCS_SECTION, b"\0inner", false).unwrap();
        sections.take(DOCS_SECTION, &vec![b'x'; 300_000], true).unwrap();
        assert_eq!(sections.docs.as_deref(), Some("{}"));
    }

    #[test]
    fn what_is_too_long_or_no_text_is_refused() {
        for (name, bytes, expected) in [
            (INSTRUCTIONS, vec![b'x'; 2049], "wharf:instructions: 2049 bytes are more than 2048"),
            (WANTS, vec![b'x'; 20_000], "wharf:wants: 20000 bytes are more than 16384"),
            (WANTS, vec![0xff], "wharf:wants: it is not UTF-8"),
            (INSTANCES, b"fresh".to_vec(), "wharf:instances: it contains `kept`"),
        ] {
            let error = Sections::default().take(name, &bytes, true).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for (instructions, wants) in [(None, None), (Some("a"), None), (None, Some("{}")), (Some("ü"), Some("{}"))] {
            let sections = Sections {
                instructions: instructions.map(str::to_owned),
                wants: wants.map(str::to_owned),
                keeps_state: wants.is_some(),
                docs: Some("{}".into()),
            };
            let mut bytes = sections.write();
            let length = bytes.len();
            bytes.extend(b"code");
            assert_eq!(Sections::read(&bytes), Some((sections, length)));
            for end in 0..length {
                assert_eq!(Sections::read(&bytes[..end]), None, "{end}");
            }
        }
    }
}
