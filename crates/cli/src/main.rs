//! The `foldback` command.
fn main() {}
