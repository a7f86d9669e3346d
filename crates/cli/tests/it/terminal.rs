//! What is recorded or comes from elsewhere cannot control a terminal. Each command runs on a real pseudo-terminal.

use crate::provider::Provider;
use crate::run;
use crate::shell::Shell;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::process::{Command, Stdio};

/// Texts that control terminals, by what they do to one that shows them as they are.
const HOSTILE: [(&str, &str); 18] = [
    ("clears the screen", "\x1b[2J\x1b[H"),
    ("hides and colours", "\x1b[8m\x1b[38;5;196m\x1b[31m"),
    ("sets the title", "\x1b]0;owned\x07"),
    ("links elsewhere", "\x1b]8;;http://127.0.0.1/evil\x1b\\docs\x1b]8;;\x1b\\"),
    ("fills the clipboard", "\x1b]52;c;cm0gLXJmIH4K\x07"),
    ("asks for a report", "\x1b[6n\x1b[c\x1b[21t"),
    ("a device control string", "\x1bP$q\"p\x1b\\"),
    ("an application's command", "\x1b_Gf=24;AAAA\x1b\\"),
    ("resets", "\x1bc"),
    ("rings", "\x07\x07"),
    ("NUL and shifts", "\0\x0e\x0f"),
    ("form feed and vertical tab", "\x0c\x0b"),
    ("an 8-bit sequence", "\u{9b}2J\u{9d}0;owned\u{9c}"),
    ("an 8-bit control string", "\u{90}q\u{9c}\u{85}\u{8d}"),
    ("overwrites its line", "good\rbad!"),
    ("rubs out", "safe\x08\x08\x08\x08evil\x7f"),
    ("turns the reading around", "\u{202e}gpj.exe\u{202c} \u{202a}\u{202b}\u{202d}"),
    ("isolates", "\u{2066}a\u{2067}b\u{2068}c\u{2069}"),
];

/// Runs a command on a terminal; returns its exit code and what reached the terminal.
fn on_terminal(command: &Command) -> (i32, String) {
    let ran = on_a_terminal(command, "").stdin(Stdio::null()).output().unwrap();
    let shown = String::from_utf8(ran.stdout).expect("what a terminal gets is text");
    (ran.status.code().unwrap(), shown)
}

/// The command on a terminal, as `script` makes one, with redirections in the syntax of a shell.
pub(crate) fn on_a_terminal(command: &Command, redirections: &str) -> Command {
    let quoted = |word: &OsStr| format!("'{}'", word.to_str().unwrap().replace('\'', "'\\''"));
    let words = std::iter::once(command.get_program()).chain(command.get_args()).map(quoted);
    let line = format!("exec {}{redirections}", words.collect::<Vec<_>>().join(" "));
    let mut script = Command::new("script");
    script.args(["-qefc", &line, "/dev/null"]);
    script.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    script.env("TERM", "xterm-256color").env("COLUMNS", "100");
    script.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    script.current_dir(command.get_current_dir().unwrap());
    script
}

/// Whether a terminal is available; reports if there is none.
pub(crate) fn has_terminal() -> bool {
    let is_there = Command::new("script").arg("--version").output().is_ok();
    if !is_there {
        eprintln!("SKIPPED: there is no `script` to make a terminal with");
    }
    is_there
}

/// The control sequences in the text, apart from line breaks and the styles of the program: bold, dimmed, underlined,
/// and the plain colours.
fn steering(text: &str) -> Vec<String> {
    let mut text = text.replace("\r\n", "\n");
    for style in [0, 1, 2, 4, 31, 32, 33, 34, 35, 36] {
        text = text.replace(&format!("\x1b[{style}m"), "");
    }
    let bidi = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let steers = |c: &char| c.is_control() && !matches!(c, '\n' | '\t') || bidi(*c);
    text.chars().filter(steers).map(|c| c.escape_unicode().to_string()).collect()
}

/// The command with the store of the shell.
fn command(shell: &Shell, args: &[&str]) -> Command {
    let mut command = shell.command();
    command.arg("--store").arg(shell.store()).args(args);
    command
}

/// All of them.
fn hostile() -> String {
    HOSTILE.map(|(_, text)| text).join(" ")
}

#[track_caller]
fn check(shell: &Shell, args: &[&str]) -> String {
    let (_, shown) = on_terminal(&command(shell, args));
    assert_eq!(steering(&shown), [""; 0], "{args:?}: {shown:?}");
    shown
}

/// A conversation that has the text wherever it can be, and the payload that is kept outside.
fn conversation(text: &str) -> (String, String) {
    let payload = format!("{text}\r\nfar and quokka {text}\n").repeat(900) + text;
    let arguments = json!({ "path": text, text: "x" }).to_string();
    let call = json!({"id": text, "type": "function",
        "function": {"name": format!("read{text}"), "arguments": arguments}});
    let messages = [
        json!({"role": "system", "content": text}),
        json!({"role": "user", "name": format!("n{text}"), "content": format!("quokka {text} here")}),
        json!({"role": "assistant", "content": text, "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": text, "name": text, "content": payload}),
        json!({"role": "user", "content": [{"type": "text", "text": text}, {"type": text, "x": text}]}),
        json!({"role": "assistant", "content": format!("quokka\n{text}\n\tdone")}),
    ];
    let line = json!({"id": format!("talk {text}"), "messages": messages}).to_string() + "\n";
    (line, payload)
}

