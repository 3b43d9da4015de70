//! Generates docs/contract.md, the reference of the plugin contract, from the WIT in `wit/`: its comments and the signature of each world,
//! function and type.

use std::{fmt::Write, fs, path::Path};

use anyhow::{Context, Result, ensure};
use wit_parser::{Docs, Function, Interface, Resolve, Type, TypeDef, TypeDefKind, World, WorldItem, WorldKey};

const PLACE: &str = "docs/contract.md";
const HEAD: &str = "\
<!-- Made by `cargo xtask generate` from wit/. Change the comments there. -->

# The contract

The interfaces that a plugin exports, and those of wharf that it may import. The SDKs wrap all of this ([authors.md](authors.md)); plugins
in other languages are built against these worlds. Plugins can also import WASI 0.2: clocks, random numbers, files in the directories that
are open to the call, and HTTP to the hosts that the operator allows.
";
/// The part of the contract that WIT cannot express.
const SECTIONS: &str = r#"
## Custom sections

In custom sections of its file, a plugin describes itself. wharf reads them without running the plugin, and they grant nothing. A section
may be in the component itself, where `wharf build --embed` puts it, or in a core module directly inside the component, where a compiler
puts it; the component's own takes precedence. `wharf:instructions` and `wharf:wants` hold UTF-8. A plugin is not loaded if one of the first
three is longer than its limit, or malformed.

| section | contents | at most |
|---|---|---|
| `wharf:instructions` | a paragraph for the model about all tools of the plugin together, as plain text; wharf adds it to the server's instructions, unless the operator replaces it | 2,048 bytes |
| `wharf:wants` | the grants that the plugin requests, as a JSON object with the members below | 16,384 bytes, 32 entries in each list |
| `wharf:instances` | `kept`: the plugin keeps state in memory, so all calls of a client run in one instance, one after the other, unless the operator wants fresh ones. A failure whose data is `{"dev.wharf/ended":true}` says that this instance cannot go on | 4 bytes |
| `package-docs` | the documentation of functions, as WIT tools write it; for components that were not made for wharf ([adapter.md](adapter.md)), it is the descriptions of their tools. It is read only in the component itself, and ignored if it is longer or malformed | 262,144 bytes |

The members of `wharf:wants`, all of them optional. Each entry may have `why`, which operators see, cut after 200 characters. Other members
are errors.

| member | value |
|---|---|
| `http` | a list of URLs, or of `{"url": …, "methods": …, "secret": …, "header": …}`: requests that match a rule of this form, as in the operator's config. A URL has at most 200 characters (letters, digits and `-._~:/%*@+`), and its host is on the public internet. `methods`: a list of `GET`, `HEAD`, `POST`, `PUT`, `PATCH`, `DELETE` and `OPTIONS`, or `"any"`; `GET` and `HEAD` if it is left out. `secret`: one of `secrets`, sent in `header` (`authorization` if it is left out) |
| `roots` | `"read"`, `"read-write"` or `{"access": …}`: the folders that the client opens |
| `env` | a list of names of variables, or of `{"name": …}` |
| `ask` | a list of `"elicitation"`, `"sampling"` and `"roots"`, or of `{"capability": …}` |
| `secrets` | a list of `{"name": …}`: values that wharf adds to requests; the plugin never sees them |
| `settings` | a list of `{"key": …, "type": …, "required": …}`: members of the plugin's config. `type`: `"string"`, `"number"` or `"boolean"` |
"#;

/// Writes docs/contract.md.
pub fn write(root: &Path) -> Result<()> {
    Ok(fs::write(root.join(PLACE), text(root)?)?)
}

/// Fails if docs/contract.md is not what the current WIT generates.
pub fn check(root: &Path) -> Result<()> {
    let written = fs::read_to_string(root.join(PLACE)).with_context(|| PLACE)?;
    ensure!(written == text(root)?, "{PLACE} is out of date with wit/; run `cargo xtask generate`");
    Ok(())
}

fn text(root: &Path) -> Result<String> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(root.join("wit"))?;
    let package = resolve.packages.get(package).context("wit/ is not a package")?;
    let mut out = String::from(HEAD);
    writeln!(out, "\n## Package `{}`\n{}", package.name, docs(&package.docs))?;
    writeln!(out, "| world | imports | exports | |\n|---|---|---|---|")?;
    for world in package.worlds.values().filter_map(|id| resolve.worlds.get(*id)) {
        let names = |items: &wit_parser::IndexMap<WorldKey, WorldItem>| {
            let names: Vec<String> = items.keys().map(|key| format!("`{}`", short(&resolve, key))).collect();
            names.join(" ")
        };
        let World { name, imports, exports, docs: said, .. } = world;
        let said = said.contents.as_deref().unwrap_or_default().trim().replace('\n', " ");
        writeln!(out, "| `{name}` | {} | {} | {said} |", names(imports), names(exports))?;
    }
    for interface in package.interfaces.values().filter_map(|id| resolve.interfaces.get(*id)) {
        one_interface(&mut out, &resolve, interface)?;
    }
    out.push_str(SECTIONS);
    Ok(out)
}

