//! RC6: the session logs of released clients, imported.

use super::{
    CLAUDE, HAND_ON, OPENCODE, OPENCODE_MODEL, client, commanding, handing_on, is_summary, reading,
    wrapped, wrapped_with,
};
use crate::import_watch::Watching;
use crate::shell::{Ran, Shell};
use foldback_testkit::upstream::{Answer, Said, Seen};
use serde_json::Value;

/// What is said and called in a todo and answered by tools, in order, without what a client adds in the user's name.
#[track_caller]
fn said(shell: &Shell, todo: &str) -> Vec<String> {
    let export = shell.json(&["export", "--todo", todo]);
    let mut said = Vec::new();
    for message in export["messages"].as_array().unwrap() {
        let texts: String = match &message["content"] {
            Value::Array(parts) => {
                parts.iter().map(|part| part["text"].as_str().unwrap_or_default()).collect()
            }
            text => text.as_str().unwrap_or_default().to_owned(),
        };
        match message["role"].as_str().unwrap() {
            "developer" | "system" => {}
            "tool" => {
                let call = message["tool_call_id"].as_str().unwrap();
                let is_file = texts.contains("The port is 7001.");
                said.push(format!("{call}: {}", if is_file { "7001" } else { &texts }));
            }
            _ if message["source"]["injected"] == true => {}
            role => said.push(format!("{role}: {texts}")),
        }
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        said.extend(calls.map(|call| format!("calls {}", call["id"].as_str().unwrap())));
    }
    said
}

/// A turn in which the file is read, and one in which nothing is.
const READS: [&str; 5] = [
    "user: Which port is it? Read a.txt.",
    "assistant: I look.",
    "calls toolu_1",
    "toolu_1: 7001",
    "assistant: The port is 7001.",
];
const AGAIN: [&str; 2] = ["user: And again?", "assistant: The port is 7001."];

/// The lines of a session that are not messages, by kind and number. All of them were understood.
#[track_caller]
fn counts(shell: &Shell, todo: &str) -> Value {
    let source = shell.json(&["export", "--todo", todo])["source"].clone();
    for odd in ["unread_lines", "repeated_lines", "partial", "unfinished_response"] {
        assert_eq!(source.get(odd), None, "{source}");
    }
    source["counts"].clone()
}

/// Turns of a client in one session, whose log is in a folder of its home: it is imported after each, and followed by a
/// watching import from the first one on. Returns the shell with what was imported, and the todo.
fn followed(logs: &str, turns: &[&dyn Fn(&Shell) -> Ran], expected: &[&[&str]]) -> (Shell, String) {
    let (shell, imported, watched) = (Shell::new(), Shell::new(), Shell::new());
    shell.folders(&["home", "work"]);
    shell.write("work/a.txt", "The port is 7001.\n");
    let logs = shell.path(&format!("home/{logs}"));
    let logs = logs.to_str().unwrap();
    let (mut watching, mut held, mut todo) = (None, 0, String::new());
    for (n, turn) in turns.iter().enumerate() {
        let ran = turn(&shell);
        assert_eq!(ran.code, 0, "turn {n}: {ran:?}");
        let told = imported.json(&["import", logs]);
        assert_eq!(told["held"], held, "turn {n}: {told}");
        held = told["messages"].as_u64().unwrap();
        told["todo_id"].as_str().unwrap().clone_into(&mut todo);
        assert_eq!(said(&imported, &todo), expected[..=n].concat(), "turn {n}");
        counts(&imported, &todo);
        let watching = watching.get_or_insert_with(|| Watching::of(&watched, logs));
        if told["recorded"] != 0 {
            watching.until(&todo, held);
        }
    }
    watching.unwrap().end();
    let export = |shell: &Shell| shell.json(&["export", "--todo", &todo])["messages"].clone();
    assert_eq!(export(&watched), export(&imported));
    (imported, todo)
}