/// The reference of what is kept outside the todo's messages.
fn payload_ref(shell: &Shell, todo: &str) -> String {
    let view = shell.ok(&["--quiet", "--json", "view", "--todo", todo]);
    let text = view.text();
    let from = text.find("store://").expect("something is kept outside");
    let is_of_ref = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '/' | '-' | '_');
    text[from..].chars().take_while(|c| is_of_ref(*c)).collect()
}

#[test]
fn s4_what_is_recorded_steers_no_terminal() {
    if !has_terminal() {
        return;
    }
    let text = hostile();
    // No program can receive an argument with a NUL.
    let argument = text.replace('\0', "");
    let shell = Shell::new();
    let (line, payload) = conversation(&text);
    let file = shell.write("talk.jsonl", line);
    check(&shell, &["import", &file]);
    let todo = shell.todos().remove(0);
    let (todo, file, argument) = (todo.as_str(), file.as_str(), argument.as_str());
    let (block, reference) = (format!("b_{todo}_001"), payload_ref(&shell, todo));
    let shown = check(&shell, &["load", "--todo", todo, &reference]);
    for mark in
        ["far and quokka ", "␛]52;c;cm0gLXJmIH4K␇", "␀␎␏", "\\u{9b}2J", "good␍bad!", "\\u{202e}gpj"]
    {
        assert!(shown.contains(mark), "{mark}");
    }
    let commands: [&[&str]; 19] = [
        &["load", "--todo", todo, &reference, "--lines", "1-3"],
        &["load", "--todo", todo, &reference, "--match", "quokka"],
        &["load", "--todo", todo, &reference, "--match", argument],
        &["load", "--todo", todo, &block],
        &["load", "--todo", argument, &block],
        &["load", "--todo", todo, argument],
        &["search", "--todo", todo, "quokka"],
        &["search", "--todo", todo, argument],
        &["search", "--all-todos", "--explain", "quokka"],
        &["view", "--todo", todo],
        &["blocks", "--todo", todo],
        &["todos"],
        &["verify"],
        &["doctor"],
        &["replay", file],
        &["replay", file, "--at", "2"],
        &["replay", argument],
        &["config", argument],
        &[argument],
    ];
    for args in commands {
        check(&shell, args);
    }
    let json: [&[&str]; 8] = [
        &["--quiet", "--json", "load", "--todo", todo, &reference],
        &["--quiet", "--json", "load", "--todo", todo, &block],
        &["--quiet", "--json", "search", "--todo", todo, "quokka"],
        &["--quiet", "--json", "view", "--todo", todo],
        &["--quiet", "--json", "blocks", "--todo", todo],
        &["--quiet", "--json", "todos"],
        &["--quiet", "--json", "import", file],
        &["--quiet", "export", "--todo", todo],
    ];
    for args in json {
        let shown = check(&shell, args);
        // It is JSON with the same meaning.
        let read = serde_json::from_str(&shown);
        let mut read: Value = read.unwrap_or_else(|error| panic!("{error}: {args:?}: {shown}"));
        let mut piped = shell.run(args).json();
        for read in [&mut read, &mut piped] {
            read.as_object_mut().map(|read| read.remove("took_us"));
        }
        assert!(read == piped, "{args:?}: {shown}");
    }
    // A pipe receives what was recorded.
    assert_eq!(shell.ok(&["load", "--todo", todo, &reference]).stdout, payload.as_bytes());
    let exported = shell.ok(&["export", "--todo", todo]);
    let talk = std::fs::read_to_string(file).unwrap();
    let messages = talk.find("\"messages\":").unwrap();
    assert!(exported.text().contains(talk[messages..].trim_end().trim_end_matches('}')));
}

#[test]
fn s4_names_and_bytes_that_are_no_text_steer_no_terminal() {
    if !has_terminal() {
        return;
    }
    let shell = Shell::new();
    let hostile = shell.path("a\u{1b}[2J\u{9b}\u{202e}b.jsonl");
    std::fs::write(&hostile, b"{\"id\": 7\x1b]0;x\x07\xff\x9b2J").unwrap();
    let shown = check(&shell, &["import", hostile.to_str().unwrap()]);
    assert!(shown.contains("a␛[2J\\u{9b}\\u{202e}b.jsonl"), "{shown}");
    check(&shell, &["import", "--lenient", hostile.to_str().unwrap()]);
    let mut todos = shell.command();
    todos.arg("--store").arg(shell.path("s\u{1b}[2J\u{202e}")).arg("todos");
    let (code, shown) = on_terminal(&todos);
    assert_eq!((code, steering(&shown)), (1, vec![]), "{shown:?}");
}

#[test]
fn s4_what_a_model_says_steers_no_terminal() {
    if !has_terminal() {
        return;
    }
    let text = hostile();
    for is_quiet in [false, true] {
        let shell = Shell::new();
        let item = json!({"items": [{"id": "a", "title": text, "state": "in_progress"}]});
        let provider = Provider::new(vec![
            Provider::call("file_read", &json!({ "path": text })),
            Provider::call("todo_write", &item),
            Provider::call(&text, &item),
            Provider::pieces(&format!("It is {text} done.")),
        ]);
        let mut command = run::command(&shell, &provider, &["look around"]);
        // Without the part that changes, which moves the cursor itself.
        command.env("NO_COLOR", "1");
        if is_quiet {
            command.arg("--quiet");
        }
        let (code, shown) = on_terminal(&command);
        assert_eq!((code, steering(&shown)), (0, vec![]), "{shown:?}");
        assert!(shown.contains("␛]52;c;cm0gLXJmIH4K␇"), "{shown}");
        check(&shell, &["sessions"]);
        check(&shell, &["trajectories", "export"]);
    }
}
