//! The time zone of this machine, as the C library finds it: the variable `TZ`, otherwise /etc/localtime, otherwise UTC.
//!
//! The result is the name of a zone, or a rule such as `CET-1CEST,M3.5.0,M10.5.0/3`. Names are not checked here: the plugin has the list.

#![expect(clippy::disallowed_methods, reason = "the files of the machine's time zone are read here")]

use std::{
    ffi::OsString,
    fs,
    io::Read,
    path::{Component, Path, PathBuf},
};

use wharf_base::{paths::open_regular, text};

/// The most bytes of a file with a time zone. The largest known ones have less than 4 KiB.
const MAX_FILE_BYTES: u64 = 64 << 10;
/// The most links that are followed to a file.
const MAX_LINKS: usize = 16;
/// The name of the folder of all zones, whose files are named after them.
const DATABASE: &str = "zoneinfo";

/// Where the time zone of a machine is written.
pub struct Machine {
    /// The value of `TZ`.
    pub tz: Option<OsString>,
    /// The value of `TZDIR`.
    pub tzdir: Option<OsString>,
    pub localtime: PathBuf,
    /// The file in which Debian names the zone.
    pub name_file: PathBuf,
    /// The folders of all zones.
    pub databases: Vec<PathBuf>,
}

impl Machine {
    /// The machine that wharf runs on.
    pub fn this() -> Self {
        Self {
            tz: std::env::var_os("TZ"),
            tzdir: std::env::var_os("TZDIR"),
            localtime: "/etc/localtime".into(),
            name_file: "/etc/timezone".into(),
            databases: ["/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/etc/zoneinfo"].map(PathBuf::from).into(),
        }
    }

    /// Returns the time zone. The error says what is not understood.
    pub fn zone(&self) -> Result<String, String> {
        let Some(tz) = &self.tz else { return self.local() };
        let of_tz =
            |problem: String| format!("the variable TZ is `{}`: {problem}", text::escaped(&tz.to_string_lossy()));
        let value = tz.to_str().ok_or_else(|| of_tz("it is not UTF-8".into()))?;
        match value.strip_prefix(':').unwrap_or(value) {
            "" => Ok("UTC".into()),
            "localtime" => self.local().map_err(of_tz),
            path if path.starts_with('/') => self.of_file(Path::new(path)).map_err(of_tz),
            name => {
                let own = self.tzdir.as_ref().map(|folder| Path::new(folder).join(name)).filter(|path| path.is_file());
                match own {
                    Some(path) => self.of_file(&path).map_err(of_tz),
                    None => Ok(plain(name).to_owned()),
                }
            }
        }
    }

    fn local(&self) -> Result<String, String> {
        if self.localtime.symlink_metadata().is_ok() {
            return self.of_file(&self.localtime);
        }
        Ok(self.written_name().unwrap_or_else(|| "UTC".into()))
    }

    /// Returns the zone of a file: by the path that its links lead to, else by its contents.
    fn of_file(&self, path: &Path) -> Result<String, String> {
        let mut at = path.to_owned();
        for _ in 0..MAX_LINKS {
            if let Some(name) = named_by(&at) {
                return Ok(name);
            }
            match fs::read_link(&at) {
                Ok(target) => at = at.parent().unwrap_or(Path::new("/")).join(target),
                Err(_) => break,
            }
        }
        let shown = text::path(path);
        let bytes = read(path).map_err(|error| format!("{shown} cannot be read: {error}"))?;
        if !bytes.starts_with(b"TZif") {
            return Err(format!("{shown} is not a file with a time zone"));
        }
        let of_name_file = || self.written_name().filter(|name| self.has(name, &bytes));
        let found = (path == self.localtime).then(of_name_file).flatten().or_else(|| self.search(&bytes));
        found.or_else(|| rule(&bytes)).ok_or_else(|| format!("{shown} has no name and no rule for the time to come"))
    }

