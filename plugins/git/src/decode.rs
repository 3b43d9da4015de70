//! The texts of commits, which have the encoding that the commit names, or else UTF-8.

use gix::bstr::{BStr, BString, ByteSlice};
use wharf_sdk::Result;

/// What a commit says, as text.
pub struct Told {
    pub name: String,
    pub email: String,
    pub time: gix::date::Time,
    pub message: String,
    /// A sentence about an encoding that is not known here.
    pub note: Option<String>,
}

pub fn told(commit: &gix::Commit<'_>) -> Result<Told> {
    let parsed = commit.decode()?;
    let author = parsed.author()?;
    let encoding = parsed.encoding.map(BStr::to_owned);
    let text = |bytes: &BStr| decoded(bytes, encoding.as_ref());
    let note = match &encoding {
        Some(name) if lookup(name).is_none() => Some(format!(
            "The text of this commit is in the encoding {name}, which is not known here; it is read as UTF-8."
        )),
        _ => None,
    };
    Ok(Told {
        name: text(author.name),
        email: text(author.email),
        time: author.time()?,
        message: text(parsed.message),
        note,
    })
}

enum Encoding {
    /// Each byte is the character of its number. The standards of the web read some of them in another way.
    Latin1,
    Other(&'static encoding_rs::Encoding),
}

fn lookup(name: &BString) -> Option<Encoding> {
    let label = name.to_str_lossy().trim().to_ascii_lowercase();
    match label.as_str() {
        "iso-8859-1" | "iso8859-1" | "iso_8859-1" | "latin1" | "latin-1" => Some(Encoding::Latin1),
        // The names of the C library that the standards of the web do not have.
        "cp932" | "sjis" => Some(Encoding::Other(encoding_rs::SHIFT_JIS)),
        "eucjp" => Some(Encoding::Other(encoding_rs::EUC_JP)),
        "utf8" | "utf-8" => Some(Encoding::Other(encoding_rs::UTF_8)),
        label => {
            let windows = label.strip_prefix("cp").map(|number| format!("windows-{number}")).unwrap_or_default();
            let of = |label: &str| encoding_rs::Encoding::for_label_no_replacement(label.as_bytes());
            of(label).or_else(|| of(&windows)).map(Encoding::Other)
        }
    }
}

fn decoded(bytes: &BStr, encoding: Option<&BString>) -> String {
    match encoding.and_then(lookup) {
        Some(Encoding::Latin1) => bytes.iter().map(|byte| char::from(*byte)).collect(),
        Some(Encoding::Other(encoding)) => encoding.decode_without_bom_handling(bytes).0.into_owned(),
        None => bytes.to_str_lossy().into_owned(),
    }
}
