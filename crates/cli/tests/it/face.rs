//! Help, completions, colours, widths, pipes.

use crate::shell::{Ran, Shell, line, quay};
use std::io::Read as _;
use std::process::Stdio;

/// The commands that the help lists.
fn commands(help: &str) -> Vec<&str> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty());
    // What a line has no room for is indented further.
    let names = listed.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !name.is_empty() && *name != "help").collect()
}

#[test]
fn every_command_explains_itself() {
    let shell = Shell::new();
    let help = shell.run_bare(&["--help"]);
    assert_eq!(help.code, 0);
    let commands = commands(help.text());
    assert!(commands.len() >= 31, "{commands:?}");
    for command in commands {
        let own = shell.run_bare(&[command, "--help"]);
        assert_eq!(own.code, 0, "{command}");
        assert!(own.text().contains("Usage: foldback"), "{command}");
        let wide = own.text().lines().filter(|line| line.chars().count() > 100).count();
        assert_eq!(wide, 0, "{command}");
    }
    for command in
        ["replay", "import", "record", "export", "search", "load", "mcp", "init", "backup"]
    {
        let own = shell.run_bare(&[command, "--help"]);
        assert!(own.text().contains("Example"), "{command}");
    }
    assert_eq!(shell.run_bare(&[]).code, 2);
    assert_eq!(shell.run_bare(&["fold"]).code, 2);
    assert_eq!(shell.run_bare(&["replay"]).code, 2);
}

#[test]
fn completions_for_every_shell() {
    let shell = Shell::new();
    for name in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = shell.run_bare(&["completions", name]);
        assert_eq!(ran.code, 0);
        assert!(ran.text().contains("replay") && ran.text().contains("forget"), "{name}");
    }
    assert_eq!(shell.run_bare(&["completions", "csh"]).code, 2);
}

#[test]
fn no_colour_reaches_what_is_no_terminal() {
    let shell = Shell::with_quay();
    let file = shell.path("quay.jsonl");
    let args = ["replay", file.to_str().unwrap()];
    let escapes = |ran: &Ran| ran.text().contains('\u{1b}') || ran.stderr.contains('\u{1b}');
    assert!(!escapes(&shell.run_bare(&args)));
    let run = |name: &str| {
        let mut command = shell.command();
        command.env("CLICOLOR_FORCE", "1");
        if !name.is_empty() {
            command.env(name, "1");
        }
        Ran::of(command.args(args).output().unwrap())
    };
    assert!(escapes(&run("")), "colours that are asked for do not come");
    // Forced colours are shown, unless NO_COLOR is set.
    assert!(!escapes(&run("NO_COLOR")));
}

#[test]
fn recorded_text_steers_no_terminal() {
    let shell = Shell::new();
    let evil = "before \u{1b}]0;owned\u{7} \u{1b}[2J after";
    let messages = vec![
        foldback_core::Message::user(evil),
        foldback_core::Message::assistant(&format!("{evil} again")),
    ];
    let file = shell.write("evil.jsonl", line("evil", messages));
    shell.ok(&["import", &file]);
    for args in [
        vec!["view", "--todo", "evil"],
        vec!["load", "--todo", "evil", "b_evil_001"],
        vec!["blocks", "--todo", "evil"],
        vec!["search", "--todo", "evil", "before", "after"],
        vec!["replay", &file],
    ] {
        let mut command = shell.command();
        command.env("CLICOLOR_FORCE", "1").arg("--store").arg(shell.store());
        let ran = Ran::of(command.args(&args).output().unwrap());
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(!ran.text().contains("\u{1b}]0") && !ran.text().contains("\u{1b}[2J"), "{args:?}");
        assert!(!ran.text().contains('\u{7}'), "{args:?}");
    }
}

#[test]
fn tables_fit_and_stand_straight_with_chinese_in_them() {
    let shell = Shell::new();
    let mut all = String::new();
    for id in ["plain", "会话:关于重复通知的讨论,第一部分", "a-rather-long-name-of-a-conversation"]
    {
        all.push_str(&line(id, quay()));
    }
    let file = shell.write("all.jsonl", all);
    shell.ok(&["import", &file]);
    for width in [60, 80, 120] {
        for args in [vec!["todos"], vec!["blocks", "--todo", "plain"], vec!["replay", &file]] {
            let mut command = shell.command();
            command.env("COLUMNS", width.to_string());
            if args[0] != "replay" {
                command.arg("--store").arg(shell.store());
            }
            let ran = Ran::of(command.args(&args).output().unwrap());
            assert_eq!(ran.code, 0, "{ran:?}");
            for line in ran.text().lines() {
                assert!(columns(line) <= width.max(80), "{width}, {args:?}: {line}");
                assert_eq!(line, line.trim_end(), "{args:?}");
            }
        }
        let mut command = shell.command();
        command.env("COLUMNS", width.to_string()).args(["replay", &file]);
        let ran = Ran::of(command.output().unwrap());
        // The verdicts of all three rows are aligned.
        let at: Vec<_> = ran
            .text()
            .lines()
            .take(4)
            .map(|line| columns(&line[..line.rfind(' ').unwrap()]))
            .collect();
        assert_eq!(at, [at[0]; 4], "{}", ran.text());
    }
}

