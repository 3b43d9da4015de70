//! Texts of which a guest chooses parts: errors of libraries that quote it, and its own words about a failure. Such a text has a limit, and
//! formatting ends where it is reached: nobody charges for this text, and no deadline covers it.

use std::{
    fmt::{self, Write},
    ops::Deref,
};

/// The most bytes of such a text.
const MAX_BYTES: usize = 16 << 10;
/// The most bytes of a text that is one sentence.
const MAX_BRIEF_BYTES: usize = 1 << 10;
/// What a text ends with that was cut.
const CUT: &str = "… (cut)";

/// A text of which a guest chose parts. It can only be made within a limit.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Told(String);

impl Told {
    /// Makes a text, or its beginning: at most 16 KiB.
    pub fn new(text: fmt::Arguments<'_>) -> Self {
        Self::within(MAX_BYTES, text)
    }

    /// Makes a text for one sentence, or its beginning: at most 1 KiB.
    pub fn brief(text: fmt::Arguments<'_>) -> Self {
        Self::within(MAX_BRIEF_BYTES, text)
    }

    fn within(most: usize, text: fmt::Arguments<'_>) -> Self {
        let mut short = Short::of(most);
        if short.write_fmt(text).is_err() {
            short.text.push_str(CUT);
        }
        Self(short.text)
    }

    /// Returns the text.
    pub fn into_string(self) -> String {
        self.0
    }
}

impl Deref for Told {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Told {
    /// The text, of which a part may be replaced by a shorter one.
    pub(crate) fn text_mut(&mut self) -> &mut String {
        &mut self.0
    }
}

/// Writes a text that refuses more than it has room for, which ends whatever writes it.
struct Short {
    text: String,
    most: usize,
}

impl Short {
    fn of(most: usize) -> Self {
        Self { text: String::new(), most }
    }
}

impl Write for Short {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let left = self.most - self.text.len();
        let whole = more.len() <= left;
        let fits = if whole { more.len() } else { more.floor_char_boundary(left) };
        self.text.push_str(more.get(..fits).unwrap_or_default());
        if whole { Ok(()) } else { Err(fmt::Error) }
    }
}

/// Returns a text, or its beginning.
pub(crate) fn told(text: fmt::Arguments<'_>) -> String {
    Told::new(text).into_string()
}

/// Returns the whole chain of an error in one line.
pub(crate) fn one_line(error: &wasmtime::Error) -> String {
    told(format_args!("{error:#}")).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the whole chain of an error with the backtrace of the guest, with demangled Rust names.
pub(crate) fn backtrace(error: &wasmtime::Error) -> String {
    demangled(&told(format_args!("{error:?}")))
}

/// Each name follows the name of its component and a `!`. The fuzzer calls this too.
#[doc(hidden)]
pub fn demangled(backtrace: &str) -> String {
    let mut out = Short::of(MAX_BYTES);
    let line = |out: &mut Short, line: &str| match line.split_once('!') {
        Some((before, name)) => write!(out, "{before}!{:#}", rustc_demangle::demangle(name)),
        None => out.write_str(line),
    };
    let lines = backtrace.lines().enumerate().try_for_each(|(number, one)| {
        if number > 0 {
            out.write_char('\n')?;
        }
        line(&mut out, one)
    });
    if lines.is_err() {
        out.text.push_str(CUT);
    }
    out.text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backtraces_name_functions_as_they_are_written() {
        let backtrace = "error while executing\nwasm backtrace:\n    0:  0x1c3 - hello.wasm!_ZN4core9panicking5panic17h0123456789abcdefE\n    \
                         1:   0x2f - hello.wasm!_RNvCs1234_5hello5greet\n    2:   0x31 - hello.wasm!run\n    3:   0x33 - <unknown>!<wasm function 7>";
        let expected = "error while executing\nwasm backtrace:\n    0:  0x1c3 - hello.wasm!core::panicking::panic\n    \
                        1:   0x2f - hello.wasm!hello::greet\n    2:   0x31 - hello.wasm!run\n    3:   0x33 - <unknown>!<wasm function 7>";
        assert_eq!(demangled(backtrace), expected);
    }

    #[test]
    fn a_text_ends_at_the_limit_and_so_does_its_writing() {
        struct Endless;
        impl fmt::Display for Endless {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                loop {
                    f.write_str("é")?;
                }
            }
        }
        let text = told(format_args!("a{Endless}"));
        assert!(text.starts_with("aéé") && text.ends_with("é… (cut)"));
        assert_eq!(text.len(), MAX_BYTES - 1 + CUT.len(), "no character is cut in two");
        let whole = "a".repeat(MAX_BYTES);
        assert_eq!(told(format_args!("{whole}")), whole);
    }

    #[test]
    fn names_that_grow_when_they_are_demangled_are_cut_too() {
        // Each type is a pair of the type before it, twice.
        let mut name = "_RINvCs1234_1a1fu".to_owned();
        let mut last = name.len() - 3;
        for _ in 0..12 {
            let reference = base62(last);
            last = name.len() - 2;
            write!(name, "TB{reference}_B{reference}_E").unwrap();
        }
        name.push('E');
        let long = demangled(&format!("0: a!{name}\n").repeat(20));
        assert!(long.len() <= MAX_BYTES + CUT.len(), "{}", long.len());
        assert!(long.contains("a::f::<(), ((), ()), "), "{long}");
    }

    fn base62(number: usize) -> String {
        const DIGITS: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
        let Some(mut number) = number.checked_sub(1) else { return String::new() };
        let mut digits = Vec::new();
        loop {
            digits.insert(0, DIGITS[number % 62]);
            number /= 62;
            if number == 0 {
                return String::from_utf8(digits).unwrap();
            }
        }
    }
}
