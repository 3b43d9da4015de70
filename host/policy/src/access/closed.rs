//! Why no folder is open to a call, in words for the client and for the log.

/// Why a call has no roots.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Closed {
    /// The plugin has no `roots` grant.
    #[default]
    NotGranted,
    /// The client has no usable roots, and the operator opened none.
    Nothing(Nothing),
    /// None of the client's roots was opened.
    Refused {
        /// The first of them, as the client wrote it.
        root: String,
        /// The reason, and how to open it.
        why: String,
    },
}

impl Closed {
    pub(super) fn explained(&self) -> String {
        match self {
            Self::NotGranted => "the plugin was not granted any; name the folder on the command line, after the plugin or before `npx`, `uvx` and the like, or add \
                                 `--allow roots=read-write` (in a config, `roots = \"read-write\"` in the plugin's grants) for \
                                 the folders of `--root` and those that the client opens"
                .into(),
            Self::Nothing(why) => why.explained().into(),
            Self::Refused { root, why } => format!("the client's root {root} was not opened: {why}"),
        }
    }
}

/// The reason why a client has no usable roots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Nothing {
    NotDeclared,
    NotAccepted,
    NotAsked,
    Failed,
    Empty,
    NoneOpened,
}

impl Nothing {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::NotDeclared => "the client has no roots",
            Self::NotAccepted => "roots of clients are not accepted here (`within` in [roots] says where they may lie)",
            Self::NotAsked => "`from` in [roots] is \"operator\"",
            Self::Failed => "the client did not say which roots it has",
            Self::Empty => "the client has opened no folder",
            Self::NoneOpened => "none of the client's roots can be opened",
        }
    }

    /// Tells a client what is missing, and what opens a folder.
    fn explained(self) -> &'static str {
        match self {
            Self::NotDeclared => {
                "this client does not tell servers which folders are open (it has no roots); name the folder on the command line, after the plugin or before `npx`, `uvx` and the like, or with `--root DIR`, \
                 or name folders in `fixed` in [roots]"
            }
            Self::NotAccepted => {
                "this server does not accept folders of clients; its operator can accept those in DIR with `--within DIR` or \
                 `within` in [roots]"
            }
            Self::NotAsked => {
                "this server uses only folders that its operator opened, and it has opened no folder; it can open one with \
                 `--root DIR` or `fixed` in [roots]"
            }
            Self::Failed => {
                "the client did not answer which folders are open; start wharf with `--root DIR`, or name folders in `fixed` \
                 in [roots]"
            }
            Self::Empty => {
                "the client has no folder open; open one there, start wharf with `--root DIR`, or name folders in `fixed` in \
                 [roots]"
            }
            Self::NoneOpened => "none of the client's roots can be opened",
        }
    }
}
