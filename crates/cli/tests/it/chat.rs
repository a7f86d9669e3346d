//! `foldback chat`: line by line from a pipe, and at a terminal.

use crate::provider::Provider;
use crate::run_turns::shows;
use crate::shell::{Ran, Shell, names};
use serde_json::json;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// The command for a chat with a provider, in a workspace of its own.
fn chat(shell: &Shell, provider: &Provider, args: &[&str]) -> Command {
    shell.folders(&["work"]);
    let mut command = shell.command();
    command.arg("--store").arg(shell.store()).args(["chat", "--workspace"]).arg(shell.path("work"));
    command.args(["--model", "scripted", "--base-url", &provider.url()]);
    command.args(["--strategy", "react"]).args(args);
    command
}

/// Sends these lines through a pipe.
fn say(shell: &Shell, provider: &Provider, args: &[&str], lines: impl AsRef<[u8]>) -> Ran {
    let mut command = chat(shell, provider, args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_ref()).unwrap();
    Ran::of(child.wait_with_output().unwrap())
}

#[test]
fn lines_of_a_pipe_are_turns_of_one_conversation() {
    let shell = Shell::new();
    let provider = Provider::new(vec![
        Provider::call("file_list", &json!({})),
        Provider::text("Nothing is here. 这里没有。"),
        Provider::text("Still nothing."),
        Provider::text("As I said."),
    ]);
    let lines = "What is here?\n\nLook again,\\\nplease.\n/blocks\n/recall 这里没有\n/cost\n/policy\n/nothing\n";
    let ran = say(&shell, &provider, &[], lines);
    assert_eq!(ran.code, 0, "{ran:?}");
    let asked = provider.requests();
    assert!(shows(&asked[2], "Look again,\\nplease.") && shows(&asked[2], "Nothing is here."));
    let text = ran.text();
    assert!(text.starts_with("Nothing is here. 这里没有。\nStill nothing.\n"), "{text}");
    assert!(text.contains("foldback: Every block that closes is folded"), "{text}");
    for words in
        ["3 calls · 300 tokens in, 30 out", "there is no /nothing; /help lists", "✓ file_list"]
    {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
    let todos = shell.todos();
    assert!(todos.len() == 1 && todos[0].starts_with("what-is-here-"), "{todos:?}");
    let goes_on = format!("`foldback chat --todo {}` continues it", todos[0]);
    assert!(ran.stderr.contains(&goes_on), "{}", ran.stderr);

    // Another day, by another command.
    let ran = say(&shell, &provider, &["--todo", &todos[0]], "And now?");
    assert_eq!((ran.code, ran.text()), (0, "As I said.\n"), "{ran:?}");
    assert!(shows(&provider.requests()[3], "Still nothing."));
    assert_eq!(shell.json(&["sessions"]).as_array().unwrap().len(), 3, "a run for each turn");
    shell.ok(&["search", "--todo", &todos[0], "--all", "nothing"]);
}

#[test]
fn a_program_reads_the_events_of_each_turn() {
    let shell = Shell::new();
    let provider = Provider::new(vec![Provider::text("Yes."), Provider::text("No.")]);
    let ran =
        say(&shell, &provider, &["--json", "--todo", "trip"], "Yes?\nNo?\n/cost\n/policy full\n");
    assert_eq!(ran.code, 0, "{ran:?}");
    let lines = ran.json_lines();
    let reports: Vec<_> = lines.iter().filter(|line| line["event"] == "report").collect();
    let of = |at: usize| (&reports[at]["run"], &reports[at]["todo"], &reports[at]["answer"]);
    assert_eq!(of(0), (&json!("trip"), &json!("trip"), &json!("Yes.")));
    assert_eq!(of(1), (&json!("trip:2"), &json!("trip"), &json!("No.")));
    let states = |event: &str| {
        let of = lines.iter().filter(|line| line["event"] == event);
        of.map(|line| line["state"].as_str().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!((states("began"), states("ended")), (vec!["running"; 2], vec!["finished"; 2]));
    let [.., cost, policy] = lines.as_slice() else { panic!() };
    assert_eq!(
        (&cost["turns"], &cost["calls"], &cost["input_tokens"]),
        (&json!(2), &json!(2), &json!(200))
    );
    assert_eq!((&policy["policy"], &policy["auto"]), (&json!("full"), &json!(false)));
    // The conversation keeps the policy of its last turn, which prices do not choose again.
    let ran = say(&shell, &provider, &["--json", "--todo", "trip"], "/policy\n/policy auto\n");
    let told: Vec<_> = ran.json_lines().into_iter().map(|line| line["auto"].clone()).collect();
    assert_eq!(told, [json!(false), json!(true)], "{ran:?}");
}

/// Prices choose the policy of a new conversation; a continued one keeps it, whatever its prices are now.
#[test]
fn a_program_reads_whether_prices_choose_the_policy() {
    let shell = Shell::new();
    let prices = crate::last_said::priced(&shell, 1.0, 1_024);
    let provider = Provider::new(vec![Provider::text("Yes.")]);
    let policies = |flags: &[&str], lines: &str| {
        let ran = say(&shell, &provider, &[&["--json"], flags].concat(), lines);
        assert_eq!(ran.code, 0, "{ran:?}");
        let told = ran.json_lines().into_iter().filter(|line| line["auto"].is_boolean());
        told.map(|line| json!([line["policy"], line["auto"]])).collect::<Vec<_>>()
    };
    let (chosen, own) = ("foldback-cache-aware", "foldback");
    assert_eq!(
        policies(&["--settings", &prices, "--todo", "trip"], "/policy\nYes?\n"),
        [json!([chosen, true])]
    );
    assert_eq!(
        policies(&["--todo", "trip"], "/policy\n/policy full\n/policy\n/policy auto\n"),
        [
            json!([chosen, false]),
            json!(["full", false]),
            json!(["full", false]),
            json!([own, true])
        ]
    );
    assert_eq!(
        policies(&["--todo", "new"], "/policy\n/policy foldback\n"),
        [json!([own, true]), json!([own, false])]
    );
}

/// A line that is no text is refused, and the conversation continues.
#[test]
fn a_line_that_is_not_utf_8_is_left_out() {
    let shell = Shell::new();
    let provider = Provider::new(vec![Provider::text("一"), Provider::text("二")]);
    let ran = say(&shell, &provider, &[], b"first\nbad \xff\nlast\n");
    assert_eq!((ran.code, ran.text()), (1, "一\n二\n"), "{ran:?}");
    assert!(ran.stderr.contains("not UTF-8"), "{}", ran.stderr);
    assert!(shows(&provider.requests()[1], "last") && !shows(&provider.requests()[1], "bad"));
}

/// A failed turn ends neither the conversation nor its place.
#[test]
fn a_turn_that_fails_does_not_end_the_conversation() {
    let shell = Shell::new();
    let provider = Provider::new(vec![Provider::error(401), Provider::text("Here I am.")]);
    let ran =
        say(&shell, &provider, &["--todo", "trip"], "Are you there?\nAnd now?\n//etc is a text\n");
    assert_eq!((ran.code, ran.text()), (1, "Here I am.\n"), "{ran:?}");
    assert!(ran.stderr.contains("this turn is stopped: The model failed"), "{}", ran.stderr);
    assert!(shows(&provider.requests()[1], "Are you there?"));
    assert!(shows(&provider.requests()[2], "/etc is a text"));
    let ran = shell.run(&["chat", "--model", "unheard-of"]);
    assert!(ran.code == 2 && ran.stderr.contains("give a base URL"), "{ran:?}");
}

/// How long to wait for expected output.
const PATIENCE: Duration = Duration::from_secs(60);

/// A terminal, as `script` makes one: what is typed goes in, and the screen's contents come out.
struct Screen {
    child: std::process::Child,
    shown: Receiver<Vec<u8>>,
    all: String,
}

impl Screen {
    /// Starts the command at a terminal; returns nothing, with a note, if there can be none.
    fn open(command: &Command) -> Option<Self> {
        let screen = Self::begin(command);
        if screen.is_none() {
            eprintln!("SKIPPED: there is no `script` to make a terminal with");
        }
        screen
    }

    fn begin(command: &Command) -> Option<Self> {
        let quoted = |word: &std::ffi::OsStr| format!("'{}'", word.to_str().unwrap());
        let words = std::iter::once(command.get_program()).chain(command.get_args()).map(quoted);
        let mut script = Command::new("script");
        // In place of the shell, which would also receive Ctrl-C, and end with it.
        let line = format!("exec {}", words.collect::<Vec<_>>().join(" "));
        script.args(["-qefc", &line, "/dev/null"]);
        script.env_clear().env("PATH", std::env::var_os("PATH")?).env("TERM", "xterm");
        script.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        script.current_dir(command.get_current_dir()?);
        script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = script.spawn().ok()?;
        let (send, shown) = channel();
        let mut out = child.stdout.take()?;
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(n @ 1..) = out.read(&mut bytes) {
                if send.send(bytes[..n].to_vec()).is_err() {
                    break;
                }
            }
        });
        Some(Self { child, shown, all: String::new() })
    }

    fn types(&mut self, keys: &str) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(keys.as_bytes()).unwrap();
        stdin.flush().unwrap();
    }

    /// Waits until this is on the screen, after what was waited for before; returns what is in between.
    #[track_caller]
    fn waits_for(&mut self, words: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.all.find(words) {
                let between = self.all[..at].to_owned();
                self.all.drain(..at + words.len());
                return between;
            }
            let left = until.saturating_duration_since(Instant::now());
            let Ok(bytes) = self.shown.recv_timeout(left) else {
                panic!("{words:?} is not shown: {}", self.all)
            };
            self.all.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
}

impl Drop for Screen {
    /// A conversation that nobody leaves would stay forever, and everything that it has inherited with it.
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// At a terminal: a line can continue on the next, Ctrl-C ends the turn and not the conversation, earlier input comes
/// back, Ctrl-D leaves.
#[cfg(target_os = "linux")]
#[test]
fn a_person_types_at_a_terminal() {
    let shell = Shell::new();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let provider = Provider::answering(move |_| match counted.fetch_add(1, Ordering::Relaxed) {
        0 => Provider::text("Good morning."),
        1 => Provider::text("Too late.").after(Duration::from_secs(120)),
        _ => Provider::text("Here I am again."),
    });
    let command = chat(&shell, &provider, &["--todo", "trip"]);
    let Some(mut screen) = Screen::open(&command) else { return };
    screen.waits_for("trip (new)");
    screen.waits_for("›");
    screen.types("早上好\\\rGood morning\r");
    screen.waits_for("Good morning.");
    screen.waits_for("›");
    screen.types("Wait for me\r");
    // The turn is shown while it runs.
    screen.waits_for("the model  ");
    let until = Instant::now() + PATIENCE;
    while asked.load(Ordering::Relaxed) < 2 {
        assert!(Instant::now() < until, "the model is asked: {}", screen.all);
        std::thread::sleep(Duration::from_millis(10));
    }
    screen.types("\x03");
    screen.waits_for("stopping this turn");
    screen.waits_for("this turn is cancelled");
    screen.waits_for("›");
    // Ctrl-C at the prompt says how to leave.
    screen.types("half a line\x03");
    screen.waits_for("Ctrl-D leaves");
    screen.waits_for("›");
    // The text before the last, brought back.
    screen.types("\x1b[A\r");
    screen.waits_for("Here I am again.");
    screen.waits_for("›");
    screen.types("\x04");
    screen.waits_for("`foldback chat --todo trip` continues it");
    // Waiting closes the input, at whose end `script` ends in its own way.
    let keyboard = screen.child.stdin.take();
    let status = screen.child.wait().unwrap();
    assert!(status.success(), "{status}: {}", screen.all);
    drop(keyboard);
    let said = |at: usize| provider.requests()[at]["messages"].to_string();
    assert!(said(0).contains("早上好\\nGood morning"), "{}", said(0));
    assert_eq!(said(2).matches("Wait for me").count(), 2, "{}", said(2));
    assert!(names(&shell.store()).contains(&"chat_history".to_owned()));
    let states: Vec<_> = shell
        .json(&["sessions"])
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["state"].clone())
        .collect();
    assert_eq!(states, ["done", "cancelled", "done"]);
}

/// The model's words are written to the terminal as they come, once: also before calls, and if its answer breaks off,
/// its new words replace them.
#[cfg(target_os = "linux")]
#[test]
fn words_are_shown_while_they_arrive() {
    let shell = Shell::new();
    let provider = Provider::new(vec![
        Provider::pieces("The first words, 早上好, and a while later the last."),
        Provider::pieces_and("I look at all of it first.", &[("file_list", json!({}))]),
        Provider::pieces("Nothing is here.\n\n"),
        Provider::broken("It was never more than"),
        Provider::pieces("It was never more than a rumour."),
    ]);
    let provider = provider.slowly(Duration::from_millis(300));
    let command = chat(&shell, &provider, &["--todo", "trip"]);
    let Some(mut screen) = Screen::open(&command) else { return };
    screen.waits_for("›");
    screen.types("Good morning\r");
    screen.waits_for("The first words");
    assert!(!screen.all.contains("the last."), "{}", screen.all);
    let rest = screen.waits_for("1 call · ");
    assert_eq!(rest.matches("the last.\r\n").count(), 1, "{rest}");
    assert!(!rest.contains("The first"), "{rest}");

    screen.waits_for("›");
    screen.types("What is here?\r");
    screen.waits_for("I look at all of it first.\r\n");
    let between = screen.waits_for("[. holds nothing]");
    assert!(!between.contains("I look"), "{between}");
    screen.waits_for("Nothing is here.\r\n");
    let rest = screen.waits_for("2 calls · ");
    assert!(!rest.contains("Nothing") && !rest.contains("I look"), "{rest}");

    screen.waits_for("›");
    screen.types("Is it true?\r");
    screen.waits_for("It was never more than\r\n");
    screen.waits_for("no answer yet: ");
    screen.waits_for("the text above is not the answer yet");
    let rest = screen.waits_for("1 call · ");
    assert_eq!(rest.matches("It was never more than a rumour.\r\n").count(), 1, "{rest}");
    screen.waits_for("›");
    screen.types("\x04");
    screen.waits_for("continues it");
}

/// A refused or incomplete command changes nothing, and is answered with a sentence.
#[test]
fn commands_are_completed_and_refused_in_their_own_words() {
    let shell = Shell::new();
    let provider = Provider::new(vec![Provider::text("Yes."), Provider::text("Never.")]);
    let lines =
        "Yes?\n/recall\n/load \n/policy stm-ltm\n/policy full\n/policy no\n/policy\n/quit \nNo?\n";
    let flags = ["--context", "stm-ltm", "--summary-model", "small"];
    let ran = say(&shell, &provider, &flags, lines);
    assert_eq!(ran.code, 0, "{ran:?}");
    for words in
        ["/recall needs words", "/load needs a reference, such as b_trip_001", "policy \"no\""]
    {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
    let told: Vec<&str> = ran.text().lines().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(told, ["Yes.", "stm-ltm", "full", "full"]);
    assert_eq!(provider.requests().len(), 1, "/quit leaves");
}

#[test]
fn a_quiet_chat_tells_of_a_turn_without_an_answer() {
    let shell = Shell::new();
    let provider = Provider::new(vec![Provider::error(401)]);
    let ran = say(&shell, &provider, &["--quiet", "--todo", "trip"], "Are you there?\n");
    assert_eq!((ran.code, ran.text()), (1, ""), "{ran:?}");
    assert!(ran.stderr.starts_with("error: the run trip is stopped: The model"), "{}", ran.stderr);
}

/// A first turn in which nothing was said does not take the conversation's name.
#[test]
fn a_named_conversation_keeps_its_name() {
    let shell = Shell::new();
    let provider = Provider::new(vec![Provider::text("Here I am.")]);
    let flags = ["--todo", "trip", "--context", "stm-ltm", "--summary-model", "small"];
    let broken = "[models.small]\nbase_url = \"ftp://x\"\nname = \"small\"\n";
    crate::settings::user(&shell, broken);
    let lines = "Are you there?\n/policy full\nAnd now?\n";
    let ran = say(&shell, &provider, &flags, lines);
    assert_eq!((ran.code, shell.todos()), (1, vec!["trip".to_owned()]), "{ran:?}");
    let runs = shell.json(&["sessions"]);
    assert_eq!(
        (&runs[0]["id"], &runs[0]["state"], &runs[1]),
        (&json!("trip"), &json!("done"), &json!(null))
    );
}

/// A turn can also be ended while it is prepared: here its MCP server does not answer.
#[cfg(unix)]
#[test]
fn a_chat_that_is_to_end_ends_while_a_turn_is_prepared() {
    let shell = Shell::new();
    let servers =
        json!({"mcpServers": {"slow": {"command": "sleep", "args": ["600"]}}}).to_string();
    let list = shell.write("servers.json", servers);
    let provider = Provider::new(Vec::new());
    let mut command = chat(&shell, &provider, &["--todo", "trip", "--mcp", &list]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut typed = child.stdin.take().unwrap();
    typed.write_all(b"Are you there?\n").unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    told.find(|line| line.contains("starting MCP servers")).unwrap();
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    told.find(|line| line.contains("stopping this turn")).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert_eq!(shell.json(&["sessions"])[0]["state"], "cancelled");
}
