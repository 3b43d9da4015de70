//! Inspects a component without compiling it, and adds custom sections to one. Only the component's own top-level sections are read; they
//! are copied unchanged.

use sha2::{Digest, Sha256};
use wasmparser::{BinaryReader, BinaryReaderError, ComponentImportSectionReader};

use crate::file::{
    load_error::{Kind, LoadError, check_header, kind},
    look::look,
    sections::Sections,
};
use wharf_base::hex::hex;

/// The number of bytes before the first section: the magic number and the version.
const HEADER_BYTES: usize = 8;
/// The ids of sections of a component.
const CUSTOM: u8 = 0;
const IMPORTS: u8 = 10;

/// What can be learned about a component without compiling it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outside {
    /// SHA-256 of the file in lower-case hexadecimal.
    pub sha256: String,
    /// The interfaces that the component imports or, for a core module, those that the component made from it could import.
    pub imports: Vec<String>,
    /// The sections in which the plugin describes itself.
    pub sections: Sections,
}

impl Outside {
    /// Inspects a component. Checks its header and how many instances it expands to, as a defence against something like a zip bomb, but
    /// does not validate it.
    ///
    /// # Errors
    /// If the bytes are not a component, or if loading them would be refused because of what they instantiate or of their custom sections.
    pub fn of(component: &[u8]) -> Result<Self, LoadError> {
        let kind = kind(component)?;
        let (_, sections) = look(component)?;
        let sha256 = hex(&Sha256::digest(component));
        if kind == Kind::Module {
            let imports = wharf_forge::imports(component).map_err(|error| LoadError::CoreModule(error.to_string()))?;
            return Ok(Self { sha256, imports, sections });
        }
        let mut imports = Vec::new();
        for section in walk(component)?.into_iter().filter(|section| section.id == IMPORTS) {
            let reader = ComponentImportSectionReader::new(BinaryReader::new(section.body, 0)).map_err(malformed)?;
            for import in reader {
                imports.push(import.map_err(malformed)?.name.name.to_owned());
            }
        }
        Ok(Self { sha256, imports, sections })
    }
}

/// Returns the component with a custom section `name` that holds `text`. The section replaces the component's own sections of that name.
/// Sections of inner modules stay, because the component's own takes precedence.
///
/// # Errors
/// If the bytes are not a component, or if it could not be loaded with that text.
pub fn with_section(component: &[u8], name: &str, text: &str) -> Result<Vec<u8>, LoadError> {
    check_header(component)?;
    let mut written = component.get(..HEADER_BYTES).unwrap_or_default().to_vec();
    for section in walk(component)?.into_iter().filter(|section| section.custom_name() != Some(name)) {
        written.extend(section.whole);
    }
    let mut body = Vec::with_capacity(name.len() + text.len() + 5);
    write_number(&mut body, name.len());
    body.extend(name.as_bytes());
    body.extend(text.as_bytes());
    written.push(CUSTOM);
    write_number(&mut written, body.len());
    written.extend(body);
    Outside::of(&written)?;
    Ok(written)
}

/// A top-level section of a component.
struct Section<'a> {
    id: u8,
    /// The section with its id and its length.
    whole: &'a [u8],
    body: &'a [u8],
}

impl<'a> Section<'a> {
    fn custom_name(&self) -> Option<&'a str> {
        if self.id == CUSTOM { BinaryReader::new(self.body, 0).read_string().ok() } else { None }
    }
}

fn walk(component: &[u8]) -> Result<Vec<Section<'_>>, LoadError> {
    let mut sections = Vec::new();
    let mut rest = component.get(HEADER_BYTES..).unwrap_or_default();
    while !rest.is_empty() {
        let mut reader = BinaryReader::new(rest, 0);
        let id = reader.read_u8().map_err(malformed)?;
        let length = reader.read_var_u32().map_err(malformed)?;
        let body = reader.read_bytes(length as usize).map_err(malformed)?;
        let (whole, behind) = rest.split_at_checked(reader.current_position()).unwrap_or((rest, &[]));
        sections.push(Section { id, whole, body });
        rest = behind;
    }
    Ok(sections)
}

fn malformed(error: BinaryReaderError) -> LoadError {
    LoadError::Compile(error.to_string())
}

/// Writes a length in LEB128, as WebAssembly encodes integers.
fn write_number(to: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        to.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::sections::{INSTRUCTIONS, WANTS};

    const COMPONENT: &str = r#"(component
        (import "wasi:http/types@0.2.0" (instance))
        (core module (@custom "wharf:wants" "inner") (@custom "wharf:instructions" "inner")))"#;

    #[test]
    fn a_section_takes_the_place_of_the_one_that_is_there() {
        let component = wat::parse_str(COMPONENT).unwrap();
        let before = Outside::of(&component).unwrap();
        assert_eq!(before.imports, ["wasi:http/types@0.2.0"]);
        assert_eq!(before.sections.wants.as_deref(), Some("inner"));
        let long = "x".repeat(300);
        let mut written = component.clone();
        for text in ["{}", &long, "short"] {
            written = with_section(&written, WANTS, text).unwrap();
            let now = Outside::of(&written).unwrap();
            assert_eq!(now.sections.wants.as_deref(), Some(text));
            assert_eq!(now.sections.instructions.as_deref(), Some("inner"));
            assert_eq!(now.imports, before.imports);
            assert_ne!(now.sha256, before.sha256);
        }
        assert_eq!(written.len(), component.len() + 2 + 1 + WANTS.len() + "short".len(), "there is one of it");
        let none = with_section(&component, INSTRUCTIONS, "").unwrap();
        assert_eq!(Outside::of(&none).unwrap().sections.instructions, None);
    }

    #[test]
    fn a_core_module_imports_what_it_names() {
        let imports = |text: &str| Outside::of(&wat::parse_str(text).unwrap()).unwrap().imports;
        assert_eq!(imports("(module)"), [""; 0]);
        let module = r#"(module (import "wasi:http/types@0.2.0" "x" (func)) (func (export "_start")))"#;
        let imports = imports(module);
        assert!(imports.iter().any(|name| name == "wasi:http/types@0.2.0"), "{imports:?}");
        assert!(imports.iter().any(|name| name.starts_with("wasi:filesystem/")), "{imports:?}");
    }

    #[test]
    fn what_could_not_be_loaded_is_refused() {
        let component = wat::parse_str(COMPONENT).unwrap();
        let cut = &component[..component.len() - 1];
        for (bytes, text, expected) in [
            (&b"text"[..], "", "not WebAssembly"),
            (b"\0asm\x01\0\0\0", "", "a core WebAssembly module"),
            (cut, "", "does not compile"),
            (&component, &*"x".repeat(20_000), "more than 16384"),
        ] {
            let error = with_section(bytes, WANTS, text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
