//! Released clients, wrapped, with a provider of a script.
//!
//! `FOLDBACK_CLIENTS` names the folder that `.ci/make_clients` has made; without it the tests say that they are skipped.

use crate::gateway::wrapping;
use crate::shell::{Ran, Shell};
use crate::wrap_beside::Running;
use foldback_testkit::upstream::{Answer, Said, Seen, Upstream};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::runtime::Runtime;

/// The file of a client; `None`, with a word about it, where it is not there.
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

/// A model that reads a file by the tool that the client has for it, and then answers.
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
        let is_read = seen.body.windows(4).any(|window| window == b"7001");
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

/// A model that looks up what was said before, beside reading a file, in each turn in which it can.
fn recalling(file: &str) -> impl Fn(&Seen) -> Answer + Send + Sync + 'static {
    let (file, reads) = (file.to_owned(), reading(file));
    move |seen| {
        let body = seen.json();
        let list = if body["input"].is_array() { &body["input"] } else { &body["messages"] };
        let last = list.as_array().and_then(|list| list.last()).unwrap_or(&Value::Null);
        let has_tools = String::from_utf8_lossy(&seen.body).contains(DECLARED);
        let is_answered = ["tool_result", "tool_call_id", "function_call_output"];
        if is_answered.iter().any(|key| last.to_string().contains(key)) || !has_tools {
            return reads(seen);
        }
        let id = |what: &str| format!("{what}_{}", seen.body.len());
        let said = Said::text("I look it up.").thinking("Was it not 7001?");
        let own = match body["tools"].to_string().contains("\"name\":\"Read\"") {
            true => said.call(&id("toolu_read"), "Read", json!({ "file_path": file })),
            false => said,
        };
        let query = json!({ "query": "which port is it" });
        Answer::Said(own.call(&id("toolu_ours"), "foldback_search_block", query))
    }
}

/// How a request declares our tool, in any API.
const DECLARED: &str = r#""name":"foldback_search_block","description""#;

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

/// Wraps a client with options of ours and a provider of this script.
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
    mut command: Command,
    program: &PathBuf,
    args: &[&str],
    env: &[(&str, &str)],
) -> Ran {
    let work = shell.path("work");
    command.current_dir(&work).env("PWD", &work).env("HOME", shell.path("home"));
    command.env_remove("XDG_CONFIG_HOME").env_remove("XDG_DATA_HOME").env_remove("XDG_STATE_HOME");
    for key in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "CODEX_API_KEY"] {
        command.env(key, "sk-ant-canary");
    }
    command.envs(env.iter().copied());
    command.arg(program).args(args).stdin(std::process::Stdio::null());
    Ran::of(command.output().unwrap())
}

/// So many files are read before something is asked that stood in the third.
const FILES: usize = 40;

/// A model that reads one file after the other, and then wants to know what stood in the third.
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
        let n = asked.fetch_add(1, Ordering::Relaxed);
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

/// What is asked of an agent that hands its work on.
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

/// GW7, GW18: an agent whose requests are folded finds by its own tools what left them, and so does its sub-agent in a
/// todo of its own, where that is a tool and a kind of sub-agent.
fn recalls(
    program: &PathBuf,
    args: &[&str],
    env: &[(&str, &str)],
    sub_agent: Option<(&'static str, &'static str)>,
) {
    let shell = Shell::new();
    shell.folders(&["home", "work"]);
    for n in 0..FILES {
        let line =
            |m: usize| format!("{n}.{m}: the line {} of this file says nothing of value\n", m * 7);
        let text: String = (0..60).map(line).collect();
        let what = if n == 2 { "the port of the service ferry is 7302\n" } else { "" };
        shell.write(&format!("work/f{n}.txt"), format!("{text}{what}"));
    }
    let reads = forgetting(shell.path("work"));
    let (ran, seen) = match sub_agent {
        None => wrapped_with(&shell, program, args, env, &[], reads),
        Some((tool, kind)) => {
            wrapped_with(&shell, program, args, env, &[], handing_on(tool, kind, reads))
        }
    };
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(shell.todos().len(), 1 + usize::from(sub_agent.is_some()), "{:?}", shell.todos());
    let text = |seen: &Seen| String::from_utf8_lossy(&seen.body).into_owned();
    let is_meant = |seen: &&Seen| seen.body.len() > 8_000 && !text(seen).contains(HAND_ON);
    let main: Vec<_> = seen.iter().filter(is_meant).collect();
    let sizes: Vec<_> = main.iter().map(|seen| seen.body.len()).collect();
    let (asks, hears) = (text(main[main.len() - 2]), text(main[main.len() - 1]));
    assert!(asks.contains("[memory] Earlier parts"), "{sizes:?} {ran:?}");
    assert!(!asks.contains("ferry is 7302"), "{sizes:?}");
    assert!(hears.contains("ferry is 7302"), "{sizes:?} {hears}");
}

