//! Checking, repairing, copying, forgetting.

use crate::provider::Provider;
use crate::run::run;
use crate::shell::{Shell, line, names, quay};
use crate::terminal::{has_terminal, on_a_terminal};
use std::io::Write as _;
use std::process::Stdio;

#[test]
fn a_copy_is_a_store() {
    let shell = Shell::with_quay();
    shell.ok(&["backup", "copy"]);
    let copy = shell.path("copy");
    let todos = shell.run_bare(&["--store", copy.to_str().unwrap(), "--json", "todos"]);
    assert_eq!(todos.json(), shell.json(&["todos"]));
    let verify = shell.run_bare(&["--store", copy.to_str().unwrap(), "verify"]);
    assert_eq!(verify.code, 0, "{verify:?}");
    let again = shell.run(&["backup", "copy"]);
    assert_eq!(again.code, 2);
    assert!(again.stderr.contains("is not empty"), "{}", again.stderr);
}

#[test]
fn what_is_forgotten_is_gone_and_the_rest_stays() {
    let shell = Shell::with_quay();
    let other = shell.write("other.jsonl", line("other", quay()));
    shell.ok(&["import", &other]);
    let ran = shell.ok(&["forget", "--todo", "quay"]);
    assert_eq!(ran.text(), format!("forgotten: quay, {} messages\n", quay().len()));
    assert_eq!(shell.run(&["view", "--todo", "quay"]).code, 1);
    assert_eq!(shell.run(&["forget", "--todo", "quay"]).code, 1);
    assert_eq!(shell.ok(&["export", "--todo", "other"]).text(), line("other", quay()));
    shell.ok(&["compact"]);
    shell.ok(&["verify"]);
}

/// At a terminal nothing is deleted without a yes; elsewhere, scripts go on as before.
#[test]
fn a_person_is_asked_before_anything_is_forgotten() {
    if !has_terminal() {
        return;
    }
    let shell = Shell::with_quay();
    let early = shell.write("early.jsonl", line("early", quay()));
    shell.ok(&["tenant", "add", "acme"]);
    shell.ok(&["--tenant", "acme", "import", &early]);
    let answered = |args: &[&str], answer: &str| {
        let mut command = shell.command();
        command.arg("--store").arg(shell.store()).args(args);
        let mut terminal = on_a_terminal(&command, "");
        let mut script = terminal.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        script.stdin.take().unwrap().write_all(answer.as_bytes()).unwrap();
        let ran = script.wait_with_output().unwrap();
        (ran.status.code().unwrap(), String::from_utf8(ran.stdout).unwrap())
    };
    let forget = ["forget", "--todo", "quay"];
    for no in ["n\n", "\n"] {
        let (code, shown) = answered(&forget, no);
        let asked = format!("Delete quay ({} messages, ", quay().len());
        assert!(shown.contains(&asked) && shown.contains("2 payloads of "), "{shown}");
        assert!(code == 1 && shown.contains("nothing was deleted"), "{code}: {shown}");
    }
    assert_eq!(shell.todos(), ["quay"]);
    let (code, shown) = answered(&["forget", "--todo", "quey"], "y\n");
    assert!(code == 1 && !shown.contains("Delete"), "{code}: {shown}");
    let (code, shown) = answered(&forget, "y\n");
    assert!(code == 0 && shown.contains("forgotten: "), "{code}: {shown}");
    assert!(shell.todos().is_empty());

    let tenant = ["forget", "--tenant", "acme"];
    let (code, shown) = answered(&tenant, "no\n");
    let asked = format!("Delete the tenant acme (1 todo, {} messages, ", quay().len());
    assert!(code == 1 && shown.contains(&asked), "{code}: {shown}");
    assert_eq!(shell.json(&["--tenant", "acme", "todos"])[0]["todo_id"], "early");
    let (code, shown) = answered(&[&tenant[..], &["-y"]].concat(), "");
    assert!(code == 0 && !shown.contains("Delete"), "{code}: {shown}");
}

/// S9: a run whose record cannot be read goes with its todo, by its name; those of others stay.
#[test]
fn s9_a_run_that_cannot_be_read_is_forgotten() {
    let shell = Shell::with_quay();
    let runs = shell.store().join("runs");
    let names = ["quay", "quay+2", "quay+x", "quayside"];
    for name in names {
        std::fs::create_dir_all(runs.join(name)).unwrap();
        std::fs::write(runs.join(name).join("run.json"), "{ 坏").unwrap();
        std::fs::write(runs.join(name).join("journal"), "what was said").unwrap();
    }
    let forgotten = shell.json(&["forget", "--todo", "quay"]);
    assert_eq!(forgotten["runs"], 2, "{forgotten}");
    let left = names.map(|name| runs.join(name).exists());
    assert_eq!(left, [false, false, true, true]);
}

