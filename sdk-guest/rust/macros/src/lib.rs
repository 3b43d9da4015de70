//! The attribute macros of `wharf-sdk`: `#[tools]`, `#[resources]` and `#[prompts]` on an impl block.
//!
//! Each expands to the block itself, an implementation of the trait of the same name, and the line that exports it. They
//! generate little code: most of the code that runs during a call is in `wharf_sdk::macro_support`.

use proc_macro::TokenStream;
use quote::quote;
use syn::{ItemImpl, parse_macro_input};

mod function;
mod prompts;
mod resources;
mod tools;
mod wants;

/// Makes every function of the block a tool. The tool has the function's name, its doc comment as the description, and the schema of its
/// argument type.
///
/// A function has the form `fn name([call: &Call,] [args: Args]) -> R`, with `Args: Deserialize + JsonSchema` and `R: IntoTool`.
/// Options are `#[tool(name = "…", title = "…", read_only, destructive = false, idempotent, open_world = false)]`, and:
///
/// - `needs = "sampling"`, or several as in `"form, roots"`: capabilities that the client must have; wharf refuses calls of clients that
///   lack one. They are `form`, `url`, `sampling`, `sampling-tools` and `roots`.
/// - `task = "optional"` or `"required"`: a client may, or must, run the call as a task in the background. Questions are then
///   asked while the task runs; with `ask_before_task` they are asked first, and the task begins with the answers.
/// - `schema = SCHEMA`: this JSON Schema instead of the argument type's own, which then need not derive `JsonSchema`. SCHEMA is a string or
///   any expression for one, such as `include_str!("schema.json")`.
#[proc_macro_attribute]
pub fn tools(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand(attribute, parse_macro_input!(item as ItemImpl), tools::expand)
}

/// Makes every function of the block a resource or resource template.
///
/// A function has the form `#[resource(uri = "note:///today", …)] fn name([call: &Call]) -> R`, or
/// `#[resource(template = "note:///{day}", …)] fn name([call: &Call,] day: String) -> R`, with `R: IntoRead`. Further options are `name`
/// and `mime_type`.
#[proc_macro_attribute]
pub fn resources(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand(attribute, parse_macro_input!(item as ItemImpl), resources::expand)
}

/// Makes every function of the block a prompt, whose arguments are the function's parameters.
///
/// A function has the form `fn name([call: &Call,] topic: String, tone: Option<String>) -> R`, with `R: IntoPrompt`. Doc comments on the
/// parameters describe the arguments.
#[proc_macro_attribute]
pub fn prompts(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand(attribute, parse_macro_input!(item as ItemImpl), prompts::expand)
}

/// Declares the grants that the plugin requests, and why, with the keys of the config file. This grants nothing: `wharf add` asks the
/// operator and writes the accepted grants into the config. The declaration has at most 16 KiB, and wharf reads it without running the
/// plugin.
///
/// ```ignore
/// wants! {
///     http = [{ url = "https://api.github.com/", methods = ["GET", "POST"], why = "reads issues", secret = "token" }],
///     secrets = [{ name = "token", why = "to see private repositories" }],
///     roots = "read",
///     settings = [{ key = "org", type = "string", required = true }],
/// }
/// ```
///
/// The keys are those of `wharf:wants` in the contract: docs/contract.md#custom-sections. `why` is always optional. wharf does not load a
/// plugin whose declaration has another form. Hosts that are not known beforehand cannot be requested; mention them in the plugin's
/// documentation.
#[proc_macro]
pub fn wants(item: TokenStream) -> TokenStream {
    wants::expand(item.into()).unwrap_or_else(|error| error.to_compile_error()).into()
}

fn expand(
    attribute: TokenStream,
    mut block: ItemImpl,
    inner: fn(&mut ItemImpl) -> syn::Result<proc_macro2::TokenStream>,
) -> TokenStream {
    let checked = if !attribute.is_empty() {
        Err(syn::Error::new_spanned(
            proc_macro2::TokenStream::from(attribute),
            "this attribute takes no arguments; put the options on each function",
        ))
    } else if let Some((_, path, _)) = &block.trait_ {
        Err(syn::Error::new_spanned(
            path,
            "put this attribute on a plain `impl Type { … }` block; a block that implements the trait needs no attribute",
        ))
    } else {
        inner(&mut block)
    };
    match checked {
        Ok(generated) => quote! { #block #generated }.into(),
        Err(error) => {
            let error = error.to_compile_error();
            quote! { #block #error }.into()
        }
    }
}
