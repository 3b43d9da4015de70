//! Turns component files into code, in a process of its own, and keeps the code.

pub mod cache;
pub mod child;
pub mod component;
pub mod draft;
pub mod effort;
pub mod engine;