#[test]
fn damage_is_found_and_named() {
    let shell = Shell::with_quay();
    let database = shell.store().join("store.sqlite");
    let bytes = std::fs::read(&database).unwrap();
    // A byte of a message that occurs nowhere else.
    let needle = "现在没有".as_bytes();
    assert!(bytes.windows(needle.len()).all(|window| window != needle));
    let needle = b"You repair the service quay.";
    let at = bytes.windows(needle.len()).position(|window| window == needle).unwrap();
    let mut flipped = bytes;
    flipped[at] ^= 1;
    std::fs::write(&database, flipped).unwrap();
    for command in ["verify", "doctor"] {
        let ran = shell.run(&["--json", command]);
        assert_eq!(ran.code, 1, "{ran:?}");
        let report = ran.json();
        assert_eq!(report["clean"], false);
        assert!(!report["findings"].as_array().unwrap().is_empty());
        let human = shell.run(&[command]);
        assert_eq!(human.code, 1);
        assert!(human.text().contains("finding"), "{}", human.text());
    }
    // The rest stays readable.
    assert_eq!(shell.run(&["load", "--todo", "quay", "b_quay_002"]).code, 0);
    assert_eq!(shell.run(&["export", "--todo", "quay"]).code, 1);
}

#[test]
fn r11_the_index_folder_can_be_deleted() {
    let shell = Shell::with_quay();
    let index = shell.store().join("index");
    if index.exists() {
        std::fs::remove_dir_all(&index).unwrap();
    }
    let found = shell.json(&["search", "--todo", "quay", "nt-2226"]);
    assert!(!found["hits"].as_array().unwrap().is_empty());
    assert_eq!(shell.json(&["doctor", "--repair"])["clean"], true);
}

#[test]
fn sled_is_a_store_too() {
    let shell = Shell::new();
    let file = shell.write("quay.jsonl", line("quay", quay()));
    shell.ok(&["--engine", "sled", "import", &file]);
    let exported = shell.ok(&["--engine", "sled", "export", "--todo", "quay"]);
    assert_eq!(exported.text(), line("quay", quay()));
    let verify = shell.ok(&["--engine", "sled", "verify"]);
    assert!(verify.text().starts_with("clean: 1 todo"), "{}", verify.text());
}

#[test]
fn the_store_is_where_it_is_said_to_be() {
    let shell = Shell::new();
    let file = shell.write("quay.jsonl", line("quay", quay()));
    let mut command = shell.command();
    let ran = command.env("FOLDBACK_STORE", shell.path("named")).args(["import", &file]).output();
    assert!(ran.unwrap().status.success());
    assert!(names(&shell.path("named")).contains(&"FORMAT".to_owned()));
    // By default it is in the user's data folder.
    let ran = shell.run_bare(&["import", &file]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let home = names(&shell.path(""));
    assert_eq!(home.iter().filter(|name| *name == "FORMAT").count(), 2, "{home:?}");
}

#[test]
fn a_copy_into_the_store_itself_is_refused() {
    let shell = Shell::with_quay();
    // Reading opens the engine's log, which is no part of the copy.
    let held = || {
        let mut names = names(&shell.store());
        names.retain(|name| !name.starts_with("store.sqlite-"));
        names
    };
    let before = held();
    for dir in ["store", "store/copy", "./new/../store/a/b", "store/index/../copy"] {
        let ran = shell.run(&["backup", dir]);
        assert_eq!(ran.code, 2, "{dir}: {ran:?}");
        assert!(ran.stderr.contains("lies in the store's own folder"), "{dir}: {}", ran.stderr);
        assert_eq!(held(), before, "{dir}");
    }
    shell.ok(&["backup", "store-copy"]);
}

#[test]
fn folds_are_the_closed_blocks() {
    let shell = Shell::with_quay();
    let doctor = shell.json(&["doctor"]);
    assert_eq!(
        doctor["folds"],
        shell.json(&["blocks", "--todo", "quay"]).as_array().unwrap().len()
    );
}

/// A todo with the name of a forgotten one begins with nothing of the earlier runs: no words, and no permission.
#[test]
fn the_runs_of_a_todo_are_forgotten_with_it() {
    let shell = Shell::new();
    let provider = Provider::answering(|_| Provider::text("Yes."));
    let args = ["--strategy", "react", "--id", "trip", "--allow-net", "docs.rs", "Where to?"];
    assert_eq!(run(&shell, &provider, &args).code, 0);
    shell.ok(&["run", "--todo", "trip", "And then?"]);
    assert_eq!(run(&shell, &provider, &["--strategy", "react", "--id", "other", "Hm?"]).code, 0);
    let ran = shell.ok(&["forget", "--todo", "trip"]);
    assert!(ran.text().ends_with(", 2 runs\n"), "{}", ran.text());
    assert_eq!(std::fs::read_dir(shell.store().join("runs")).unwrap().count(), 1);
    assert_eq!(shell.json(&["sessions"])[0]["id"], "other");
}