/// RC6: a session of Claude Code with a tool, continued, summed up by its own command, and continued after that.
#[test]
fn rc6_claude_code_s_own_log_is_imported_and_followed() {
    let Some(claude) = client("bin/claude") else { return };
    let turn = |more: &'static [&'static str]| {
        let claude = claude.clone();
        move |shell: &Shell| {
            let args = [&["-p", "--allowedTools=Read"], more].concat();
            let reads = reading(shell.path("work/a.txt").to_str().unwrap());
            let script = move |seen: &Seen| match is_summary(seen) {
                true => Answer::Said(Said::text("<summary>The port was 7001.</summary>")),
                false => reads(seen),
            };
            wrapped_with(shell, &claude, &args, &CLAUDE, &[], script).0
        }
    };
    let (shell, todo) = followed(
        ".claude/projects",
        &[
            &turn(&["Which port is it? Read a.txt."]),
            &turn(&["--continue", "And again?"]),
            &turn(&["--continue", "/compact"]),
            &turn(&["--continue", "And again?"]),
        ],
        &[&READS, &AGAIN, &[], &AGAIN],
    );
    let counts = counts(&shell, &todo);
    assert_eq!(counts["system/compact_boundary"], 1, "{counts}");
    assert_eq!(counts["user/compact_summary"], 1, "{counts}");
}

/// RC6: the log of a sub-agent of Claude Code names the session and the call that it belongs to.
#[test]
fn rc6_claude_code_s_sub_agents_are_imported() {
    let Some(claude) = client("bin/claude") else { return };
    let (shell, own) = (Shell::new(), Shell::new());
    shell.folders(&["home", "work"]);
    let file = shell.write("work/a.txt", "The port is 7001.\n");
    let script = handing_on("Agent", "general-purpose", reading(&file));
    let args = ["-p", HAND_ON, "--allowedTools=Read,Agent"];
    let (ran, _) = wrapped_with(&shell, &claude, &args, &CLAUDE, &[], script);
    assert_eq!(ran.code, 0, "{ran:?}");
    let logs = shell.path("home/.claude/projects");
    own.ok(&["import", logs.to_str().unwrap()]);
    let todos = own.todos();
    let is_agent = |todo: &&String| todo.contains("-agent-");
    let agent = todos.iter().find(is_agent).unwrap();
    let session = todos.iter().find(|todo| !is_agent(todo)).unwrap();
    assert_eq!(todos.len(), 2, "{todos:?}");
    let source = &own.json(&["export", "--todo", agent])["source"];
    assert_eq!(source["parent_session"], **session, "{source}");
    assert_eq!(source["parent_call"], "toolu_hand", "{source}");
    let mut expected = READS.map(str::to_owned);
    "user: Read all files.".clone_into(&mut expected[0]);
    assert_eq!(said(&own, agent), expected);
    let main = said(&own, session);
    let begins = [&*format!("user: {HAND_ON}"), "assistant: I hand it on.", "calls toolu_hand"];
    assert_eq!(main[..3], begins);
    assert!(main[3].starts_with("toolu_hand: "), "{main:?}");
    assert_eq!(main[4], "assistant: All is done.");
    for todo in [agent, session] {
        counts(&own, todo);
    }
}

/// RC6: a session of Codex with a command, continued, summed up by itself, and continued after that; with a model whose
/// tools are in a program that it writes, and with one that calls them.
#[test]
fn rc6_codex_s_own_log_is_imported_and_followed() {
    let Some(codex) = client("bin/codex") else { return };
    let turn = |model: &'static [&'static str], more: &'static [&'static str]| {
        let codex = codex.clone();
        move |shell: &Shell| {
            let args = [&["exec", "--skip-git-repo-check"], model, more].concat();
            wrapped_with(shell, &codex, &args, &[], &[], commanding).0
        }
    };
    let compacted =
        &["-c", "model_auto_compact_token_limit=2000", "resume", "--last", "And again?"];
    for model in [&[][..], &["-m", "gpt-5.1-codex"]] {
        let (shell, todo) = followed(
            ".codex/sessions",
            &[
                &turn(model, &["Which port is it? Read a.txt."]),
                &turn(model, &["resume", "--last", "And again?"]),
                &turn(model, compacted),
                &turn(model, &["resume", "--last", "And again?"]),
            ],
            &[&READS, &AGAIN, &AGAIN, &AGAIN],
        );
        let counts = counts(&shell, &todo);
        assert!(counts["compacted"].as_u64().is_some_and(|count| count > 0), "{counts}");
    }
}

/// RC6: the database of the released OpenCode is read, and what it wrote meanwhile follows.
#[test]
fn rc6_opencode_s_own_database_is_imported() {
    let Some(opencode) = client("bin/opencode") else { return };
    let (shell, own) = (Shell::new(), Shell::new());
    let mut held = 0;
    for how in [&["run"][..], &["run", "--continue"]] {
        let args = [how, &OPENCODE_MODEL, &["Which port is it? Read a.txt."]].concat();
        let (ran, _) = wrapped(&shell, &opencode, &args, &OPENCODE);
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