/// A program that reads a list finds each id on one line.
#[test]
fn a_name_is_not_broken_in_a_pipe() {
    let shell = Shell::new();
    let id = "a-long-name-".repeat(10);
    let file = shell.write("long.jsonl", line(&id, quay()));
    shell.ok(&["import", &file]);
    let todos = shell.ok(&["todos"]);
    assert!(todos.text().lines().nth(1).unwrap().starts_with(&id), "{todos:?}");
    let blocks = shell.ok(&["blocks", "--todo", &id]);
    assert!(blocks.text().contains(&format!("b_{id}_001")), "{blocks:?}");
    let mut narrow = shell.command();
    narrow.env("COLUMNS", "80").arg("--store").arg(shell.store()).arg("todos");
    let narrow = Ran::of(narrow.output().unwrap());
    assert!(narrow.text().lines().all(|line| line.len() <= 80), "{narrow:?}");
}

/// The columns of a text in which every Chinese character and mark takes two.
fn columns(text: &str) -> usize {
    let wide = |c: char| matches!(c, '\u{3000}'..='\u{9fff}' | '\u{ff00}'..='\u{ff60}');
    text.chars().map(|c| 1 + usize::from(wide(c))).sum()
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let shell = Shell::with_quay();
    let file = shell.path("quay.jsonl");
    for args in [
        vec!["replay", file.to_str().unwrap()],
        vec!["replay", "--json", file.to_str().unwrap()],
        vec!["export", "--todo", "quay"],
        vec!["view", "--todo", "quay"],
        vec!["completions", "bash"],
    ] {
        let mut command = shell.command();
        command.arg("--store").arg(shell.store()).args(&args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // Nobody reads.
        drop(child.stdout.take());
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{args:?}: {stderr}");
        assert_eq!(stderr, "", "{args:?}");
    }
}

/// What a command does besides printing, and its verdict, do not depend on who reads.
#[test]
fn work_is_done_and_judged_when_nobody_reads() {
    let shell = Shell::with_quay();
    let file = shell.path("quay.jsonl");
    let page = shell.path("page.html");
    let (file, page) = (file.to_str().unwrap(), page.to_str().unwrap());
    let mut replay = shell.command();
    replay.args(["replay", file, "--report", page]).stdout(Stdio::piped());
    let mut child = replay.spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(std::path::Path::new(page).exists());
    shell.ok(&["tenant", "add", "acme"]);
    let ran = shell.run_unread(&["tenant", "token", "acme"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("nobody has read the new token of acme"), "{ran:?}");
    let database = shell.store().join("store.sqlite");
    let mut bytes = std::fs::read(&database).unwrap();
    let needle = b"You repair the service quay.";
    let at = bytes.windows(needle.len()).position(|window| window == needle).unwrap();
    bytes[at] ^= 1;
    std::fs::write(&database, bytes).unwrap();
    for command in ["verify", "doctor"] {
        assert_eq!(shell.run_unread(&[command]).code, 1, "{command}");
    }
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_no_text_is_named() {
    use std::os::unix::ffi::OsStrExt as _;
    let shell = Shell::new();
    let value = std::ffi::OsStr::from_bytes(b"/tmp/\xff");
    let ran = Ran::of(shell.command().env("FOLDBACK_STORE", value).arg("todos").output().unwrap());
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("the value of FOLDBACK_STORE is not valid UTF-8"), "{ran:?}");
}

#[test]
fn the_memory_engine_says_that_it_keeps_nothing() {
    let shell = Shell::new();
    let file = shell.write("quay.jsonl", line("quay", quay()));
    let ran = shell.ok(&["--engine", "memory", "import", &file]);
    assert!(ran.stderr.contains("keeps nothing"), "{}", ran.stderr);
    assert!(!shell.store().exists());
    assert_eq!(shell.run(&["--engine", "memory", "todos"]).code, 1);
}

/// A person reads the zone of each time, and no column that holds nothing.
#[test]
fn what_is_listed_has_a_zone_and_no_empty_column() {
    let shell = Shell::with_quay();
    let search = shell.ok(&["search", "--todo", "quay", "max_attempts"]);
    let head = search.text().lines().next().unwrap();
    assert!(head.contains(" 2025-03-01 09:") && head.ends_with(" UTC"), "{head}");
    let blocks = shell.ok(&["blocks", "--todo", "quay"]);
    assert!(blocks.text().lines().next().unwrap().ends_with(" UTC"), "{blocks:?}");
    let view = shell.ok(&["view", "--todo", "quay"]);
    assert!(view.text().contains("1 system · 2025-03-01 09:00:00 UTC\n"), "{view:?}");
    let todos = shell.ok(&["todos"]);
    assert!(todos.text().contains("messages") && !todos.text().contains("own id"), "{todos:?}");
    let file = shell.write("early.jsonl", line("早班", quay()));
    shell.ok(&["import", &file]);
    let todos = shell.ok(&["todos"]);
    assert!(todos.text().contains("own id"), "{todos:?}");
    assert!(todos.text().lines().last().unwrap().ends_with("早班"), "{todos:?}");
}
