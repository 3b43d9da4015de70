//! Why something did not work.

/// Why something did not work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The config is wrong; the text says where.
    #[error("{0:#}")]
    Config(anyhow::Error),
    /// The sandbox could not be started.
    #[error(transparent)]
    Sandbox(#[from] wharf_sandbox::EngineError),
    /// A plugin that the program gave does not load.
    #[error("the plugin `{id}` does not load ({stage}): {problem}")]
    Plugin {
        /// The id of the plugin.
        id: String,
        /// The stage at which it failed, such as `load`.
        stage: &'static str,
        /// What is wrong, for the person who runs the program.
        problem: String,
    },
    /// The call cannot be made: for instance there is no such tool, or the tool wants to ask its client something.
    #[error("{0}")]
    Call(String),
}
