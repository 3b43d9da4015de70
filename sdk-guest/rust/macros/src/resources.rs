//! Expands `#[resources]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{ImplItemFn, ItemImpl, ReturnType};

use crate::function::{description, functions, parameters, take_options, unknown_option};

const OPTIONS: [&str; 4] = ["uri", "template", "name", "mime_type"];

pub fn expand(block: &mut ItemImpl) -> syn::Result<TokenStream> {
    let own = block.self_ty.clone();
    let (mut entries, mut templates, mut arms) = (Vec::new(), Vec::new(), Vec::new());
    for function in functions(block)? {
        match resource(function)? {
            Reader::Uri(entry, arm) => {
                entries.push(entry);
                // Fixed URIs are tried before any template.
                arms.insert(0, arm);
            }
            Reader::Template(template, arm) => {
                templates.push(template);
                arms.push(arm);
            }
        }
    }
    Ok(quote! {
        impl ::wharf_sdk::Resources for #own {
            fn list_resources()
            -> ::core::result::Result<::std::vec::Vec<::wharf_sdk::ResourceEntry>, ::wharf_sdk::Failure> {
                ::core::result::Result::Ok(::std::vec![#(#entries),*])
            }

            fn list_templates()
            -> ::core::result::Result<::std::vec::Vec<::wharf_sdk::ResourceTemplate>, ::wharf_sdk::Failure> {
                ::core::result::Result::Ok(::std::vec![#(#templates),*])
            }

            fn read_resource(
                uri: ::std::string::String,
                context: ::wharf_sdk::Context,
            ) -> ::core::result::Result<::wharf_sdk::ReadOutcome, ::wharf_sdk::Failure> {
                #(#arms)*
                let _ = context;
                ::core::result::Result::Err(::wharf_sdk::macro_support::resource_not_found(&uri))
            }
        }
        ::wharf_sdk::bindings::resources::export_resources!(#own with_types_in ::wharf_sdk::bindings::resources);
    })
}

enum Reader {
    Uri(TokenStream, TokenStream),
    Template(TokenStream, TokenStream),
}

fn resource(function: &mut ImplItemFn) -> syn::Result<Reader> {
    let description = description(function)?;
    let ident = function.sig.ident.clone();
    let missing = || {
        syn::Error::new(
            ident.span(),
            "say which resource this reads: #[resource(uri = \"note:///today\")] or #[resource(template = \"note:///{day}\")]",
        )
    };
    let (mut uri, mut template, mut name, mut mime_type) = (None, None, ident.to_string(), None);
    for option in take_options(function, "resource")?.ok_or_else(missing)? {
        let key = option.key.clone();
        match key.to_string().as_str() {
            "uri" => uri = Some(option.text()?),
            "template" => template = Some(option.text()?),
            "name" => name = option.text()?,
            "mime_type" => mime_type = Some(option.text()?),
            _ => return Err(unknown_option(&key, &OPTIONS)),
        }
    }
    let (takes_call, rest) = parameters(function)?;
    let output = match &function.sig.output {
        ReturnType::Default => {
            return Err(syn::Error::new(ident.span(), "a resource must return its text or its contents"));
        }
        ReturnType::Type(_, ty) => quote! { #ty },
    };
    let mime_type = match mime_type {
        Some(mime_type) => quote! { ::core::option::Option::Some(#mime_type.into()) },
        None => quote! { ::core::option::Option::None },
    };
    let call = takes_call.then(|| quote! { call, });
    let members = quote! {
        name: #name.into(),
        description: ::core::option::Option::Some(#description.into()),
        mime_type: #mime_type,
        more: ::core::option::Option::None,
    };
    match (uri, template) {
        (Some(uri), None) => {
            if let Some(parameter) = rest.first() {
                return Err(syn::Error::new(
                    parameter.name.span(),
                    "the function of a resource with a fixed URI takes no parameter except `&Call`",
                ));
            }
            let entry = quote! { ::wharf_sdk::ResourceEntry { uri: #uri.into(), #members } };
            let arm = quote! {
                if uri == #uri {
                    return ::wharf_sdk::macro_support::read_resource(context, |call| -> ::wharf_sdk::Result<#output> {
                        let _ = call;
                        ::core::result::Result::Ok(Self::#ident(#call))
                    });
                }
            };
            Ok(Reader::Uri(entry, arm))
        }
        (None, Some(template)) => {
            for parameter in &rest {
                let name = parameter.name.to_string();
                if !template.contains(&format!("{{{name}}}")) && !template.contains(&format!("{{+{name}}}")) {
                    return Err(syn::Error::new(
                        parameter.name.span(),
                        format!("the template has no variable `{{{name}}}`"),
                    ));
                }
            }
            let values = rest.iter().map(|parameter| {
                let name = parameter.name.to_string();
                quote! { ::wharf_sdk::macro_support::prompt_argument(&variables, #name).unwrap_or_default() }
            });
            let entry = quote! { ::wharf_sdk::ResourceTemplate { uri_template: #template.into(), #members } };
            let arm = quote! {
                if let ::core::option::Option::Some(variables) = ::wharf_sdk::macro_support::match_template(#template, &uri) {
                    return ::wharf_sdk::macro_support::read_resource(context, |call| -> ::wharf_sdk::Result<#output> {
                        let _ = (call, &variables);
                        ::core::result::Result::Ok(Self::#ident(#call #(#values),*))
                    });
                }
            };
            Ok(Reader::Template(entry, arm))
        }
        _ => Err(missing()),
    }
}
