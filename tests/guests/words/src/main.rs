//! A command that was not made for wharf. `words find PATTERN [FILE...]` prints the lines that contain the pattern, from the files or from
//! the standard input, and fails if there are no such lines; its other subcommands show what it was started with, or misbehave.

#![expect(clippy::disallowed_methods, clippy::print_stdout, reason = "it is a command like any other")]

use std::{
    io::{Read, Write},
    process::ExitCode,
};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    match words.as_slice() {
        ["find", pattern, files @ ..] => find(pattern, files),
        ["show", ..] => {
            let mut variables: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
            variables.sort();
            println!("{arguments:?} {variables:?}");
            ExitCode::SUCCESS
        }
        ["json", text] => {
            println!("{{\"length\":{}}}", text.len());
            ExitCode::SUCCESS
        }
        ["much", count] => {
            let piece = [b'x'; 4096];
            for _ in 0..count.parse::<u32>().unwrap_or(0) {
                if std::io::stdout().write_all(&piece).is_err() {
                    return ExitCode::FAILURE;
                }
            }
            ExitCode::SUCCESS
        }
        ["write", path, text] => match std::fs::write(path, text) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{path}: {error}");
                ExitCode::FAILURE
            }
        },
        ["spin"] => loop {
            std::hint::spin_loop();
        },
        _ => {
            eprintln!("usage: words find PATTERN [FILE...]");
            ExitCode::FAILURE
        }
    }
}

fn find(pattern: &str, files: &[&str]) -> ExitCode {
    let mut texts = Vec::new();
    if files.is_empty() {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).ok();
        texts.push(text);
    }
    for file in files {
        match std::fs::read_to_string(file) {
            Ok(text) => texts.push(text),
            Err(error) => {
                eprintln!("{file}: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    let mut found = false;
    for line in texts.iter().flat_map(|text| text.lines()).filter(|line| line.contains(pattern)) {
        println!("{line}");
        found = true;
    }
    if found { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
