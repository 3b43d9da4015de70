//! All tests of the running binary that do not need an idle machine, in one program, because linking thirty programs is slow. Tests that
//! measure time or memory, or use up the machine on purpose, are separate programs next to this folder.

#![expect(clippy::disallowed_methods, reason = "tests write what wharf is to read; what they spawn ends with them")]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]
#![expect(clippy::print_stdout, reason = "tests print their measurements")]

mod answered_twice;
mod answers_modern;
mod asking;
mod audit;
mod cache;
mod caller;
mod clock;
mod config_errors;
mod conformance_doc;
mod eras;
mod eras_streams;
mod files;
mod files_unusual;
mod headers_modern;
mod hostile_lists;
mod http_guard;
mod http_legacy;
mod http_malformed;
mod http_modern;
mod interleaved;
mod kept;
mod less_able;
mod memory;
mod modern_only;
mod not_loaded;
mod often_wrong;
mod profiles;
mod protocol_legacy;
mod protocol_modern;
mod protocol_pipe;
mod requests_modern;
mod restarts;
mod resume;
mod reused;
mod rmcp_client;
mod roots;
mod roots_trusted;
mod searched;
mod showcase;
mod sse_transport;
mod subscriptions;
mod tasks_core;
mod tasks_extension;
mod tasks_under_change;
mod threats_doc;
