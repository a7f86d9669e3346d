//! `foldback bench index`: a small workload gives every key, a damaged one a clear error, and a short
//! ladder its rows.

use crate::shell::Shell;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;

const N: usize = 50;
const ADDS: usize = 200;
const DIM: usize = 16;
const TODOS: usize = 3;

/// The keys of a line of the joint table.
const KEYS: [&str; 28] = [
    "peer",
    "key",
    "n",
    "dim",
    "todos",
    "seed",
    "v",
    "bulk_per_s",
    "vec_p50",
    "vec_p99",
    "txt_p50",
    "txt_p99",
    "hyb_p50",
    "hyb_p99",
    "ann_recall10",
    "hit_vec",
    "hit_txt",
    "hit_hyb",
    "disk_ratio",
    "disk_mb",
    "raw_mb",
    "add_p50",
    "add_p99",
    "add_max",
    "visible",
    "vec_p50_after_200_adds",
    "open_ms",
    "open_first_hit_ms",
];

/// A number from 0 to 1, far from those of its neighbours.
fn noise(n: usize) -> f32 {
    let mixed = (n as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40) as f32 / (1 << 24) as f32
}

/// The unit vector of a block. All of them point to one side, as those of one subject do: a block
/// whose vector points away from a question's is no hit.
fn vector(line: usize) -> Vec<f32> {
    let values: Vec<f32> = (0..DIM).map(|at| noise(line * DIM + at)).collect();
    let norm = values.iter().map(|value| value * value).sum::<f32>().sqrt();
    values.iter().map(|value| value / norm).collect()
}

/// The ids of the ten blocks of a todo that an exact search finds.
fn nearest(todo: usize, vector: &[f32]) -> Vec<String> {
    let dot =
        |line: usize| -> f32 { self::vector(line).iter().zip(vector).map(|(a, b)| a * b).sum() };
    let mut lines: Vec<usize> = (0..N).filter(|line| line % TODOS == todo).collect();
    lines.sort_by(|a, b| dot(*b).total_cmp(&dot(*a)));
    lines.into_iter().take(10).map(id).collect()
}

fn id(line: usize) -> String {
    format!("b{line:08}")
}

fn bytes(rows: impl Iterator<Item = Vec<f32>>) -> Vec<u8> {
    rows.flatten().flat_map(f32::to_le_bytes).collect()
}

/// Writes a small workload: each block has a word of its own, in Latin or in Chinese, and is asked
/// for by this word and by its vector.
fn workload(dir: &Path) {
    std::fs::create_dir(dir).unwrap();
    let kinds = ["user", "assistant", "tool_call", "tool_result_json", "code"];
    let word = |line: usize| match line % 2 {
        0 => format!("wharf{line}"),
        _ => format!("船闸第{line}号"),
    };
    let mut blocks = String::new();
    for line in 0..N + ADDS {
        let block = json!({
            "id": id(line),
            "todo": format!("t{:06}", line % TODOS),
            "kind": kinds[line % kinds.len()],
            "text": format!("The crane lifts {} over the quay. 起重机在码头工作。", word(line)),
        });
        writeln!(blocks, "{block}").unwrap();
    }
    let targets = || (0..N).step_by(5);
    let mut questions = String::new();
    for target in targets() {
        let question = json!({
            "q": word(target),
            "todo": format!("t{:06}", target % TODOS),
            "target": id(target),
            "truth": nearest(target % TODOS, &vector(target)),
        });
        writeln!(questions, "{question}").unwrap();
    }
    let meta = json!({ "n": N, "dim": DIM, "todos": TODOS, "seed": 7, "v": "W1.0" });
    let write = |name: &str, content: &[u8]| std::fs::write(dir.join(name), content).unwrap();
    write("meta.json", meta.to_string().as_bytes());
    write("blocks.jsonl", blocks.as_bytes());
    write("queries.jsonl", questions.as_bytes());
    write("vectors.f32", &bytes((0..N + ADDS).map(vector)));
    write("qvectors.f32", &bytes(targets().map(vector)));
}

fn json(shell: &Shell, arguments: &[&str]) -> Value {
    shell.run_bare(&[&["bench", "index", "--json"], arguments].concat()).json()
}

