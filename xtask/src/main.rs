//! Automation of the project. `cargo run -p xtask -- tidy` checks what the compiler does not, the
//! links of the documentation included; `cargo run -p xtask -- picture` draws the pictures of the
//! report, `cargo run -p xtask -- screenshots` those of the inspector, whose pages `cargo run -p xtask --
//! speed` measures, and `cargo run -p xtask -- recording` records the demo; `cargo run -p xtask -- fuzz` feeds damaged bytes to everything that
//! reads external input, and `cargo run -p xtask -- torture` breaks stores on purpose; `cargo run -p
//! xtask -- publish --dry-run` checks and packs every crate that goes to the registry.

mod fuzz;
mod inspector;
mod links;
mod picture;
mod publish;
mod recording;
mod sizes;
mod tidy;
mod torture;
mod wording;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("fuzz") => fuzz(&root, arguments.get(1..).unwrap_or_default()),
        Some("publish") => publish(&root, arguments.get(1..).unwrap_or_default()),
        Some("tidy") => tidy(&root),
        Some("torture") => torture(&root, arguments.get(1..).unwrap_or_default()),
        Some("picture") => picture(&root),
        Some("recording") => recording(&root),
        Some("screenshots") => inspector(&root, inspector::SCREENSHOTS),
        Some("speed") => inspector(&root, inspector::SPEED),
        _ => {
            eprintln!(
                "usage: cargo run -p xtask -- tidy | fuzz [--seconds N] [TARGET]... | torture [--minutes N] | publish --dry-run [--verify] | picture | recording | screenshots | speed"
            );
            ExitCode::from(2)
        }
    }
}

fn fuzz(root: &Path, arguments: &[String]) -> ExitCode {
    match fuzz::run(root, arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("the targets could not be run: {error}");
            ExitCode::FAILURE
        }
    }
}

fn torture(root: &Path, arguments: &[String]) -> ExitCode {
    match torture::run(root, arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("the torture run could not be started: {error}");
            ExitCode::FAILURE
        }
    }
}

fn publish(root: &Path, arguments: &[String]) -> ExitCode {
    match publish::run(root, arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("the crates could not be checked and packed: {error}");
            ExitCode::FAILURE
        }
    }
}

fn tidy(root: &Path) -> ExitCode {
    match tidy::findings(root) {
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

fn picture(root: &Path) -> ExitCode {
    match picture::draw(root) {
        Ok(pictures) => {
            pictures.iter().for_each(|picture| println!("{}", picture.display()));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("the pictures could not be drawn: {error}");
            ExitCode::FAILURE
        }
    }
}

fn recording(root: &Path) -> ExitCode {
    match recording::record(root) {
        Ok(recording) => {
            println!("{}", recording.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("the demo could not be recorded: {error}");
            ExitCode::FAILURE
        }
    }
}

fn inspector(root: &Path, script: &str) -> ExitCode {
    match inspector::run(root, script) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{script} could not be run: {error}");
            ExitCode::FAILURE
        }
    }
}
