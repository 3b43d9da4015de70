//! Tests the error messages of the macros: for each mistake of an author, the message says what to change.

#[test]
fn mistakes_are_explained() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
}
