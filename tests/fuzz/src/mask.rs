//! Two plugins with two secrets of one length see the same, whatever a server answers: guesses at either secret, and each one's own
//! secret as servers write it.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use wharf_egress::mask::{Masker, Masks};

/// Kinds of characters that no encoder treats differently.
const KINDS: [&str; 3] = ["abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"];
/// Those that they do: both secrets have the same.
const SIGNS: &str = "/+=-_.~<>&\"' é";

/// What a server answers: the same for both but for the secrets in it.
#[derive(Default)]
struct Answer {
    each: [Vec<u8>; 2],
    /// Where the secrets are.
    echoes: Vec<std::ops::Range<usize>>,
    /// Where it is cut into pieces.
    cuts: Vec<usize>,
}

/// Bytes of the input, and zeros when there are no more.
struct Input<'a>(std::slice::Iter<'a, u8>);

impl Input<'_> {
    fn next(&mut self) -> usize {
        self.0.next().copied().unwrap_or_default().into()
    }

    fn one_of(&mut self, text: &str) -> char {
        let at = self.next() % text.chars().count();
        text.chars().nth(at).unwrap_or('a')
    }
}

/// Two secrets of the same kinds of characters. Their length is a multiple of three, so that base64 has no character to which
/// something else contributes.
fn secrets(input: &mut Input<'_>) -> [String; 2] {
    let bytes = 18 + input.next() % 10 * 3;
    let mut secrets = [String::new(), String::new()];
    for at in 0..bytes {
        let sign = input.next();
        match KINDS.get(sign % 4).copied() {
            Some(kind) => secrets.iter_mut().for_each(|secret| secret.push(input.one_of(kind))),
            None => {
                let sign = input.one_of(SIGNS);
                secrets.iter_mut().for_each(|secret| secret.push(sign));
            }
        }
        // They differ at least in one character.
        if at == bytes / 2 {
            secrets.iter_mut().zip(["q", "w"]).for_each(|(secret, letter)| secret.push_str(letter));
        }
    }
    secrets.map(|mut secret| {
        while secret.len() % 3 > 0 {
            secret.push('m');
        }
        secret
    })
}

/// A secret as servers write it.
fn written(secret: &str, how: usize) -> Vec<u8> {
    let each = |write: &dyn Fn(u8) -> String| secret.bytes().map(write).collect::<String>();
    let by = |special: &str, write: &dyn Fn(u32) -> String| {
        let one = |one: char| if special.contains(one) { write(one.into()) } else { one.to_string() };
        secret.chars().map(one).collect::<String>()
    };
    let base64 = |line: usize, end: &[u8]| {
        STANDARD
            .encode(format!("{}{secret}xyz", "abc".repeat(how % 9)))
            .as_bytes()
            .chunks(line)
            .collect::<Vec<_>>()
            .join(end)
    };
    match how % 14 {
        0 => secret.as_bytes().to_vec(),
        1 => {
            let json = serde_json::to_string(secret).expect("a text");
            json.as_bytes().get(1..json.len() - 1).unwrap_or_default().to_vec()
        }
        2 => by("<>&\"'=é", &|code| format!("\\u{code:04x}")).into(),
        3 => by("\"/", &|code| format!("\\{}", char::from_u32(code).unwrap_or('/'))).into(),
        4 => each(&|byte| format!("%{byte:02X}")).into(),
        5 => each(&|byte| if byte.is_ascii_alphanumeric() { char::from(byte).into() } else { format!("%{byte:02x}") })
            .into(),
        6 => each(&|byte| format!("{byte:02x}")).into(),
        7 => by("<>&\"'", &|code| format!("&#{code};")).into(),
        8 => each(&|byte| if byte == b'=' || byte > 126 { format!("={byte:02X}") } else { char::from(byte).into() })
            .into(),
        9 => base64(4096, b""),
        10 => base64(76, b"\r\n"),
        11 => base64(64, b"\n"),
        12 => base64(64, b"\\n"),
        _ => secret.encode_utf16().flat_map(u16::to_be_bytes).collect(),
    }
}

fn answer(input: &mut Input<'_>, secrets: &[String; 2]) -> Answer {
    let mut answer = Answer::default();
    while !input.0.as_slice().is_empty() {
        let at = answer.each[0].len();
        let (what, how) = (input.next() % 6, input.next());
        match what {
            // A guess: a part of either secret, as somebody writes it.
            0 | 1 => {
                let whole = written(secrets.get(what).map_or("", String::as_str), how / 16);
                let (from, to) = (input.next() % 3, input.next() % whole.len());
                let guess = whole.get(from..to).unwrap_or_default();
                answer.each.iter_mut().for_each(|text| text.extend(guess));
            }
            2 => {
                for (text, secret) in answer.each.iter_mut().zip(secrets) {
                    text.push(b' ');
                    text.extend(written(secret, how));
                    text.push(b' ');
                }
                answer.echoes.push(at + 1..answer.each[0].len() - 1);
            }
            3 => answer.each.iter_mut().for_each(|text| text.extend(std::iter::repeat_n(b'z', how * 4))),
            4 => answer.cuts.push(at),
            _ => {
                let literal: Vec<u8> = (0..how % 16).map(|_| input.next() as u8).collect();
                answer.each.iter_mut().for_each(|text| text.extend(&literal));
            }
        }
    }
    answer
}

/// The pieces that are passed on.
fn pieces(masks: Arc<Masks>, text: &[u8], cuts: &[usize]) -> Vec<Vec<u8>> {
    let mut masker = Masker::new(masks);
    let mut begin = 0;
    let mut pieces = Vec::new();
    for end in cuts.iter().copied().chain([text.len()]) {
        pieces.push(masker.push(text.get(begin..end).unwrap_or_default()).to_vec());
        begin = end;
    }
    pieces.push(masker.finish().to_vec());
    pieces
}

/// What is seen differs only where a whole secret was guessed.
pub fn mask(data: &[u8]) {
    let mut input = Input(data.iter());
    let secrets = secrets(&mut input);
    let answer = answer(&mut input, &secrets);
    let seen: Vec<_> = secrets
        .iter()
        .zip(&answer.each)
        .map(|(secret, text)| {
            let masks = Arc::new(Masks::new([secret.as_str()].into_iter()).expect("it is long enough"));
            let pieces = pieces(Arc::clone(&masks), text, &answer.cuts);
            let mut whole = text.clone();
            masks.mask(&mut whole);
            assert!(pieces.concat() == whole, "a cut changes what is masked");
            pieces
        })
        .collect();
    let [one, other] = seen.as_slice() else { return };
    assert!(
        one.iter().map(Vec::len).eq(other.iter().map(Vec::len)),
        "what is passed on, and when, depends on the secret"
    );
    let (one, other) = (one.concat(), other.concat());
    for at in (0..one.len()).filter(|at| one.get(*at) != other.get(*at)) {
        assert!(!answer.echoes.iter().any(|echo| echo.contains(&at)), "a secret is passed on at {at}");
        let stars = |text: &[u8]| {
            let is_star = |byte: &&u8| **byte == b'*';
            let (before, after) = text.split_at(at);
            before.iter().rev().take_while(is_star).count() + after.iter().take_while(is_star).count()
        };
        let least = secrets.iter().map(String::len).min().unwrap_or_default();
        assert!(stars(&one).max(stars(&other)) >= least, "a part of a secret is treated as the whole at {at}");
    }
}