#[test]
fn a_small_workload_gives_a_line_of_the_joint_table() {
    let shell = Shell::new();
    workload(&shell.path("w1"));
    let standing = json(&shell, &["--workload", "w1", "--out", "r.jsonl"]);
    for key in KEYS {
        assert!(standing.get(key).is_some_and(|value| !value.is_null()), "{key}: {standing}");
    }
    assert_eq!((&standing["peer"], &standing["n"]), (&json!("foldback"), &json!(N)));
    assert_eq!((&standing["seed"], &standing["v"]), (&json!(7), &json!("W1.0")));
    for key in ["ann_recall10", "hit_vec", "hit_txt", "hit_hyb"] {
        assert_eq!(standing[key], 1.0, "{key}: {standing}");
    }
    assert_eq!(standing["visible"], "10/10");
    assert!(standing["disk_ratio"].as_f64().unwrap() > 0.5, "{standing}");
    if cfg!(target_os = "linux") {
        assert!(standing["rss_mb"].is_f64() && standing["open_rss_mb"].is_f64(), "{standing}");
    }
    // Counted if the system can trace; an add is durable.
    if let Some(syncs) = standing.get("fsyncs_per_add") {
        assert!((1.0..3.0).contains(&syncs.as_f64().unwrap()), "{standing}");
    }
    // A second run adds its line after the first, and nothing else is left beside the workload.
    let to = ["--out", "r.jsonl", "--csv", "w1.csv", "--report", "w1.html"];
    let again = shell.run_bare(&[&["bench", "index", "--workload", "w1"], &to[..]].concat());
    assert_eq!(again.code, 0, "{again:?}");
    let lines = std::fs::read_to_string(shell.path("r.jsonl")).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines.len(), &lines[0]), (2, &standing));
    assert_eq!(lines[0]["hit_hyb"], lines[1]["hit_hyb"]);
    assert_eq!(std::fs::read_dir(shell.path("w1")).unwrap().count(), 5);
    let csv = std::fs::read_to_string(shell.path("w1.csv")).unwrap();
    assert!(csv.starts_with("measured,foldback\n") && csv.contains("found at once,10/10"), "{csv}");
    let page = std::fs::read_to_string(shell.path("w1.html")).unwrap();
    assert!(page.contains("found at once") && page.contains("10/10"), "{page}");
}

/// Replaces a line of a file, counted from 1.
fn damage(path: &Path, line: usize, with: impl Fn(&str) -> String) {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines[line - 1] = with(&lines[line - 1]);
    std::fs::write(path, lines.join("\n") + "\n").unwrap();
}

