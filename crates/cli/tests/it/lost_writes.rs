//! A store that has lost acknowledged writes says so, whatever is asked of it.

use crate::shell::Shell;
use serde_json::json;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};

/// How many messages are acknowledged before the recorder is killed.
const MESSAGES: usize = 12;

fn say(stdin: &mut ChildStdin, n: usize) {
    let message = json!({ "role": "user", "content": format!("note {n} about the harbour") });
    writeln!(stdin, "{message}").unwrap();
    stdin.flush().unwrap();
}

/// Records until it is killed: everything since the store was made is only in the engine's log.
fn killed_while_recording() -> Shell {
    let shell = Shell::new();
    let mut command = shell.command();
    command.arg("--store").arg(shell.store()).args(["--json", "record", "--todo", "harbour"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for n in 0..MESSAGES {
        say(&mut stdin, n);
        assert!(lines.next().unwrap().unwrap().contains(&format!("\"seq\":{n}")));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    shell
}

/// R4: every command says that writes are lost, none writes after them, and `--accept-loss` ends that.
#[test]
fn r4_lost_writes_are_noticed_by_every_command() {
    let shell = killed_while_recording();
    let log = shell.store().join("store.sqlite-wal");
    let bytes = std::fs::read(&log).unwrap();
    std::fs::write(&log, &bytes[..bytes.len() / 2]).unwrap();

    let export = shell.run(&["export", "--todo", "harbour"]);
    assert_eq!(export.code, 1, "{export:?}");
    assert!(export.stderr.contains("the store has lost writes"), "{export:?}");
    let held = export.json()["messages"].as_array().unwrap().len();
    assert!((1..MESSAGES).contains(&held), "{held}");
    for args in [
        &["todos"][..],
        &["blocks", "--todo", "harbour"],
        &["search", "--todo", "harbour", "harbour"],
        &["view", "--todo", "harbour"],
        &["verify"],
        &["doctor"],
    ] {
        let ran = shell.run(args);
        assert_eq!(ran.code, 1, "{args:?}: {ran:?}");
        assert!(ran.stderr.contains("the store has lost writes"), "{args:?}: {ran:?}");
    }
    let message = shell.write("more.jsonl", "{\"role\": \"user\", \"content\": \"more\"}\n");
    let record = |shell: &Shell| {
        let mut command = shell.command();
        command.arg("--store").arg(shell.store()).args(["record", "--todo", "harbour"]);
        command.stdin(std::fs::File::open(&message).unwrap());
        crate::shell::Ran::of(command.output().unwrap())
    };
    let refused = record(&shell);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("takes no writes until the loss is accepted"), "{refused:?}");

    let accepted = shell.ok(&["doctor", "--accept-loss"]);
    assert!(accepted.stderr.contains("accepted: "), "{accepted:?}");
    let recorded = record(&shell);
    assert_eq!((recorded.code, recorded.stderr.as_str()), (0, ""), "{recorded:?}");
    assert_eq!(shell.json(&["verify"])["messages"], held + 1);
    let again = shell.ok(&["doctor", "--accept-loss"]);
    assert!(again.stderr.contains("nothing to accept"), "{again:?}");
}

/// R4: the same holds for each engine whose database is an earlier one of the same store.
#[test]
fn r4_a_database_that_went_back_is_noticed_on_each_engine() {
    for engine in ["sqlite", "redb", "sled"] {
        let shell = Shell::new();
        let run = |args: &[&str]| shell.run(&[&["--engine", engine], args].concat());
        let note = |n: usize| {
            let message =
                json!({ "role": "user", "content": format!("note {n} about the harbour") });
            shell.write(
                "note.jsonl",
                format!("{}\n", json!({ "id": format!("note-{n}"), "messages": [message] })),
            )
        };
        let database = shell.store().join(format!("store.{engine}"));
        let early = shell.path("early");
        let copy = |from: &Path, to: &Path| {
            assert!(Command::new("cp").arg("-r").args([from, to]).status().unwrap().success());
        };
        assert_eq!(run(&["import", &note(1)]).code, 0);
        copy(&database, &early);
        assert_eq!(run(&["import", &note(2)]).code, 0);
        match engine {
            "sled" => std::fs::remove_dir_all(&database),
            _ => std::fs::remove_file(&database),
        }
        .unwrap();
        copy(&early, &database);

        for args in [&["todos"][..], &["export", "--todo", "note-1"], &["verify"], &["doctor"]] {
            let ran = run(args);
            assert_eq!(ran.code, 1, "{engine}, {args:?}: {ran:?}");
            assert!(ran.stderr.contains("the store has lost writes"), "{engine}: {ran:?}");
        }
        for args in [&["import", &note(3)][..], &["compact"]] {
            let refused = run(args);
            assert_eq!(refused.code, 1, "{engine}, {args:?}: {refused:?}");
            let said = "takes no writes until the loss is accepted";
            assert!(refused.stderr.contains(said), "{engine}: {refused:?}");
        }
        let accepted = run(&["doctor", "--accept-loss"]);
        assert_eq!(accepted.code, 0, "{engine}: {accepted:?}");
        assert!(accepted.stderr.contains("accepted: "), "{engine}: {accepted:?}");
        let imported = run(&["import", &note(3)]);
        assert_eq!(imported.code, 0, "{engine}: {imported:?}");
        assert_eq!(run(&["--json", "verify"]).json()["messages"], 2, "{engine}");
    }
}

/// R3: messages sent to a recorder whose store was deleted or moved away are not acknowledged.
#[test]
fn r3_a_recorder_whose_store_is_gone_ends() {
    let engines = ["sqlite", "redb", "sled"];
    for (engine, is_moved) in
        engines.into_iter().flat_map(|engine| [(engine, false), (engine, true)])
    {
        let shell = Shell::new();
        let mut command = shell.command();
        command
            .args(["--engine", engine, "--store"])
            .arg(shell.store())
            .args(["--json", "record", "--todo", "harbour"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        say(&mut stdin, 0);
        lines.next().unwrap().unwrap();
        match is_moved {
            true => std::fs::rename(shell.store(), shell.path("elsewhere")).unwrap(),
            false => std::fs::remove_dir_all(shell.store()).unwrap(),
        }
        say(&mut stdin, 1);
        assert!(lines.next().is_none(), "{engine}: it was acknowledged");
        let ended = child.wait_with_output().unwrap();
        assert!(!ended.status.success());
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(said.contains("deleted, moved or replaced"), "{engine}: {said}");
    }
}
