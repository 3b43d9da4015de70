//! Sets the size of the plugin's stack.

fn main() {
    // Trees and configs are read recursively.
    println!("cargo::rustc-link-arg-cdylib=-zstack-size=1048576");
    println!("cargo::rerun-if-changed=build.rs");
}