fn one_interface(out: &mut String, resolve: &Resolve, interface: &Interface) -> Result<()> {
    writeln!(out, "\n## `{}`\n{}", interface.name.as_deref().unwrap_or_default(), docs(&interface.docs))?;
    for function in interface.functions.values() {
        let Function { name, params, result, docs: said, .. } = function;
        let params: Vec<String> =
            params.iter().map(|param| format!("{}: {}", param.name, named(resolve, &param.ty))).collect();
        let result = result.map(|result| format!(" -> {}", named(resolve, &result))).unwrap_or_default();
        writeln!(out, "### `{name}({}){result}`\n{}", params.join(", "), docs(said))?;
    }
    for ty in interface.types.values().filter_map(|id| resolve.types.get(*id)) {
        one_type(out, resolve, ty)?;
    }
    Ok(())
}

fn one_type(out: &mut String, resolve: &Resolve, ty: &TypeDef) -> Result<()> {
    let name = ty.name.as_deref().unwrap_or_default();
    let mut members: Vec<(String, Option<String>, &Docs)> = Vec::new();
    match &ty.kind {
        // A type imported from another interface, which documents it.
        TypeDefKind::Type(Type::Id(_)) => return Ok(()),
        TypeDefKind::Type(other) => {
            writeln!(out, "### `type {name}` = `{}`\n{}", named(resolve, other), docs(&ty.docs))?;
            return Ok(());
        }
        TypeDefKind::Record(record) => {
            members.extend(record.fields.iter().map(|one| (one.name.clone(), Some(named(resolve, &one.ty)), &one.docs)))
        }
        TypeDefKind::Variant(variant) => members.extend(
            variant.cases.iter().map(|one| (one.name.clone(), one.ty.map(|ty| named(resolve, &ty)), &one.docs)),
        ),
        TypeDefKind::Enum(all) => members.extend(all.cases.iter().map(|one| (one.name.clone(), None, &one.docs))),
        TypeDefKind::Flags(all) => members.extend(all.flags.iter().map(|one| (one.name.clone(), None, &one.docs))),
        _ => {}
    }
    writeln!(out, "### `{} {name}`\n{}", ty.kind.as_str(), docs(&ty.docs))?;
    for (name, ty, said) in members {
        let ty = ty.map(|ty| format!(": `{ty}`")).unwrap_or_default();
        let said = said.contents.as_deref().unwrap_or_default().trim().replace('\n', " ");
        let dash = if said.is_empty() { "" } else { " – " };
        writeln!(out, "- `{name}`{ty}{dash}{said}")?;
    }
    writeln!(out)?;
    Ok(())
}

/// Returns the text of a doc comment with an empty line before and after it, or an empty string.
fn docs(docs: &Docs) -> String {
    docs.contents.as_deref().map(|text| format!("\n{}\n", text.trim_end())).unwrap_or_default()
}

fn short(resolve: &Resolve, key: &WorldKey) -> String {
    match key {
        WorldKey::Name(name) => name.clone(),
        WorldKey::Interface(id) => resolve.interfaces.get(*id).and_then(|one| one.name.clone()).unwrap_or_default(),
    }
}

fn named(resolve: &Resolve, ty: &Type) -> String {
    let Type::Id(id) = ty else { return plain(ty).to_owned() };
    let Some(ty) = resolve.types.get(*id) else { return String::new() };
    if let Some(name) = &ty.name {
        return name.clone();
    }
    let maybe = |ty: &Option<Type>| ty.as_ref().map_or_else(|| "_".to_owned(), |ty| named(resolve, ty));
    match &ty.kind {
        TypeDefKind::List(ty) => format!("list<{}>", named(resolve, ty)),
        TypeDefKind::Option(ty) => format!("option<{}>", named(resolve, ty)),
        TypeDefKind::Result(result) => format!("result<{}, {}>", maybe(&result.ok), maybe(&result.err)),
        TypeDefKind::Tuple(tuple) => {
            let types: Vec<String> = tuple.types.iter().map(|ty| named(resolve, ty)).collect();
            format!("tuple<{}>", types.join(", "))
        }
        other => other.as_str().to_owned(),
    }
}

fn plain(ty: &Type) -> &'static str {
    match ty {
        Type::Bool => "bool",
        Type::U8 => "u8",
        Type::U16 => "u16",
        Type::U32 => "u32",
        Type::U64 => "u64",
        Type::S8 => "s8",
        Type::S16 => "s16",
        Type::S32 => "s32",
        Type::S64 => "s64",
        Type::F32 => "f32",
        Type::F64 => "f64",
        Type::Char => "char",
        Type::String => "string",
        Type::ErrorContext => "error-context",
        Type::Id(_) => "",
    }
}
