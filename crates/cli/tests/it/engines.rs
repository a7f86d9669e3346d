//! Every command on each engine: the same answers, and the second process learns what to do.

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

/// The output of commands that have no reason to differ on another engine, in an order in which
/// each finds what it needs.
fn answers(engine: &str) -> Vec<(String, i32, String)> {
    let shell = Shell::new();
    let file = shell.write("quay.jsonl", line("quay", quay()));
    let other = shell.write("other.jsonl", line("other", vec![Message::user("你好")]));
    let commands = [
        "import quay.jsonl",
        "import other.jsonl",
        "import quay.jsonl",
        "import --continue quay.jsonl",
        "todos",
        "todos --json",
        "blocks --todo quay",
        "blocks --todo quay --json",
        "search --todo quay max_attempts",
        "search --todo quay 船闸 --json",
        "search --todo quay nothing-of-the-kind",
        "load --todo quay b_quay_001",
        "load --todo quay b_quay_001 --match lease --json",
        "load --todo quay b_quay_404",
        "view --todo quay",
        "view --todo quay --json",
        "grant --todo quay --to other b_001",
        "load --todo other b_quay_001",
        "grant --todo quay --to other --revoke b_001",
        "load --todo other b_quay_001",
        "verify",
        "verify --json",
        "doctor",
        "doctor --repair --json",
        "embedder show --json",
        "embedder use none",
        "search --todo quay max_attempts --json",
        "embedder use builtin",
        "export --todo quay",
        "backup copy",
        "backup copy",
        "--store copy export --todo quay",
        "--store copy doctor --json",
        "forget --todo quay",
        "forget --todo quay",
        "export --todo quay",
        "doctor --json",
        "verify",
    ];
    assert!(file.ends_with("quay.jsonl") && other.ends_with("other.jsonl"));
    let mut answers = Vec::new();
    for command in commands {
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
        answers.push((command.to_owned(), ran.code, said));
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
    // They are the output of commands that did something.
    let done = sqlite.iter().filter(|(_, code, _)| *code == 0).count();
    assert!(done >= 29, "{done} of {}: {sqlite:#?}", sqlite.len());
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
