//! What the programs of a build said of why they failed, for the error that a person reads.

use wharf_base::text::{self, clip};

/// The maximum number of lines of output that an error quotes.
const MAX_QUOTED_LINES: usize = 3;
/// How lines begin that npm prints about an error, now and in older versions.
const NPM: [&str; 2] = ["npm error", "npm ERR!"];

/// What a command has said that an error repeats.
#[derive(Debug, Default)]
pub struct Said {
    lines: Vec<String>,
    /// How far the list of Python's calls is indented that the last line belonged to.
    calls: Option<usize>,
    of_npm: Option<String>,
    is_npm: bool,
    unreachable: Option<&'static str>,
    /// Whether it got no more memory.
    pub is_about_memory: bool,
}

/// What pip and npm print if there is no network, and what that means.
const UNREACHABLE: [(&str, &str); 10] = [
    ("Cannot connect to proxy", "the proxy does not let it through"),
    ("Temporary failure in name resolution", "a name has no address here"),
    ("Failed to resolve", "a name has no address here"),
    ("Failed to establish a new connection", "no connection"),
    ("ENOTFOUND", "a name has no address here"),
    ("EAI_AGAIN", "a name has no address here"),
    ("ECONNREFUSED", "the connection is refused"),
    ("ETIMEDOUT", "no answer"),
    ("timed out. (", "no answer"),
    ("CERTIFICATE_VERIFY_FAILED", "its certificate is not trusted"),
];

impl Said {
    /// Takes a line. Packages of strangers print too.
    pub fn read(&mut self, line: &str) {
        let known = UNREACHABLE.iter().find(|(words, _)| line.contains(words));
        self.unreachable = self.unreachable.or(known.map(|(_, why)| *why));
        self.is_about_memory |= is_about_memory(line);
        if line.trim().is_empty() || is_of_calls(line, &mut self.calls) {
            return;
        }
        if let Some(about) = NPM.iter().find_map(|start| line.trim().strip_prefix(start)) {
            self.is_npm = true;
            self.read_npm(about.trim());
        }
        self.lines.push(text::escaped(&clip(line.trim())));
        self.lines.drain(..self.lines.len().saturating_sub(MAX_QUOTED_LINES));
    }

    fn read_npm(&mut self, about: &str) {
        if about.starts_with("404")
            && let Some(package) = about.split('\'').nth(1)
        {
            let package = package.strip_suffix("@latest").unwrap_or(package);
            self.of_npm = Some(format!("npm: {} is not in the registry (404)", text::escaped(&clip(package))));
        } else if let Some((kind, reason)) = about.split_once(' ')
            && !["code", "errno", "syscall", "path", "A", "at"].contains(&kind)
        {
            // The line begins with a word such as `notarget`, which the next ones have too.
            let plain = kind.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
            let reason = if plain { reason.trim() } else { about };
            self.of_npm.get_or_insert_with(|| format!("npm: {}", text::escaped(&clip(reason))));
        }
    }

    /// Returns the last lines.
    pub fn last(&self) -> &[String] {
        &self.lines
    }

    /// Returns the reason in the words of the program, if it named one.
    pub fn reason(&self) -> Option<String> {
        let last = self.lines.last()?;
        let named = ["error: ", "ERROR: "].iter().find_map(|start| last.strip_prefix(start));
        named.map(str::to_owned).or_else(|| self.of_npm.clone())
    }