#[test]
fn a_damaged_workload_is_told_by_file_and_line() {
    type Damage = fn(&Path);
    let cases: [(&str, Damage); 11] = [
        ("meta.json", |dir| std::fs::remove_file(dir.join("meta.json")).unwrap()),
        ("meta.json is not a description", |dir| {
            std::fs::write(dir.join("meta.json"), "{}").unwrap();
        }),
        ("n and dim must be at least 1", |dir| {
            std::fs::write(dir.join("meta.json"), r#"{"n":0,"dim":4,"todos":1}"#).unwrap();
        }),
        ("blocks.jsonl, line 7: a block of id", |dir| {
            damage(&dir.join("blocks.jsonl"), 7, |line| line[..20].to_owned());
        }),
        ("blocks.jsonl, line 9: the id of an earlier", |dir| {
            damage(&dir.join("blocks.jsonl"), 9, |line| line.replace(&id(8), &id(3)));
        }),
        ("blocks.jsonl, line 3: \"a b\" is not a todo id", |dir| {
            damage(&dir.join("blocks.jsonl"), 3, |line| line.replace("t000002", "a b"));
        }),
        ("blocks.jsonl holds 250 blocks, but at least 251", |dir| {
            let meta = json!({ "n": N + 1, "dim": DIM, "todos": TODOS }).to_string();
            std::fs::write(dir.join("meta.json"), meta).unwrap();
        }),
        ("vectors.f32 is 15999 bytes long, but 16000 were", |dir| {
            let path = dir.join("vectors.f32");
            let bytes = std::fs::read(&path).unwrap();
            std::fs::write(path, &bytes[1..]).unwrap();
        }),
        ("qvectors.f32, row 2: NaN", |dir| {
            let path = dir.join("qvectors.f32");
            let mut bytes = std::fs::read(&path).unwrap();
            bytes[DIM * 4 + 8..DIM * 4 + 12].copy_from_slice(&f32::NAN.to_le_bytes());
            std::fs::write(path, bytes).unwrap();
        }),
        ("queries.jsonl, line 2: \"b00000060\" is not among the 50", |dir| {
            damage(&dir.join("queries.jsonl"), 2, |line| line.replace(&id(5), &id(60)));
        }),
        ("queries.jsonl contains no question", |dir| {
            std::fs::write(dir.join("queries.jsonl"), "").unwrap();
        }),
    ];
    let shell = Shell::new();
    for (at, (expected, damage)) in cases.into_iter().enumerate() {
        let name = format!("w{at}");
        workload(&shell.path(&name));
        damage(&shell.path(&name));
        let ran = shell.run_bare(&["bench", "index", "--workload", &name, "--out", "r.jsonl"]);
        assert_eq!(ran.code, 2, "{expected}: {ran:?}");
        assert!(ran.stderr.contains(expected), "{expected}: {ran:?}");
    }
    assert!(!shell.path("r.jsonl").exists());
}

#[test]
fn a_short_ladder_gives_its_rows() {
    let shell = Shell::new();
    let to = ["--csv", "ladder.csv", "--report", "ladder.html"];
    let ladder = json(&shell, &[&["--max", "100"], &to[..]].concat());
    assert_eq!(ladder["graph"], false);
    let steps = ladder["steps"].as_array().unwrap();
    let sizes: Vec<(u64, u64)> = steps
        .iter()
        .map(|step| (step["todos"].as_u64().unwrap(), step["blocks"].as_u64().unwrap()))
        .collect();
    assert_eq!(sizes.iter().map(|(todos, _)| *todos).collect::<Vec<_>>(), [1, 1, 10, 100]);
    for ((todos, blocks), least) in sizes.iter().zip([10, 100, 30, 300]) {
        assert!(*blocks >= least && *blocks < least + 8 * todos, "{sizes:?}");
    }
    for step in steps {
        for key in ["messages", "bulk_per_s", "append_p50", "search_p50", "open_first_hit_ms"] {
            assert!(step[key].as_f64().is_some_and(|value| value > 0.0), "{key}: {step}");
        }
        assert!(step["files"].as_u64().unwrap() > 0 && step["disk_mb"].as_f64().unwrap() > 0.0);
        if let Some(syncs) = step.get("fsyncs_per_append") {
            assert!((1.0..2.0).contains(&syncs.as_f64().unwrap()), "{step}");
        }
        if cfg!(target_os = "linux") {
            assert!((1..16).contains(&step["descriptors"].as_u64().unwrap()), "{step}");
        }
    }
    // A todo of few blocks has no file of its own; 300 blocks may be a volume of the search over all.
    let files = |step: usize| steps[step]["files"].as_u64().unwrap();
    assert!(files(3) < files(2) + 20, "{steps:?}");
    // Two steps of each ladder have a slope, but nothing shows how certain it is.
    assert_eq!(ladder["slopes"].as_array().map(Vec::len), Some(0));
    let csv = std::fs::read_to_string(shell.path("ladder.csv")).unwrap();
    assert!(csv.starts_with("todos,blocks,messages,"), "{csv}");
    assert_eq!(csv.lines().count(), 5);
    let page = std::fs::read_to_string(shell.path("ladder.html")).unwrap();
    assert_eq!(page.matches("<svg").count(), 4, "{page}");
}

#[test]
fn stores_under_load_give_their_rows() {
    let shell = Shell::new();
    let to = ["--csv", "load.csv", "--report", "load.html"];
    for (arguments, rows, key) in [
        (&["--churn", "6", "--max", "20"][..], 6, "disk_mb"),
        (&["--reopen", "--max", "100"], 1, "rebuild_per_s"),
        (&["--large-payloads", "--max", "1"], 1, "range_p50"),
    ] {
        let measured = json(&shell, &[arguments, &to[..]].concat());
        let steps = measured["steps"].as_array().unwrap();
        assert_eq!(steps.len(), rows, "{measured}");
        for step in steps {
            assert!(step[key].as_f64().is_some_and(|value| value > 0.0), "{step}");
        }
        if let Some(slopes) = measured.get("slopes") {
            assert!(slopes["disk_mb"]["high"].as_f64() >= slopes["disk_mb"]["low"].as_f64());
            assert_eq!(measured["findings"].as_array().map(Vec::len), Some(0));
        }
        let csv = std::fs::read_to_string(shell.path("load.csv")).unwrap();
        assert_eq!(csv.lines().count(), rows + 1, "{csv}");
        assert!(std::fs::read_to_string(shell.path("load.html")).unwrap().contains("<table"));
    }
}

#[test]
fn what_does_not_go_together_is_refused() {
    let shell = Shell::new();
    for arguments in [
        &["bench", "index", "--out", "r.jsonl"][..],
        &["bench", "index", "--workload", "w", "--max", "100"],
        &["bench", "index", "--max", "9"],
        &["bench", "index", "--reopen", "--max", "99"],
        &["bench", "index", "--churn", "2", "--large-payloads"],
        &["bench", "index", "--workload", "w", "--readers"],
        &["bench", "index", "--part", "{}"],
        &["bench", "index", "--workload", "nowhere"],
    ] {
        let ran = shell.run_bare(arguments);
        assert_eq!(ran.code, 2, "{arguments:?}: {ran:?}");
        assert!(!ran.stderr.is_empty());
    }
}

#[test]
fn options_that_name_another_store_are_refused() {
    let shell = Shell::new();
    for [option, value] in [["--store", "s"], ["--engine", "sled"], ["--embedder", "none"]] {
        for arguments in [&["--max", "10"], &["--workload", "w"]] {
            let arguments = [&["bench", "index", option, value], &arguments[..]].concat();
            let ran = shell.run_bare(&arguments);
            assert_eq!((ran.code, ran.stdout.len()), (2, 0), "{arguments:?}: {ran:?}");
            assert!(ran.stderr.contains(&format!("leave out {option}")), "{ran:?}");
        }
    }
}
