//! Checks that a type's name has one meaning wherever crates of the host import it: two types with the same name that other crates import by
//! name are a problem. Types that are only used inside their crate, or with their module's name before them, may share a name.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context, Result};
use syn::{
    Ident, ItemMod, ItemUse, UseTree, Visibility,
    visit::{self, Visit},
};

use crate::imports::{collect, crates, of_tests};

/// The crates, each with the modules in which it defines each name. Both are written as in a path: `wharf_base`, `wharf_base::ledger`.
type Definitions = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// Returns the names with several meanings.
pub fn problems(root: &Path) -> Result<Vec<String>> {
    let mut sources = Vec::new();
    for name in crates(root)? {
        let (source, name) = (root.join("host").join(&name).join("src"), format!("wharf_{name}"));
        let mut files = Vec::new();
        collect(&source, &mut files)?;
        for file in files.into_iter().filter(|file| file.extension().is_some_and(|extension| extension == "rs")) {
            let path = file.strip_prefix(&source).unwrap_or(&file).with_extension("");
            let parts = path.iter().map(|part| part.to_string_lossy().into_owned());
            let module = parts.filter(|part| !["lib", "mod"].contains(&part.as_str()));
            let module: Vec<String> = std::iter::once(name.clone()).chain(module).collect();
            let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
            sources.push((module.join("::"), text));
        }
    }
    several_meanings(&sources)
}

/// Finds the names with several meanings in files, given by the paths of their modules and their texts.
fn several_meanings(sources: &[(String, String)]) -> Result<Vec<String>> {
    let (mut definitions, mut imports) = (Definitions::new(), BTreeSet::new());
    for (module, text) in sources {
        let file = syn::parse_file(text).with_context(|| module.clone())?;
        let mut read = Read { module: module.split("::").map(str::to_owned).collect(), types: vec![], paths: vec![] };
        read.visit_file(&file);
        let own = crate_of(module);
        for (module, name) in read.types {
            definitions.entry(own.to_owned()).or_default().entry(name).or_default().insert(module);
        }
        imports.extend(read.paths.into_iter().filter(|path| path.starts_with("wharf_") && crate_of(path) != own));
    }
    let mut meanings: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for path in &imports {
        let Some((module, name)) = path.rsplit_once("::") else { continue };
        let of_crate = definitions.get(crate_of(path)).and_then(|names| names.get(name));
        // A crate that exports the type of another crate does not define it, and gives it no other meaning.
        let Some(modules) = of_crate else { continue };
        // The type may be exported further up than it is defined.
        let defined = modules.iter().find(|one| *one == module);
        let below = || modules.iter().find(|one| one.starts_with(&format!("{module}::")));
        if let Some(defined) = defined.or_else(below) {
            meanings.entry(name).or_default().insert(defined);
        }
    }
    let several = meanings.into_iter().filter(|(_, modules)| modules.len() > 1);
    let list = |modules: BTreeSet<&str>| modules.into_iter().collect::<Vec<_>>().join("` and in `");
    Ok(several
        .map(|(name, modules)| {
            format!(
                "other crates import `{name}`, which is defined in `{}`; give each a name of its own",
                list(modules)
            )
        })
        .collect())
}

fn crate_of(path: &str) -> &str {
    path.split("::").next().unwrap_or_default()
}

/// What a file defines and imports, except in tests.
struct Read {
    module: Vec<String>,
    /// Public types, each with its module.
    types: Vec<(String, String)>,
    /// The paths of imported names.
    paths: Vec<String>,
}

impl Read {
    fn defines(&mut self, visibility: &Visibility, name: &Ident) {
        if matches!(visibility, Visibility::Public(_)) {
            self.types.push((self.module.join("::"), name.to_string()));
        }
    }

    fn imports(&mut self, before: &str, tree: &UseTree) {
        let with = |name: &Ident| if before.is_empty() { name.to_string() } else { format!("{before}::{name}") };
        match tree {
            UseTree::Path(path) => self.imports(&with(&path.ident), &path.tree),
            UseTree::Name(name) => self.paths.push(with(&name.ident)),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.imports(before, tree)),
            // With `as`, the name is not the type's. No crate of the host imports everything of another one.
            UseTree::Rename(_) | UseTree::Glob(_) => {}
        }
    }
}

impl<'a> Visit<'a> for Read {
    fn visit_item_mod(&mut self, item: &'a ItemMod) {
        if !of_tests(&item.attrs) {
            self.module.push(item.ident.to_string());
            visit::visit_item_mod(self, item);
            self.module.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'a ItemUse) {
        if !of_tests(&item.attrs) {
            self.imports("", &item.tree);
        }
    }

    fn visit_item_struct(&mut self, item: &'a syn::ItemStruct) {
        self.defines(&item.vis, &item.ident);
    }

    fn visit_item_enum(&mut self, item: &'a syn::ItemEnum) {
        self.defines(&item.vis, &item.ident);
    }

    fn visit_item_trait(&mut self, item: &'a syn::ItemTrait) {
        self.defines(&item.vis, &item.ident);
    }

    fn visit_item_type(&mut self, item: &'a syn::ItemType) {
        self.defines(&item.vis, &item.ident);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<_> = files.iter().map(|(module, text)| ((*module).to_owned(), (*text).to_owned())).collect();
        several_meanings(&sources).unwrap()
    }

    #[test]
    fn a_name_that_other_crates_import_has_one_meaning() {
        const A: (&str, &str) = ("wharf_a::one", "pub struct Kind;");
        const B: (&str, &str) = ("wharf_b::two", "pub enum Kind {}");
        let found = problems(&[A, B, ("wharf_c", "use wharf_a::one::Kind;"), ("wharf_d", "use wharf_b::two::Kind;")]);
        let [problem] = found.as_slice() else { panic!("{found:?}") };
        assert!(problem.contains("`Kind`, which is defined in `wharf_a::one` and in `wharf_b::two`"), "{problem}");
        let reexported = [A, B, ("wharf_c", "use wharf_a::Kind;"), ("wharf_d", "use wharf_b::{two::Kind};")];
        assert_eq!(problems(&reexported).len(), 1, "exported further up");
        for (what, of_c) in [
            ("with its module", "use wharf_a::one; fn f(_: one::Kind) {}"),
            ("under another name", "use wharf_a::one::Kind as One;"),
            ("in tests", "#[cfg(test)] mod tests { use wharf_a::one::Kind; }"),
            ("of its own crate", "use crate::Kind;"),
        ] {
            let files = [A, B, ("wharf_c", of_c), ("wharf_d", "use wharf_b::two::Kind;")];
            assert_eq!(problems(&files), [""; 0], "{what}");
        }
        let passed_on = [A, ("wharf_b", "pub use wharf_a::one::Kind;"), ("wharf_c", "use wharf_b::Kind;")];
        assert_eq!(problems(&passed_on), [""; 0], "one type in two crates");
        let hidden = [("wharf_a::one", "pub(crate) struct Kind;"), B, ("wharf_c", "use wharf_a::one::Kind;")];
        assert_eq!(problems(&hidden), [""; 0], "not public");
    }
}
