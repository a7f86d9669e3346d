//! Automation of the project. `cargo run -p xtask -- tidy` checks what no compiler checks.

mod tidy;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let task = std::env::args().nth(1);
    if task.as_deref() != Some("tidy") {
        eprintln!("usage: cargo run -p xtask -- tidy");
        return ExitCode::from(2);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    match tidy::findings(&root) {
        Ok(findings) if findings.is_empty() => ExitCode::SUCCESS,
        Ok(findings) => {
            findings.iter().for_each(|finding| eprintln!("{finding}"));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("the tree could not be read: {error}");
            ExitCode::FAILURE
        }
    }
}
