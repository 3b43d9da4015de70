//! Runs a call: takes a place and an instance, performs one operation before its deadline, and says how it ended.

pub mod call;
pub mod instance;
pub mod load;
pub mod parts;
#[cfg(test)]
mod prepared;
pub mod sandbox;
pub mod stays;
pub mod warm;
