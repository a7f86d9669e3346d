//! The commands that open the store, on each engine: the same answers, and the second process learns what to do.

use crate::shell::{Ran, Shell, line, quay};
use foldback::{Engine, Memory, Options};
use foldback_core::Message;

const SQLITE: &str = "sqlite";
const REDB: &str = "redb";
const SLED: &str = "sled";

fn run(shell: &Shell, engine: &str, args: &[&str]) -> Ran {
    let mut all = vec!["--engine", engine];
    all.extend(args);
    shell.run(&all)
}

/// Without a flag or a setting, a store is opened with the engine that made it.
#[test]
fn a_store_keeps_its_engine() {
    for engine in [REDB, SLED] {
        let shell = Shell::new();
        let file = shell.write("quay.jsonl", line("quay", quay()));
        assert_eq!(run(&shell, engine, &["import", &file]).code, 0);
        assert_eq!(shell.ok(&["export", "--todo", "quay"]).text(), line("quay", quay()));
        shell.ok(&["doctor", "--repair"]);
        let other = run(&shell, SQLITE, &["todos"]);
        assert!(other.code == 2 && other.stderr.contains(engine), "{other:?}");
    }
}

/// Commands that have no reason to differ on another engine, in an order in which each finds what it needs, and their
/// exit codes.
const COMMANDS: &[(&str, i32)] = &[
    ("import quay.jsonl", 0),
    ("import other.jsonl", 0),
    ("import quay.jsonl", 0),
    ("todos", 0),
    ("todos --json", 0),
    ("blocks --todo quay", 0),
    ("blocks --todo quay --json", 0),
    ("search --todo quay max_attempts", 0),
    ("search --todo quay 船闸 --json", 0),
    ("search --todo quay nothing-of-the-kind", 1),
    ("load --todo quay b_quay_001", 0),
    ("load --todo quay b_quay_001 --match lease --json", 2),
    ("load --todo quay b_quay_404", 1),
    ("view --todo quay", 0),
    ("view --todo quay --json", 0),
    ("grant --todo quay --to other b_001", 0),
    ("load --todo other b_quay_001", 0),
    ("grant --todo quay --to other --revoke b_001", 0),
    ("load --todo other b_quay_001", 1),
    ("verify", 0),
    ("verify --json", 0),
    ("doctor", 0),
    ("doctor --repair --json", 0),
    ("embedder show --json", 0),
    ("embedder use none", 0),
    ("search --todo quay max_attempts --json", 0),
    ("embedder use builtin", 0),
    ("export --todo quay", 0),
    ("backup copy", 0),
    ("backup copy", 2),
    ("--store copy export --todo quay", 0),
    ("--store copy doctor --json", 0),
    ("forget --todo quay", 0),
    ("forget --todo quay", 1),
    ("export --todo quay", 1),
    ("doctor --json", 0),
    ("verify", 0),
];

/// What each of the commands answers: the command, its exit code and its output.
fn answers(engine: &str) -> Vec<(String, i32, String)> {
    let shell = Shell::new();
    let file = shell.write("quay.jsonl", line("quay", quay()));
    let other = shell.write("other.jsonl", line("other", vec![Message::user("你好")]));
    assert!(file.ends_with("quay.jsonl") && other.ends_with("other.jsonl"));
    let mut answers = Vec::new();
    for (command, _) in COMMANDS {
        let args: Vec<&str> = command.split(' ').collect();
        let ran = if command.starts_with("--store") {
            let mut all = vec!["--engine", engine];
            all.extend(&args);
            shell.run_bare(&all)
        } else {
            run(&shell, engine, &args)
        };
        // The shells differ in their folders, a search in its time and a copy in its size, which
        // come last.
        let path = shell.path("").to_str().unwrap().trim_end_matches('/').to_owned();
        let mut said = format!("{}{}", ran.text(), ran.stderr).replace(&path, "DIR");
        for last in ["\"took_us\"", "copied: "] {
            said.truncate(said.find(last).unwrap_or(said.len()));
        }
        answers.push(((*command).to_owned(), ran.code, said));
    }
    // Its output is sizes of files.
    assert_eq!(run(&shell, engine, &["compact"]).code, 0);
    assert_eq!(run(&shell, engine, &["verify"]).code, 0);
    answers
}

#[test]
fn every_command_answers_alike_on_each_engine() {
    let sqlite = answers(SQLITE);
    for engine in [REDB, SLED] {
        let answers = answers(engine);
        assert_eq!(answers.len(), sqlite.len(), "{engine}");
        for (one, two) in sqlite.iter().zip(&answers) {
            assert_eq!(one, two, "{engine}");
        }
    }
    // They are the output of commands that did what they were to do.
    for (answer, (_, code)) in sqlite.iter().zip(COMMANDS) {
        assert_eq!(answer.1, *code, "{answer:?}");
    }
}

#[test]
fn a_replay_shows_the_same_on_each_engine() {
    let shown = |engine| {
        let shell = Shell::new();
        let file = shell.write("quay.jsonl", line("quay", quay()));
        let ran = run(&shell, engine, &["replay", "--json", &file]);
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.json_lines()
    };
    assert_eq!(shown(REDB), shown(SQLITE));
    assert_eq!(shown(SLED), shown(SQLITE));
}

/// R10: while a process has a store of redb or sled, each command ends with advice on what to do, including reading
/// ones.
#[test]
fn r10_a_command_on_a_store_in_use_says_what_to_do() {
    for engine in [Engine::Redb, Engine::Sled] {
        check_in_use(engine);
    }
}

fn check_in_use(engine: Engine) {
    let name = engine.name();
    let shell = Shell::new();
    let file = shell.write("quay.jsonl", line("quay", quay()));
    assert_eq!(run(&shell, name, &["import", &file]).code, 0);
    let options = || Options::default().with_engine(engine);
    let holder = Memory::open(&shell.store(), options()).unwrap();
    for command in [
        "import quay.jsonl",
        "export --todo quay",
        "todos",
        "blocks --todo quay",
        "search --todo quay lease",
        "load --todo quay b_quay_001",
        "view --todo quay",
        "verify",
        "doctor",
        "doctor --repair",
        "compact",
        "init",
        "backup copy",
        "forget --todo quay",
        "embedder show",
    ] {
        let args: Vec<&str> = command.split(' ').collect();
        let ran = run(&shell, name, &args);
        assert_eq!((ran.code, ran.text()), (3, ""), "{command}: {ran:?}");
        let said =
            "is in use by another process, and its engine allows one at a time; try again when";
        assert!(ran.stderr.contains(said), "{command}: {}", ran.stderr);
    }
    let mut record = shell.command();
    record.args(["--engine", name, "record", "--todo", "quay", "--store"]).arg(shell.store());
    let ran = Ran::of(record.stdin(std::fs::File::open(&file).unwrap()).output().unwrap());
    assert_eq!((ran.code, ran.text()), (2, ""), "{ran:?}");
    drop(holder);
    assert_eq!(run(&shell, name, &["export", "--todo", "quay"]).text(), line("quay", quay()));
}
