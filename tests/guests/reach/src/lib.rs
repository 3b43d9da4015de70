//! Tries paths, with one tool for each file operation. Each tool answers its result, or `error: …`.

#![allow(clippy::disallowed_methods, reason = "a guest for tests sleeps and ends as it likes; no test does")]

use std::{
    fs,
    time::{Duration, Instant, SystemTime},
};

use wasip2::random::{insecure, insecure_seed, random};
use wharf_sdk::{host, prelude::*};

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
struct One {
    path: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
struct Two {
    from: String,
    to: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
struct Text {
    path: String,
    text: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
struct Many {
    path: String,
    times: u32,
}

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
struct Late {
    path: String,
    ms: u64,
}

struct Plugin;

fn told<T: std::fmt::Debug>(result: std::io::Result<T>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(error) => format!("error: {error}"),
    }
}

#[tools]
impl Plugin {
    /// Reads a file.
    fn read(args: One) -> String {
        fs::read(args.path)
            .map_or_else(|error| format!("error: {error}"), |bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Reads the first bytes of a file that may never end.
    fn head(args: One) -> String {
        use std::io::Read;
        let mut bytes = [0; 64];
        let read = fs::File::open(args.path).and_then(|mut file| file.read(&mut bytes));
        read.map_or_else(
            |error| format!("error: {error}"),
            |count| String::from_utf8_lossy(bytes.get(..count).unwrap_or_default()).into_owned(),
        )
    }

    /// Reads a file again and again; answers each different thing it got, one per line.
    fn read_many(args: Many) -> String {
        let mut seen: Vec<String> = Vec::new();
        for _ in 0..args.times {
            let got = fs::read_to_string(&args.path).unwrap_or_else(|error| format!("error: {error}"));
            if !seen.contains(&got) && seen.len() < 100 {
                seen.push(got);
            }
        }
        seen.join("\n")
    }

    /// Says when it runs, waits, then reads.
    fn read_late(call: &Call, args: Late) -> String {
        call.progress(1.0, None, Some("waiting"));
        std::thread::sleep(Duration::from_millis(args.ms));
        Self::read(One { path: args.path })
    }

    /// Answers what differs from run to run, unless a test decides it: random numbers of each kind, and the clock. And whether a
    /// sleep took as long as it should.
    fn chance() -> String {
        let (began, pause) = (Instant::now(), Duration::from_millis(1));
        std::thread::sleep(pause);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        format!(
            "random {:x} insecure {:x} seed {:x?} slept {} now {}",
            random::get_random_u64(),
            insecure::get_insecure_random_u64(),
            insecure_seed::insecure_seed(),
            began.elapsed() >= pause,
            now.as_millis()
        )
    }

    /// Writes a file.
    fn write(args: Text) -> String {
        told(fs::write(args.path, args.text))
    }

    /// Appends to a file that is there.
    fn append(args: Text) -> String {
        use std::io::Write;
        told(
            fs::OpenOptions::new()
                .append(true)
                .open(args.path)
                .and_then(|mut file| file.write_all(args.text.as_bytes())),
        )
    }

    /// Lists a directory.
    fn list(args: One) -> String {
        let names = fs::read_dir(args.path).and_then(|entries| {
            let names: std::io::Result<Vec<String>> =
                entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect();
            names
        });
        names.map_or_else(
            |error| format!("error: {error}"),
            |mut names| {
                names.sort();
                names.join("\n")
            },
        )
    }

    /// Makes a hard link.
    fn link(args: Two) -> String {
        told(fs::hard_link(args.from, args.to))
    }

    /// Renames.
    fn rename(args: Two) -> String {
        told(fs::rename(args.from, args.to))
    }

    /// Makes a symbolic link at `to` that says `from`.
    fn symlink(args: Two) -> String {
        told(symlink(&args.from, &args.to))
    }

    /// Makes a directory.
    fn mkdir(args: One) -> String {
        told(fs::create_dir(args.path))
    }

    /// Removes a file or an empty directory.
    fn remove(args: One) -> String {
        told(fs::remove_file(&args.path).or_else(|_| fs::remove_dir(&args.path)))
    }

    /// Tells kind and length.
    fn stat(args: One) -> String {
        let kind = |data: fs::Metadata| if data.is_dir() { "dir".to_owned() } else { format!("{} bytes", data.len()) };
        fs::metadata(args.path).map_or_else(|error| format!("error: {error}"), kind)
    }

    /// Sets a file's length.
    fn truncate(args: Many) -> String {
        told(fs::OpenOptions::new().write(true).open(args.path).and_then(|file| file.set_len(args.times.into())))
    }

    /// The environment and the arguments.
    fn environ() -> String {
        let variables: Vec<String> = std::env::vars().map(|(name, value)| format!("{name}={value}")).collect();
        format!("{} {:?}", variables.join(","), std::env::args().collect::<Vec<_>>())
    }

    /// The directories open to this call: `rw` or `ro` and the path, one per line.
    fn dirs() -> String {
        let line = |directory: &host::Directory| {
            format!("{} {}", if directory.writable { "rw" } else { "ro" }, directory.path)
        };
        host::directories().iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(target_os = "wasi")]
fn symlink(target: &str, link: &str) -> std::io::Result<()> {
    use std::ffi::CString;
    unsafe extern "C" {
        fn symlink(target: *const std::ffi::c_char, link: *const std::ffi::c_char) -> std::ffi::c_int;
    }
    let (target, link) = (CString::new(target)?, CString::new(link)?);
    // SAFETY: both are strings that end in NUL and live through the call; Rust's own name for it is not stable here.
    if unsafe { symlink(target.as_ptr(), link.as_ptr()) } == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

#[cfg(not(target_os = "wasi"))]
fn symlink(_: &str, link: &str) -> std::io::Result<()> {
    Err(std::io::Error::other(format!("{}: not here", link)))
}
