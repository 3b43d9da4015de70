//! Formats errors of libraries, of which a guest chooses parts, such as the names of its functions. The text has a limit, and formatting
//! ends where it is reached: nobody charges for this text, and no deadline covers it.

use std::fmt::{self, Write};

/// The most bytes of such a text.
const MAX_BYTES: usize = 16 << 10;
/// What a text ends with that was cut.
const CUT: &str = "… (cut)";

/// A text that refuses more than it has room for, which ends whatever writes it.
#[derive(Default)]
struct Told(String);

impl Write for Told {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let left = MAX_BYTES - self.0.len();
        let whole = more.len() <= left;
        let fits = if whole { more.len() } else { more.floor_char_boundary(left) };
        self.0.push_str(more.get(..fits).unwrap_or_default());
        if whole { Ok(()) } else { Err(fmt::Error) }
    }
}

/// Returns a text, or its beginning.
pub(crate) fn told(text: fmt::Arguments<'_>) -> String {
    let mut told = Told::default();
    if told.write_fmt(text).is_err() {
        told.0.push_str(CUT);
    }
    told.0
}

/// Returns the whole chain of an error in one line.
pub(crate) fn one_line(error: &wasmtime::Error) -> String {
    told(format_args!("{error:#}")).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the whole chain of an error with the backtrace of the guest, with demangled Rust names.
pub(crate) fn backtrace(error: &wasmtime::Error) -> String {
    demangled(&told(format_args!("{error:?}")))
}

/// Each name follows the name of its component and a `!`.
fn demangled(backtrace: &str) -> String {
    let mut out = Told::default();
    let line = |out: &mut Told, line: &str| match line.split_once('!') {
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
        out.0.push_str(CUT);
    }
    out.0
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
