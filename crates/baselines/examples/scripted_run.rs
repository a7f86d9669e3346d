//! An agent that reads one log file after another, as the `deepagents` policy would send it to a model,
//! for comparison with what the original sends.
//!
//! ```text
//! cargo run --release -p foldback-baselines --example scripted_run -- 60
//! cargo run --release -p foldback-baselines --example scripted_run -- 200 128000
//! cargo run --release -p foldback-baselines --example scripted_run -- - 128000 < messages.jsonl
//! ```
//!
//! The first argument is the number of calls, or `-` to read the messages from standard input, one per
//! line; the second is the model's window. Tokens are printed as o200k counts them. Whether a summary
//! is due is decided as in the original: by characters.

#![expect(clippy::print_stdout, reason = "an example shows what it finds")]

use foldback_baselines::DeepAgents;
use foldback_core::{Budget, Message, TodoId, TokenCounter, ToolCall, ToolCallId, message_tokens};
use foldback_o200k::O200k;
use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Arc;

/// Counts as the original estimates: four characters are a token, and a call is as long as its
/// arguments and the text around them. A call is recognised by its arguments.
struct Approximate {
    arguments: BTreeSet<String>,
}

/// The characters around the arguments of a call: keys, an id, a type, a role; and the id and the role
/// of its result.
const AROUND_CALL: usize = 72;

impl TokenCounter for Approximate {
    fn count(&self, text: &str) -> usize {
        let around = if self.arguments.contains(text) { AROUND_CALL } else { 0 };
        (text.chars().count() + around) / 4
    }
}

/// The tokens of the original's system prompt and tools: as it estimates them, and as o200k counts
/// them.
const OUTSIDE: (usize, usize) = (2_638, 2_494);

/// The number of characters in a file.
const FILE_CHARACTERS: usize = 8_192;

/// The number of tokens in a summary that the scripted model writes.
const SUMMARY_TOKENS: usize = 600;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let calls = arguments.next().unwrap_or_else(|| "60".to_owned());
    let config = match arguments.next() {
        Some(window) => DeepAgents::with_window(number(&window, "the window in tokens")?),
        None => DeepAgents::default(),
    };
    let messages = match calls.as_str() {
        "-" => read()?,
        calls => scripted(number(calls, "the number of calls, or - for standard input")?),
    };
    let calls = messages.iter().flat_map(Message::tool_calls);
    let arguments = calls.map(|call| call.arguments.clone()).collect();
    let config = DeepAgents { outside_tokens: OUTSIDE.0, summary_tokens: SUMMARY_TOKENS, ..config };
    let mut context = config.start(TodoId::new("run")?, Arc::new(Approximate { arguments }));
    let (mut requests, mut sum, mut peak, mut first) = (0_usize, 0_usize, 0_usize, None);
    let (mut summaries, mut summary_tokens) = (0_usize, 0_usize);
    for message in messages {
        let answers = message.role().as_str() == "assistant";
        if answers {
            let shown = context.prompt(&Budget::default()).messages;
            let tokens = shown.iter().map(|message| message_tokens(&O200k, message));
            let tokens = OUTSIDE.1 + tokens.sum::<usize>();
            println!("request {requests}: {} messages, {tokens} tokens", shown.len());
            for call in context.take_side_calls() {
                first = first.or(Some(requests));
                summaries += 1;
                summary_tokens += call.input_tokens + call.output_tokens;
            }
            requests += 1;
            sum += tokens;
            peak = peak.max(tokens);
        }
        context.record(message)?;
    }
    println!("{requests} requests of {sum} tokens in total, {peak} the largest");
    match first {
        Some(first) => println!(
            "{summaries} summaries, the first before request {first}, about {summary_tokens} tokens \
             in total"
        ),
        None => println!("no summary"),
    }
    Ok(())
}

fn number(text: &str, what: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("expected {what}, found {text:?}"))
}

fn read() -> Result<Vec<Message>, Box<dyn Error>> {
    let message = |(at, line): (usize, std::io::Result<String>)| {
        let line = line?;
        Message::from_json(&line).map_err(|error| format!("line {}: {error}", at + 1).into())
    };
    std::io::stdin().lines().enumerate().map(message).collect()
}

/// Returns a question, this many calls of `read_file` with their results, and an answer.
fn scripted(calls: usize) -> Vec<Message> {
    let mut messages =
        vec![Message::user("Turn 0: read the next log files and report each NEEDLE.")];
    for call in 0..calls {
        let id = format!("c{call}");
        let arguments = format!(r#"{{"file_path": "/data/f{call}.log"}}"#);
        let calls = vec![ToolCall::new(&id, "read_file", &arguments)];
        messages.push(Message::calls(&format!("reading file {call}"), calls));
        messages.push(Message::tool_result(&ToolCallId::new(&id), &file(call)));
    }
    messages.push(Message::assistant("turn 0 finished"));
    messages
}

/// Returns lines of a log: a number, a service, nine words, an id. The same for the same `n`.
fn file(n: usize) -> String {
    const WORDS: [&str; 16] = [
        "alpha", "beta", "gamma", "delta", "retry", "timeout", "shard", "ledger", "invoice",
        "region", "cursor", "token", "header", "payload", "commit", "merge",
    ];
    // A linear congruential generator (Knuth's MMIX constants).
    let mut state = n as u64 ^ 0x9e37_79b9_7f4a_7c15;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 16
    };
    let mut text = String::new();
    let mut line = 0;
    while text.len() < FILE_CHARACTERS {
        text.push_str(&format!("{line:04} svc-{:02}", next() % 99));
        for _ in 0..9 {
            let word = usize::try_from(next()).unwrap_or(0) % WORDS.len();
            text.push_str(&format!(" {}", WORDS.get(word).copied().unwrap_or_default()));
        }
        text.push_str(&format!(" id={:012x}\n", next() & 0xffff_ffff_ffff));
        line += 1;
    }
    text.truncate(FILE_CHARACTERS);
    format!("@@ lines 1-{line} of {line} @@\n{text}")
}
