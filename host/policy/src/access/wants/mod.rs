//! The wants of plugins: the grants that a plugin asks for, in a section of its file that is read without running it. Wants are unverified
//! claims of the author: they grant nothing. What a plugin could use at all is decided by its imports.

pub mod compare;
pub mod parse;
pub mod want;
