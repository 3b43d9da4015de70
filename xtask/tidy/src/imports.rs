//! Checks the imports between modules by parsing the code. The compiler checks the imports between crates. In a crate with several top-level
//! modules, each may import only from those that [`ALLOWED_IMPORTS`] lists for it; and the modules of a crate must not import each other in a
//! cycle. The tables in host/README.md are compared with both.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use syn::{
    Attribute, Item, ItemMod, ItemUse, UseTree,
    visit::{self, Visit},
};

/// The top-level modules of a crate, each with those of the same crate that it may import from.
type Modules = &'static [(&'static str, &'static [&'static str])];

/// The crates that have several top-level modules. Any other import between them is a problem, so that a new dependency is always a decision.
const ALLOWED_IMPORTS: [(&str, Modules); 6] = [
    ("policy", &[("access", &[]), ("auth", &[]), ("roles", &["access", "auth"]), ("profiles", &["roles"])]),
    ("config", &[("lock", &[]), ("config", &["lock"])]),
    (
        "sandbox",
        &[
            ("bindings", &[]),
            ("file", &[]),
            ("contract", &["bindings", "bounds"]),
            ("bounds", &[]),
            ("adapter", &["bindings", "bounds", "contract", "file", "wasi"]),
            ("wasi", &["adapter", "bindings", "bounds", "contract"]),
            ("compile", &["adapter", "bindings", "bounds", "contract", "file", "wasi"]),
            ("run", &["adapter", "bindings", "bounds", "compile", "contract", "file", "wasi"]),
        ],
    ),
    (
        "plugins",
        &[
            ("observe", &[]),
            ("audit", &["observe"]),
            ("approvals", &[]),
            ("bridge", &[]),
            ("plugins", &["bridge", "observe"]),
            ("tasks", &[]),
            ("telemetry", &["audit", "observe", "plugins"]),
        ],
    ),
    ("serve", &[("client", &[]), ("methods", &["client"]), ("transport", &["client", "methods"])]),
    ("cli", &[("authoring", &[]), ("setup", &[]), ("cli", &["authoring", "setup"])]),
];

/// The document with the tables of crates and modules.
const DOCUMENT: &str = "host/README.md";

/// Returns the problems with the imports in the host's crates, and with the tables of them.
pub fn problems(root: &Path) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    let mut rows = Vec::new();
    for name in crates(root)? {
        let folder = root.join("host").join(&name);
        let graph = Graph::read(&folder.join("src"))?;
        if let Some((_, modules)) = ALLOWED_IMPORTS.iter().find(|(own, _)| *own == name) {
            problems
                .extend(graph.forbidden_imports(modules).into_iter().map(|problem| format!("host/{name}: {problem}")));
            rows.extend(modules.iter().map(|(module, allowed)| {
                (format!("{name}::{module}"), allowed.iter().map(|module| (*module).to_owned()).collect())
            }));
        }
        problems.extend(graph.cycles().iter().map(|cycle| format!("host/{name}: these import each other: {cycle}")));
        rows.push((format!("host/{name}"), dependencies(&folder)?));
    }
    let gone = ALLOWED_IMPORTS.iter().filter(|(name, _)| !root.join("host").join(name).is_dir());
    problems.extend(gone.map(|(name, _)| format!("ALLOWED_IMPORTS has the crate host/{name}, which does not exist")));
    let document = fs::read_to_string(root.join(DOCUMENT)).context(DOCUMENT)?;
    problems.extend(differences(&document, &rows));
    Ok(problems)
}

