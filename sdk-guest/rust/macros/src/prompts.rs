//! Expands `#[prompts]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{ImplItemFn, ItemImpl, ReturnType, Type};

use crate::function::{Parameter, description, functions, parameters, take_options, unknown_option};

pub fn expand(block: &mut ItemImpl) -> syn::Result<TokenStream> {
    let own = block.self_ty.clone();
    let mut descriptors = Vec::new();
    let mut arms = Vec::new();
    for function in functions(block)? {
        let (descriptor, arm) = prompt(function)?;
        descriptors.push(descriptor);
        arms.push(arm);
    }
    Ok(quote! {
        impl ::wharf_sdk::Prompts for #own {
            fn list_prompts() -> ::core::result::Result<::std::vec::Vec<::wharf_sdk::Prompt>, ::wharf_sdk::Failure> {
                ::core::result::Result::Ok(::std::vec![#(#descriptors),*])
            }

            fn get_prompt(
                name: ::std::string::String,
                arguments: ::std::vec::Vec<(::std::string::String, ::std::string::String)>,
                context: ::wharf_sdk::Context,
            ) -> ::core::result::Result<::wharf_sdk::PromptOutcome, ::wharf_sdk::Failure> {
                match name.as_str() {
                    #(#arms)*
                    _ => ::core::result::Result::Err(::wharf_sdk::macro_support::unknown("prompt", &name)),
                }
            }
        }
        ::wharf_sdk::bindings::prompts::export_prompts!(#own with_types_in ::wharf_sdk::bindings::prompts);
    })
}

fn prompt(function: &mut ImplItemFn) -> syn::Result<(TokenStream, TokenStream)> {
    let description = description(function)?;
    let mut name = function.sig.ident.to_string();
    for option in take_options(function, "prompt")?.unwrap_or_default() {
        let key = option.key.clone();
        if key != "name" {
            return Err(unknown_option(&key, &["name"]));
        }
        name = option.text()?;
    }
    let (takes_call, rest) = parameters(function)?;
    let ident = function.sig.ident.clone();
    let output = match &function.sig.output {
        ReturnType::Default => {
            return Err(syn::Error::new(ident.span(), "a prompt must return its text or its messages"));
        }
        ReturnType::Type(_, ty) => quote! { #ty },
    };
    let arguments = rest.iter().map(|Parameter { name, ty, docs }| {
        let (name, required) = (name.to_string(), !is_option(ty));
        let docs = if docs.is_empty() {
            quote! { ::core::option::Option::None }
        } else {
            quote! { ::core::option::Option::Some(#docs.into()) }
        };
        quote! { ::wharf_sdk::PromptArgument { name: #name.into(), description: #docs, required: #required } }
    });
    let descriptor = quote! {
        ::wharf_sdk::Prompt {
            name: #name.into(),
            description: ::core::option::Option::Some(#description.into()),
            arguments: ::std::vec![#(#arguments),*],
            more: ::core::option::Option::None,
        }
    };
    let values = rest.iter().map(|Parameter { name, ty, .. }| {
        let name = name.to_string();
        let value = quote! { ::wharf_sdk::macro_support::prompt_argument(&arguments, #name) };
        if is_option(ty) {
            value
        } else {
            quote! { #value.unwrap_or_default() }
        }
    });
    let call = takes_call.then(|| quote! { call, });
    let arm = quote! {
        #name => ::wharf_sdk::macro_support::get_prompt(context, |call| -> ::wharf_sdk::Result<#output> {
            let _ = (call, &arguments);
            ::core::result::Result::Ok(Self::#ident(#call #(#values),*))
        }),
    };
    Ok((descriptor, arm))
}

fn is_option(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|segment| segment.ident == "Option"))
}
