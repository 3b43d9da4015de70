//! `#[tools]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{ImplItemFn, ItemImpl, ReturnType};

use crate::function::{Option_, description, functions, parameters, take_options, unknown_option};

const OPTIONS: [&str; 6] = ["name", "title", "read_only", "destructive", "idempotent", "open_world"];

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
                args: ::std::string::String,
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
    let Options { name, title, hints } = read_options(options, &ident.to_string())?;
    let title = match title {
        Some(title) => quote! { ::core::option::Option::Some(#title) },
        None => quote! { ::core::option::Option::None },
    };
    let input = match rest.first() {
        Some(args) => {
            let ty = &args.ty;
            quote! { ::wharf_sdk::arguments_schema::<#ty>() }
        }
        None => quote! { ::wharf_sdk::macro_support::no_arguments_schema() },
    };
    let descriptor = quote! {
        ::wharf_sdk::macro_support::tool(
            #name, #description, #title, #input, <#output as ::wharf_sdk::IntoTool>::schema(), #hints,
        )
    };
    let call = takes_call.then(|| quote! { call, });
    let run = match rest.first() {
        Some(args) => {
            let ty = &args.ty;
            quote! {{
                let args: #ty = ::wharf_sdk::macro_support::arguments(&args)?;
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
}

fn read_options(options: Vec<Option_>, function: &str) -> syn::Result<Options> {
    let (mut name, mut title) = (function.to_owned(), None);
    let (mut read_only, mut destructive, mut idempotent, mut open_world) = (None, None, None, None);
    for option in options {
        let key = option.key.clone();
        match key.to_string().as_str() {
            "name" => name = option.text()?,
            "title" => title = Some(option.text()?),
            "read_only" => read_only = Some(option.flag()?),
            "destructive" => destructive = Some(option.flag()?),
            "idempotent" => idempotent = Some(option.flag()?),
            "open_world" => open_world = Some(option.flag()?),
            _ => return Err(unknown_option(&key, &OPTIONS)),
        }
    }
    let hint = |value: Option<bool>| match value {
        Some(value) => quote! { ::core::option::Option::Some(#value) },
        None => quote! { ::core::option::Option::None },
    };
    let any = [read_only, destructive, idempotent, open_world].iter().any(Option::is_some);
    let (read_only, destructive, idempotent, open_world) =
        (hint(read_only), hint(destructive), hint(idempotent), hint(open_world));
    let hints = if any {
        quote! {
            ::core::option::Option::Some(::wharf_sdk::Hints {
                read_only: #read_only, destructive: #destructive, idempotent: #idempotent, open_world: #open_world,
            })
        }
    } else {
        quote! { ::core::option::Option::None }
    };
    Ok(Options { name, title, hints })
}
