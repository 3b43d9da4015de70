//! Tests the mapping between WIT and JSON in tables, with the worlds of components that were made for other hosts.

use serde_json::{Value, json};
use wasmtime::{
    Engine,
    component::{Component, Val},
};
use wit_component::{ComponentEncoder, StringEncoding, dummy_module, embed_component_metadata};
use wit_parser::{ManglingAndAbi, Resolve};

use super::{Functions, Ty, answer};
use crate::{
    adapter::values::{self, Purse, Wrong},
    bindings::model::Content,
    contract::operation::{CallError, ToolAnswer},
    file::load_error::LoadError,
};
use wharf_base::accounts::Account;

fn functions(wit: &str, docs: Option<&str>) -> Result<Functions, LoadError> {
    let mut resolve = Resolve::default();
    let package = resolve.push_str("test.wit", wit).unwrap();
    let world = resolve.select_world(&[package], None).unwrap();
    let mut module = dummy_module(&resolve, world, ManglingAndAbi::Standard32);
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    let component = ComponentEncoder::default().module(&module).unwrap().encode().unwrap();
    Functions::of(&Component::new(&Engine::default(), component).unwrap(), docs)
}

/// Returns the names of a world's tools, with their input and output schemas.
fn tools(wit: &str) -> Vec<(String, Value, Value)> {
    let functions = functions(wit, None).unwrap();
    assert_eq!(functions.refused, [""; 0]);
    let parsed = |text: &str| serde_json::from_str(text).unwrap();
    let output = |function: &super::Function| {
        let details = function.tool.details.as_ref();
        details.and_then(|details| details.output_schema.as_deref()).map_or(Value::Null, parsed)
    };
    functions.all.iter().map(|one| (one.tool.name.clone(), parsed(&one.tool.input_schema), output(one))).collect()
}

fn object(properties: Value) -> Value {
    let required: Vec<&String> = properties.as_object().unwrap().keys().collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

fn wrapped(result: Value) -> Value {
    object(json!({ "result": result }))
}

fn result(ok: Value, err: Value) -> Value {
    wrapped(json!({ "oneOf": [object(json!({ "ok": ok })), object(json!({ "err": err }))] }))
}

/// The names, arguments and results that other hosts publish for their examples.
#[test]
fn published_examples_have_the_names_and_schemas_that_clients_know() {
    let text = json!({ "type": "string" });
    let texts = json!({ "type": "array", "items": text });
    // Texts have no structured form here.
    let plain = Value::Null;
    for (wit, expected) in [
        (
            "package component:fetch-rs; world fetch { export fetch: func(url: string) -> result<string, string>; }",
            vec![("fetch", json!({ "url": text }), plain.clone())],
        ),
        (
            "package component:filesystem2; world filesystem {
                export list-directory: func(path: string) -> result<list<string>, string>;
                export read-file: func(path: string) -> result<string, string>;
                export search-file: func(path: string, pattern: string) -> result<string, string>;
                export get-file-info: func(path: string) -> result<string, string>; }",
            vec![
                ("list-directory", json!({ "path": text }), result(texts.clone(), text.clone())),
                ("read-file", json!({ "path": text }), plain.clone()),
                ("search-file", json!({ "path": text, "pattern": text }), plain.clone()),
                ("get-file-info", json!({ "path": text }), plain.clone()),
            ],
        ),
        (
            "package microsoft:context7-rs@0.1.0;
             interface context7 {
                resolve-library-id: func(library-name: string) -> result<string, string>;
                get-library-docs: func(library-id: string, topic: string) -> result<string, string>; }
             world w { export context7; }",
            vec![
                (
                    "microsoft_context7-rs_context7_0_1_0_resolve-library-id",
                    json!({ "library-name": text }),
                    plain.clone(),
                ),
                (
                    "microsoft_context7-rs_context7_0_1_0_get-library-docs",
                    json!({ "library-id": text, "topic": text }),
                    plain.clone(),
                ),
            ],
        ),
        (
            "package local:mcp; world mcp-server { export get-weather: func(city: string) -> result<string, string>; }",
            vec![("get-weather", json!({ "city": text }), plain.clone())],
        ),
        (
            "package local:time-server; interface time { get-current-time: func() -> string; }
             world time-server { export time; }",
            vec![("local_time-server_time_get-current-time", json!({}), plain.clone())],
        ),
    ] {
        let expected: Vec<_> =
            expected.into_iter().map(|(name, params, output)| (name.to_owned(), object(params), output)).collect();
        assert_eq!(tools(wit), expected, "{wit}");
    }
}

