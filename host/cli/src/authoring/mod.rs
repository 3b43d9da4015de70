//! Tools for plugin authors: project templates, and building a component from the sources of a project.

pub mod build;
mod confinement;
pub mod dev_target;
pub mod existing;
#[cfg(target_os = "linux")]
mod filter;
pub mod pack;
pub mod project;
mod repository;
mod said;
pub mod sources;
pub mod template;
