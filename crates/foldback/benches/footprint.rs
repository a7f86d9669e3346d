//! Measures what the memory costs besides time: syncs, bytes written, memory, disk; and the tails
//! of the times that must stay short.
//!
//! ```text
//! cargo bench -p foldback --bench footprint [-- PART ...]
//! ```
//!
//! PART is `append` (P1) or `bulk` (P3), each with the suffix `-encrypted` for an encrypted store (S14), `cold` (P7,
//! P8, P9), `payload` (P10), `prompt` (P11) or `embed` (P12); without one, all but the 100,000 blocks of P11, which
//! `prompt-100k` adds. Each part runs in a process of its own, so that one does not affect the next. Syncs are
//! counted by `strace` if it is installed.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up has nothing to measure")]

#[path = "footprint/machine.rs"]
mod machine;
#[path = "footprint/messages.rs"]
mod messages;
#[path = "footprint/parts.rs"]
mod parts;

use std::process::Command;

/// The parts, in the order in which they are run and printed.
const PARTS: [&str; 9] = [
    "append",
    "append-encrypted",
    "bulk",
    "bulk-encrypted",
    "cold",
    "payload",
    "prompt",
    "prompt-100k",
    "embed",
];

fn main() {
    // `cargo bench` adds a flag of its own.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [mark, part, rest @ ..] = arguments.as_slice()
        && mark == "--part"
    {
        parts::run(part, rest);
        return;
    }
    let wanted = |part: &str| match arguments.as_slice() {
        [] => part != "prompt-100k",
        named => named.iter().any(|name| name == part),
    };
    let unknown = arguments.iter().find(|name| !PARTS.contains(&name.as_str()));
    if let Some(unknown) = unknown {
        eprintln!("{unknown:?} is none of {}", PARTS.join(", "));
        std::process::exit(2);
    }
    machine::print_floor();
    for part in PARTS.into_iter().filter(|part| wanted(part)) {
        println!("\n{part}");
        let status =
            Command::new(std::env::current_exe().unwrap()).args(["--part", part]).status().unwrap();
        assert!(status.success(), "{part} stopped with {status}");
    }
}