const KINDS: &str = "package a:b; world w {
    record point { x: s32, label: option<string> }
    variant shape { dot, circle(f64) }
    enum colour { red, dark-blue }
    flags rights { read, write }
    export f: func(a: bool, b: u8, c: u64, d: f32, e: char, f: list<u8>, g: list<u16>, h: point, i: tuple<u8, string>,
        j: shape, k: colour, l: option<u8>, m: result<u8>, n: rights) -> KIND;
}";

#[test]
fn each_kind_has_its_schema() {
    let (_, input, _) = tools(&KINDS.replace("KIND", "u8")).remove(0);
    let int = |least: i64, most: i64| json!({ "type": "integer", "minimum": least, "maximum": most });
    let base64 = json!({ "type": "string", "contentEncoding": "base64" });
    let pair = json!([int(0, 255), { "type": "string" }]);
    let names =
        json!({ "type": "array", "items": { "type": "string", "enum": ["read", "write"] }, "uniqueItems": true });
    let optional = json!({ "anyOf": [{ "type": "null" }, { "type": "string" }] });
    let point = json!({
        "type": "object", "properties": { "x": int(-(1 << 31), (1 << 31) - 1), "label": optional }, "required": ["x"],
    });
    for (name, expected) in [
        ("a", json!({ "type": "boolean" })),
        ("b", int(0, 255)),
        (
            "c",
            json!({ "anyOf": [
                { "type": "integer", "minimum": 0, "maximum": u64::MAX }, { "type": "string", "pattern": "^-?[0-9]{1,20}$" },
            ] }),
        ),
        ("d", json!({ "type": "number" })),
        ("e", json!({ "type": "string", "minLength": 1, "maxLength": 1, "description": "1 unicode codepoint" })),
        ("f", json!({ "anyOf": [base64, { "type": "array", "items": int(0, 255) }] })),
        ("g", json!({ "type": "array", "items": int(0, 65535) })),
        ("h", point),
        (
            "i",
            json!({ "anyOf": [
                { "type": "array", "prefixItems": pair, "minItems": 2, "maxItems": 2 },
                object(json!({ "val0": int(0, 255), "val1": { "type": "string" } })),
            ] }),
        ),
        (
            "j",
            json!({ "oneOf": [
                object(json!({ "tag": { "const": "dot" } })),
                object(json!({ "tag": { "const": "circle" }, "val": { "type": "number" } })),
            ] }),
        ),
        ("k", json!({ "type": "string", "enum": ["red", "dark-blue"] })),
        ("l", json!({ "anyOf": [{ "type": "null" }, int(0, 255)] })),
        ("m", json!({ "oneOf": [object(json!({ "ok": int(0, 255) })), object(json!({ "err": { "type": "null" } }))] })),
        (
            "n",
            json!({ "anyOf": [
                names,
                { "type": "object", "properties": { "read": { "type": "boolean" }, "write": { "type": "boolean" } } },
            ] }),
        ),
    ] {
        assert_eq!(input["properties"][name], expected, "{name}");
    }
    assert_eq!(input["required"], json!(["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "m", "n"]));
    // Results have only one form.
    for (kind, expected) in [
        ("list<u8>", base64),
        ("rights", names),
        ("tuple<u8, string>", json!({ "type": "array", "prefixItems": pair, "minItems": 2, "maxItems": 2 })),
    ] {
        let (_, _, output) = tools(&KINDS.replace("KIND", kind)).remove(0);
        assert_eq!(output, wrapped(expected), "{kind}");
    }
    let (_, _, output) = tools(&KINDS.replace("KIND", "point")).remove(0);
    assert_eq!(output["properties"]["result"]["required"], json!(["x", "label"]));
}

/// Returns a type that is written in WIT, using the declarations in `KINDS`.
fn ty(kind: &str) -> Ty {
    let mut functions = functions(&KINDS.replace("KIND", kind), None).unwrap();
    functions.all.remove(0).signature.result.unwrap()
}

fn read(ty: &Ty, json: &str, most: usize) -> Result<Val, Wrong> {
    let account = Account::new(1 << 30);
    let params = [("v".to_owned(), ty.clone())];
    let mut read = values::arguments(&params, &format!("{{\"v\":{json}}}"), &mut Purse::new(&account, most))?;
    Ok(read.remove(0))
}

#[test]
fn values_go_both_ways() {
    for (kind, json, back) in [
        ("bool", "true", "true"),
        ("u8", "255", "255"),
        ("s8", "-128.0", "-128"),
        ("s64", "-9223372036854775808", "\"-9223372036854775808\""),
        ("u64", "\"18446744073709551615\"", "\"18446744073709551615\""),
        ("u64", "7", "7"),
        ("f32", "1.1", "1.1"),
        ("f64", "3", "3.0"),
        ("char", "\"ü\"", "\"ü\""),
        ("string", "\"a\\u0000\\\"b\"", "\"a\\u0000\\\"b\""),
        ("list<u8>", "[1,2,255]", "\"AQL/\""),
        ("list<u8>", "\"AQL/\"", "\"AQL/\""),
        ("list<list<u16>>", "[[1],[],[65535]]", "[[1],[],[65535]]"),
        ("point", "{\"label\":null,\"x\":-1}", "{\"x\":-1,\"label\":null}"),
        ("point", "{\"x\":2,\"more\":[1]}", "{\"x\":2,\"label\":null}"),
        ("tuple<u8, string>", "[1,\"a\"]", "[1,\"a\"]"),
        ("tuple<u8, string>", "{\"val1\":\"a\",\"val0\":1}", "[1,\"a\"]"),
        ("shape", "{\"tag\":\"dot\"}", "{\"tag\":\"dot\"}"),
        ("shape", "{\"val\":1.5,\"tag\":\"circle\"}", "{\"tag\":\"circle\",\"val\":1.5}"),
        ("colour", "\"dark-blue\"", "\"dark-blue\""),
        ("option<colour>", "null", "null"),
        ("list<option<u8>>", "[null,1]", "[null,1]"),
        ("result<u8, string>", "{\"ok\":1}", "{\"ok\":1}"),
        ("result<u8, string>", "{\"err\":\"no\"}", "{\"err\":\"no\"}"),
        ("result", "{\"err\":null}", "{\"err\":null}"),
        ("rights", "[\"write\",\"write\"]", "[\"write\"]"),
        ("rights", "{\"read\":true,\"write\":false}", "[\"read\"]"),
    ] {
        let ty = ty(kind);
        let value = read(&ty, json, 1 << 20).unwrap_or_else(|wrong| panic!("{kind} {json}: {wrong:?}"));
        assert_eq!(values::text(&ty, &value, 1000).unwrap(), back, "{kind} {json}");
        assert_eq!(values::structured(&ty, &value, 1000).unwrap(), format!("{{\"result\":{back}}}"));
        // The written JSON is read as the same value.
        assert_eq!(values::text(&ty, &read(&ty, back, 1 << 20).unwrap(), 1000).unwrap(), back);
    }
}

#[test]
fn what_does_not_fit_is_named() {
    for (kind, json, expected) in [
        ("u8", "256", "v: 256 is not between 0 and 255"),
        ("u8", "1.5", "v: 1.5 is not an integer"),
        ("u64", "\"-1\"", "v: -1 is not between"),
        ("u64", "\"a\"", "decimal digits"),
        ("char", "\"ab\"", "one character"),
        ("list<u8>", "\"*\"", "v: not base64"),
        ("point", "{}", "v: `x` is missing"),
        ("point", "{\"x\":\"1\"}", "v: x: "),
        ("tuple<u8, string>", "[1]", "too short"),
        ("tuple<u8, string>", "[1,\"a\",2]", "too long"),
        ("shape", "{\"tag\":\"square\"}", "`square` is not one of its cases"),
        ("shape", "{\"tag\":\"circle\"}", "lacks its `val`"),
        ("shape", "{\"val\":1}", "a variant needs a `tag`"),
        ("colour", "\"green\"", "`green` is not one of its cases"),
        ("result<u8, string>", "{}", "`ok` or `err`"),
        ("rights", "[\"own\"]", "`own` is not one of its flags"),
        ("bool", "[]", "expected true or false"),
    ] {
        match read(&ty(kind), json, 1 << 20) {
            Err(Wrong::Invalid(text)) => assert!(text.contains(expected), "{kind} {json}: {text}"),
            other => panic!("{kind} {json}: {other:?}"),
        }
    }
}

#[test]
fn what_explodes_is_paid_for_first() {
    let zeros = format!("[{}0]", "0,".repeat(100_000));
    assert!(matches!(read(&ty("list<u16>"), &zeros, 1 << 20), Err(Wrong::Invalid(text)) if text.contains("1 MiB")));
    assert!(read(&ty("list<u16>"), &zeros, 64 << 20).is_ok());
    let bytes = format!("\"{}\"", "AAAA".repeat(100_000));
    assert!(matches!(read(&ty("list<u8>"), &bytes, 1 << 20), Err(Wrong::Invalid(text)) if text.contains("1 MiB")));
    // The account of all calls is limited too, and everything is given back to it.
    let account = Account::new(1 << 20);
    let params = [("v".to_owned(), ty("list<u16>"))];
    let mut purse = Purse::new(&account, 64 << 20);
    assert_eq!(values::arguments(&params, &format!("{{\"v\":{zeros}}}"), &mut purse), Err(Wrong::NoRoom));
    drop(purse);
    assert_eq!(account.used(), 0);
    let long = Val::List(vec![Val::U16(65535); 1000]);
    assert_eq!(values::text(&ty("list<u16>"), &long, 5999), Err(values::Unrepresentable::TooLong));
    assert_eq!(values::text(&ty("list<u16>"), &long, 6001).unwrap().len(), 6001);
    let escaped = Val::String("\u{1}".repeat(1000));
    assert_eq!(values::text(&Ty::String, &escaped, 5000), Err(values::Unrepresentable::TooLong));
}

#[test]
fn a_result_is_an_answer() {
    let text = |text: &str| Some(Box::new(Val::String(text.into())));
    let fails = ty("result<string, string>");
    let bare = ty("result");
    let point = ty("result<u8, string>");
    for (ty, value, expected, structured, is_error) in [
        (&fails, Val::Result(Ok(text("hi \"x\""))), "hi \"x\"", Value::Null, false),
        (&fails, Val::Result(Err(text("denied"))), "denied", Value::Null, true),
        (&bare, Val::Result(Ok(None)), "done", Value::Null, false),
        (&bare, Val::Result(Err(None)), "it failed, and does not say why", Value::Null, true),
        (&point, Val::Result(Ok(Some(Box::new(Val::U8(7))))), "7", json!({ "result": { "ok": 7 } }), false),
        (&point, Val::Result(Err(text("denied"))), "denied", json!({ "result": { "err": "denied" } }), true),
        (&Ty::String, Val::String("plain".into()), "plain", Value::Null, false),
        (&Ty::Bool, Val::Bool(true), "true", json!({ "result": true }), false),
    ] {
        let ToolAnswer::Result(answer) = answer(ty, &value, 1000).unwrap() else { panic!("not a complete result") };
        let [Content::Text(told)] = answer.content.as_slice() else { panic!("no text") };
        assert_eq!((told.as_str(), answer.is_error), (expected, is_error));
        let given = answer.structured.as_deref().map_or(Value::Null, |json| serde_json::from_str(json).unwrap());
        assert_eq!(given, structured);
    }
    let nan = answer(&Ty::F64, &Val::Float64(f64::NAN), 1000).unwrap_err();
    assert!(matches!(nan, CallError::Failed(failure) if failure.message.contains("NaN")));
    assert!(
        matches!(answer(&Ty::Bool, &Val::U8(1), 1000), Err(CallError::Trap { .. })),
        "a defect does not count as a result"
    );
}

#[test]
fn what_cannot_be_told_is_refused_by_name_and_the_rest_is_served() {
    let found = functions(
        "package acme:x; interface counters {
            resource counter { constructor(); next: func() -> u32; make: static func(n: u32) -> u32; }
            take: func(c: counter) -> u32;
            nested: func(l: list<tuple<u8, borrow<counter>>>);
            twice: func(o: option<option<u8>>);
            plain: func() -> u32;
         }
         world w { export counters; }",
        None,
    )
    .unwrap();
    let names: Vec<&str> = found.all.iter().map(|one| one.tool.name.as_str()).collect();
    assert_eq!(names, ["acme_x_counters__static_counter_make", "acme_x_counters_plain"]);
    let refused = found.refused.join("\n");
    for expected in [
        "acme:x/counters#take: its parameter `c` has the resource own<counter>",
        "acme:x/counters#nested: its parameter `l` has the resource borrow<counter>",
        "acme:x/counters#twice: its parameter `o` has an option of an option",
        "acme:x/counters#[constructor]counter: its result has the resource own<counter>",
        "acme:x/counters#[method]counter.next: its parameter `self` has the resource borrow<counter>",
    ] {
        assert!(refused.contains(expected), "{expected}: {refused}");
    }
}

#[test]
fn hostile_types_end_early() {
    // Each record contains the one before it twice, so the last has 2^15 fields when it is written out.
    let mut wit = "package a:b; world w { record r0 { a: u8, b: u8 }".to_owned();
    for level in 1..15 {
        wit += &format!(" record r{level} {{ a: r{0}, b: r{0} }}", level - 1);
    }
    wit += " export f: func(r: r14); export g: func(); }";
    let found = functions(&wit, None).unwrap();
    assert_eq!(found.all.len(), 1);
    assert!(found.refused[0].contains("more than 2000"), "{:?}", found.refused);
    // The schema of a tuple contains its items twice, so that of twenty nested tuples would have a million items.
    let tuples = format!("package a:b; world w {{ export f: func(t: {}u8{}); }}", "tuple<".repeat(20), ">".repeat(20));
    assert!(functions(&tuples, None).unwrap().refused[0].contains("more than 2000"));
    // Few types can make a schema that is too deep.
    let deep = format!("package a:b; world w {{ export f: func(r: {}u8{}); }}", "result<".repeat(12), ">".repeat(12));
    assert!(functions(&deep, None).unwrap().refused[0].contains("at most 65536 bytes and 32 levels"), "{deep}");
    let deep = format!("package a:b; world w {{ export f: func(l: {}u8{}); }}", "list<".repeat(60), ">".repeat(60));
    assert!(functions(&deep, None).unwrap().refused[0].contains("32 deep"));
    let many: String = (0..1001).map(|at| format!(" export x{at}: func();")).collect();
    let error = functions(&format!("package a:b; world w {{{many} }}"), None).err().unwrap();
    assert!(error.to_string().contains("1001 functions"), "{error}");
    // Functions that are each within their limit are not all served if their types are too large together.
    let wide: String = (0..100).map(|at| format!("m{at}: u8, ")).collect();
    let several: String = (0..300).map(|at| format!(" export x{at}: func(r: r);")).collect();
    let found = functions(&format!("package a:b; world w {{ record r {{ {wide} }}{several} }}"), None).unwrap();
    assert!((100..300).contains(&found.all.len()), "{}", found.all.len());
    assert!(found.refused.iter().any(|why| why.contains("the types of all functions have")), "{:?}", found.refused);
    assert_eq!(found.refused.len(), 21, "the list of refused functions is bounded");
}

#[test]
fn names_fit_into_mcp() {
    let long = "a".repeat(125);
    let found = functions(
        &format!(
            "package a:b; interface i {{ {long}: func(); ok: func(); }} world w {{ export i; export {long}: func(); }}"
        ),
        None,
    )
    .unwrap();
    assert_eq!(found.all.len(), 2);
    assert!(found.refused[0].contains("more than 128 characters"), "{:?}", found.refused);
    assert_eq!(super::tool_name(Some("A:b/i@1.0"), "[static]c.d"), "a_b_i_1_0__static_c_d");
}

#[test]
fn descriptions_come_from_the_docs_or_name_the_function() {
    let docs = r#"{"worlds":{"w":{"func_exports":{"f":{"docs":"Does f."}}}}}"#;
    let found =
        functions("package a:b; interface i { g: func(); } world w { export f: func(); export i; }", Some(docs));
    let told: Vec<String> = found.unwrap().all.into_iter().map(|one| one.tool.description).collect();
    assert_eq!(told, ["Does f.", "Calls the function g of a:b/i"]);
}
