//! Checks that every test that `tests/tests/threats/README.md` names exists.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// The least number of rows in the tables.
const LEAST: usize = 60;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

/// All tests below a folder, as `file::name`, and unit tests as `folder::file::name`.
fn tests(folder: &Path, all: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tests(&path, all);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let of_folder = |folder: &Path| folder.file_name().unwrap().to_str().unwrap().to_owned();
            let file = match path.file_stem().unwrap().to_str().unwrap() {
                "mod" => of_folder(folder),
                "lib" if folder.ends_with("src") => format!("wharf_{}", of_folder(folder.parent().unwrap())),
                stem => stem.to_owned(),
            };
            let lines: Vec<&str> = text.lines().map(str::trim).collect();
            for [attribute, function] in lines.array_windows() {
                let name =
                    function.trim_start_matches("async ").strip_prefix("fn ").and_then(|rest| rest.split('(').next());
                if attribute.starts_with("#[tokio::test") || *attribute == "#[test]" {
                    all.extend(name.map(|name| format!("{file}::{name}")));
                }
            }
        }
    }
}

#[test]
fn every_threat_has_a_test() {
    let mut all = BTreeSet::new();
    for folder in ["tests/tests", "host"] {
        tests(&root().join(folder), &mut all);
    }
    let document = fs::read_to_string(root().join("tests/tests/threats/README.md")).unwrap();
    let named: Vec<&str> = document
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.rsplit(" | ").next())
        .filter(|cell| cell.contains("::"))
        .collect();
    for name in &named {
        // For a path into a crate, only the file and the function are compared.
        let parts: Vec<&str> = name.split("::").filter(|part| *part != "tests").collect();
        let [.., file, function] = parts.as_slice() else { panic!("{name}") };
        assert!(all.contains(&format!("{file}::{function}")), "there is no test {name}");
    }
    assert!(named.len() >= LEAST, "{} threats", named.len());
}