/// Returns the names of the crates in `host`, except those that only tests use.
pub fn crates(root: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root.join("host")).context("host")? {
        let path = entry?.path();
        if path.join("Cargo.toml").is_file() && !path.ends_with("testing") {
            names.extend(path.file_name().map(|name| name.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

/// Returns the crates of the host that a crate depends on, without the prefix `wharf-`.
fn dependencies(folder: &Path) -> Result<BTreeSet<String>> {
    let manifest = folder.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).with_context(|| manifest.display().to_string())?;
    let (_, after) = text.split_once("\n[dependencies]\n").unwrap_or_default();
    let own = after.split("\n[").next().unwrap_or_default().lines();
    Ok(own.filter_map(|line| line.strip_prefix("wharf-")?.split(['.', ' ']).next().map(str::to_owned)).collect())
}

/// Compares the tables of a document with the imports. A row is `| `name` | contents | `import`, `import` |`.
fn differences(document: &str, rows: &[(String, BTreeSet<String>)]) -> Vec<String> {
    let quoted = |cell: &str| -> BTreeSet<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let mut told: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in document.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let [_, name, _, imports, _] = cells.as_slice() {
            told.insert(name.trim_matches('`').to_owned(), quoted(imports));
        }
    }
    let list = |names: &BTreeSet<String>| names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let mut problems = Vec::new();
    for (name, imports) in rows {
        match told.remove(name) {
            None => problems.push(format!("{DOCUMENT}: has no row for `{name}`")),
            Some(row) if row != *imports => problems.push(format!(
                "{DOCUMENT}: `{name}` imports [{}], and its row says [{}]",
                list(imports),
                list(&row)
            )),
            Some(_) => {}
        }
    }
    problems.extend(told.into_keys().map(|name| format!("{DOCUMENT}: has a row for `{name}`, which does not exist")));
    problems
}

/// The folders that builds and package managers write, as `.gitignore` lists them.
const GENERATED: [&str; 5] = ["target", "node_modules", ".venv", "__pycache__", "dist"];

/// Adds all files in a folder and its subfolders to `files`, except generated ones and symlinks.
pub fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let is_generated = path.file_name().is_some_and(|name| GENERATED.iter().any(|one| name == *one));
        if path.is_symlink() || is_generated {
            continue;
        }
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// The import graph of a crate: for each module, the modules that its paths name. The crate's root is the module with the empty name. Paths in
/// tests do not count.
struct Graph(BTreeMap<String, BTreeSet<String>>);

impl Graph {
    fn read(source: &Path) -> Result<Self> {
        let mut files = Vec::new();
        collect(source, &mut files)?;
        let mut sources = Vec::new();
        for file in files.into_iter().filter(|file| file.extension().is_some_and(|extension| extension == "rs")) {
            let name = file.strip_prefix(source).unwrap_or(&file).with_extension("");
            let name: Vec<String> = name.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
            sources.push((name, text));
        }
        Self::of(&sources)
    }

    /// Makes the graph of files, given by the parts of their paths, without the extension, and their texts.
    fn of(sources: &[(Vec<String>, String)]) -> Result<Self> {
        let mut modules = BTreeMap::new();
        for (file, text) in sources {
            let mut name = file.clone();
            // `main.rs` is a crate of its own.
            if name == ["main"] {
                continue;
            }
            if name == ["lib"] || name.last().is_some_and(|last| last == "mod") {
                name.pop();
            }
            let parsed = syn::parse_file(text).with_context(|| file.join("/"))?;
            let children = parsed.items.iter().filter_map(|item| match item {
                Item::Mod(item) if !of_tests(&item.attrs) => Some(item.ident.to_string()),
                _ => None,
            });
            let mut named = Named { module: name.clone(), children: children.collect(), paths: Vec::new() };
            named.visit_file(&parsed);
            modules.insert(name.join("::"), named.paths);
        }
        let resolve = |path: &Vec<String>| {
            (0..=path.len())
                .rev()
                .filter_map(|length| path.get(..length))
                .map(|part| part.join("::"))
                .find(|part| modules.contains_key(part))
        };
        let arrows = modules.iter().map(|(module, paths)| {
            let named = paths.iter().filter_map(resolve).filter(|named| named != module).collect();
            (module.clone(), named)
        });
        Ok(Self(arrows.collect()))
    }

    fn forbidden_imports(&self, modules: Modules) -> Vec<String> {
        let top = |module: &str| module.split("::").next().unwrap_or_default().to_owned();
        let mut wrong = Vec::new();
        for (from, named) in self.0.iter().filter(|(from, _)| !from.is_empty()) {
            let Some((_, allowed)) = modules.iter().find(|(name, _)| *name == top(from)) else {
                wrong.push(format!("`{from}` is not listed; add it to ALLOWED_IMPORTS in xtask/tidy/src/imports.rs"));
                continue;
            };
            for to in named.iter().filter(|to| top(to) != top(from) && !allowed.contains(&top(to).as_str())) {
                let name = if to.is_empty() { "crate" } else { to };
                wrong.push(format!("`{from}` imports `{name}`, which `{}` may not import", top(from)));
            }
        }
        let gone = modules.iter().filter(|(name, _)| !self.0.contains_key(*name));
        wrong.extend(gone.map(|(name, _)| format!("ALLOWED_IMPORTS has the module `{name}`, which does not exist")));
        wrong
    }

    /// Returns the cycles: sets of modules in which each module reaches all others (strongly connected components).
    fn cycles(&self) -> Vec<String> {
        let reached = |start: &String| {
            let mut reached = BTreeSet::new();
            let mut next: Vec<&String> = self.0.get(start).into_iter().flatten().collect();
            while let Some(module) = next.pop() {
                if reached.insert(module.clone()) {
                    next.extend(self.0.get(module).into_iter().flatten());
                }
            }
            reached
        };
        let reached: BTreeMap<&String, BTreeSet<String>> =
            self.0.keys().map(|module| (module, reached(module))).collect();
        let leads = |from: &String, to: &String| reached.get(from).is_some_and(|reached| reached.contains(to));
        let cycles: BTreeSet<Vec<&str>> = self
            .0
            .keys()
            .filter(|module| leads(module, module))
            .map(|module| {
                self.0.keys().filter(|other| leads(module, other) && leads(other, module)).map(String::as_str).collect()
            })
            .collect();
        cycles
            .iter()
            .map(|cycle| {
                cycle
                    .iter()
                    .map(|module| if module.is_empty() { "crate" } else { module })
                    .collect::<Vec<_>>()
                    .join(", ")
            })
            .collect()
    }
}

/// The paths that a file names, resolved from the root of its crate.
struct Named {
    module: Vec<String>,
    /// The modules that the file declares; a path may begin with the name of one.
    children: BTreeSet<String>,
    paths: Vec<Vec<String>>,
}

impl Named {
    fn add(&mut self, path: &[String]) {
        let mut base = self.module.clone();
        let mut rest = path.iter();
        match path.first().map(String::as_str) {
            Some("crate") => {
                base.clear();
                rest.next();
            }
            Some("self") => drop(rest.next()),
            Some("super") => {
                for _ in path.iter().take_while(|part| *part == "super") {
                    base.pop();
                    rest.next();
                }
            }
            Some(first) if self.children.contains(first) => {}
            _ => return,
        }
        base.extend(rest.filter(|part| *part != "self").cloned());
        self.paths.push(base);
    }

    fn add_tree(&mut self, before: &[String], tree: &UseTree) {
        let with = |part: &syn::Ident| [before, &[part.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.add_tree(&with(&path.ident), &path.tree),
            UseTree::Name(name) => self.add(&with(&name.ident)),
            UseTree::Rename(name) => self.add(&with(&name.ident)),
            UseTree::Glob(_) => self.add(before),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.add_tree(before, tree)),
        }
    }
}

pub fn of_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test")
    })
}