    /// Returns the name in the file in which Debian writes it.
    fn written_name(&self) -> Option<String> {
        let text = fs::read_to_string(&self.name_file).ok()?;
        text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned)
    }

    /// Whether the zone of that name has these contents. Without a folder of zones, the name is believed.
    fn has(&self, name: &str, bytes: &[u8]) -> bool {
        let mut there = self.databases.iter().filter(|folder| folder.is_dir()).peekable();
        there.peek().is_none() || there.any(|folder| read(&folder.join(name)).is_ok_and(|own| own == bytes))
    }

    /// Returns the name of a zone with these contents. Of several, one in the list of zones that differ since 1970 is preferred.
    fn search(&self, bytes: &[u8]) -> Option<String> {
        let folder = self.databases.iter().find(|folder| folder.is_dir())?;
        let listed = fs::read_to_string(folder.join("zone1970.tab")).unwrap_or_default();
        let listed: Vec<&str> = listed.lines().filter_map(|line| line.split('\t').nth(2)).collect();
        let mut names = Vec::new();
        find(folder, "", bytes, &mut names);
        names.into_iter().min_by_key(|name| (!listed.contains(&name.as_str()), !name.contains('/'), name.clone()))
    }
}

/// Adds the names of all files with these contents below a folder of the database.
fn find(folder: &Path, before: &str, bytes: &[u8], names: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let own = entry.file_name();
        let Some(own) = own.to_str().filter(|own| !own.starts_with('.')) else { continue };
        let is_copy = before.is_empty() && matches!(own, "posix" | "right" | "localtime" | "posixrules");
        let Ok(metadata) = entry.path().metadata() else { continue };
        let name = format!("{before}{own}");
        // Zones are at most three levels deep, as America/Indiana/Knox.
        if metadata.is_dir() && !is_copy && before.matches('/').count() < 3 {
            find(&entry.path(), &format!("{name}/"), bytes, names);
        } else if !is_copy && metadata.len() == bytes.len() as u64 && read(&entry.path()).is_ok_and(|own| own == bytes)
        {
            names.push(name);
        }
    }
}

/// Returns the zone that a path in a folder of zones is named after.
fn named_by(path: &Path) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                parts.pop();
            }
            Component::Normal(name) => parts.push(name.to_str()?),
            _ => {}
        }
    }
    let at = parts.iter().rposition(|part| *part == DATABASE || part.starts_with("zoneinfo."))?;
    let name = parts.get(at + 1..)?.join("/");
    let name = plain(&name);
    (!name.is_empty() && name != "localtime").then(|| name.to_owned())
}

/// Returns the name of a zone without the folders in which the database has copies of all zones.
fn plain(name: &str) -> &str {
    name.strip_prefix("posix/").or_else(|| name.strip_prefix("right/")).unwrap_or(name)
}

