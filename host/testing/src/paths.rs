//! Paths of URLs, as different servers read them.

use std::collections::BTreeSet;

/// Paths below `/public/` that every server reads alike.
pub const PLAIN: [&str; 14] = [
    "/public/x",
    "/public/a.b..c/d..",
    "/public/main...dev",
    "/public/.well-known/x",
    "/public//x",
    "/public/100%25",
    "/public/a%20b/%c3%bc",
    "/public/a%2520b",
    "/public/%E2%82%AC",
    "/public/a;v=1.2/b",
    "/public/a%3bb",
    "/public/~u/@scope/",
    "/public/%41",
    "/public/a%",
];

/// What different servers make of a path in a single step.
fn steps(text: &[u8]) -> Vec<Vec<u8>> {
    let replace = |text: &[u8], from: &[u8], to: &[u8]| -> Vec<u8> {
        let mut out = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            match rest.strip_prefix(from) {
                Some(after) => {
                    out.extend_from_slice(to);
                    rest = after;
                }
                None => {
                    out.push(rest[0]);
                    rest = &rest[1..];
                }
            }
        }
        out
    };
    let percent: Vec<u8> = percent_encoding::percent_decode(text).collect();
    let mut microsoft = text.to_vec();
    for (written, meant) in [("%u002e", "."), ("%u2215", "/"), ("%u005c", "\\"), ("%u002f", "/")] {
        microsoft = replace(&microsoft, written.as_bytes(), meant.as_bytes());
    }
    // Decoders that accept overlong UTF-8.
    let mut overlong = text.to_vec();
    for (written, meant) in [
        (&b"\xc0\xae"[..], "."),
        (b"\xe0\x80\xae", "."),
        (b"\xc0\xaf", "/"),
        (b"\xc1\x9c", "\\"),
        ("\u{ff0e}".as_bytes(), "."),
        ("\u{ff0f}".as_bytes(), "/"),
    ] {
        overlong = replace(&overlong, written, meant.as_bytes());
    }
    // Tomcat: what follows a semicolon in a segment does not belong to its name.
    let parameters: Vec<u8> = text
        .split(|byte| *byte == b'/')
        .map(|segment| segment.split(|byte| *byte == b';').next().unwrap())
        .collect::<Vec<_>>()
        .join(&b'/');
    let backslashes = replace(text, b"\\", b"/");
    // nginx: several slashes are one.
    let merged = replace(text, b"//", b"/");
    let visible: Vec<u8> = text.iter().copied().filter(|byte| !byte.is_ascii_control()).collect();
    // Windows drops blanks at the end of a name.
    let trimmed = replace(text, b" /", b"/");
    vec![percent, microsoft, overlong, parameters, backslashes, merged, visible, trimmed]
}

/// Whether a server that takes some of these steps, in any order, arrives outside of `/public`.
pub fn leaves(path: &str) -> bool {
    let mut known: BTreeSet<Vec<u8>> = BTreeSet::from([path.as_bytes().to_vec()]);
    let mut next: Vec<Vec<u8>> = known.iter().cloned().collect();
    while let Some(text) = next.pop() {
        let mut at: Vec<&[u8]> = Vec::new();
        for segment in text.split(|byte| *byte == b'/').skip(1) {
            match segment {
                b"." | b"" => {}
                b".." => drop(at.pop()),
                name => at.push(name),
            }
        }
        if at.first() != Some(&&b"public"[..]) {
            return true;
        }
        let new = steps(&text).into_iter().filter(|text| known.len() < 500 && known.insert(text.clone()));
        next.extend(new.collect::<Vec<_>>());
    }
    false
}

/// Paths below `/public/`, each of which some server resolves to a place elsewhere.
pub fn leaving() -> Vec<String> {
    let mut seed = 1_u64;
    let mut pick = |count: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % count
    };
    let dots = [".", "%2e", "%2E", "%c0%ae", "%u002e", "%e0%80%ae", "\u{ff0e}", "%ef%bc%8e"];
    let slashes = ["/", "%2f", "\\", "%5c", "%c0%af", "%u2215", "//", "%2F/", "%c1%9c"];
    let marks = ["", "", "", ";", ";x=1", "%3b", "%3Bx", "%20", "%00", "\t"];
    let mut all = Vec::new();
    for _ in 0..1500 {
        let mut path = String::new();
        for _ in 0..=pick(2) + 1 {
            path += [dots[pick(dots.len())], dots[pick(dots.len())], marks[pick(marks.len())]].concat().as_str();
            path += slashes[pick(slashes.len())];
        }
        path += "secret";
        // Encoded several times: only some characters, or every byte.
        for _ in 0..pick(5) {
            path = match pick(3) {
                0 => path.replace('%', "%25"),
                1 => path.bytes().map(|byte| format!("%{byte:02x}")).collect(),
                _ => path.replace('.', "%2e").replace('/', "%2f"),
            };
        }
        all.push(format!("/public/{}{path}", ["", "a/", "a;b/"][pick(3)]));
    }
    all.retain(|path| leaves(path));
    all
}
