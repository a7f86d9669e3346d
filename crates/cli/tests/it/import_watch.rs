//! RC6: `foldback import --watch`, in a process of its own.

#![cfg(unix)]

use crate::import_opencode::{BEGUN, GONE_ON, SESSION};
use crate::input::pair;
use crate::shell::{Ran, Shell};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Nothing here takes this long.
const PATIENCE: Duration = Duration::from_secs(120);

/// The command while it follows the folder `logs`.
pub(crate) struct Watching<'s> {
    shell: &'s Shell,
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl<'s> Watching<'s> {
    fn begin(shell: &'s Shell) -> Self {
        shell.folders(&["logs"]);
        Self::of(shell, "logs")
    }

    pub(crate) fn of(shell: &'s Shell, path: &str) -> Self {
        Self::by(shell, path, shell.command())
    }

    fn by(shell: &'s Shell, path: &str, mut command: Command) -> Self {
        command.arg("--store").arg(shell.store()).args(["--json", "import", "--watch", path]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { shell, child, stdout }
    }

    /// Waits until a conversation has this many messages; returns the batches up to then.
    #[track_caller]
    pub(crate) fn until(&mut self, todo: &str, messages: u64) -> Vec<Value> {
        let mut batches = Vec::new();
        loop {
            let mut line = String::new();
            self.stdout.read_line(&mut line).unwrap();
            assert!(!line.is_empty(), "it ended: {batches:?}");
            let batch: Value = serde_json::from_str(&line).unwrap();
            let is_last = batch["todo_id"] == todo && batch["messages"] == messages;
            batches.push(batch);
            if is_last {
                return batches;
            }
        }
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(
            std::process::Command::new("kill").args([signal, &pid]).status().unwrap().success()
        );
    }

    /// Ends it with Ctrl-C's signal.
    #[track_caller]
    pub(crate) fn end(self) -> Ran {
        self.signal("-INT");
        let ran = Ran::of(self.child.wait_with_output().unwrap());
        assert_eq!(ran.code, 0, "{ran:?}");
        self.shell.ok(&["verify"]);
        ran
    }
}

/// The texts of a todo's messages.
#[track_caller]
fn texts(shell: &Shell, todo: &str) -> Vec<String> {
    let export = shell.json(&["export", "--todo", todo]);
    let messages = export["messages"].as_array().unwrap().iter();
    messages.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

/// Lines of a session of Claude Code: questions and answers, from one number on.
fn lines(session: &str, from: usize, to: usize) -> String {
    (from..to)
        .map(|n| {
            let parent = n.checked_sub(1).map_or("null".to_owned(), |n| format!("\"{session}{n}\""));
            let (kind, message) = match n % 2 {
                0 => ("user", format!("{{\"role\":\"user\",\"content\":\"第{n}问\"}}")),
                _ => ("assistant", format!("{{\"id\":\"m{n}\",\"role\":\"assistant\",\"content\":[{{\"type\":\"text\",\"text\":\"第{n}答\"}}],\"stop_reason\":\"end_turn\"}}")),
            };
            format!("{{\"parentUuid\":{parent},\"sessionId\":\"{session}\",\"type\":\"{kind}\",\"uuid\":\"{session}{n}\",\"message\":{message}}}\n")
        })
        .collect()
}

fn said(from: usize, to: usize) -> Vec<String> {
    (from..to).map(|n| format!("第{n}{}", if n % 2 == 0 { "问" } else { "答" })).collect()
}

fn append(shell: &Shell, name: &str, piece: impl AsRef<[u8]>) {
    let file = std::fs::File::options().create(true).append(true).open(shell.path(name));
    file.unwrap().write_all(piece.as_ref()).unwrap();
}

#[test]
fn rc6_logs_are_followed_as_they_grow() {
    let shell = Shell::new();
    let mut watching = Watching::begin(&shell);
    shell.folders(&["logs/project"]);
    let text = lines("a", 0, 12);
    // Cut in the middle of a line, and of a character.
    let cut = text.find("第5答").unwrap() + 1;
    append(&shell, "logs/project/a.jsonl", &text.as_bytes()[..cut]);
    let batches = watching.until("a", 5);
    let sum = |key: &str, batches: &[Value]| {
        batches.iter().map(|b| b[key].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(sum("recorded", &batches), 5, "{batches:?}");
    append(&shell, "logs/project/a.jsonl", &text.as_bytes()[cut..]);
    // A file that appears later.
    append(&shell, "logs/b.jsonl", lines("b", 0, 2));
    watching.until("a", 12);
    append(&shell, "logs/b.jsonl", lines("b", 2, 3));
    let last = watching.until("b", 3).pop().unwrap();
    let keys: Vec<_> = last.as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["id", "todo_id", "messages", "recorded", "held", "blocks"]);
    watching.end();
    assert_eq!(texts(&shell, "a"), said(0, 12));
    assert_eq!(texts(&shell, "b"), said(0, 3));
    // It is what an import makes of it.
    let imported = shell.json(&["import", "logs/project/a.jsonl"]);
    assert_eq!((&imported["recorded"], &imported["held"]), (&0.into(), &12.into()), "{imported}");
    let other = Shell::new();
    let file = other.write("a.jsonl", text);
    other.ok(&["import", &file]);
    let export = |shell: &Shell| shell.ok(&["export", "--todo", "a"]).stdout;
    assert_eq!(export(&shell), export(&other));
    let blocks = |shell: &Shell| shell.json(&["blocks", "--todo", "a"]);
    let ids = |blocks: Value| {
        blocks.as_array().unwrap().iter().map(|b| b["block_id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids(blocks(&shell)), ids(blocks(&other)));
}

#[test]
fn rc6_a_log_that_rotates_is_followed() {
    let shell = Shell::new();
    let mut watching = Watching::begin(&shell);
    append(&shell, "logs/s.jsonl", lines("a", 0, 6));
    watching.until("a", 6);
    std::fs::rename(shell.path("logs/s.jsonl"), shell.path("logs/s.1.jsonl")).unwrap();
    append(&shell, "logs/s.jsonl", lines("b", 0, 4));
    watching.until("b", 4);
    // Text written to the old one, under its new name, is followed, too.
    append(&shell, "logs/s.1.jsonl", lines("a", 6, 8));
    watching.until("a", 8);
    // The same session, restarted with other words.
    std::fs::rename(shell.path("logs/s.jsonl"), shell.path("logs/s.2.jsonl")).unwrap();
    append(&shell, "logs/s.jsonl", lines("b", 0, 2).replace('第', "另"));
    watching.until("b-2", 2);
    watching.end();
    assert_eq!((texts(&shell, "a"), texts(&shell, "b")), (said(0, 8), said(0, 4)));
    assert_eq!(texts(&shell, "b-2"), ["另0问", "另1答"]);
    assert_eq!(shell.todos().len(), 3);
}

#[test]
fn rc6_a_log_that_is_truncated_or_written_anew_is_followed() {
    let shell = Shell::new();
    let mut watching = Watching::begin(&shell);
    append(&shell, "logs/a.jsonl", lines("a", 0, 8));
    watching.until("a", 8);
    // First shorter, and then what it was and more.
    shell.write("logs/a.jsonl", lines("a", 0, 4));
    append(&shell, "logs/b.jsonl", lines("b", 0, 2));
    watching.until("b", 2);
    append(&shell, "logs/a.jsonl", lines("a", 4, 10));
    watching.until("a", 10);
    // The same beginning, with other words after it.
    let other = lines("a", 6, 9)
        .replace('第', "另")
        .replace("\"a6\"", "\"x6\"")
        .replace("\"a7\"", "\"x7\"");
    shell.write("logs/a.jsonl", lines("a", 0, 6) + &other);
    watching.until("a", 9);
    watching.end();
    let mut expected = said(0, 10);
    expected.extend(["另6问", "另7答", "另8问"].map(str::to_owned));
    assert_eq!(texts(&shell, "a"), expected);
    // Started again, it finds nothing new, and then what is.
    let mut watching = Watching::begin(&shell);
    append(&shell, "logs/a.jsonl", lines("a", 9, 10).replace('第', "另"));
    let batches = watching.until("a", 10);
    assert_eq!(batches.len(), 1, "{batches:?}");
    watching.end();
    expected.push("另9答".to_owned());
    assert_eq!(texts(&shell, "a"), expected);
}

#[test]
fn rc6_it_is_killed_and_started_again() {
    let shell = Shell::new();
    let name = "logs/a.jsonl";
    let mut done = 0;
    for round in 0..4 {
        let mut watching = Watching::begin(&shell);
        append(&shell, name, lines("a", done, done + 5));
        if round > 0 {
            watching.until("a", done as u64 + 5);
        }
        done += 5;
        // While it works on existing files, or after that.
        append(&shell, name, lines("a", done, done + 40));
        done += 40;
        watching.signal("-KILL");
        watching.child.wait().unwrap();
    }
    let watching = Watching::begin(&shell);
    // Existing messages are recorded before it ends.
    let began = Instant::now();
    while shell.todos().is_empty() || texts(&shell, "a").len() < done {
        assert!(began.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(50));
    }
    watching.end();
    assert_eq!(texts(&shell, "a"), said(0, done));
}

#[test]
fn rc6_a_response_is_taken_when_it_is_finished() {
    let shell = Shell::new();
    let mut watching = Watching::begin(&shell);
    let open = lines("a", 1, 2).replace("\"end_turn\"", "null");
    append(&shell, "logs/a.jsonl", lines("a", 0, 1) + &open);
    watching.until("a", 1);
    append(
        &shell,
        "logs/a.jsonl",
        lines("a", 1, 2).replace("\"a1\"", "\"b1\"").replace("\"a0\"", "\"a1\""),
    );
    watching.until("a", 2);
    // A file that is not a conversation, or is damaged, does not stop the others.
    append(&shell, "logs/history.jsonl", "{\"display\":\"x\",\"timestamp\":1,\"project\":\"p\"}\n");
    append(&shell, "logs/a.jsonl", "{\"type\":\n");
    for n in 0..2 {
        append(&shell, "logs/b.jsonl", lines("b", n, n + 1));
        watching.until("b", n as u64 + 1);
    }
    let ran = watching.end();
    assert!(ran.stderr.contains("history of prompts") && ran.stderr.contains("line 4"), "{ran:?}");
    assert_eq!(texts(&shell, "a"), said(0, 2));
}

#[test]
fn rc6_sessions_of_opencode_are_followed() {
    let shell = Shell::new();
    shell.write("opencode.db", BEGUN);
    let mut watching = Watching::of(&shell, "opencode.db");
    watching.until(SESSION, 4);
    shell.write("opencode.db", GONE_ON);
    let batches = watching.until(SESSION, 8);
    assert_eq!((batches.len(), &batches[0]["recorded"]), (1, &4.into()), "{batches:?}");
    watching.end();
    let held = shell.json(&["import", "opencode.db"]);
    assert_eq!((&held["recorded"], &held["held"]), (&0.into(), &8.into()), "{held}");
}

/// RC6: a watch and an import give conversations without ids the same names.
#[test]
fn rc6_conversations_without_ids_are_called_as_an_import_calls_them() {
    let shell = Shell::new();
    append(&shell, "pairs.jsonl", format!("\n{}", pair("一")));
    let mut watching = Watching::of(&shell, "pairs.jsonl");
    watching.until("pairs", 2);
    append(&shell, "pairs.jsonl", pair("二"));
    watching.until("pairs-3", 2);
    watching.end();
    let rows = shell.ok(&["--json", "import", "pairs.jsonl"]).json_lines();
    assert!(rows.iter().all(|row| row["recorded"] == 0), "{rows:?}");
    assert_eq!(shell.todos(), ["pairs", "pairs-3"]);
}

/// RC6: of several conversations with one id, a watch finds those that an import has named by their files.
#[test]
fn rc6_what_an_import_has_named_by_its_file_is_followed_there() {
    let shell = Shell::new();
    shell.folders(&["logs"]);
    append(&shell, "logs/a.jsonl", lines("s", 0, 2));
    append(&shell, "logs/b.jsonl", lines("s", 0, 2).replace('第', "另"));
    shell.ok(&["import", "logs"]);
    assert_eq!(shell.todos(), ["s", "s-b"]);
    let mut watching = Watching::begin(&shell);
    append(&shell, "logs/b.jsonl", lines("s", 2, 3).replace('第', "另"));
    let batches = watching.until("s-b", 3);
    assert_eq!(batches.len(), 1, "{batches:?}");
    watching.end();
    assert_eq!((shell.todos().len(), texts(&shell, "s")), (2, said(0, 2)));
}

/// S10, RC6: a conversation that may not be recorded is reported, and the others are followed.
#[test]
fn s10_a_limit_of_one_conversation_does_not_end_the_others() {
    let shell = Shell::new();
    shell.folders(&["logs"]);
    append(&shell, "logs/a.jsonl", lines("a", 0, 8));
    append(&shell, "logs/b.jsonl", lines("b", 0, 2));
    let mut command = shell.command();
    command.env("FOLDBACK_MEMORY_MAX_MESSAGES", "3");
    let mut watching = Watching::by(&shell, "logs", command);
    watching.until("b", 2);
    // What is added may be too much, too, also to a file that was read again.
    append(&shell, "logs/b.jsonl", lines("b", 2, 6));
    append(&shell, "logs/c.jsonl", lines("c", 0, 2));
    watching.until("c", 2);
    append(&shell, "logs/b.jsonl", lines("b", 6, 8));
    append(&shell, "logs/d.jsonl", lines("d", 0, 2));
    watching.until("d", 2);
    let ran = watching.end();
    for todo in ["a", "b"] {
        let told = format!("skipped: todo {todo} may hold at most 3 messages");
        assert_eq!(ran.stderr.matches(&told).count(), 1, "{ran:?}");
    }
    assert_eq!(shell.todos(), ["b", "c", "d"]);
    assert_eq!(texts(&shell, "b"), said(0, 2));
}

/// It would follow the files for ever, so its end is an error: what comes later is not recorded.
#[test]
fn rc6_a_reader_that_leaves_ends_it_with_an_error() {
    let shell = Shell::new();
    append(&shell, "logs.jsonl", lines("a", 0, 2));
    for json in [true, false] {
        let mut command = shell.command();
        command.arg("--store").arg(shell.store()).args(json.then_some("--json"));
        command.args(["import", "--watch", "logs.jsonl"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ran = Ran::of(child.wait_with_output().unwrap());
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.stderr.contains("the files are not followed any more"), "{ran:?}");
        append(&shell, "logs.jsonl", lines("a", 2, 4));
    }
    assert_eq!(texts(&shell, "a"), said(0, 4));
}

#[test]
fn rc6_what_cannot_be_followed_is_refused() {
    let shell = Shell::new();
    for (args, words) in [
        (&["import", "--watch", "-"][..], "expects files and folders"),
        (&["import", "--watch", "nowhere"], "nowhere could not be read"),
        (&["import", "--watch", "--todo", "t", "."], "--todo"),
    ] {
        let ran = shell.run(args);
        assert!(ran.code == 2 && ran.stderr.contains(words), "{args:?}: {ran:?}");
    }
    assert!(!shell.store().exists());
}
