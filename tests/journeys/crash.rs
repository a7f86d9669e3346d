//! A process that is killed loses nothing that it has acknowledged, and needs no manual step.

use crate::story::{exchange, open, todo};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::tempdir;

const STORE: &str = "FOLDBACK_TEST_STORE";

/// How often the writer is killed. The release size is 1,000; this is the slice of it that every
/// run can afford.
const CYCLES: u64 = 40;

#[test]
fn r1_a_killed_writer_loses_nothing_acknowledged() {
    let dir = tempdir().unwrap();
    let mut acknowledged = 0;
    for cycle in 0..CYCLES {
        let mut writer = spawn("crash::writer", dir.path());
        let lines = BufReader::new(writer.stdout.take().unwrap());
        // The kill comes at another point of the write route each time.
        let mut seen = 0;
        for line in lines.lines() {
            let Some(seq) = line.unwrap().strip_prefix("ack ").map(|n| n.parse::<u64>().unwrap())
            else {
                continue;
            };
            acknowledged = acknowledged.max(seq + 1);
            seen += 1;
            if seen > cycle % 7 {
                std::thread::sleep(Duration::from_micros(cycle * 377 % 9_000));
                break;
            }
        }
        writer.kill().unwrap();
        writer.wait().unwrap();

        let memory = open(dir.path());
        let held = memory.len(&todo("crash")).unwrap();
        assert!(held >= acknowledged, "cycle {cycle}: {acknowledged} acknowledged, {held} held");
        acknowledged = held;
    }
    let memory = open(dir.path());
    let exported = memory.export(&todo("crash")).unwrap();
    for (seq, message) in exported.messages.iter().enumerate() {
        assert_eq!(*message, exchange(seq / 4, "crash", &body(seq / 4))[seq % 4], "message {seq}");
    }
    let checkup = memory.doctor(false).unwrap();
    assert_eq!(checkup.findings, Vec::<String>::new());
    assert!(acknowledged > CYCLES, "the writer got somewhere: {acknowledged}");
}

/// Records without end, and says each number once it is durable. Runs only as a child.
#[test]
fn writer() {
    let Some(dir) = std::env::var_os(STORE) else { return };
    let memory = open(Path::new(&dir));
    let mut session = memory.session(&todo("crash")).unwrap();
    loop {
        let seq = usize::try_from(session.len()).unwrap();
        let message = exchange(seq / 4, "crash", &body(seq / 4))[seq % 4].clone();
        let recorded = session.record(message).unwrap();
        println!("ack {}", recorded.seq);
        std::io::stdout().flush().unwrap();
    }
}

/// Every fifth result is offloaded; every tenth is large enough for a file.
fn body(n: usize) -> String {
    let lines = match n % 10 {
        0 => 4_000,
        5 => 200,
        _ => 1,
    };
    format!("result {n} of a tool\n").repeat(lines)
}

/// This test binary again, running one test as a child on a store.
pub(crate) fn spawn(test: &str, store: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(STORE, store)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}