/// GW18: Claude Code.
#[test]
fn gw18_claude_code_recalls() {
    let Some(claude) = client("bin/claude") else { return };
    let env = [("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")];
    recalls(&claude, &["-p", "Read all files.", "--allowedTools", "Read"], &env, None);
    let args = ["-p", HAND_ON, "--allowedTools", "Read,Agent"];
    recalls(&claude, &args, &env, Some(("Agent", "general-purpose")));
}

/// GW18: OpenCode.
#[test]
fn gw18_opencode_recalls() {
    let Some(opencode) = client("bin/opencode") else { return };
    let env = [("OPENCODE_DISABLE_MODELS_FETCH", "1"), ("OPENCODE_DISABLE_AUTOUPDATE", "1")];
    let args = |prompt| ["run", "-m", "anthropic/claude-sonnet-4-5", prompt];
    recalls(&opencode, &args("Read all files."), &env, None);
    recalls(&opencode, &args(HAND_ON), &env, Some(("task", "general")));
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

/// GW17, GW18: Claude Code reads a file, answers, and goes on in the same conversation later.
#[test]
fn gw17_claude_code_is_wrapped() {
    let Some(claude) = client("bin/claude") else { return };
    let shell = Shell::new();
    let env = [("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")];
    let args = ["-p", "Which port is it? Read a.txt.", "--allowedTools", "Read"];
    let (ran, seen) = wrapped(&shell, &claude, &args, &env);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.text().contains("The port is 7001."), "{ran:?}");
    assert!(seen.iter().all(|seen| !seen.path.contains("foldback")), "{seen:?}");
    let before = answered(&shell);
    assert_eq!(before.len(), 1, "{:?}", shell.todos());
    assert!(before[0].0.starts_with("claude-cli-"), "{before:?}");
    let (ran, _) = wrapped(&shell, &claude, &["-p", "--continue", "And again?"], &env);
    assert_eq!(ran.code, 0, "{ran:?}");
    let after = answered(&shell);
    assert_eq!(after.len(), 1, "{:?}", shell.todos());
    let count = |export: &Value| export["messages"].as_array().unwrap().len();
    assert!(count(&after[0].1) > count(&before[0].1), "{after:?}");
    let again = after[0].1["messages"].to_string();
    assert_eq!(again.matches("Which port is it?").count(), 1, "{again}");
}

/// GW6, GW17: OpenCode.
#[test]
fn gw17_opencode_is_wrapped() {
    let Some(opencode) = client("bin/opencode") else { return };
    let shell = Shell::new();
    let env = [("OPENCODE_DISABLE_MODELS_FETCH", "1"), ("OPENCODE_DISABLE_AUTOUPDATE", "1")];
    let args = ["run", "-m", "anthropic/claude-sonnet-4-5", "Which port is it? Read a.txt."];
    let (ran, seen) = wrapped(&shell, &opencode, &args, &env);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(answered(&shell).len(), 1, "{:?} {ran:?}", shell.todos());
    // GW6: it has asked for a title as well.
    assert_eq!((seen.len(), shell.todos().len()), (3, 1), "{:?}", shell.todos());
}

