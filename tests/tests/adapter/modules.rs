//! Core modules for wasip1, which the compiler process converts to components when they are loaded.

use e2e::{
    Folder,
    folder::{stderr, stdout},
    is_error, json, text,
};

use super::{names, pipe, tools};

/// Copies its standard input to its standard output, up to one page, and fails on empty input.
const COPY: &str = r#"(module
    (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (memory (export "memory") 2)
    (func (export "_start")
        (i32.store (i32.const 0) (i32.const 1024))
        (i32.store (i32.const 4) (i32.const 65536))
        (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 4)))
        (if (i32.eqz (i32.load (i32.const 4))) (then (call $exit (i32.const 7))))
        (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_core_module_is_a_command() {
    let folder = Folder::new();
    folder.write("plugins/copy.wasm", wat::parse_str(COPY).unwrap());
    folder.config(
        "[plugins.copy]\npath = \"../../plugins/copy.wasm\"\n[plugins.copy.tools.copy]\n\
         description = \"Copies.\"\nargv = []\nstdin = \"{text}\"\n",
    );
    let mut pipe = pipe(&folder).await;
    assert_eq!(names(&tools(&mut pipe).await), ["copy_copy"]);
    assert_eq!(text(&pipe.call("copy_copy", json!({ "text": "through" })).await), "through");
    let none = pipe.call("copy_copy", json!({ "text": "" })).await;
    assert!(is_error(&none) && text(&none).contains("ended with code 1"), "{none}");
    let inspected = folder.run(&["inspect", "plugins/copy.wasm"], &[]).await;
    let told = stdout(&inspected);
    assert!(told.contains("the file is a core module, adapted when it is loaded"), "{told}{}", stderr(&inspected));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_wrapped_is_refused_in_the_authors_terms() {
    let folder = Folder::new();
    for (module, expected) in [
        ("(module)", "neither exports `_start`"),
        (r#"(module (import "wasi_unstable" "x" (func)) (func (export "_start")))"#, "imports from `wasi_unstable`"),
        (r#"(module (import "env" "emscripten_x" (func)) (func (export "_start")))"#, "emscripten_x"),
        ("(component)", "exports nothing that can be called"),
    ] {
        folder.write("plugins/odd.wasm", wat::parse_str(module).unwrap());
        let inspected = folder.run(&["inspect", "plugins/odd.wasm"], &[]).await;
        let told = stdout(&inspected) + &stderr(&inspected);
        assert!(!inspected.status.success() && told.contains(expected), "{module}: {told}");
    }
}