impl<'a> Visit<'a> for Named {
    fn visit_item_mod(&mut self, item: &'a ItemMod) {
        if !of_tests(&item.attrs) {
            self.module.push(item.ident.to_string());
            visit::visit_item_mod(self, item);
            self.module.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'a ItemUse) {
        if !of_tests(&item.attrs) {
            self.add_tree(&[], &item.tree);
        }
    }

    fn visit_macro(&mut self, call: &'a syn::Macro) {
        // The parser leaves a macro's arguments as tokens, so paths in them are searched for in their text.
        for rest in call.tokens.to_string().split("crate :: ").skip(1) {
            let path = rest.split(|character: char| !(character.is_alphanumeric() || "_: ".contains(character))).next();
            let parts = path.unwrap_or_default().split("::").map(|part| part.trim().to_owned());
            self.add(&std::iter::once("crate".to_owned()).chain(parts).collect::<Vec<_>>());
        }
        visit::visit_macro(self, call);
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let parts: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if parts.len() > 1 {
            self.add(&parts);
        }
        visit::visit_path(self, path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(files: &[(&str, &str)]) -> Graph {
        let sources: Vec<_> = files
            .iter()
            .map(|(path, text)| (path.split('/').map(str::to_owned).collect::<Vec<_>>(), (*text).to_owned()))
            .collect();
        Graph::of(&sources).unwrap()
    }

    #[test]
    fn cycles_are_found_however_a_path_is_written() {
        for (what, files) in [
            ("crate paths", [("lib", ""), ("a/mod", "mod b; use crate::a::b::X;"), ("a/b", "use crate::a::Y;")]),
            ("a bare path", [("lib", ""), ("a/mod", "mod b; fn f() { b::x() }"), ("a/b", "use super::Y;")]),
            ("pub use", [("lib", ""), ("a/mod", "mod b; pub use self::b::X;"), ("a/b", "use super::Y;")]),
            ("a bare pub use", [("lib", ""), ("a/mod", "pub mod b; pub use b::X;"), ("a/b", "use super::Y;")]),
            ("a macro", [("lib", ""), ("a/mod", "mod b; fn f() { print!(crate::a::b::X) }"), ("a/b", "use super::Y;")]),
        ] {
            assert_eq!(graph(&files).cycles(), ["a, a::b"], "{what}");
        }
        let root = [("lib", "mod a; pub use a::X;"), ("a", "use crate::X;")];
        assert_eq!(graph(&root).cycles(), ["crate, a"]);
        let inline = [("lib", "pub mod a;"), ("a", "mod inner { use super::X; } fn f() { inner::g() }")];
        assert_eq!(graph(&inline).cycles(), [""; 0]);
        let of_tests =
            [("lib", ""), ("a/mod", "mod b; pub use b::X;"), ("a/b", "#[cfg(test)] mod tests { use crate::a::Y; }")];
        assert_eq!(graph(&of_tests).cycles(), [""; 0]);
    }

    #[test]
    fn imports_that_are_not_allowed_and_modules_that_are_gone_are_problems() {
        const MODULES: Modules = &[("low", &[]), ("high", &["low"]), ("gone", &[])];
        let files = [("lib", ""), ("low/mod", "use crate::high::X;"), ("high", "use crate::low::Y;"), ("new", "")];
        let problems = graph(&files).forbidden_imports(MODULES);
        let [import, unlisted, gone] = problems.as_slice() else { panic!("{problems:?}") };
        assert!(import.contains("`low` imports `high`"), "{import}");
        assert!(unlisted.contains("`new` is not listed"), "{unlisted}");
        assert!(gone.contains("has the module `gone`, which does not exist"), "{gone}");
    }

    #[test]
    fn a_table_that_differs_from_the_imports_is_a_problem() {
        let rows = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let imports = [("a".to_owned(), rows(&["b", "c"])), ("b".to_owned(), rows(&[])), ("c".to_owned(), rows(&[]))];
        let document = "| name | contents | imports |\n|---|---|---|\n\
            | `a` | uses `x` | `b` |\n| `b` | nothing | |\n| `d` | nothing | |\n";
        let problems = differences(document, &imports);
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert!(problems[0].contains("`a` imports [b, c], and its row says [b]"), "{problems:?}");
        assert!(problems[1].contains("no row for `c`") && problems[2].contains("a row for `d`"), "{problems:?}");
    }
}
