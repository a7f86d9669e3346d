//! S8: what is recognised as a secret is in no file of the store, whichever way it arrived.

use crate::provider::Provider;
use crate::run::command;
use crate::shell::{Ran, Shell, line};
use foldback_core::Message;
use serde_json::json;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

/// Made up.
const SECRET: &str = "ghp_0aZ9bY8cX7dW6eV5fU4gT3hS2iR1jQ0kPlOm";
const KEY: &str = "7f3c9a1e5b8d2046e1c7a9f05d3b6812907e4f2ac8d15b36e09f7a4c2d8b1e65";

fn redacting(shell: &Shell, args: &[&str], key: Option<&str>) -> Ran {
    let mut command = shell.command();
    command.arg("--store").arg(shell.store()).args(args).env("FOLDBACK_MEMORY_REDACT", "true");
    if let Some(key) = key {
        command.env("FOLDBACK_REDACTION_KEY", key);
    }
    Ran::of(command.output().unwrap())
}

/// The files below a folder that hold the secret.
fn leaks(dir: &Path) -> Vec<String> {
    let mut leaks = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            leaks.extend(self::leaks(&path));
        } else if std::fs::read(&path)
            .unwrap()
            .windows(SECRET.len())
            .any(|part| part == SECRET.as_bytes())
        {
            leaks.push(path.display().to_string());
        }
    }
    leaks
}

#[test]
fn s8_what_was_redacted_is_revealed_to_its_owner_alone() {
    let shell = Shell::new();
    let said = line(
        "deploy",
        vec![Message::user(&format!("推送用 {SECRET} 。")), Message::assistant("好的。")],
    );
    let file = shell.write("deploy.jsonl", &said);
    assert_eq!(redacting(&shell, &["import", &file], Some(KEY)).code, 0);
    // A repetition adds nothing.
    let again = redacting(&shell, &["import", &file], Some(KEY));
    assert_eq!(again.code, 0, "{again:?}");
    assert_eq!(leaks(&shell.store()), Vec::<String>::new());

    let export = ["export", "--todo", "deploy"];
    let kept = shell.ok(&export);
    assert_eq!(kept.text(), said.replace(SECRET, "[redacted github-token 1]"));
    let reveal = ["export", "--todo", "deploy", "--reveal"];
    assert_eq!(redacting(&shell, &reveal, Some(KEY)).text(), said);
    let other = redacting(&shell, &reveal, Some(&KEY.replace('7', "8")));
    assert!(other.code != 0 && other.stdout.is_empty(), "{other:?}");
    assert!(other.stderr.contains("message 0 of todo deploy"), "{other:?}");
    for none in [None, Some("too short")] {
        let refused = redacting(&shell, &reveal, none);
        assert!(
            refused.code == 2 && refused.stderr.contains("FOLDBACK_REDACTION_KEY"),
            "{refused:?}"
        );
    }
    // A file gives the key, too.
    shell.write("key", KEY);
    let settings = shell.write("own.toml", "[memory]\nredaction_key_file = \"key\"\n");
    let revealed = shell.ok(&["--config", &settings, "export", "--todo", "deploy", "--reveal"]);
    assert_eq!(revealed.text(), said);
}

#[test]
fn s8_what_is_recorded_line_by_line_is_redacted() {
    let shell = Shell::new();
    let mut command = shell.command();
    command.arg("--store").arg(shell.store()).args(["record", "--todo", "t"]);
    command.env("FOLDBACK_MEMORY_REDACT", "true").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{}", Message::user(&format!("token: {SECRET}")).json()).unwrap();
    drop(input);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
    assert_eq!(leaks(&shell.store()), Vec::<String>::new());
    assert!(shell.ok(&["export", "--todo", "t"]).text().contains("[redacted github-token 1]"));
}

/// A task, a result, and the model's words: none of it stays in the store, the journal, the record, the trajectory or
/// the last request.
#[test]
fn s8_a_run_keeps_no_secret() {
    let shell = Shell::new();
    shell.folders(&["work"]);
    shell.write("work/secrets.env", format!("GITHUB_TOKEN={SECRET}\n"));
    let provider = Provider::answering(|request| {
        let text = request.to_string();
        assert!(!text.contains(SECRET), "the model sees what is recorded: {text}");
        match text.contains("\"role\":\"tool\"") {
            false => Provider::call("file_read", &json!({ "path": "secrets.env" })),
            true => Provider::text("I found the token."),
        }
    });
    let task = format!("Use {SECRET} to push");
    let mut run = command(&shell, &provider, &["--strategy", "react", "--yes", &task]);
    let ran = Ran::of(run.env("FOLDBACK_MEMORY_REDACT", "true").output().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(leaks(&shell.store()), Vec::<String>::new());
    let todo = &shell.todos()[0];
    assert!(!todo.contains("ghp"), "{todo}");
    assert!(shell.ok(&["export", "--todo", todo]).text().contains("[redacted github-token 1]"));
}

/// A run whose request, words and calls have secrets is resumed: what it is compared with has marks.
#[test]
fn s8_a_run_with_secrets_is_resumed() {
    let shell = Shell::new();
    shell.folders(&["work"]);
    let content = format!("TOKEN={SECRET}\n口令\n");
    let write = json!({ "path": "secrets.env", "content": content });
    let mut asked = 0;
    let provider = Provider::answering(move |_| {
        asked += 1;
        match asked {
            1 => Provider::pieces_and(
                &format!("我写入 {SECRET}。"),
                &[("file_write", write.clone())],
            ),
            2 => Provider::error(400),
            _ => Provider::text("It is written."),
        }
    });
    let task = format!("Keep {SECRET} in secrets.env");
    let args = ["--id", "keep", "--strategy", "react", "--yes", &task];
    let mut begun = command(&shell, &provider, &args);
    let begun = Ran::of(begun.env("FOLDBACK_MEMORY_REDACT", "true").output().unwrap());
    assert_ne!(begun.code, 0, "{begun:?}");
    let written = || std::fs::read_to_string(shell.path("work/secrets.env")).unwrap();
    assert_eq!(written(), content);
    let resumed = redacting(&shell, &["run", "--resume", "keep"], None);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert!(resumed.text().contains("It is written."), "{resumed:?}");
    assert_eq!(written(), content, "the call was not made again");
    assert_eq!(leaks(&shell.store()), Vec::<String>::new());
}

#[test]
fn s8_a_gateway_that_keeps_requests_as_they_are_is_refused() {
    let shell = Shell::new();
    let refused = redacting(&shell, &["gateway", "--record", "traffic"], None);
    assert!(refused.code == 2 && refused.stderr.contains("memory.redact"), "{refused:?}");
}
