//! The two eras: how a request's surroundings are known, and how clients are asked and told.

pub mod legacy;
pub mod modern;
