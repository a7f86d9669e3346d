//! `foldback run --todo`: conversations of several turns, and tasks of many steps.

use crate::provider::{Provider, Turn};
use crate::run::{command, run};
use crate::shell::{Ran, Shell, line, quay};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Whether a request shows some words.
pub(crate) fn shows(request: &Value, words: &str) -> bool {
    request["messages"].to_string().contains(words)
}

/// Writes this many files, a call each, and reports it. If it is held up, its answer comes too late.
fn writer(files: usize, held_up_at: usize, is_held_up: &Arc<AtomicBool>) -> Provider {
    let (mut written, is_held_up) = (0, Arc::clone(is_held_up));
    Provider::answering(move |_| {
        if written == held_up_at && is_held_up.load(Ordering::Relaxed) {
            return Provider::text("Too late.").after(Duration::from_secs(60));
        }
        written += 1;
        match written {
            n if n <= files => {
                Provider::call("file_write", &json!({"path": format!("{n}.md"), "content": "好"}))
            }
            _ => Provider::text("全部写好了。"),
        }
    })
}

/// A task of 120 calls runs to its end, even if its process is killed at the 70th: no call is made twice, and the model
/// is asked nothing again.
#[test]
fn a_task_of_many_calls_is_killed_and_goes_on() {
    let shell = Shell::new();
    let is_held_up = Arc::new(AtomicBool::new(true));
    let provider = writer(120, 70, &is_held_up);
    let args = ["--json", "--strategy", "react", "--yes", "--id", "files", "Write 120 files"];
    let mut command = command(&shell, &provider, &args);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    // The answer to the 71st question does not come.
    lines.filter(|line| line.contains("\"asked\"")).nth(70).unwrap();
    while provider.requests().len() < 71 {
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    is_held_up.store(false, Ordering::Relaxed);
    assert_eq!(shell.json(&["sessions"])[0]["state"], "interrupted");

    let events = shell.ok(&["--json", "run", "--resume", "files"]).json_lines();
    assert_eq!(events.last().unwrap()["answer"], "全部写好了。");
    let made: Vec<bool> = events
        .iter()
        .filter(|event| event["event"] == "call_ended")
        .map(|event| !event["from_journal"].as_bool().unwrap())
        .collect();
    assert_eq!(made.len(), 120);
    assert!(made[..70].iter().all(|made| !made) && made[70..].iter().all(|made| *made));
    assert_eq!(provider.requests().len(), 70 + 1 + 51, "the one that was held up is asked again");
    assert_eq!(std::fs::read_dir(shell.path("work")).unwrap().count(), 120);
}

#[test]
fn steps_are_bounded_where_that_is_asked_for() {
    let shell = Shell::new();
    let provider = writer(5, 9, &Arc::default());
    let args = ["--strategy", "react", "--yes", "--id", "files", "--max-steps", "2", "Write them"];
    let ran = run(&shell, &provider, &args);
    assert_eq!(ran.code, 1, "{ran:?}");
    let why = shell.json(&["sessions"])[0]["why"].clone();
    assert_eq!(why, "--max-steps 2 is reached: it may take no more steps");
    assert!(ran.text().ends_with("foldback run --resume files --max-steps 4\n"), "{}", ran.text());
    // Without a change, it ends in the same way; with more steps it continues.
    assert_eq!(shell.run(&["run", "--resume", "files"]).code, 1);
    let ran = shell.ok(&["run", "--resume", "files", "--max-steps", "9"]);
    assert!(ran.text().contains("全部写好了。"), "{ran:?}");
    assert_eq!(provider.requests().len(), 6, "nobody is asked twice");
}

/// The answers of a model in a conversation of ten turns: it reads a file in the first, talks at length, and is asked
/// in the tenth what that file said, which it has to look up.
fn reader(turn: &Arc<AtomicUsize>) -> Provider {
    let (turn, mut asked) = (Arc::clone(turn), (0, 0));
    Provider::answering(move |request| {
        let now = turn.load(Ordering::Relaxed);
        asked = if asked.0 == now { (now, asked.1 + 1) } else { (now, 1) };
        // The sought fact is a number: the words around it may be anywhere.
        let sees = shows(request, "7714");
        match asked {
            (1, 1) => Provider::call("file_read", &json!({"path": "潮位.md"})),
            (1, _) => Provider::text("I have read it."),
            (2..10, _) => Provider::text(&format!("Harbour {now}. {}", filler(now))),
            (_, 1) if sees => Provider::text("It never left the view."),
            (_, 1) => {
                Provider::call("search_block", &json!({"query": "结论 conclusion of 潮位.md"}))
            }
            (_, 2) => match block_in(request) {
                Some(block) => Provider::call("load", &json!({"ref": block})),
                None => Provider::text("Nothing was found."),
            },
            (_, _) if sees => Provider::text("The file concluded: 7714 mm."),
            _ => Provider::text("I do not know."),
        }
    })
}

fn filler(turn: usize) -> String {
    let word = |n: usize| ["quay", "tide", "mole", "lamp", "rope", "crane"][(n * turn + n / 7) % 6];
    (0..400).map(word).collect::<Vec<_>>().join(" ")
}

/// The block that a search put first.
fn block_in(request: &Value) -> Option<String> {
    let messages = request["messages"].as_array().unwrap();
    let found = messages.iter().rfind(|message| message["role"] == "tool")?;
    let text = found["content"].as_str()?;
    let from = text.find("b_sea_")?;
    Some(text[from..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect())
}

/// What was said in the first turn is found in the tenth, each turn asked as a person types it.
#[test]
fn the_tenth_turn_recalls_the_first() {
    let shell = Shell::new();
    let turn = Arc::new(AtomicUsize::new(1));
    let provider = reader(&turn);
    shell.folders(&["work"]);
    shell.write("work/潮位.md", "读数见附录。\n结论：7714 毫米。\n");
    let args = ["--strategy", "react", "--id", "sea", "Read 潮位.md for me."];
    assert_eq!(run(&shell, &provider, &args).code, 0);
    for now in 2..=10 {
        turn.store(now, Ordering::Relaxed);
        let question = match now {
            10 => "What did the file that we read at the beginning conclude?".to_owned(),
            _ => format!("Tell me more about harbour {now}, please."),
        };
        // Nothing but the conversation: everything else is as in the turn before.
        let ran = shell.ok(&["run", "--todo", "sea", &question]);
        if now == 10 {
            assert!(ran.text().starts_with("\nThe file concluded: 7714 mm."), "{ran:?}");
            assert!(ran.stderr.contains("↺ search_block") && ran.stderr.contains("↺ load b_sea_"));
        }
    }
    assert_eq!(shell.todos(), ["sea"], "it is one conversation");
    let runs = shell.json(&["sessions"]);
    let listed: Vec<_> = runs.as_array().unwrap().iter().collect();
    let ids: Vec<&str> = listed.iter().map(|run| run["id"].as_str().unwrap()).collect();
    assert_eq!((ids[0], ids[1], ids[9]), ("sea", "sea:2", "sea:10"));
    assert!(
        listed.iter().all(|run| run["todo"] == "sea" && run["context"] == listed[0]["context"])
    );
    assert_eq!((&listed[9]["turn"], &listed[9]["state"]), (&json!(10), &json!("done")));
    let told = shell.ok(&["sessions"]);
    assert!(told.text().contains("sea:10\n    turn 10 of sea · done"), "{}", told.text());
    shell.ok(&["verify"]);
    // Each turn has a record of its own.
    let record = shell.ok(&["trajectories", "export", "sea:10"]).json_lines();
    assert_eq!(record[0]["calls"].as_array().unwrap().len(), 5, "{}", record[0]["calls"]);
}

#[test]
fn any_todo_of_the_store_can_be_gone_on_with() {
    let shell = Shell::with_quay();
    let provider = Provider::new(vec![Provider::text("日志时间是 UTC。"), Provider::text("7.")]);
    let ran = run(&shell, &provider, &["--strategy", "react", "--todo", "quay", "哪个时区？"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(shows(&provider.requests()[0], "max_attempts"), "the conversation stands before it");
    run(&shell, &provider, &["--strategy", "react", "--todo", "quay", "How many attempts?"]);
    let runs = shell.json(&["sessions"]);
    let of = |at: usize| (runs[at]["id"].as_str().unwrap(), runs[at]["turn"].as_u64().unwrap());
    assert_eq!((of(0), of(1)), (("quay:1", 1), ("quay:2", 2)));
    let said: Value = shell.ok(&["export", "--todo", "quay"]).json();
    let last = said["messages"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["content"], "7.");
}

#[test]
fn a_conversation_is_named_by_what_it_is() {
    let shell = Shell::with_quay();
    let provider = Provider::new(vec![Provider::text("Yes.")]);
    let refused = |args: &[&str], code: i32, words: &str| {
        let ran = run(&shell, &provider, args);
        assert_eq!(ran.code, code, "{args:?}: {ran:?}");
        assert!(ran.stderr.contains(words), "{args:?}: {}", ran.stderr);
    };
    let words = "there is already a todo quay; `foldback run --todo quay";
    refused(&["--id", "quay", "And now?"], 2, words);
    refused(&["--id", "quay", "--context", "full", "And now?"], 2, words);
    refused(&["--todo", "harbour", "And now?"], 1, "harbour");
    refused(&["--todo", "quay"], 2, "required");
    refused(&["--todo", "quay", "--id", "trip", "And?"], 2, "cannot be used with");
    assert_eq!(shell.json(&["sessions"]), json!([]));
    assert!(provider.requests().is_empty());
}

/// The model has the same conversation under every policy: a next turn keeps the policy, and may be given another.
#[test]
fn a_conversation_is_the_same_under_every_policy() {
    let shell = Shell::new();
    let file = shell.write("quay.jsonl", line("quay", quay()));
    shell.ok(&["import", &file]);
    let policies = ["full", "deepagents", "summary-top-n", "stm-ltm", "foldback-cache-aware"];
    let answers = policies.iter().flat_map(|_| [Provider::text("Yes."), Provider::text("No.")]);
    let provider = Provider::new(answers.collect::<Vec<Turn>>());
    for policy in policies {
        let args = ["--strategy", "react", "--context", policy, "--todo", "quay", "Is it mended?"];
        assert_eq!(run(&shell, &provider, &args).code, 0, "{policy}");
        shell.ok(&["run", "--todo", "quay", &format!("Sure of {policy}?")]);
        let asked = provider.requests();
        let [.., first, second] = asked.as_slice() else { panic!("{policy}") };
        let is_own = policy.starts_with("foldback");
        // By then it is long, and the memory folds it.
        assert!(is_own || shows(first, "What was max_attempts at the beginning?"), "{policy}");
        assert!(shows(second, "Is it mended?"), "{policy}");
        let runs = shell.json(&["sessions"]);
        assert_eq!(runs.as_array().unwrap().last().unwrap()["context"], policy);
    }
    let said: Value = shell.ok(&["export", "--todo", "quay"]).json();
    let texts = said["messages"].to_string();
    assert!(policies.iter().all(|policy| texts.contains(&format!("Sure of {policy}?"))), "{texts}");
}

/// A turn that was stopped can be resumed until the next one was asked; then that one can.
#[test]
fn a_turn_that_was_stopped_is_gone_on_with_or_passed_over() {
    let shell = Shell::new();
    let provider = Provider::new(vec![
        Provider::call("file_list", &json!({})),
        Provider::text("Then something else."),
    ]);
    let args = ["--strategy", "react", "--id", "see", "--max-calls", "1", "What is here?"];
    assert_eq!(run(&shell, &provider, &args).code, 1);
    let ran = shell.ok(&["run", "--todo", "see", "Never mind."]);
    let words = "the previous turn is stopped; `foldback run --resume see` would have continued it";
    assert!(ran.stderr.contains(words), "{}", ran.stderr);
    let ran = shell.run(&["run", "--resume", "see"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("has continued: its last turn is see:2"), "{}", ran.stderr);
    let ran = shell.ok(&["run", "--resume", "see:2"]);
    assert!(ran.text().contains("Then something else.") && ran.stderr.contains("--todo see"));
}

/// A settings file that is named each time adds nothing.
#[test]
fn a_next_turn_asks_the_same_model_where_a_settings_file_is_named() {
    let shell = Shell::new();
    let provider = Provider::new(vec![Provider::text("Yes."), Provider::text("No.")]);
    let file = shell.write("named.toml", "[agent]\nstrategy = \"react\"\n");
    let named = |command: &mut std::process::Command| {
        Ran::of(command.env("FOLDBACK_CONFIG", &file).output().unwrap())
    };
    let ran = named(&mut command(&shell, &provider, &["--id", "see", "Is it mended?"]));
    assert_eq!(ran.code, 0, "{ran:?}");
    let mut next = shell.command();
    next.arg("--store").arg(shell.store()).args(["run", "--todo", "see", "Sure?"]);
    let ran = named(&mut next);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(provider.requests()[1]["model"], "scripted");
}

/// Two turns of a conversation do not run concurrently, however close they begin.
#[test]
fn a_turn_waits_for_the_one_before() {
    let shell = Shell::new();
    let provider = Provider::answering(|request| match shows(request, "Slowly") {
        true => Provider::text("Late.").after(Duration::from_secs(5)),
        false => Provider::text("Yes."),
    });
    assert_eq!(run(&shell, &provider, &["--strategy", "react", "--id", "see", "Begin"]).code, 0);
    let next = || {
        let mut next = shell.command();
        next.arg("--store").arg(shell.store()).args(["run", "--todo", "see", "Slowly"]);
        next.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let both = [next(), next()].map(|child| Ran::of(child.wait_with_output().unwrap()));
    let codes: Vec<i32> = both.iter().map(|ran| ran.code).collect();
    assert!(codes.contains(&0) && codes.contains(&3), "{both:?}");
    assert!(both.iter().any(|ran| ran.stderr.contains("is in progress")), "{both:?}");
    assert_eq!(shell.json(&["sessions"]).as_array().unwrap().len(), 2);
}
