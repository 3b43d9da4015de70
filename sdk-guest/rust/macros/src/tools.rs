//! Expands `#[tools]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Expr, Ident, ImplItemFn, ItemImpl, LitStr, ReturnType};

use crate::function::{Option_, description, functions, parameters, take_options, unknown_option};

const OPTIONS: [&str; 10] = [
    "name",
    "title",
    "read_only",
    "destructive",
    "idempotent",
    "open_world",
    "schema",
    "needs",
    "task",
    "ask_before_task",
];

/// The capabilities of clients by their name in the contract, each with the name of its Rust constant.
const CAPABILITIES: [(&str, &str); 5] = [
    ("form", "FORM"),
    ("url", "URL"),
    ("sampling", "SAMPLING"),
    ("sampling-tools", "SAMPLING_TOOLS"),
    ("roots", "ROOTS"),
];

pub fn expand(block: &mut ItemImpl) -> syn::Result<TokenStream> {
    let own = block.self_ty.clone();
    let mut descriptors = Vec::new();
    let mut arms = Vec::new();
    for function in functions(block)? {
        let (descriptor, arm) = tool(function)?;
        descriptors.push(descriptor);
        arms.push(arm);
    }
    Ok(quote! {
        impl ::wharf_sdk::Tools for #own {
            fn list_tools() -> ::core::result::Result<::std::vec::Vec<::wharf_sdk::Tool>, ::wharf_sdk::Failure> {
                ::core::result::Result::Ok(::std::vec![#(#descriptors),*])
            }

            fn call_tool(
                name: ::std::string::String,
                arguments: ::std::string::String,
                context: ::wharf_sdk::Context,
            ) -> ::core::result::Result<::wharf_sdk::ToolOutcome, ::wharf_sdk::Failure> {
                match name.as_str() {
                    #(#arms)*
                    _ => ::core::result::Result::Err(::wharf_sdk::macro_support::unknown("tool", &name)),
                }
            }
        }
        ::wharf_sdk::bindings::tools::export_tools!(#own with_types_in ::wharf_sdk::bindings::tools);
    })
}

fn tool(function: &mut ImplItemFn) -> syn::Result<(TokenStream, TokenStream)> {
    let description = description(function)?;
    let options = take_options(function, "tool")?.unwrap_or_default();
    let (takes_call, rest) = parameters(function)?;
    if let Some(second) = rest.get(1) {
        return Err(syn::Error::new(
            second.name.span(),
            "a tool takes one argument type besides `&Call`: put the fields in a struct that derives Deserialize and JsonSchema",
        ));
    }
    let ident = function.sig.ident.clone();
    let output = match &function.sig.output {
        ReturnType::Default => quote! { () },
        ReturnType::Type(_, ty) => quote! { #ty },
    };
    let Options { name, title, hints, schema, needs, task, ask_before_task } =
        read_options(options, &ident.to_string())?;
    let title = match title {
        Some(title) => quote! { ::core::option::Option::Some(#title.into()) },
        None => quote! { ::core::option::Option::None },
    };
    let input = match (schema, rest.first()) {
        (Some(schema), _) => quote! { ::std::string::String::from(#schema) },
        (None, Some(args)) => {
            let ty = &args.ty;
            quote! { ::wharf_sdk::arguments_schema::<#ty>() }
        }
        (None, None) => quote! { ::wharf_sdk::macro_support::no_arguments_schema() },
    };
    let more = if ask_before_task {
        quote! { ::core::option::Option::Some(::wharf_sdk::macro_support::ASK_BEFORE_TASK.into()) }
    } else {
        quote! { ::core::option::Option::None }
    };
    let descriptor = quote! {
        ::wharf_sdk::macro_support::tool(
            #name, #description, #input,
            ::wharf_sdk::ToolDetails {
                title: #title,
                output_schema: <#output as ::wharf_sdk::IntoTool>::schema(),
                hints: #hints,
                needs: #needs,
                task: #task,
                more: #more,
            },
        )
    };
    let call = takes_call.then(|| quote! { call, });
    let run = match rest.first() {
        Some(args) => {
            let ty = &args.ty;
            quote! {{
                let args: #ty = ::wharf_sdk::macro_support::arguments(&arguments)?;
                ::core::result::Result::Ok(Self::#ident(#call args))
            }}
        }
        None => quote! { ::core::result::Result::Ok(Self::#ident(#call)) },
    };
    let arm = quote! {
        #name => ::wharf_sdk::macro_support::call_tool(context, |call| -> ::wharf_sdk::Result<#output> {
            let _ = call;
            #run
        }),
    };
    Ok((descriptor, arm))
}

struct Options {
    name: String,
    title: Option<String>,
    hints: TokenStream,
    schema: Option<Expr>,
    needs: TokenStream,
    task: TokenStream,
    ask_before_task: bool,
}

fn read_options(options: Vec<Option_>, function: &str) -> syn::Result<Options> {
    let (mut name, mut title, mut schema) = (function.to_owned(), None, None);
    let (mut read_only, mut destructive, mut idempotent, mut open_world) = (None, None, None, None);
    let (mut needs, mut task, mut ask_before_task) = (None, None, None);
    for option in options {
        let key = option.key.clone();
        match key.to_string().as_str() {
            "name" => name = option.text()?,
            "title" => title = Some(option.text()?),
            "read_only" => read_only = Some(option.flag()?),
            "destructive" => destructive = Some(option.flag()?),
            "idempotent" => idempotent = Some(option.flag()?),
            "open_world" => open_world = Some(option.flag()?),
            "schema" => schema = Some(option.expression()?),
            "needs" => needs = Some(option.literal()?),
            "task" => task = Some(option.literal()?),
            "ask_before_task" => ask_before_task = option.flag()?.then_some(key),
            _ => return Err(unknown_option(&key, &OPTIONS)),
        }
    }
    let hints = hints([read_only, destructive, idempotent, open_world]);
    let needs = capabilities(needs.as_ref())?;
    let task_support = task_support(task.as_ref(), ask_before_task.as_ref())?;
    Ok(Options { name, title, hints, schema, needs, task: task_support, ask_before_task: ask_before_task.is_some() })
}

fn hints(given: [Option<bool>; 4]) -> TokenStream {
    if given.iter().all(Option::is_none) {
        return quote! { ::core::option::Option::None };
    }
    let [read_only, destructive, idempotent, open_world] = given.map(|value| match value {
        Some(value) => quote! { ::core::option::Option::Some(#value) },
        None => quote! { ::core::option::Option::None },
    });
    quote! {
        ::core::option::Option::Some(::wharf_sdk::Hints {
            read_only: #read_only, destructive: #destructive, idempotent: #idempotent, open_world: #open_world,
        })
    }
}

/// Returns the flags for an option such as `needs = "form, sampling"`.
fn capabilities(needs: Option<&LitStr>) -> syn::Result<TokenStream> {
    let Some(needs) = needs else { return Ok(quote! { ::wharf_sdk::ClientCapabilities::empty() }) };
    let mut flags = Vec::new();
    for word in needs.value().split(',').map(str::trim) {
        let Some((_, constant)) = CAPABILITIES.iter().find(|(name, _)| *name == word) else {
            let known: Vec<&str> = CAPABILITIES.iter().map(|(name, _)| *name).collect();
            return Err(syn::Error::new(
                needs.span(),
                format!("unknown capability `{word}`; the capabilities are: {}", known.join(", ")),
            ));
        };
        let constant = Ident::new(constant, needs.span());
        flags.push(quote! { ::wharf_sdk::ClientCapabilities::#constant });
    }
    Ok(quote! { #(#flags)|* })
}

fn task_support(task: Option<&LitStr>, ask_before_task: Option<&Ident>) -> syn::Result<TokenStream> {
    let support = task.map(|task| (task, task.value()));
    let support = match &support {
        None => quote! { Forbidden },
        Some((task, text)) => match text.as_str() {
            "forbidden" => quote! { Forbidden },
            "optional" => quote! { Optional },
            "required" => quote! { Required },
            _ => {
                return Err(syn::Error::new(
                    task.span(),
                    format!("`task` must be \"forbidden\", \"optional\" or \"required\", not \"{text}\""),
                ));
            }
        },
    };
    if let Some(key) = ask_before_task
        && task.is_none_or(|task| task.value() == "forbidden")
    {
        return Err(syn::Error::new(
            key.span(),
            "`ask_before_task` needs a tool that can run as a task: add task = \"optional\" or task = \"required\"",
        ));
    }
    Ok(quote! { ::wharf_sdk::TaskSupport::#support })
}