/// GW17: with a gateway that runs, what names the todo and opens the gateway is sent with each request.
#[test]
fn gw17_clients_send_what_a_running_gateway_is_told() {
    let claude = [("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")];
    let opencode = [("OPENCODE_DISABLE_MODELS_FETCH", "1"), ("OPENCODE_DISABLE_AUTOUPDATE", "1")];
    let question = "Which port is it? Read a.txt.";
    for (name, args, env) in [
        ("bin/claude", vec!["-p", question, "--allowedTools", "Read"], &claude[..]),
        ("bin/opencode", vec!["run", "-m", "anthropic/claude-sonnet-4-5", question], &opencode),
    ] {
        let Some(program) = client(name) else { continue };
        let shell = Shell::new();
        shell.folders(&["home", "work"]);
        let file = shell.write("work/a.txt", "The port is 7001.\n");
        let runtime = Runtime::new().unwrap();
        let provider = runtime.block_on(Upstream::start(reading(&file)));
        let gateway = Running::begin(&shell, &provider, &["--token", "t-canary"]);
        let mut command = shell.command();
        command.arg("--store").arg(shell.store()).env("FOLDBACK_GATEWAY_TOKEN", "t-canary");
        command.args(["wrap", "--gateway", &gateway.url, "--todo", "harbour"]);
        let ran = started(&shell, command, &program, &args, env);
        assert_eq!(ran.code, 0, "{name}: {ran:?}");
        assert!(ran.text().contains("The port is 7001."), "{name}: {ran:?}");
        gateway.end();
        assert_eq!(shell.todos(), ["harbour"], "{name}");
        assert_eq!(answered(&shell).len(), 1, "{name}");
        let passed = |name: &str| provider.seen().iter().any(|seen| seen.header(name).is_some());
        assert!(!passed("x-foldback-token") && !passed("x-foldback-todo"), "{name}");
    }
}

/// How a client's instructions for a summary of its own begin.
const SUMMARIES: [&str; 2] =
    ["CRITICAL: Respond with TEXT ONLY", "You are a context summarization agent"];

