//! What authors of plugins need beside a running wharf: a folder to begin with, and the way from its sources to a component.

pub mod build;
pub mod project;
pub mod sources;
pub mod template;
