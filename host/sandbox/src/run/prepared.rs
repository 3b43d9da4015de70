//! Tests that components do the same when they are prepared.

use wasmtime::{
    Engine, Store,
    component::{Component, Linker},
};

/// A component whose modules share a memory and a table. It has what linking translates: functions from outside, calls between modules and
/// by the table, segments of each kind, constant expressions with globals, blocks with a type, and a start function.
const DYNAMIC: &str = r#"(component
    (import "double" (func $double (param "x" u32) (result u32)))
    (core module $main
        (table (export "table") 80 funcref)
        (memory (export "memory") 1)
        (global (export "base") i32 (i32.const 3))
        (global (export "data") i32 (i32.const 100))
        (global (export "depth") (mut i32) (i32.const 40)))
    (core module $lib
        (type $other (func))
        (type $unary (func (param i32) (result i32)))
        (import "outside" "double" (func $double (type $unary)))
        (import "env" "memory" (memory 1))
        (import "env" "table" (table 1 funcref))
        (import "env" "base" (global $base i32))
        (import "env" "data" (global $data i32))
        (import "env" "depth" (global $depth (mut i32)))
        (global $own i32 (i32.add (global.get $base) (i32.const 5)))
        FUNCTIONS
        (elem (global.get $base) func ELEMENTS)
        (elem $gone func $f1)
        (elem $spare func $f5 $f6)
        (data (global.get $data) "\07\00\00\00")
        (data $none "\01")
        (data $rest "\09\00\00\00")
        (func (export "run") (param $x i32) (result i32)
            (global.set $depth (i32.add (global.get $depth) (i32.const 1)))
            (memory.init $rest (i32.const 200) (i32.const 0) (i32.const 4))
            (table.init $spare (i32.const 75) (i32.const 0) (i32.const 2))
            (elem.drop $gone)
            (data.drop $none)
            (call $double (local.get $x))
            (block (type $unary) (i32.add (i32.const 1)))
            (i32.add (call_indirect (type $unary) (i32.const 50) (i32.add (global.get $base) (local.get $x))))
            (i32.add (call_indirect (type $unary) (i32.const 600) (i32.const 76)))
            (i32.add (i32.load (global.get $data)))
            (i32.add (i32.load (i32.const 200)))
            (i32.add (global.get $depth))
            (i32.mul (global.get $own)))
        (func $referred (export "referred") (param i32) (result i32) (i32.const 5))
        (func (export "refers") (table.set (i32.const 79) (ref.func $referred)))
        (export "again" (func $f3)))
    (core module $last
        (import "env" "memory" (memory 1))
        (import "env" "table" (table 1 funcref))
        (import "lib" "run" (func $run (param i32) (result i32)))
        (import "outside" "double" (func $double (param i32) (result i32)))
        (func $start (i32.store (i32.const 300) (call $double (i32.const 21))))
        (start $start)
        (func $mine (param i32) (result i32) (i32.mul (local.get 0) (i32.const 1000)))
        (elem (table 0) (i32.const 78) funcref (ref.func $mine) (ref.null func))
        (func (export "go") (param i32) (result i32)
            (call $run (local.get 0))
            (i32.add (i32.load (i32.const 300)))
            (i32.add (call_indirect (param i32) (result i32) (local.get 0) (i32.const 78)))))
    (core module $stays
        (import "lib" "again" (func $again (param i32) (result i32)))
        (memory 1)
        (func (export "stay") (param i32) (result i32) (call $again (local.get 0))))
    (core instance $main (instantiate $main))
    (core func $lowered (canon lower (func $double)))
    (core instance $outside (export "double" (func $lowered)))
    (core instance $env
        (export "memory" (memory $main "memory")) (export "table" (table $main "table"))
        (export "base" (global $main "base")) (export "data" (global $main "data")) (export "depth" (global $main "depth")))
    (core instance $lib (instantiate $lib (with "env" (instance $env)) (with "outside" (instance $outside))))
    (core instance $last (instantiate $last
        (with "env" (instance $env)) (with "lib" (instance $lib)) (with "outside" (instance $outside))))
    (core instance $stays (instantiate $stays (with "lib" (instance $lib))))
    (func (export "go") (param "x" u32) (result u32) (canon lift (core func $last "go")))
    (func (export "stay") (param "x" u32) (result u32) (canon lift (core func $stays "stay"))))"#;

fn dynamic(functions: usize) -> String {
    let function = |number: usize| {
        format!("(func $f{number} (type $unary) (i32.add (local.get 0) (i32.const {})))", number * 10_000)
    };
    let all: String = (0..functions).map(function).collect();
    let elements: String = (0..functions).map(|number| format!("$f{number} ")).collect();
    DYNAMIC.replace("FUNCTIONS", &all).replace("ELEMENTS", &elements)
}

fn prepared(component: &[u8]) -> Option<Vec<u8>> {
    wharf_forge::prepared(component).map(|prepared| prepared.component)
}