/// GW17: a client judges how full its window is by what was billed. What was left out is not billed, so it does not
/// sum up a conversation that is larger than the window; with nothing left out it does.
#[test]
fn gw17_clients_do_not_compact_what_is_folded() {
    let claude = [
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("CLAUDE_CODE_DISABLE_THINKING", "1"),
        // Where nobody says how large its window is, it waits for the provider's refusal.
        ("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "200k"),
    ];
    let opencode = [("OPENCODE_DISABLE_MODELS_FETCH", "1"), ("OPENCODE_DISABLE_AUTOUPDATE", "1")];
    let model = "claude-haiku-4-5";
    let named = format!("anthropic/{model}");
    for (name, args, env) in [
        (
            "bin/claude",
            vec!["-p", "Read all files.", "--allowedTools", "Read", "--model", model],
            &claude[..],
        ),
        ("bin/opencode", vec!["run", "-m", &named, "Read all files."], &opencode),
    ] {
        let Some(program) = client(name) else { continue };
        for (options, compacts) in [(&["--recall", "off"][..], true), (&[], false)] {
            let shell = Shell::new();
            shell.folders(&["home", "work"]);
            for n in 0..FILES {
                let line =
                    |m: usize| format!("{n}.{m}: the line {} says nothing of value\n", m * 7);
                shell.write(&format!("work/f{n}.txt"), (0..600).map(line).collect::<String>());
            }
            let reads = forgetting(shell.path("work"));
            let script = move |seen: &Seen| match is_summary(seen) {
                true => Answer::Said(Said::text("<summary>The files say nothing.</summary>")),
                false => reads(seen),
            };
            let (ran, seen) = wrapped_with(&shell, &program, &args, env, options, script);
            assert_eq!(ran.code, 0, "{name}: {ran:?}");
            let sizes: Vec<_> = seen.iter().map(|seen| seen.body.len()).collect();
            assert_eq!(seen.iter().any(is_summary), compacts, "{name} {options:?}: {sizes:?}");
        }
    }
}

fn is_summary(seen: &Seen) -> bool {
    let body = String::from_utf8_lossy(&seen.body);
    SUMMARIES.iter().any(|begin| body.contains(begin))
}

/// RC6: the database of the released OpenCode is read, and what it wrote meanwhile comes behind.
#[test]
fn rc6_opencode_s_own_database_is_imported() {
    let Some(opencode) = client("bin/opencode") else { return };
    let (shell, own) = (Shell::new(), Shell::new());
    let env = [("OPENCODE_DISABLE_MODELS_FETCH", "1"), ("OPENCODE_DISABLE_AUTOUPDATE", "1")];
    let model = ["-m", "anthropic/claude-sonnet-4-5"];
    let mut held = 0;
    for how in [&["run"][..], &["run", "--continue"]] {
        let args = [how, &model, &["Which port is it? Read a.txt."]].concat();
        let (ran, _) = wrapped(&shell, &opencode, &args, &env);
        assert_eq!(ran.code, 0, "{ran:?}");
        let file = shell.path("home/.local/share/opencode/opencode.db");
        let imported = own.json(&["import", file.to_str().unwrap()]);
        assert_eq!(imported["held"], held, "{imported}");
        held += imported["recorded"].as_u64().unwrap();
        let id = imported["todo_id"].as_str().unwrap();
        let export = own.json(&["export", "--todo", id]);
        let said: Vec<_> = export["messages"].as_array().unwrap().iter().collect();
        assert_eq!(said.last().unwrap()["content"], "The port is 7001.", "{export}");
        assert!(said.iter().any(|message| message["role"] == "tool"), "{export}");
    }
    assert!(held >= 6, "{held}");
}

/// GW2, GW17: Codex, which speaks Responses.
#[test]
fn gw17_codex_is_wrapped() {
    let Some(codex) = client("bin/codex") else { return };
    let shell = Shell::new();
    let args = ["exec", "--skip-git-repo-check", "Which port is it?"];
    let (ran, seen) = wrapped(&shell, &codex, &args, &[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(seen.iter().any(|seen| seen.path == "/v1/responses"), "{seen:?}");
    let todos = shell.todos();
    assert_eq!(todos.len(), 1, "{todos:?}");
    assert!(todos[0].starts_with("codex-exec-"), "{todos:?}");
    let export = shell.ok(&["export", "--todo", &todos[0]]);
    assert!(
        export.text().contains("Which port is it?") && export.text().contains("I look."),
        "{export:?}"
    );
}

/// GW17: aider, which has no tools and names no session.
#[test]
fn gw17_aider_is_wrapped() {
    let Some(aider) = client("bin/aider") else { return };
    for model in ["openai/gpt-4o", "anthropic/claude-sonnet-4-20250514"] {
        let shell = Shell::new();
        let args = ["--model", model, "--yes-always", "--no-git", "--analytics-disable"];
        let more = ["--no-check-update", "--no-show-release-notes", "--no-show-model-warnings"];
        let asked = ["--message", "Which port is it?", "a.txt"];
        let (ran, _) = wrapped(&shell, &aider, &[&args[..], &more, &asked].concat(), &[]);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!(answered(&shell).len(), 1, "{model}: {:?} {ran:?}", shell.todos());
    }
}

/// GW1, GW17: the providers' own libraries, streamed and not.
#[test]
fn gw17_the_libraries_of_providers_are_wrapped() {
    let Some(python) = client("sdk/bin/python") else { return };
    let script = r#"
import anthropic, openai
from langchain_openai import ChatOpenAI
asked = [{"role": "user", "content": "Is it 7001?"}]
claude = anthropic.Anthropic()
print(claude.messages.create(model="m", max_tokens=9, messages=asked).content[0].text)
with claude.messages.stream(model="m", max_tokens=9, messages=asked) as stream:
    print("".join(stream.text_stream))
chat = openai.OpenAI().chat.completions
print(chat.create(model="m", messages=asked).choices[0].message.content)
pieces = chat.create(model="m", messages=asked, stream=True)
print("".join(piece.choices[0].delta.content or "" for piece in pieces))
print(ChatOpenAI(model="m").invoke("Is it 7001?").text)
"#;
    let shell = Shell::new();
    let (ran, seen) = wrapped(&shell, &python, &["-c", script], &[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.text().lines().collect::<Vec<_>>(), ["The port is 7001."; 5], "{ran:?}");
    assert_eq!((seen.len(), shell.todos().len()), (5, 5));
}

/// GW9, GW10: released clients see nothing of what their model looks up, and their next requests are valid.
#[test]
fn gw9_clients_see_nothing_of_what_is_looked_up() {
    let claude = [("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")];
    let opencode = [("OPENCODE_DISABLE_MODELS_FETCH", "1"), ("OPENCODE_DISABLE_AUTOUPDATE", "1")];
    let model = ["-m", "anthropic/claude-sonnet-4-5"];
    type Case<'c> = (&'c str, Vec<&'c str>, Vec<&'c str>, &'c [(&'c str, &'c str)]);
    let cases: [Case<'_>; 3] = [
        (
            "bin/claude",
            vec!["-p", "--allowedTools=Read"],
            vec!["-p", "--allowedTools=Read", "--continue"],
            &claude,
        ),
        (
            "bin/opencode",
            [&["run"], &model[..]].concat(),
            [&["run", "--continue"], &model[..]].concat(),
            &opencode,
        ),
        (
            "bin/codex",
            vec!["exec", "--skip-git-repo-check"],
            vec!["exec", "--skip-git-repo-check", "resume", "--last"],
            &[],
        ),
    ];
    for (name, begin, go_on, env) in cases {
        let Some(program) = client(name) else { continue };
        let shell = Shell::new();
        shell.folders(&["home", "work"]);
        let file = shell.write("work/a.txt", "The port is 7001.\n");
        for turn in 0..6 {
            let how = if turn == 0 { &begin } else { &go_on };
            let prompt = format!("Which port is it? Read a.txt. {turn}");
            let args = [&how[..], &[&prompt]].concat();
            let options = ["--recall", "always"];
            let (ran, seen) =
                wrapped_with(&shell, &program, &args, env, &options, recalling(&file));
            assert_eq!(ran.code, 0, "{name}, turn {turn}: {ran:?}");
            assert!(!ran.text().contains("foldback"), "{name}, turn {turn}: {ran:?}");
            let text = |seen: &Seen| String::from_utf8_lossy(&seen.body).into_owned();
            let declared = seen.iter().filter(|seen| text(seen).contains(DECLARED));
            let looked: Vec<_> =
                declared.map(|seen| text(seen).matches("toolu_ours").count()).collect();
            if turn == 5 {
                // Two for each turn before, and one round with both.
                assert!(looked.last().is_some_and(|ours| *ours >= 6), "{looked:?}");
            }
        }
    }
}

/// GW9: the providers' own libraries make one message of a turn in which something was looked up.
#[test]
fn gw9_the_libraries_of_providers_get_one_answer() {
    let Some(python) = client("sdk/bin/python") else { return };
    let script = r#"
import sys, anthropic, openai
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI
todo = {"x-foldback-todo": sys.argv[1]}
schema = {"type": "object", "properties": {}}
said = []
for n in range(6):
    said += [{"role": "user", "content": f"Which port is it? {n}"}, {"role": "assistant", "content": f"It is 7001. {n}"}]
asked = said + [{"role": "user", "content": "Well?"}]
claude = anthropic.Anthropic(default_headers=todo)
more = dict(model="m", max_tokens=9, messages=asked, tools=[{"name": "wait", "input_schema": schema}])
words = lambda message: "|".join(block.text for block in message.content if block.type == "text")
print(words(claude.messages.create(**more)))
with claude.messages.stream(**more) as stream:
    print(words(stream.get_final_message()))
openai_ = openai.OpenAI(default_headers=todo)
function = {"name": "wait", "parameters": schema}
more = dict(model="m", messages=asked, tools=[{"type": "function", "function": function}])
one = lambda text: text.replace("\n\n", "|")
print(one(openai_.chat.completions.create(**more).choices[0].message.content))
with openai_.chat.completions.stream(**more) as stream:
    print(one(stream.get_final_completion().choices[0].message.content))
more = dict(model="m", input=asked, tools=[{"type": "function", **function, "strict": False}])
words = lambda answer: "|".join(item.content[0].text for item in answer.output if item.type == "message")
print(words(openai_.responses.create(**more)))
with openai_.responses.stream(**more) as stream:
    print(words(stream.get_final_response()))
for model in [ChatAnthropic(model="m", default_headers=todo), ChatOpenAI(model="m", default_headers=todo)]:
    model = model.bind_tools([{"name": "wait", "description": "Waits.", "input_schema": schema}] if isinstance(model, ChatAnthropic) else more["tools"])
    print(one(model.invoke(asked).text))
    text = ""
    for piece in model.stream(asked):
        text += piece.text
    print(one(text))
"#;
    let shell = Shell::new();
    shell.folders(&["home", "work"]);
    for expected in ["The port is 7001.", "I look it up.|The port is 7001."] {
        let (args, options) = (["-c", script, "port"], ["--recall", "always"]);
        let (ran, seen) = wrapped_with(&shell, &python, &args, &[], &options, recalling("a.txt"));
        assert_eq!(ran.code, 0, "{ran:?}");
        let lines: Vec<_> = ran.text().lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 10, "{ran:?}");
        for (n, line) in lines.iter().enumerate() {
            assert_eq!(
                line.replace("it up.The", "it up.|The"),
                expected,
                "{n}: {ran:?} {}",
                seen.len()
            );
        }
    }
}
