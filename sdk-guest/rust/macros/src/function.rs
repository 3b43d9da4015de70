//! Parses the functions of an impl block for the three attribute macros: documentation, parameters, options.

use syn::{
    Attribute, Expr, ExprLit, FnArg, Ident, ImplItem, ImplItemFn, ItemImpl, Lit, LitBool, LitStr, Meta, Pat, Type,
    spanned::Spanned,
};

/// A parameter other than `&Call`.
pub struct Parameter {
    pub name: Ident,
    pub ty: Type,
    pub docs: String,
}

/// Returns the functions of an impl block. Any other item in it is an error.
pub fn functions(block: &mut ItemImpl) -> syn::Result<Vec<&mut ImplItemFn>> {
    block
        .items
        .iter_mut()
        .map(|item| match item {
            ImplItem::Fn(function) => Ok(function),
            other => {
                Err(syn::Error::new(other.span(), "only functions belong here; put the rest in another impl block"))
            }
        })
        .collect()
}

/// Returns the doc comment as one text. A function without one is an error, because the model or the user reads it.
pub fn description(function: &ImplItemFn) -> syn::Result<String> {
    let text = docs(&function.attrs);
    if text.is_empty() {
        return Err(syn::Error::new(
            function.sig.ident.span(),
            format!("write a doc comment on `{}`: it is the description that clients see", function.sig.ident),
        ));
    }
    Ok(text)
}

/// Returns the doc comment as one text. The lines of a paragraph become one line; those of lists, tables and code stay as they are.
pub fn docs(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(line), .. }) => Some(line.value()),
            _ => None,
        },
        _ => None,
    });
    let (mut text, mut in_code, mut goes_on) = (String::new(), false, false);
    for line in lines {
        let line = if in_code { line.strip_prefix(' ').unwrap_or(&line).trim_end() } else { line.trim() };
        let is_fence = line.starts_with("```");
        let begins =
            is_fence || in_code || line.is_empty() || line.starts_with(['-', '*', '|', '#', '>']) || is_numbered(line);
        text.push_str(if goes_on && !begins { " " } else { "\n" });
        text.push_str(line);
        in_code ^= is_fence;
        goes_on = !line.is_empty() && !in_code && !is_fence && !line.starts_with(['|', '#']);
    }
    text.trim().to_owned()
}

/// Whether a line begins an entry of a numbered list.
fn is_numbered(line: &str) -> bool {
    line.trim_start_matches(|digit: char| digit.is_ascii_digit()).starts_with(". ") && !line.starts_with('.')
}

/// Returns whether the first parameter is `&Call`, and the other parameters. Doc comments on parameters are removed, since Rust itself does
/// not allow them.
pub fn parameters(function: &mut ImplItemFn) -> syn::Result<(bool, Vec<Parameter>)> {
    if let Some(asyncness) = &function.sig.asyncness {
        return Err(syn::Error::new(
            asyncness.span(),
            "functions of a plugin cannot be async; wharf runs calls in parallel by itself",
        ));
    }
    let mut takes_call = false;
    let mut rest = Vec::new();
    for (at, input) in function.sig.inputs.iter_mut().enumerate() {
        let typed = match input {
            FnArg::Receiver(receiver) => {
                return Err(syn::Error::new(
                    receiver.span(),
                    "remove `self`: each call runs in a new instance, so there is no state to refer to",
                ));
            }
            FnArg::Typed(typed) => typed,
        };
        if let Type::Reference(_) = typed.ty.as_ref() {
            if at != 0 {
                return Err(syn::Error::new(typed.span(), "`&Call` comes first"));
            }
            takes_call = true;
            continue;
        }
        let Pat::Ident(name) = typed.pat.as_ref() else {
            return Err(syn::Error::new(typed.pat.span(), "give this parameter a plain name"));
        };
        let parameter = Parameter { name: name.ident.clone(), ty: (*typed.ty).clone(), docs: docs(&typed.attrs) };
        typed.attrs.retain(|attribute| !attribute.path().is_ident("doc"));
        rest.push(parameter);
    }
    Ok((takes_call, rest))
}

