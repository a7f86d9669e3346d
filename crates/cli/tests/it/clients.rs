//! Released clients, wrapped, with a scripted provider.
//!
//! `FOLDBACK_CLIENTS` names the folder that `.ci/make_clients` has made; without it the tests say that they are skipped.

mod compaction;
mod interrupts;
mod kept_sessions;
mod looked_up;
mod recalls;
mod windows;
mod wrapped;

use crate::gateway::wrapping;
use crate::shell::{Ran, Shell};
use foldback_testkit::upstream::{Answer, Said, Seen, Upstream};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::runtime::Runtime;

/// The file of a client; `None`, with a note, if it is not there.
pub(crate) fn client(name: &str) -> Option<PathBuf> {
    let file = std::env::var_os("FOLDBACK_CLIENTS").map(|dir| PathBuf::from(dir).join(name));
    let file = file.filter(|file| file.exists());
    if file.is_none() {
        println!(
            "SKIPPED: {name} is not here (FOLDBACK_CLIENTS names the folder of .ci/make_clients)"
        );
    }
    file
}

/// What keeps Claude Code from asking other servers than the provider.
const CLAUDE: [(&str, &str); 1] = [("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")];

/// The same for OpenCode.
const OPENCODE: [(&str, &str); 2] =
    [("OPENCODE_DISABLE_MODELS_FETCH", "1"), ("OPENCODE_DISABLE_AUTOUPDATE", "1")];

/// The model that OpenCode is to ask.
const OPENCODE_MODEL: [&str; 2] = ["-m", "anthropic/claude-sonnet-4-5"];

/// A model that reads a file with the tool that the client has for it, and then answers.
fn reading(file: &str) -> impl Fn(&Seen) -> Answer + Send + Sync + 'static {
    let file = file.to_owned();
    move |seen| {
        let body = seen.json();
        let tools: Vec<_> = body["tools"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|tool| tool["name"].as_str().or(tool["function"]["name"].as_str()))
            .collect();
        // With the space before it: the digits alone are in some of the random ids that clients send.
        let is_read = seen.body.windows(5).any(|window| window == b" 7001");
        let said = Said::text(if is_read { "The port is 7001." } else { "I look." });
        let key = match tools.contains(&"Read") {
            true => Some(("Read", "file_path")),
            false if tools.contains(&"read") => Some(("read", "filePath")),
            false => None,
        };
        Answer::Said(match key.filter(|_| !is_read) {
            Some((tool, key)) => said.call("toolu_1", tool, json!({ key: file })),
            None => said,
        })
    }
}

/// The same for a client whose tools are commands: through its tool for them, or within a program if that is its tool.
fn commanding(seen: &Seen) -> Answer {
    let body = String::from_utf8_lossy(&seen.body).into_owned();
    if body.contains("is 7001") {
        return Answer::Said(Said::text("The port is 7001."));
    }
    let program = "text((await tools.exec_command({ cmd: 'cat a.txt' })).output)";
    let (tool, arguments) = match body.contains(r#""type":"custom","name":"exec""#) {
        true => ("exec", json!(program)),
        false => ("exec_command", json!({ "cmd": "cat a.txt" })),
    };
    Answer::Said(Said::text("I look.").call("toolu_1", tool, arguments))
}

/// Wraps a client in a home of its own, with a file to read.
fn wrapped(
    shell: &Shell,
    program: &PathBuf,
    args: &[&str],
    env: &[(&str, &str)],
) -> (Ran, Vec<Seen>) {
    shell.folders(&["home", "work"]);
    let file = shell.write("work/a.txt", "The port is 7001.\n");
    wrapped_with(shell, program, args, env, &[], reading(&file))
}

/// Wraps a client with our options and this scripted provider.
fn wrapped_with(
    shell: &Shell,
    program: &PathBuf,
    args: &[&str],
    env: &[(&str, &str)],
    options: &[&str],
    script: impl Fn(&Seen) -> Answer + Send + Sync + 'static,
) -> (Ran, Vec<Seen>) {
    let runtime = Runtime::new().unwrap();
    let provider = runtime.block_on(Upstream::start(script));
    let mut command = wrapping(shell, &provider);
    command.args(options);
    let ran = started(shell, command, program, args, env);
    (ran, provider.seen())
}

/// Runs a client by a command that wraps it.
fn started(
    shell: &Shell,
    command: Command,
    program: &PathBuf,
    args: &[&str],
    env: &[(&str, &str)],
) -> Ran {
    Ran::of(starting(shell, command, program, args, env).output().unwrap())
}

