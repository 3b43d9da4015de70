//! Checks the imports between modules by parsing the code. Each top-level module of the server may import only from the top-level modules
//! that [`ALLOWED_IMPORTS`] lists for it, and the modules of a crate must not import each other in a cycle.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use syn::{
    Attribute, ItemMod, ItemUse, UseTree,
    visit::{self, Visit},
};

/// The top-level modules of the server, each with those that it may import from. Any other import is a problem, so that a new dependency
/// between top-level modules is always a decision.
const ALLOWED_IMPORTS: [(&str, &[&str]); 22] = [
    ("base", &[]),
    ("schema", &["base"]),
    ("tasks", &["base"]),
    ("egress", &["base"]),
    ("access", &["base", "egress"]),
    ("auth", &["base", "egress"]),
    ("roles", &["base", "access", "auth"]),
    ("profiles", &["roles"]),
    ("config", &["base", "egress", "access", "auth", "roles", "profiles"]),
    ("observe", &["base"]),
    ("audit", &["base", "config", "observe"]),
    ("bridge", &["base", "config", "schema"]),
    ("plugins", &["base", "config", "schema", "access", "roles", "profiles", "bridge", "observe"]),
    ("telemetry", &["base", "config", "egress", "observe", "audit", "plugins"]),
    ("approvals", &["base", "access", "config"]),
    (
        "client",
        &[
            "base",
            "config",
            "egress",
            "access",
            "auth",
            "roles",
            "profiles",
            "approvals",
            "bridge",
            "plugins",
            "tasks",
            "observe",
        ],
    ),
    (
        "methods",
        &[
            "base",
            "config",
            "access",
            "auth",
            "roles",
            "profiles",
            "approvals",
            "schema",
            "bridge",
            "plugins",
            "tasks",
            "client",
            "observe",
        ],
    ),
    (
        "transport",
        &["base", "config", "access", "auth", "profiles", "bridge", "plugins", "client", "methods", "observe"],
    ),
    (
        "app",
        &[
            "base",
            "config",
            "access",
            "auth",
            "observe",
            "audit",
            "profiles",
            "plugins",
            "telemetry",
            "client",
            "methods",
            "transport",
        ],
    ),
    ("authoring", &["base", "config"]),
    ("setup", &["base", "config"]),
    (
        "cli",
        &[
            "authoring",
            "setup",
            "base",
            "config",
            "egress",
            "access",
            "auth",
            "approvals",
            "audit",
            "observe",
            "plugins",
            "app",
        ],
    ),
];

/// Returns the problems with the imports in the host's crates.
pub fn problems(root: &Path) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for name in ["protocol", "forge", "sandbox", "server"] {
        let graph = Graph::read(&root.join("host").join(name).join("src"))?;
        if name == "server" {
            problems.extend(graph.forbidden_imports());
        }
        problems.extend(graph.cycles().iter().map(|cycle| format!("host/{name}: these import each other: {cycle}")));
    }
    Ok(problems)
}

/// Adds all files in a folder and its subfolders to `files`, except those in `target` and `node_modules` and symlinks.
pub fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_symlink() || path.file_name().is_some_and(|name| name == "node_modules" || name == "target") {
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

/// The import graph of a crate: for each module, the modules that its paths name. Paths in tests do not count.
struct Graph(BTreeMap<String, BTreeSet<String>>);

impl Graph {
    fn read(source: &Path) -> Result<Self> {
        let mut files = Vec::new();
        collect(source, &mut files)?;
        let mut modules = BTreeMap::new();
        for file in files {
            let name = file.strip_prefix(source).unwrap_or(&file).with_extension("");
            let mut name: Vec<String> = name.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            // `lib.rs` and `main.rs` may name every module.
            if name == ["lib"] || name == ["main"] {
                continue;
            }
            if name.last().is_some_and(|last| last == "mod") {
                name.pop();
            }
            let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
            let parsed = syn::parse_file(&text).with_context(|| file.display().to_string())?;
            let mut named = Named { module: name.clone(), paths: Vec::new() };
            named.visit_file(&parsed);
            modules.insert(name.join("::"), named.paths);
        }
        let resolve = |path: &Vec<String>| {
            (1..=path.len())
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

    fn forbidden_imports(&self) -> Vec<String> {
        let top = |module: &str| module.split("::").next().unwrap_or_default().to_owned();
        let mut wrong = Vec::new();
        for (from, named) in &self.0 {
            let Some((_, allowed)) = ALLOWED_IMPORTS.iter().find(|(name, _)| *name == top(from)) else {
                wrong.push(format!(
                    "host/server: `{from}` is not listed; add it to ALLOWED_IMPORTS in xtask/tidy/src/imports.rs"
                ));
                continue;
            };
            for to in named.iter().filter(|to| top(to) != top(from) && !allowed.contains(&top(to).as_str())) {
                wrong.push(format!("host/server: `{from}` imports `{to}`, which `{}` may not import", top(from)));
            }
        }
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
        cycles.iter().map(|cycle| cycle.join(", ")).collect()
    }
}

/// The paths that a file names, resolved from the root of its crate.
struct Named {
    module: Vec<String>,
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

fn of_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test")
    })
}

impl<'a> Visit<'a> for Named {
    fn visit_item_mod(&mut self, item: &'a ItemMod) {
        if !of_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'a ItemUse) {
        // A `use` with a visibility, such as `pub use`, only passes the name on to others, so it is not an import of this module.
        if matches!(item.vis, syn::Visibility::Inherited) && !of_tests(&item.attrs) {
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