    /// Says that the registry of packages was not reached, and what to type. `is_set`: whether there is a variable of that name, in either case.
    pub fn unreachable(&self, is_set: impl Fn(&str) -> bool) -> Option<String> {
        let why = self.unreachable?;
        let set = |names: &[&'static str]| names.iter().find(|name| is_set(name)).copied();
        let (own, registry): (&[&'static str], _) = match self.is_npm {
            true => {
                (&["NPM_CONFIG_HTTPS_PROXY", "NPM_CONFIG_PROXY", "HTTPS_PROXY", "HTTP_PROXY"], "NPM_CONFIG_REGISTRY")
            }
            false => (&["PIP_PROXY", "HTTPS_PROXY", "ALL_PROXY"], "PIP_INDEX_URL"),
        };
        let named = set(&[registry]).map(|name| format!(" that {name} names")).unwrap_or_default();
        let proxy = match (set(own), set(&["HTTP_PROXY", "ALL_PROXY"])) {
            (Some(used), _) => format!("the proxy is the one that {used} names: check it"),
            (None, Some(unused)) => format!(
                "{unused} is set and not used for this; if the network needs a proxy, type HTTPS_PROXY=http://HOST:PORT before the command"
            ),
            (None, None) => {
                "no proxy is set; if the network needs one, type HTTPS_PROXY=http://HOST:PORT before the command"
                    .to_owned()
            }
        };
        Some(format!("the registry of packages{named} cannot be reached ({why}); {proxy}"))
    }
}

/// Whether a line is of the calls that Python lists before an error. `calls`: how far the list is indented that the line before belonged to.
fn is_of_calls(line: &str, calls: &mut Option<usize>) -> bool {
    let indented = line.len() - line.trim_start().len();
    if line.trim_start().starts_with("Traceback (most recent call last)") {
        *calls = Some(indented);
    } else if calls.is_some_and(|list| indented <= list) {
        *calls = None;
    }
    calls.is_some()
}

/// Whether a line is what programs print when they get no more memory.
fn is_about_memory(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    ["memoryerror", "memory exhausted", "out of memory", "cannot allocate memory", "allocation failed"]
        .iter()
        .any(|words| line.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Said {
        let mut said = Said::default();
        text.lines().for_each(|line| said.read(line));
        said
    }

    #[test]
    fn an_error_of_python_is_quoted_without_its_calls() {
        let text = "building\n  Traceback (most recent call last):\n    File \"a.py\", line 1, in <module>\n      main()\n      ^^^^^^\n  \
                    OSError: no room\nTraceback (most recent call last):\n  File \"b.py\", line 2\n    wait()\nKeyError: 'x'\n";
        assert_eq!(said(text).last(), ["building", "OSError: no room", "KeyError: 'x'"]);
    }

    #[test]
    fn the_reason_is_in_the_words_of_the_program() {
        for (text, expected) in [
            (
                "npm error code E404\nnpm error 404 Not Found - GET https://r.example/x\nnpm error 404\n\
                 npm error 404  The requested resource 'x@latest' could not be found\nnpm notice\nnpm install failed",
                Some("npm: x is not in the registry (404)"),
            ),
            (
                "npm ERR! code E404\nnpm ERR! 404  '@own/x@9' is not in this registry.",
                Some("npm: @own/x@9 is not in the registry (404)"),
            ),
            (
                "npm error code ETARGET\nnpm error notarget No matching version found for x@9.\nnpm error notarget In most cases",
                Some("npm: No matching version found for x@9."),
            ),
            (
                "npm error code E1\nnpm error Unsupported URL Type\nnpm error A complete log",
                Some("npm: Unsupported URL Type"),
            ),
            ("error: harmless\nserver.py: it ended", None),
            ("noise\nerror: pip: x is not in the index", Some("pip: x is not in the index")),
            ("", None),
        ] {
            assert_eq!(said(text).reason().as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_registry_that_is_not_reached_is_told_with_its_proxy() {
        let (npm, pip) = ("npm error code EAI_AGAIN", "WARNING: Failed to establish a new connection: [Errno 111]");
        for (text, set, expected) in [
            (npm, &[][..], "packages cannot be reached (a name has no address here); no proxy is set; if"),
            (pip, &[], "packages cannot be reached (no connection); no proxy is set; if"),
            (pip, &["HTTPS_PROXY"], "; the proxy is the one that HTTPS_PROXY names: check it"),
            (npm, &["ALL_PROXY"], "; ALL_PROXY is set and not used for this; if"),
            (pip, &["ALL_PROXY"], "; the proxy is the one that ALL_PROXY names: check it"),
            (pip, &["HTTP_PROXY"], "; HTTP_PROXY is set and not used for this; if"),
            (npm, &["NPM_CONFIG_REGISTRY"], "packages that NPM_CONFIG_REGISTRY names cannot be reached"),
            (pip, &["PIP_INDEX_URL"], "packages that PIP_INDEX_URL names cannot be reached"),
        ] {
            let says = said(text).unreachable(|name| set.contains(&name)).unwrap();
            assert!(says.contains(expected), "{set:?}: {says}");
        }
        assert_eq!(said("npm error code E404").unreachable(|_| true), None);
    }
}
