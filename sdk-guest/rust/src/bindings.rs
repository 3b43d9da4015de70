//! The bindings that `wit-bindgen` generates from the contract: one module per world, all of which share the types of the first.
//!
//! A single world would force every plugin to export every interface. With one world per interface, a plugin exports only the interfaces
//! that it implements.

#![allow(clippy::all, missing_docs, reason = "generated code")]

pub mod plugin {
    wit_bindgen::generate!({
        path: "wit",
        world: "plugin",
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_plugin",
        additional_derives: [PartialEq],
    });
}

pub mod tools {
    wit_bindgen::generate!({
        path: "wit",
        world: "tool-plugin",
        with: {
            "wharf:plugin/types@0.1.0": crate::bindings::plugin::wharf::plugin::types,
            "wharf:plugin/logging@0.1.0": crate::bindings::plugin::wharf::plugin::logging,
            "wharf:plugin/progress@0.1.0": crate::bindings::plugin::wharf::plugin::progress,
            "wharf:plugin/announcements@0.1.0": crate::bindings::plugin::wharf::plugin::announcements,
            "wharf:plugin/environment@0.1.0": crate::bindings::plugin::wharf::plugin::environment,
        },
        pub_export_macro: true,
        export_macro_name: "export_tools",
        default_bindings_module: "wharf_sdk::bindings::tools",
    });
}

pub mod resources {
    wit_bindgen::generate!({
        path: "wit",
        world: "resource-plugin",
        with: {
            "wharf:plugin/types@0.1.0": crate::bindings::plugin::wharf::plugin::types,
            "wharf:plugin/logging@0.1.0": crate::bindings::plugin::wharf::plugin::logging,
            "wharf:plugin/progress@0.1.0": crate::bindings::plugin::wharf::plugin::progress,
            "wharf:plugin/announcements@0.1.0": crate::bindings::plugin::wharf::plugin::announcements,
            "wharf:plugin/environment@0.1.0": crate::bindings::plugin::wharf::plugin::environment,
        },
        pub_export_macro: true,
        export_macro_name: "export_resources",
        default_bindings_module: "wharf_sdk::bindings::resources",
    });
}

pub mod prompts {
    wit_bindgen::generate!({
        path: "wit",
        world: "prompt-plugin",
        with: {
            "wharf:plugin/types@0.1.0": crate::bindings::plugin::wharf::plugin::types,
            "wharf:plugin/logging@0.1.0": crate::bindings::plugin::wharf::plugin::logging,
            "wharf:plugin/progress@0.1.0": crate::bindings::plugin::wharf::plugin::progress,
            "wharf:plugin/announcements@0.1.0": crate::bindings::plugin::wharf::plugin::announcements,
            "wharf:plugin/environment@0.1.0": crate::bindings::plugin::wharf::plugin::environment,
        },
        pub_export_macro: true,
        export_macro_name: "export_prompts",
        default_bindings_module: "wharf_sdk::bindings::prompts",
    });
}

pub mod completions {
    wit_bindgen::generate!({
        path: "wit",
        world: "completion-plugin",
        with: {
            "wharf:plugin/types@0.1.0": crate::bindings::plugin::wharf::plugin::types,
            "wharf:plugin/logging@0.1.0": crate::bindings::plugin::wharf::plugin::logging,
            "wharf:plugin/progress@0.1.0": crate::bindings::plugin::wharf::plugin::progress,
            "wharf:plugin/announcements@0.1.0": crate::bindings::plugin::wharf::plugin::announcements,
            "wharf:plugin/environment@0.1.0": crate::bindings::plugin::wharf::plugin::environment,
        },
        pub_export_macro: true,
        export_macro_name: "export_completions",
        default_bindings_module: "wharf_sdk::bindings::completions",
    });
}
