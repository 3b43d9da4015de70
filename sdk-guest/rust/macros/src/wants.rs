//! Expands `wants! { … }`: converts TOML-like members to JSON in a custom section.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{
    Ident, Lit, LitBool, Result, Token, braced, bracketed,
    ext::IdentExt,
    parse::{Parse, ParseStream},
};

/// The keys that wharf knows. wharf checks their values when the plugin is loaded.
const KEYS: [&str; 6] = ["http", "roots", "env", "ask", "secrets", "settings"];
const MAX_BYTES: usize = 16 << 10;

pub fn expand(tokens: TokenStream) -> Result<TokenStream> {
    let json = syn::parse2::<Wants>(tokens)?.0;
    if json.len() > MAX_BYTES {
        return Err(syn::Error::new(proc_macro2::Span::call_site(), "`wants!` has more than 16 KiB of JSON"));
    }
    Ok(quote! { const _: () = { ::wharf_sdk::section!("wharf:wants", #json); }; })
}

/// The JSON text of the declaration.
struct Wants(String);

impl Parse for Wants {
    fn parse(input: ParseStream) -> Result<Self> {
        members(input, Some(&KEYS)).map(Self)
    }
}

/// Parses any number of `key = value`, separated by commas or, as in TOML, by line breaks only.
fn members(input: ParseStream, known: Option<&[&str]>) -> Result<String> {
    let mut members: Vec<String> = Vec::new();
    while !input.is_empty() {
        let key = input.call(Ident::parse_any)?;
        if known.is_some_and(|known| !known.iter().any(|one| key == one)) {
            return Err(syn::Error::new(key.span(), format!("unknown key; the keys are: {}", KEYS.join(", "))));
        }
        input.parse::<Token![=]>()?;
        members.push(format!("{}:{}", quoted(&key.to_string()), value(input)?));
        input.parse::<Option<Token![,]>>()?;
    }
    Ok(format!("{{{}}}", members.join(",")))
}

fn value(input: ParseStream) -> Result<String> {
    if input.peek(syn::token::Brace) {
        let inner;
        braced!(inner in input);
        return members(&inner, None);
    }
    if input.peek(syn::token::Bracket) {
        let inner;
        bracketed!(inner in input);
        let mut items = Vec::new();
        while !inner.is_empty() {
            items.push(value(&inner)?);
            if !inner.is_empty() {
                inner.parse::<Token![,]>()?;
            }
        }
        return Ok(format!("[{}]", items.join(",")));
    }
    match input.parse::<Lit>()? {
        Lit::Str(text) => Ok(quoted(&text.value())),
        Lit::Bool(LitBool { value, .. }) => Ok(value.to_string()),
        Lit::Int(number) => Ok(number.base10_digits().to_owned()),
        other => Err(syn::Error::new(other.span(), "expected a string, a number, true, false, [ … ] or { … }")),
    }
}

/// Returns a text as a JSON string.
fn quoted(text: &str) -> String {
    let mut json = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => json.extend(['\\', character]),
            control if control.is_control() => json.push_str(&format!("\\u{:04x}", control as u32)),
            plain => json.push(plain),
        }
    }
    json.push('"');
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_become_json() {
        let tokens = quote! {
            http = [{ url = "https://a.example/\"x\"", methods = ["GET"], type = "s", required = true, most = 3 }]
            roots = "read",
        };
        let expected = r#"{"http":[{"url":"https://a.example/\"x\"","methods":["GET"],"type":"s","required":true,"most":3}],"roots":"read"}"#;
        assert_eq!(syn::parse2::<Wants>(tokens).unwrap().0, expected);
        for wrong in
            [quote! { htpp = [] }, quote! { roots "read" }, quote! { roots = read }, quote! { http = ["a" "b"] }]
        {
            assert!(syn::parse2::<Wants>(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
