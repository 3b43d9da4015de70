//! Errors in a config, on the command line or in a plugin file are reported in one helpful sentence.

use e2e::{
    Folder, Pipe,
    folder::{stderr, stdout},
    json, names, text,
};

/// Runs a command that must fail with this exit code, and returns its only error line.
async fn complaint(folder: &Folder, arguments: &[&str], code: i32) -> String {
    let output = folder.run(arguments, &[]).await;
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "wharf {arguments:?}: {said}");
    assert!(output.stdout.is_empty(), "stdout belongs to MCP: {}", stdout(&output));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 1, "one sentence: {said}");
    lines[0].strip_prefix("error: ").unwrap_or_else(|| panic!("{said}")).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_in_the_file_name_file_line_and_remedy() {
    let folder = Folder::new();
    for (config, line, expected) in [
        ("plugin_dri = 'x'", Some(1), &["plugin_dri", "`plugin_dir`"][..]),
        ("\n[http]\nlisten_ = 'x'", Some(3), &["listen_", "`listen`"]),
        ("[limit]\nmemory_mib = 1", Some(1), &["limit", "`limits`"]),
        ("[plugins.a]\npath = 'a'\n\n[plugins.a.grants]\nroot = 'read'", Some(5), &["root", "`roots`"]),
        ("[plugins.a]\npath = 'a'\n[plugins.a.limits]\ntimeout = 1", Some(4), &["timeout"]),
        ("[plugins.a]\npath = 'a'\nfrobnicate = 1", Some(3), &["frobnicate", "grants"]),
        ("[plugins.a]\nprefix = 'a_'", None, &["[plugins.a]", "`path` is missing"]),
        ("[plugins.a]\npath = 'a'\nbuiltin = 'files'", None, &["[plugins.a]", "exclude each other"]),
        ("[plugins.a]\nbuiltin = 'fiels'", None, &["[plugins.a]", "no built-in plugin `fiels`; there are: fetch"]),
        ("[plugins.a]\npath = 'a'\n[plugins.a]\npath = 'b'", Some(3), &["the key `a` stands here a second time"]),
        ("[http", Some(1), &["]"]),
        ("[limits]\npage_items = 'many'", Some(2), &["expected"]),
        ("[limits]\npage_items = 0", Some(2), &["`page_items`", "from 1 to 100000, not 0"]),
        ("[limits]\nmemory_mib = -1", Some(2), &["`memory_mib`", "from 1 to", "not -1"]),
        ("[http]\nlisten = 'localhost'", None, &["`listen`", "127.0.0.1:7300"]),
        ("[http]\ntoken.env = 'NOT_SET'", None, &["`token`", "NOT_SET"]),
        ("[http]\nallowed_origins = ['example.com']", None, &["allowed_origins", "https://"]),
        ("[plugins.a]\npath = 'a'\ninstances = 'warm'", Some(3), &["`instances` is \"fresh\" or \"reused\""]),
        ("[plugins.a]\npath = 'a'\nprefix = 'a b'", None, &["plugins.a", "prefix"]),
        ("[plugins.a]\npath = 'a'\nsha256 = 'abc'", None, &["plugins.a", "sha256", "64"]),
        ("[plugins.a]\npath = ''", None, &["plugins.a", "empty"]),
        ("[plugins.'a b']\npath = 'a'", None, &["a b", "id"]),
        ("[plugins.a]\npath = 'a'\nconfig = { token = { env = 'NOT_SET' } }", None, &["plugins.a", "NOT_SET"]),
        ("[plugins.a]\npath = 'a'\n[plugins.a.grants]\nroots = 'all'", None, &["plugins.a", "read-write"]),
        (
            "[plugins.a]\npath = 'a'\n[plugins.a.grants]\nhttp = ['example.com']",
            None,
            &["plugins.a", "http", "https://"],
        ),
        ("[plugins.a]\npath = 'a'\n[plugins.a.grants]\nask = ['money']", None, &["plugins.a", "money", "elicitation"]),
        (
            "[plugins.a]\npath = 'a'\n[plugins.a.grants]\ndirs = [{ host = '/srv', guest = 'data', access = 'read' }]",
            None,
            &["plugins.a", "data", "/"],
        ),
    ] {
        let file = folder.config(config);
        for command in ["run", "check"] {
            let complaint = complaint(&folder, &[command], 2).await;
            let at = match line {
                Some(line) => format!("{}:{line}: ", file.display()),
                None => format!("{}: ", file.display()),
            };
            assert!(complaint.starts_with(&at), "{config}\n{complaint}");
            for part in expected {
                assert!(complaint.contains(part), "{config}\n{complaint}\nlacks {part}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_on_the_command_line() {
    let folder = Folder::new();
    folder.plugin("hello");
    folder.plugin_as("hello", "other/hello.wasm");
    // A config in the working directory is never used.
    folder.write("wharf.toml", "[plugins.hello]\npath = 'plugins/hello.wasm'\n");
    for (arguments, expected) in [
        (&["run"][..], &["nothing to serve", "wharf.toml"][..]),
        (&["serve"], &["nothing to serve"]),
        (&["check"], &["no config", "-c"]),
        (&["run", "-c", "nope.toml"], &["nope.toml", "no such config"]),
        (&["run", "-c", "plugins"], &["plugins", "not a file"]),
        (&["run", "plugins/hello.wasm", "other/hello.wasm"], &["two plugins", "`hello`"]),
        (&["run", "plugins/hello.wasm", "plugins/hello.wasm"], &["two plugins", "`hello`"]),
    ] {
        let complaint = complaint(&folder, arguments, 2).await;
        for part in expected {
            assert!(complaint.contains(part), "{arguments:?}\n{complaint}\nlacks {part}");
        }
    }
    for arguments in
        [&["run", "--allow", "everything", "x.wasm"][..], &["serve", "--listen", "nonsense", "x.wasm"], &["fly"]]
    {
        let output = folder.run(arguments, &[]).await;
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).starts_with("error: "), "{arguments:?}: {}", stderr(&output));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_config_that_others_may_write_is_refused() {
    let folder = Folder::new();
    folder.plugin("hello");
    let file = folder.config("[plugins.hello]\npath = '../../plugins/hello.wasm'\n");
    for mode in [0o646, 0o666, 0o602] {
        folder.set_mode("config/wharf/wharf.toml", mode);
        let complaint = complaint(&folder, &["run"], 2).await;
        assert!(complaint.contains(&file.display().to_string()) && complaint.contains("chmod go-w"), "{complaint}");
    }
    // The permissions of the file count, not those of the link to it.
    std::os::unix::fs::symlink(&file, folder.join("link.toml")).unwrap();
    assert!(complaint(&folder, &["run", "-c", "link.toml"], 2).await.contains("chmod go-w"));
    for mode in [0o644, 0o600, 0o400] {
        folder.set_mode("config/wharf/wharf.toml", mode);
        assert!(folder.run(&["check"], &[]).await.status.success(), "{mode:o}");
    }
}

/// Id and bytes of a plugin file, the stage that fails, and the error text.
type Bad<'a> = (&'a str, Option<&'a [u8]>, &'a str, &'a [&'a str]);

#[tokio::test(flavor = "multi_thread")]
async fn plugins_that_do_not_load_are_named_and_the_others_served() {
    let folder = Folder::new();
    let hello = std::fs::read(folder.plugin("hello")).unwrap();
    folder.plugin("echo");
    let elf = [b"\x7fELF\x02\x01\x01".as_slice(), &[0; 4096]].concat();
    let draft = wat::parse_str(
        r#"(component (import "wharf:plugin/host@0.1.0" (instance (export "config" (func (result string))))))"#,
    );
    let draft = draft.unwrap();
    let bad: [Bad; 11] = [
        ("text", Some(b"not wasm at all"), "load", &["not WebAssembly"]),
        ("empty", Some(b""), "load", &["not WebAssembly"]),
        ("core", Some(b"\0asm\x01\0\0\0"), "load", &["neither exports `_start`", "component-type"]),
        ("native", Some(&elf), "load", &["not WebAssembly"]),
        ("bare", Some(b"\0asm\x0d\0\x01\0"), "load", &["exports nothing", "wharf:plugin 0.1", "wasi:cli/run"]),
        (
            "draft",
            Some(&draft),
            "load",
            &["a draft of wharf's contract", "wharf:plugin/host", "rebuild it with the SDK"],
        ),
        ("cut", Some(&hello[..hello.len() / 2]), "load", &["does not compile"]),
        ("missing", None, "read", &["missing.wasm", "No such file"]),
        ("loose", Some(&hello), "read", &["loose.wasm", "chmod go-w"]),
        ("digest", Some(&hello), "verify", &["SHA-256"]),
        ("twin", Some(&hello), "names", &["`greet`", "`first`", "prefix"]),
    ];
    let mut config = String::from("[plugins.first]\npath = '../../plugins/hello.wasm'\nprefix = ''\n");
    for (id, bytes, ..) in &bad {
        config.push_str(&format!("[plugins.{id}]\npath = '../../plugins/{id}.wasm'\n"));
        if let Some(bytes) = bytes {
            folder.write(&format!("plugins/{id}.wasm"), bytes);
        }
    }
    folder.set_mode("plugins/loose.wasm", 0o666);
    config = config.replace("digest.wasm'\n", &format!("digest.wasm'\nsha256 = '{}'\n", "0".repeat(64)));
    config = config.replace("twin.wasm'\n", "twin.wasm'\nprefix = ''\n");
    config.push_str("[plugins.echo]\npath = '../../plugins/echo.wasm'\n");
    folder.config(&config);

    let checked = folder.run(&["check"], &[]).await;
    assert_eq!(checked.status.code(), Some(1));
    let report = stdout(&checked);
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    let listed = pipe.request("tools/list", json!({})).await.unwrap();
    assert_eq!(names(&listed, "tools"), ["greet", "echo_echo"]);
    assert_eq!(text(&pipe.call("greet", json!({ "name": "Ada" })).await), "Hello, Ada!");
    for (id, _, stage, expected) in &bad {
        let line = report
            .lines()
            .find(|line| line.starts_with(&format!("{id}: ")))
            .unwrap_or_else(|| panic!("{id} in {report}"));
        let logged = pipe.wait_for_log(&format!("plugin=\"{id}\"")).await;
        assert!(line.contains(&format!("FAILED ({stage})")), "{line}");
        assert!(logged.contains("ERROR") && logged.contains(stage), "{logged}");
        for part in *expected {
            assert!(line.contains(part), "{line}\nlacks {part}");
            assert!(logged.contains(part), "{logged}\nlacks {part}");
        }
    }
    for id in ["first", "echo"] {
        assert!(report.contains(&format!("\n{id}: ok, 1 tools")), "{id} in {report}");
    }
    assert!(pipe.close().await.status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_folder_has_its_own_mistakes() {
    let folder = Folder::new();
    folder.plugin("hello");
    folder.plugin_as("echo", "dropped/echo.wasm");
    folder.plugin_as("hello", "dropped/hello.wasm");
    folder.plugin_as("hello", "dropped/a b.wasm");
    folder.write("dropped/notes.txt", "not a plugin");
    folder.config("plugin_dir = '../../dropped'\n[plugins.hello]\npath = '../../plugins/hello.wasm'\n");
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    let listed = pipe.request("tools/list", json!({})).await.unwrap();
    assert_eq!(names(&listed, "tools"), ["hello_greet", "echo_echo"]);
    assert!(pipe.wait_for_log("dropped/hello.wasm").await.contains("`hello`"));
    assert!(pipe.wait_for_log("a b.wasm").await.contains("id"));
    assert!(!pipe.log().contains("notes.txt"));
    // A folder into which other users can put plugins is not used; the configured plugins are.
    folder.set_mode("dropped", 0o777);
    let mut guarded = Pipe::start(&folder, &["run"]);
    guarded.legacy("2025-11-25", json!({})).await;
    let listed = guarded.request("tools/list", json!({})).await.unwrap();
    assert_eq!(names(&listed, "tools"), ["hello_greet"]);
    assert!(guarded.wait_for_log("plugin_dir").await.contains("chmod go-w"));
    let checked = folder.run(&["check"], &[]).await;
    assert_eq!(checked.status.code(), Some(1));
    assert!(stdout(&checked).contains("plugin_dir: FAILED"), "{}", stdout(&checked));
}

#[tokio::test(flavor = "multi_thread")]
async fn single_plugin_commands_say_what_is_wrong() {
    let folder = Folder::new();
    folder.plugin("hello");
    folder.write("plugins/text.wasm", "not wasm");
    for (arguments, expected) in [
        (&["inspect", "plugins/text.wasm"][..], "not WebAssembly"),
        (&["inspect", "plugins/none.wasm"], "none.wasm"),
        (&["call", "plugins/text.wasm", "greet"], "not WebAssembly"),
        (&["call", "plugins/hello.wasm", "no_such"], "no_such"),
        (&["call", "plugins/hello.wasm", "greet"], "name"),
        (&["call", "plugins/hello.wasm", "greet", "{"], "JSON"),
    ] {
        let output = folder.run(arguments, &[]).await;
        let said = stderr(&output) + &stdout(&output);
        assert!(matches!(output.status.code(), Some(1 | 2)), "{arguments:?}: {:?} {said}", output.status);
        assert!(said.contains(expected), "{arguments:?}: {said}\nlacks {expected}");
    }
    let output = folder.run(&["call", "plugins/hello.wasm", "greet", "name=Ada"], &[]).await;
    assert_eq!((output.status.code(), stdout(&output).trim()), (Some(0), "Hello, Ada!"), "{}", stderr(&output));
}