/// Returns the rule at the end of a file, which holds after the last change of the clocks that the file lists.
fn rule(bytes: &[u8]) -> Option<String> {
    let line = bytes.strip_suffix(b"\n")?.rsplit(|byte| *byte == b'\n').next()?;
    let rule = std::str::from_utf8(line).ok()?;
    (!rule.is_empty() && rule.bytes().all(|byte| byte.is_ascii_graphic())).then(|| rule.to_owned())
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // A path can lead to a device or a pipe, which never ends.
    let file = open_regular(path)?.ok_or_else(|| std::io::Error::other("it is not a file"))?;
    file.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A machine with a database of two zones, the second of which has another name too.
    fn machine(folder: &Path) -> Machine {
        let database = folder.join("share/zoneinfo");
        fs::create_dir_all(database.join("Europe")).unwrap();
        fs::create_dir_all(database.join("posix/Europe")).unwrap();
        fs::create_dir_all(folder.join("etc")).unwrap();
        fs::write(database.join("zone1970.tab"), "# codes\nDE\t+5230+01322\tEurope/Berlin\n").unwrap();
        for (name, contents) in [
            ("Europe/Berlin", "TZif2 berlin\nCET-1CEST,M3.5.0,M10.5.0/3\n"),
            ("Europe/Arctic", "TZif2 berlin\nCET-1CEST,M3.5.0,M10.5.0/3\n"),
            ("posix/Europe/Berlin", "TZif2 berlin\nCET-1CEST,M3.5.0,M10.5.0/3\n"),
            ("Europe/Lisbon", "TZif2 lisbon\nWET0WEST,M3.5.0/1,M10.5.0\n"),
        ] {
            fs::write(database.join(name), contents).unwrap();
        }
        Machine {
            tz: None,
            tzdir: None,
            localtime: folder.join("etc/localtime"),
            name_file: folder.join("etc/timezone"),
            databases: vec![folder.join("none"), database],
        }
    }

    #[test]
    fn the_variable_is_read_in_every_form() {
        let held = tempfile::tempdir().unwrap();
        let folder = held.path();
        let machine = machine(folder);
        symlink(folder.join("share/zoneinfo/Europe/Lisbon"), &machine.localtime).unwrap();
        fs::write(folder.join("mine"), "TZif2 mine\n<+0330>-3:30\n").unwrap();
        fs::write(folder.join("no-rule"), "TZif2 mine\n\n").unwrap();
        fs::write(folder.join("text"), "Europe/Paris\n").unwrap();
        fs::write(folder.join("copy"), "TZif2 berlin\nCET-1CEST,M3.5.0,M10.5.0/3\n").unwrap();
        let at = |name: &str| folder.join(name).display().to_string();
        for (tz, expected) in [
            ("Europe/Paris".to_owned(), Ok("Europe/Paris")),
            (":Europe/Paris".to_owned(), Ok("Europe/Paris")),
            ("posix/Europe/Paris".to_owned(), Ok("Europe/Paris")),
            (":right/Europe/Paris".to_owned(), Ok("Europe/Paris")),
            ("CET-1CEST,M3.5.0,M10.5.0/3".to_owned(), Ok("CET-1CEST,M3.5.0,M10.5.0/3")),
            (":<+0330>-3:30".to_owned(), Ok("<+0330>-3:30")),
            (String::new(), Ok("UTC")),
            (":".to_owned(), Ok("UTC")),
            ("localtime".to_owned(), Ok("Europe/Lisbon")),
            (at("etc/localtime"), Ok("Europe/Lisbon")),
            (format!(":{}", at("etc/localtime")), Ok("Europe/Lisbon")),
            (format!(":{}", at("share/zoneinfo/Europe/Berlin")), Ok("Europe/Berlin")),
            (at("share/zoneinfo/posix/Europe/Berlin"), Ok("Europe/Berlin")),
            (at("copy"), Ok("Europe/Berlin")),
            (at("mine"), Ok("<+0330>-3:30")),
            (at("no-rule"), Err("has no name and no rule")),
            (at("text"), Err("is not a file with a time zone")),
            (at("missing"), Err("cannot be read")),
            (at("etc"), Err("it is not a file")),
        ] {
            let zone = Machine { tz: Some(tz.clone().into()), ..self::machine(folder) }.zone();
            match (&zone, expected) {
                (Ok(zone), Ok(expected)) => assert_eq!(zone, expected, "{tz}"),
                (Err(problem), Err(part)) => {
                    assert!(problem.starts_with("the variable TZ is `") && problem.contains(part), "{problem}");
                }
                _ => panic!("{tz}: {zone:?}"),
            }
        }
        let own = Machine { tz: Some("mine".into()), tzdir: Some(folder.into()), ..self::machine(folder) };
        assert_eq!(own.zone().unwrap(), "<+0330>-3:30");
    }

    #[test]
    fn without_the_variable_it_is_the_zone_of_the_machine() {
        let held = tempfile::tempdir().unwrap();
        let folder = held.path();
        let machine = machine(folder);
        let zone = || machine.zone().unwrap();
        assert_eq!(zone(), "UTC", "nothing is written");
        fs::write(&machine.name_file, "# set by hand\nEurope/Lisbon\n").unwrap();
        assert_eq!(zone(), "Europe/Lisbon", "only its name is written");
        symlink("../share/zoneinfo/Europe/Berlin", &machine.localtime).unwrap();
        assert_eq!(zone(), "Europe/Berlin", "a relative link counts before the name");
        fs::remove_file(&machine.localtime).unwrap();
        symlink("hop", &machine.localtime).unwrap();
        symlink("../share/zoneinfo/Europe/Arctic", folder.join("etc/hop")).unwrap();
        assert_eq!(zone(), "Europe/Arctic", "a link to a link");
        fs::remove_file(&machine.localtime).unwrap();
        fs::copy(folder.join("share/zoneinfo/Europe/Berlin"), &machine.localtime).unwrap();
        assert_eq!(zone(), "Europe/Berlin", "a copy, and a name with other contents");
        fs::write(&machine.name_file, "Europe/Arctic\n").unwrap();
        assert_eq!(zone(), "Europe/Arctic", "a copy, and a name with the same contents");
        fs::write(&machine.localtime, "TZif2 own\nABC-1\n").unwrap();
        assert_eq!(zone(), "ABC-1", "a copy of nothing that is known");
        fs::write(&machine.localtime, "").unwrap();
        assert!(machine.zone().unwrap_err().contains("is not a file with a time zone"));
    }
}