/// A command that wraps a client, in its home and its folder of work.
fn starting(
    shell: &Shell,
    mut command: Command,
    program: &PathBuf,
    args: &[&str],
    env: &[(&str, &str)],
) -> Command {
    let work = shell.path("work");
    command.current_dir(&work).env("PWD", &work).env("HOME", shell.path("home"));
    command.env_remove("XDG_CONFIG_HOME").env_remove("XDG_DATA_HOME").env_remove("XDG_STATE_HOME");
    for key in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "CODEX_API_KEY"] {
        command.env(key, "sk-ant-canary");
    }
    command.envs(env.iter().copied());
    command.arg(program).args(args).stdin(std::process::Stdio::null());
    command
}

/// The number of files that are read before something is asked about the third.
const FILES: usize = 40;

/// A model that reads one file after the other, and then asks what was in the third.
fn forgetting(dir: PathBuf) -> impl Fn(&Seen) -> Answer + Send + Sync + 'static {
    let asked = AtomicUsize::new(0);
    move |seen| {
        let body = seen.json();
        let tools: Vec<_> = body["tools"].as_array().into_iter().flatten().collect();
        let named = |end: &str| {
            let names = tools
                .iter()
                .filter_map(|tool| tool["name"].as_str().or(tool["function"]["name"].as_str()));
            names.into_iter().find(|name| name.ends_with(end)).map(str::to_owned)
        };
        let key = if named("Read").is_some() { "file_path" } else { "filePath" };
        let Some(read) = named("Read").or(named("read")) else {
            return Answer::Said(Said::text("Reading files"));
        };
        // A client that is busy asks twice, or for something aside: the last result in sight shows how far it is. After
        // a summary there is none.
        let n = last_read(seen).map_or_else(|| asked.load(Ordering::Relaxed), |last| last + 1);
        asked.fetch_max(n + 1, Ordering::Relaxed);
        let id = format!("toolu_{n}");
        let (tool, arguments) = match n {
            0..FILES => (read, json!({ key: dir.join(format!("f{n}.txt")) })),
            FILES => match named("search_block") {
                Some(search) => (search, json!({ "query": "port of the service ferry" })),
                None => return Answer::Said(Said::text("There is no such tool.")),
            },
            _ => return Answer::Said(Said::text("I have what I need.")),
        };
        Answer::Said(Said::text("I look.").call(&id, &tool, arguments))
    }
}

/// The request to an agent that hands its work on.
const HAND_ON: &str = "Have all files read.";

/// A model that hands its work on to a sub-agent, if it is asked to.
fn handing_on(
    tool: &'static str,
    kind: &'static str,
    works: impl Fn(&Seen) -> Answer + Send + Sync + 'static,
) -> impl Fn(&Seen) -> Answer + Send + Sync + 'static {
    move |seen| {
        let body = String::from_utf8_lossy(&seen.body).into_owned();
        let can_hand_on = body.contains(&format!("\"name\":\"{tool}\""));
        if !body.contains(HAND_ON) || !can_hand_on {
            return works(seen);
        }
        if body.contains("toolu_hand") {
            return Answer::Said(Said::text("All is done."));
        }
        let task =
            json!({ "description": "Reads", "prompt": "Read all files.", "subagent_type": kind });
        Answer::Said(Said::text("I hand it on.").call("toolu_hand", tool, task))
    }
}

/// The todos whose conversations hold the answer.
fn answered(shell: &Shell) -> Vec<(String, Value)> {
    let exports = shell.todos().into_iter().map(|todo| {
        let export = serde_json::from_str(shell.ok(&["export", "--todo", &todo]).text()).unwrap();
        (todo, export)
    });
    let holds =
        |export: &Value| export["messages"].to_string().matches("The port is 7001.").count() > 1;
    exports.filter(|(_, export)| holds(export)).collect()
}

/// The number of the last call of [`forgetting`] that a request holds.
fn last_read(seen: &Seen) -> Option<usize> {
    let body = String::from_utf8_lossy(&seen.body);
    let numbers =
        body.split("\"toolu_").skip(1).filter_map(|rest| rest.split_once('"')?.0.parse().ok());
    numbers.max()
}

/// How a client's instructions for a summary of its own begin.
const SUMMARIES: [&str; 2] =
    ["CRITICAL: Respond with TEXT ONLY", "You are a context summarization agent"];

fn is_summary(seen: &Seen) -> bool {
    let body = String::from_utf8_lossy(&seen.body);
    SUMMARIES.iter().any(|begin| body.contains(begin))
}
