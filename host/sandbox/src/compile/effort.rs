//! How thoroughly components are compiled.

/// How much work goes into the code of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Effort {
    /// Optimized code.
    #[default]
    Full,
    /// Code without optimizations, in about half the time, for plugins that are being developed.
    Quick,
}