/// Calls both exports of an instance a few times.
fn results(component: &[u8]) -> Vec<u32> {
    let engine = Engine::default();
    let component = Component::new(&engine, component).unwrap();
    let mut linker = Linker::new(&engine);
    linker.root().func_wrap("double", |_, (x,): (u32,)| Ok((x * 2,))).unwrap();
    let mut store = Store::new(&engine, ());
    let instance = linker.instantiate(&mut store, &component).unwrap();
    let mut results = Vec::new();
    for name in ["go", "stay"] {
        let function = instance.get_typed_func::<(u32,), (u32,)>(&mut store, name).unwrap();
        // The second call would trap if the first had dropped another segment than it says.
        results.extend((0..4).map(|x| function.call(&mut store, (x,)).map_or(u32::MAX, |(result,)| result)));
    }
    results
}

#[test]
fn a_linked_component_does_the_same() {
    for text in [dynamic(70), format!("(component {})", dynamic(70).replace("(component", "(component $inner"))] {
        let component = wat::parse_str(&text).unwrap();
        let linked = prepared(&component).unwrap();
        wasmparser::Validator::new().validate_all(&linked).unwrap();
    }
    let component = wat::parse_str(dynamic(70)).unwrap();
    let (before, after) = (results(&component), results(&prepared(&component).unwrap()));
    assert_eq!(before[0], (1 + 50 + 60_600 + 7 + 9 + 41) * 8 + 42);
    assert_eq!(before[7], 30_003);
    assert_eq!(before, after);
}

#[test]
fn what_is_unusual_keeps_its_modules() {
    let linked = |text: &str| prepared(&wat::parse_str(text).unwrap());
    assert!(linked(&dynamic(60)).is_none(), "too little to gain");
    for (what, from, to) in [
        ("a start function before the last module", "(global $own", "(start $f0) (global $own"),
        ("an exception", "(type $other (func))", "(type $other (func)) (tag (type $other))"),
        (
            "a memory that is too small",
            "(import \"env\" \"memory\" (memory 1))",
            "(import \"env\" \"memory\" (memory 2))",
        ),
        ("a second memory", "(global $own", "(memory 1) (global $own"),
        ("a shared memory", "(memory (export \"memory\") 1)", "(memory (export \"memory\") 1 1 shared)"),
        (
            "a second instance",
            "(core instance $stays",
            "(core instance (instantiate $lib (with \"env\" (instance $env)) (with \"outside\" (instance $outside)))) (core instance $stays",
        ),
    ] {
        let text = dynamic(70).replacen(from, to, 1).replace("(start $f0)", "(func $begin) (start $begin)");
        assert_ne!(text, dynamic(70), "{what}");
        assert!(linked(&text).is_none(), "{what}");
    }
    assert!(prepared(b"\0asm\x0d\0\x01\0\x01").is_none());
    assert!(prepared(b"").is_none());
}

/// A memory of which every byte can be reached, with at most 40 pages.
const GROWING: &str = r#"(component
    (core module $m
        (memory 1 40)
        (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
        (func (export "size") (param i32) (result i32) (i32.add (memory.size) (local.get 0)))
        (func (export "add") (param $at i32) (result i32)
            (i32.store8 (local.get $at) (i32.add (i32.load8_u (local.get $at)) (i32.const 1)))
            (i32.load8_u (local.get $at))))
    (core instance $m (instantiate $m))
    (func (export "grow") (param "x" u32) (result u32) (canon lift (core func $m "grow")))
    (func (export "size") (param "x" u32) (result u32) (canon lift (core func $m "size")))
    (func (export "add") (param "x" u32) (result u32) (canon lift (core func $m "add"))))"#;

#[test]
fn a_memory_with_room_grows_as_without() {
    let component = wat::parse_str(GROWING).unwrap();
    let roomy = wharf_forge::prepared(&component).unwrap();
    assert_eq!(roomy.room_bytes, 1 << 20);
    let page = 64 << 10;
    let none = u32::MAX;
    for component in [component, roomy.component] {
        let engine = Engine::default();
        let component = Component::new(&engine, component).unwrap();
        let mut store = Store::new(&engine, ());
        let instance = Linker::new(&engine).instantiate(&mut store, &component).unwrap();
        for (function, number, expected) in [
            ("size", 0, 1),
            ("grow", 0, 1),
            ("add", page - 1, 1),
            ("grow", 10, 1),
            ("size", 0, 11),
            ("add", 11 * page - 1, 1),
            // All of the room, and four pages more.
            ("grow", 10, 11),
            ("size", 0, 21),
            ("add", 21 * page - 1, 1),
            ("add", 11 * page - 1, 2),
            ("grow", 20, none),
            ("grow", 1 << 31, none),
            ("grow", none, none),
            ("size", 0, 21),
            ("grow", 19, 21),
            ("grow", 1, none),
            ("grow", 0, 40),
            ("add", 40 * page - 1, 1),
        ] {
            let called = instance.get_typed_func::<(u32,), (u32,)>(&mut store, function).unwrap();
            assert_eq!(called.call(&mut store, (number,)).unwrap(), (expected,), "{function} {number}");
        }
        let add = instance.get_typed_func::<(u32,), (u32,)>(&mut store, "add").unwrap();
        assert!(add.call(&mut store, (40 * page,)).is_err(), "beyond its memory");
    }
}