/// One `key`, `key = "text"`, `key = true` or `key = EXPRESSION` of an option list.
pub struct Option_ {
    pub key: Ident,
    pub value: Value,
}

pub enum Value {
    Text(LitStr),
    Flag(bool),
    /// Any other expression, such as the name of a constant. Few options accept it.
    Code(Expr),
}

impl Option_ {
    pub fn text(self) -> syn::Result<String> {
        self.literal().map(|text| text.value())
    }

    /// Returns the text as a source token, so that error messages can point at it.
    pub fn literal(self) -> syn::Result<LitStr> {
        match self.value {
            Value::Text(text) => Ok(text),
            Value::Flag(_) | Value::Code(_) => {
                Err(syn::Error::new(self.key.span(), format!("`{}` needs a string: {} = \"…\"", self.key, self.key)))
            }
        }
    }

    pub fn flag(self) -> syn::Result<bool> {
        let span = match self.value {
            Value::Flag(flag) => return Ok(flag),
            Value::Text(text) => text.span(),
            Value::Code(code) => code.span(),
        };
        Err(syn::Error::new(span, format!("`{}` must be true or false", self.key)))
    }

    /// Returns the text, which may be a literal or any expression that evaluates to one.
    pub fn expression(self) -> syn::Result<Expr> {
        match self.value {
            Value::Text(text) => Ok(Expr::Lit(ExprLit { attrs: Vec::new(), lit: Lit::Str(text) })),
            Value::Code(code) => Ok(code),
            Value::Flag(_) => Err(syn::Error::new(
                self.key.span(),
                format!("`{}` needs a string or the name of a constant: {} = …", self.key, self.key),
            )),
        }
    }
}

/// Removes the attribute `#[name(…)]` from a function and returns its options.
pub fn take_options(function: &mut ImplItemFn, name: &str) -> syn::Result<Option<Vec<Option_>>> {
    let Some(at) = function.attrs.iter().position(|attribute| attribute.path().is_ident(name)) else { return Ok(None) };
    let attribute = function.attrs.remove(at);
    let mut options = Vec::new();
    if let Meta::Path(_) = attribute.meta {
        return Ok(Some(options));
    }
    attribute.parse_nested_meta(|meta| {
        let key = meta.path.require_ident()?.clone();
        let value = if meta.input.peek(syn::Token![=]) {
            let value = meta.value()?;
            if value.peek(LitStr) {
                Value::Text(value.parse()?)
            } else if value.peek(LitBool) {
                Value::Flag(value.parse::<LitBool>()?.value)
            } else {
                Value::Code(value.parse()?)
            }
        } else {
            Value::Flag(true)
        };
        options.push(Option_ { key, value });
        Ok(())
    })?;
    Ok(Some(options))
}

/// Returns the error for an unknown option.
pub fn unknown_option(key: &Ident, known: &[&str]) -> syn::Error {
    syn::Error::new(key.span(), format!("unknown option `{key}`; the options are: {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_paragraph_is_one_line_and_lists_keep_theirs() {
        for (written, expected) in [
            ("/// Reads\n/// a file.", "Reads a file."),
            ("/// One.\n///\n/// Two\n/// lines.", "One.\n\nTwo lines."),
            ("/// Of:\n/// - a\n///   b\n/// - c\n/// 1. d\n/// 2. e", "Of:\n- a b\n- c\n1. d\n2. e"),
            ("/// So:\n/// ```\n///   a\n/// b\n/// ```\n/// Then\n/// c.", "So:\n```\n  a\nb\n```\nThen c."),
            ("/// 2.5 times\n/// 3 is .5", "2.5 times 3 is .5"),
        ] {
            let function: syn::ItemFn = syn::parse_str(&format!("{written}\nfn f() {{}}")).unwrap();
            assert_eq!(super::docs(&function.attrs), expected, "{written}");
        }
    }
}
