//! The macros' messages: each mistake an author can make ends in a sentence that says what to change.

#[test]
fn mistakes_are_explained() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
}
