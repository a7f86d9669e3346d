//! Wrapped clients ask, are answered, and continue.

use super::{CLAUDE, OPENCODE, OPENCODE_MODEL, answered, client, reading, started, wrapped};
use crate::shell::Shell;
use crate::wrap_beside::Running;
use foldback_testkit::upstream::Upstream;
use serde_json::Value;
use tokio::runtime::Runtime;

/// GW17, GW18: Claude Code reads a file, answers, and continues the same conversation later.
#[test]
fn gw17_claude_code_is_wrapped() {
    let Some(claude) = client("bin/claude") else { return };
    let shell = Shell::new();
    let args = ["-p", "Which port is it? Read a.txt.", "--allowedTools", "Read"];
    let (ran, seen) = wrapped(&shell, &claude, &args, &CLAUDE);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.text().contains("The port is 7001."), "{ran:?}");
    assert!(seen.iter().all(|seen| !seen.path.contains("foldback")), "{seen:?}");
    let before = answered(&shell);
    assert_eq!(before.len(), 1, "{:?}", shell.todos());
    assert!(before[0].0.starts_with("claude-cli-"), "{before:?}");
    let (ran, _) = wrapped(&shell, &claude, &["-p", "--continue", "And again?"], &CLAUDE);
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
    let [flag, model] = OPENCODE_MODEL;
    let args = ["run", flag, model, "Which port is it? Read a.txt."];
    let (ran, seen) = wrapped(&shell, &opencode, &args, &OPENCODE);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(answered(&shell).len(), 1, "{:?} {ran:?}", shell.todos());
    // GW6: it has asked for a title as well.
    assert_eq!((seen.len(), shell.todos().len()), (3, 1), "{:?}", shell.todos());
}

/// GW17: with a running gateway, what names the todo and opens the gateway is sent with each request.
#[test]
fn gw17_clients_send_what_a_running_gateway_is_told() {
    let question = "Which port is it? Read a.txt.";
    for (name, args, env) in [
        ("bin/claude", vec!["-p", question, "--allowedTools", "Read"], &CLAUDE[..]),
        ("bin/opencode", [&["run"], &OPENCODE_MODEL[..], &[question]].concat(), &OPENCODE),
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
        let again = ["--restore-chat-history", "--message", "And again?", "a.txt"];
        let (ran, seen) = wrapped(&shell, &aider, &[&args[..], &more, &again].concat(), &[]);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(seen.len() == 1 && ran.text().contains("The port is 7001."), "{ran:?}");
        // It rewrites the turn before, without what it had added to the question.
        let both = answered(&shell);
        assert_eq!(both.len(), 2, "{model}: {:?}", shell.todos());
        let again = both[1].1["messages"].to_string();
        assert!(again.contains("Which port is it?") && again.contains("And again?"), "{again}");
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
