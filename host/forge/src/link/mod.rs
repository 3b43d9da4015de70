//! Links a component's core modules when it is compiled, if they were linked dynamically.
//!
//! Components from Python and JavaScript consist of an interpreter, its libraries and the code that binds them to the component's
//! interface, as modules that share a memory and a table of functions. Each new instance then looks up thousands of functions by name and
//! writes thousands of references into the table, which takes up to half of the time of a call. In one module, calls between the
//! modules are direct, and wasmtime writes a reference when it is first used.
//!
//! The modules become one, in the place of the first. The places of the others get small modules, so that everything else in the component
//! stays as it is. Such a module binds what the one that it replaces imports from outside, because that may not exist yet when the first is
//! instantiated, and exports again what the component needs of it.
//!
//! Whatever is unusual keeps its modules: memories other than one, exceptions, garbage collection, start functions before the last module.

mod code;
mod component;
mod indices;
mod level;
mod merge;
mod module;
mod names;
mod stub;
mod types;

pub use component::{MAX_NESTING, linked};
pub use level::range;
pub use module::Module;
