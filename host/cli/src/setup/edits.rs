//! A property of edits: whatever a config contains, an edit changes only the server's entry, and can be undone.

use proptest::{collection::vec, prelude::*};

use super::{
    client_list::{ALL, find},
    format::Format,
    server::Server,
};

/// The choices made, in order; the first possibility when there are no more.
struct Picks(std::vec::IntoIter<usize>);

impl Picks {
    fn below(&mut self, bound: usize) -> usize {
        self.0.next().unwrap_or(0) % bound
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

/// Values that no edit may change, in the syntax of a format.
fn noise(picks: &mut Picks, id: &str) -> String {
    let mut text = String::new();
    let lines = picks.below(6);
    match find(id).unwrap().format {
        Format::Json => {
            text += "{\n";
            for line in 0..lines {
                let value = picks.one(&[
                    "1",
                    "\"é\\u00e9\\/\"",
                    "[1, /* in */ 2]",
                    "{ \"deep\": [ {} ] }",
                    "null",
                    "-0.5e3",
                    "12345678901234567890",
                ]);
                text += &format!(
                    "{}\"k{line}\" : {value},{}\n",
                    picks.one(&["", "\t", "    "]),
                    picks.one(&["", " // after", "\n\n// own line"])
                );
            }
            let key = find(id).unwrap().key;
            let servers = [
                "{}",
                "{ }",
                "{\n  }",
                "{ \"b\": {\"command\": \"b\"} }",
                "{\n\t// c\n\t\"b\": {\n\t\"command\": \"b\" // c\n\t} // d\n\t}",
            ];
            text += &format!(
                "  \"{key}\": {}{}\n}}{}",
                picks.one(&servers),
                picks.one(&["", ",", " // e"]),
                picks.one(&["", "\n", "\n// end"])
            );
        }
        Format::Toml => {
            for line in 0..lines {
                let value =
                    picks.one(&["1", "'a'", "\"\"\"\nx\n\"\"\"", "[\n 1, # c\n 2 ]", "{ a = 1 }", "1979-05-27"]);
                text += &format!(
                    "{}k{line}={value}{}\n",
                    picks.one(&["", "  "]),
                    picks.one(&["", " # after", "\n\n# own line"])
                );
            }
            text += picks.one(&[
                "",
                "[mcp_servers]\n",
                "[mcp_servers.b] # c\ncommand='b'\n# d\n",
                "mcp_servers = { b = { command = 'b' } } # e\n",
                "mcp_servers.b.command = 'b'\n",
            ]);
            text += picks.one(&["", "# end", "[z]\ny=1\n"]);
        }
        Format::Yaml => {}
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_not_wharfs_stays(picks in vec(0..1000_usize, 0..40)) {
        let args = ["run", "--builtin", "files", "/home/ada/My \"Docs\""].map(str::to_owned).to_vec();
        let server = Server { name: "files".into(), command: "/opt/wharf".into(), args };
        for one in ALL.iter().filter(|one| one.is_edited()) {
            let mut picks = Picks(picks.clone().into_iter());
            let is_crlf = picks.below(4) == 3;
            let before = noise(&mut picks, one.id);
            let before = if is_crlf { before.replace('\n', "\r\n") } else { before };
            let after = one.set(&before, &server);
            prop_assert!(after.is_ok(), "{}: {:#}\n{before}", one.id, after.unwrap_err());
            let after = after.unwrap();
            prop_assert_eq!(&one.set(&after, &server).unwrap(), &after, "{}: a second time", one.id);
            prop_assert!(one.servers(&after).unwrap().contains(&server));
            let undone = one.undo(&after, "files", Some(&before)).unwrap().text.unwrap_or_default();
            prop_assert_eq!(&undone, &before, "{}: undone", one.id);
            // Every line is still there, in order, except that of the mapping itself; one may get a comma.
            let mut rest = after.lines();
            for line in before.lines().filter(|line| !line.contains(one.key)) {
                let is_same = |other: &str| other == line || (0..other.len()).any(|at| {
                    other.get(at..).is_some_and(|end| end.starts_with(',')) && format!("{}{}", &other[..at], &other[at + 1..]) == line
                });
                prop_assert!(rest.any(is_same), "{}: `{line}` is gone\n{before}\n---\n{after}", one.id);
            }
        }
    }
}
