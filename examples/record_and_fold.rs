//! Record a conversation as it happens, and watch what the model would see.
//!
//! ```text
//! cargo run -p foldback --example record_and_fold [STORE]
//! ```
//!
//! An agent reads twelve reports, one after the other. Every message is durable when `record`
//! returns; blocks close by themselves; the prompt stays small while the conversation grows.

use foldback::core::{Budget, Message, TodoId, ToolCall, ToolCallId};
use foldback::{Memory, Options};
use std::error::Error;
use std::path::PathBuf;

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    // A folder makes the memory durable; without one it lives as long as the program.
    let memory = match std::env::args_os().nth(1).map(PathBuf::from) {
        Some(folder) => Memory::open(&folder, Options::default())?,
        None => Memory::in_memory(Options::default())?,
    };
    // One todo is one task: its history never mixes with another's.
    let mut session = memory.session(&TodoId::new("read-the-reports")?)?;

    let mut whole = 0;
    println!("messages  blocks  prompt tokens  everything");
    for n in 1..=12 {
        for message in one_report(n) {
            whole += message.json().len() / 4;
            let recorded = session.record(message)?;
            for block in recorded.closed {
                println!("          closed {block}");
            }
        }
        // This is what goes to the model before its next answer.
        let prompt = session.prompt(&Budget::default());
        println!(
            "{:>8}  {:>6}  {:>13}  {whole:>10}",
            session.len(),
            session.blocks(),
            prompt.tokens
        );
    }
    Ok(())
}

/// What an agent's loop would record while it reads one report: a request, a call, a result that
/// is too long for the window, and an answer.
fn one_report(n: usize) -> Vec<Message> {
    let id = format!("call_{n}");
    let path = format!("reports/2026-{n:02}.csv");
    let rows: String = (0..300)
        .map(|row| format!("{row},turbine-{},{}\n", row % 40, (row * n * 37) % 991))
        .collect();
    vec![
        Message::user(&format!("What stands out in {path}?")),
        Message::calls(
            "",
            vec![ToolCall::new(&id, "read_file", &format!(r#"{{"path": "{path}"}}"#))],
        ),
        Message::tool_result(&ToolCallId::new(&id), &rows),
        Message::assistant(&format!(
            "Turbine {} is the outlier of month {n}: its output varies most.",
            (n * 7) % 40
        )),
    ]
}
