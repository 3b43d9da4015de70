//! A component that was not made for wharf: it only uses its own WIT, and shows how each kind of type is converted.

#![allow(clippy::allow_attributes_without_reason, clippy::same_length_and_capacity, reason = "generated code")]
#![expect(clippy::disallowed_methods, reason = "it reads what it is granted")]

wit_bindgen::generate!({
    path: "wit",
    world: "plain",
    generate_all,
});

use exports::demo::plain::{hostile, shapes};
use shapes::{Colour, Point, Rights, Shape};

struct Plain;

export!(Plain);

impl Guest for Plain {
    fn greet(name: String) -> String {
        format!("Hello, {name}!")
    }

    fn read_file(path: String) -> Result<String, String> {
        std::fs::read_to_string(path).map_err(|error| error.to_string())
    }

    fn setting(key: String) -> Option<String> {
        wasi::config::store::get(&key).ok().flatten()
    }

    fn settings() -> Vec<(String, String)> {
        wasi::config::store::get_all().unwrap_or_default()
    }
}

impl shapes::Guest for Plain {
    type Counter = Counter;

    fn describe(shape: Shape, colour: Option<Colour>) -> String {
        format!("{shape:?} in {colour:?}")
    }

    fn without_delete(rights: Rights) -> Rights {
        rights.difference(Rights::DELETE)
    }

    fn divide(a: i64, b: i64) -> Result<i64, String> {
        a.checked_div(b).ok_or_else(|| "nothing can be divided by 0".to_owned())
    }

    fn reverse(mut bytes: Vec<u8>) -> Vec<u8> {
        bytes.reverse();
        bytes
    }

    fn first(points: Vec<Point>) -> Option<Point> {
        points.into_iter().next()
    }

    fn count(_: shapes::CounterBorrow<'_>) -> u32 {
        0
    }
}

struct Counter;

impl shapes::GuestCounter for Counter {
    fn new() -> Self {
        Self
    }
}

impl hostile::Guest for Plain {
    fn much(count: u32) -> Vec<u32> {
        vec![7; count as usize]
    }

    fn long(bytes: u32) -> String {
        "x".repeat(bytes as usize)
    }

    fn nan() -> f64 {
        f64::NAN
    }

    fn spin() {
        loop {
            std::hint::spin_loop();
        }
    }

    #[expect(clippy::panic, reason = "that is what it is for")]
    fn give_up() {
        panic!("on purpose")
    }

    fn ignore(_: Vec<u64>) {}
}
