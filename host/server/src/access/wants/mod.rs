//! What plugins want to be granted. They say it in a section of their files, which is read without running them. Wants are claims of
//! a plugin's author: they grant nothing, and what a plugin could use at all is told by its imports.

pub mod compare;
pub mod parse;
pub mod want;
