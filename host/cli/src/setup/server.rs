//! An MCP server as clients start it, and whether that is wharf: the binary itself, or a package runner that fetches it.

use std::path::Path;

use wharf_base::text;

/// The name of wharf's packages, which `npx` and `uvx` run.
pub const PACKAGE: &str = "wharf-mcp";

/// The commands that fetch a package and run it: the program, and the words that follow it.
const RUNNERS: [(&str, &[&str]); 11] = [
    ("npx", &[]),
    ("npm", &["exec"]),
    ("npm", &["x"]),
    ("pnpx", &[]),
    ("pnpm", &["dlx"]),
    ("yarn", &["dlx"]),
    ("bunx", &[]),
    ("bun", &["x"]),
    ("uvx", &[]),
    ("uv", &["tool", "run"]),
    ("pipx", &["run"]),
];

/// The options of package runners that take no value.
const ALONE: [&str; 6] = ["-y", "--yes", "-q", "--quiet", "--silent", "--offline"];

/// An MCP server, in the members that all clients have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub name: String,
    pub command: String,
    pub args: Vec<String>,
}

impl Server {
    /// Whether this server is wharf.
    pub fn is_wharf(&self) -> bool {
        self.arguments().is_some()
    }

    /// Whether a package runner starts it.
    pub fn is_fetched(&self) -> bool {
        !is_binary(&self.command) && self.runs_package().is_some()
    }

    /// Returns the arguments that wharf gets, or `None` if this server is not wharf.
    pub fn arguments(&self) -> Option<&[String]> {
        if is_binary(&self.command) || self.is_one_line() {
            return Some(&self.args);
        }
        self.runs_package()
    }

    /// Whether the line of another server is the end of this one's.
    pub fn runs(&self, other: &Self) -> bool {
        let end = self.args.len().checked_sub(other.args.len() + 1).and_then(|at| self.args.get(at..));
        end.and_then(<[String]>::split_first).is_some_and(|(first, rest)| *first == other.command && rest == other.args)
    }

    /// Whether `command` is wharf with its arguments, which belong into `args`.
    pub fn is_one_line(&self) -> bool {
        let mut words = self.command.split_whitespace();
        let is_wharf = words.next().is_some_and(is_binary);
        is_wharf && words.next().is_some_and(|word| ["run", "serve"].contains(&word))
    }

    /// Returns the arguments that wharf gets from a package runner.
    fn runs_package(&self) -> Option<&[String]> {
        let program = Path::new(&self.command).file_name()?.to_str()?;
        let own = RUNNERS.iter().filter(|(name, _)| *name == program);
        let words = own.filter_map(|(_, first)| after(&self.args, first)).next()?;
        let at = words.iter().position(|word| {
            is_package(word.split_once('=').filter(|_| word.starts_with("--")).map_or(word, |(_, value)| value))
        })?;
        let (before, rest) = words.split_at_checked(at)?;
        // Before the package, there are only options and their values.
        let mut is_value = false;
        for word in before {
            if !word.starts_with('-') && !is_value {
                return None;
            }
            is_value = word.starts_with('-') && !word.contains('=') && !ALONE.contains(&word.as_str());
        }
        let rest = rest.get(1..)?;
        let rest = after(rest, &["--"]).unwrap_or(rest);
        // If an option names the package, the program in it has to be named as well.
        Some(["wharf", PACKAGE].iter().find_map(|name| after(rest, &[name])).unwrap_or(rest))
    }

    /// Returns the command line, quoted for a shell.
    pub fn line(&self) -> String {
        text::shell(std::iter::once(&*self.command).chain(self.args.iter().map(String::as_str)))
    }
}

/// Returns the words after these first ones.
fn after<'a>(words: &'a [String], first: &[&str]) -> Option<&'a [String]> {
    let (begin, rest) = words.split_at_checked(first.len())?;
    (begin == first).then_some(rest)
}

fn is_binary(command: &str) -> bool {
    Path::new(command).file_name().is_some_and(|name| name == "wharf" || name == PACKAGE)
}

/// Whether a word names wharf's package, in any version.
fn is_package(word: &str) -> bool {
    word.strip_prefix(PACKAGE).is_some_and(|rest| rest.is_empty() || rest.starts_with(['@', '=', '>', '<', '~']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wharf_is_known_by_its_binary_and_by_its_package() {
        for (line, expected) in [
            ("/opt/wharf run --builtin time", Some("run --builtin time")),
            ("wharf-mcp run", Some("run")),
            ("npx -y wharf-mcp run", Some("run")),
            ("npx -y wharf-mcp@0.3.1 run -c /a", Some("run -c /a")),
            ("/usr/bin/npx --yes --package=wharf-mcp@latest -- wharf run", Some("run")),
            ("npx --package wharf-mcp wharf run", Some("run")),
            ("npm exec --yes wharf-mcp -- run", Some("run")),
            ("uvx wharf-mcp run", Some("run")),
            ("uvx wharf-mcp==0.3.1 run", Some("run")),
            ("uvx --python 3.12 --from wharf-mcp wharf run", Some("run")),
            ("uv tool run wharf-mcp run", Some("run")),
            ("bunx wharf-mcp run", Some("run")),
            ("npx -y other wharf-mcp run", None),
            ("npx -y wharf-mcp-other run", None),
            ("npx", None),
            ("uv run wharf-mcp run", None),
            ("wharfinger run", None),
            ("node wharf run", None),
        ] {
            let mut words = line.split(' ').map(str::to_owned);
            let server = Server { name: "a".into(), command: words.next().unwrap(), args: words.collect() };
            assert_eq!(server.arguments().map(|args| args.join(" ")).as_deref(), expected, "{line}");
            assert_eq!(
                server.is_fetched(),
                expected.is_some() && !line.contains("opt") && !line.starts_with("wharf"),
                "{line}"
            );
        }
        let one = |command: &str| Server { name: "a".into(), command: command.into(), args: Vec::new() };
        assert!(one("/opt/wharf run --builtin time").is_one_line() && one("/opt/wharf run").is_wharf());
        assert!(!one("/opt/wharf files/other").is_wharf() && !one("/my wharf/wharf").is_one_line());
        assert_eq!(one("it's").line(), r"'it'\''s'");
    }
}
