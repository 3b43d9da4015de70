//! Recognises components that were built for a draft of the contract. The drafts had the package and the version of the first release, so
//! these components can only be told by their types.

use wasmtime::{
    Engine,
    component::types::{self, ComponentItem, Type},
};

use crate::compile::component::PACKAGE;

/// The interface that drafts had in place of `logging`, `progress`, `announcements` and `environment`, with the `@` before its version.
const IMPORT: &str = "wharf:plugin/host@";
/// A field that the record `failure` had in drafts.
const FIELD: &str = "code";

/// Returns the name of an interface of the component that has the form of a draft.
pub(crate) fn interface(component: &types::Component, engine: &Engine) -> Option<String> {
    if let Some((name, _)) = component.imports(engine).find(|(name, _)| name.starts_with(IMPORT)) {
        return Some(name.to_owned());
    }
    let mut exports = component.exports(engine).filter(|(name, _)| name.starts_with(PACKAGE));
    exports.find(|(_, item)| is_draft(&item.ty, engine)).map(|(name, _)| name.to_owned())
}

/// Whether an exported interface has a function that fails with the draft's record.
fn is_draft(interface: &ComponentItem, engine: &Engine) -> bool {
    let ComponentItem::ComponentInstance(interface) = interface else { return false };
    let fails = |function: &types::ComponentFunc| {
        function.results().any(|result| match result {
            Type::Result(result) => matches!(result.err(), Some(Type::Record(failure))
                if failure.fields().any(|field| field.name == FIELD)),
            _ => false,
        })
    };
    interface.exports(engine).any(|(_, item)| matches!(&item.ty, ComponentItem::ComponentFunc(one) if fails(one)))
}

#[cfg(test)]
mod tests {
    use wasmtime::component::Component;
    use wit_component::{ComponentEncoder, StringEncoding, dummy_module, embed_component_metadata};
    use wit_parser::{ManglingAndAbi, Resolve};

    use super::*;

    /// What two plugins were built for before the contract was released.
    const DRAFT: &str = "
        package wharf:plugin@0.1.0;
        interface types {
          type json = string;
          flags abilities { form, page, sampling, sampling-tools, roots, progress, log }
          record failure { message: string, code: option<s32>, data: option<json> }
          record context { state: option<list<u8>>, abilities: abilities, more: json }
        }
        interface host {
          use types.{json};
          config: func() -> json;
        }
        interface tools {
          use types.{json, context, failure};
          record tool { name: string, description: string, input-schema: json }
          list-tools: func() -> result<list<tool>, failure>;
          call-tool: func(name: string, args: json, context: context) -> result<string, failure>;
        }
        interface completions {
          use types.{failure};
          complete: func(argument: string, value: string) -> result<list<string>, failure>;
        }
        world importing { import host; }
        world with-tools { export tools; }
        world with-completions { export completions; }
    ";

    fn found(resolve: &Resolve, package: wit_parser::PackageId, world: &str) -> Option<String> {
        let world = resolve.select_world(&[package], Some(world)).unwrap();
        let mut module = dummy_module(resolve, world, ManglingAndAbi::Standard32);
        embed_component_metadata(&mut module, resolve, world, StringEncoding::UTF8).unwrap();
        let component = ComponentEncoder::default().module(&module).unwrap().encode().unwrap();
        let engine = Engine::default();
        interface(&Component::new(&engine, component).unwrap().component_type(), &engine)
    }

    #[test]
    fn components_of_a_draft_are_recognised() {
        let mut resolve = Resolve::default();
        let package = resolve.push_str("draft.wit", DRAFT).unwrap();
        for (world, expected) in [
            ("importing", "wharf:plugin/host@0.1.0"),
            ("with-tools", "wharf:plugin/tools@0.1.0"),
            ("with-completions", "wharf:plugin/completions@0.1.0"),
        ] {
            assert_eq!(found(&resolve, package, world).as_deref(), Some(expected), "{world}");
        }
    }

    #[test]
    fn components_of_the_contract_are_not() {
        let mut resolve = Resolve::default();
        let (package, _) = resolve.push_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/wit")).unwrap();
        for world in ["full-plugin", "completion-plugin"] {
            assert_eq!(found(&resolve, package, world), None, "{world}");
        }
    }
}
