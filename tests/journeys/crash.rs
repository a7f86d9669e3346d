//! A process that is killed loses nothing that it has acknowledged, and needs no manual step.

use crate::story::{engines, exchange, open_on, todo};
use foldback::{Engine, Memory};
use foldback_testkit::alone;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;
use tempfile::tempdir;

const STORE: &str = "FOLDBACK_TEST_STORE";
const ENGINE: &str = "FOLDBACK_TEST_ENGINE";

/// How often the writer is killed. The release size is 1,000; this is the slice of it that every
/// run can afford.
const CYCLES: u64 = 40;

/// R1: on each engine.
#[test]
fn r1_a_killed_writer_loses_nothing_acknowledged() {
    if let Some(memory) = child_memory() {
        return write(&memory);
    }
    for engine in engines() {
        check_kills(engine);
    }
}

#[track_caller]
fn check_kills(engine: Engine) {
    let dir = tempdir().unwrap();
    let mut acknowledged = 0;
    for cycle in 0..CYCLES {
        let mut writer =
            spawn_on(engine, "crash::r1_a_killed_writer_loses_nothing_acknowledged", dir.path());
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

        let memory = open_on(engine, dir.path());
        let held = memory.len(&todo("crash")).unwrap();
        let what = format!("{engine}, cycle {cycle}");
        assert!(held >= acknowledged, "{what}: {acknowledged} acknowledged, {held} held");
        acknowledged = held;
    }
    let memory = open_on(engine, dir.path());
    let exported = memory.conversations().export(&todo("crash")).unwrap();
    for (seq, message) in exported.messages.iter().enumerate() {
        assert_eq!(*message, exchange(seq / 4, "crash", &body(seq / 4))[seq % 4], "message {seq}");
    }
    let checkup = memory.maintenance().doctor().unwrap();
    assert_eq!(checkup.findings, Vec::<String>::new(), "{engine}");
    assert!(acknowledged > CYCLES, "the writer got somewhere: {acknowledged}");
}

/// Records without end, and prints each number once it is durable.
fn write(memory: &Memory) {
    let mut session = memory.session(&todo("crash")).unwrap();
    loop {
        let seq = usize::try_from(session.len()).unwrap();
        let message = exchange(seq / 4, "crash", &body(seq / 4))[seq % 4].clone();
        let recorded = session.record(message).unwrap();
        println!("ack {}", recorded.seq);
        std::io::stdout().flush().unwrap();
    }
}

/// R1, S9: killed between and within records, forgetting and compaction, a store of each engine keeps
/// what was acknowledged, and what was forgotten stays forgotten.
#[test]
fn r1_a_writer_that_forgets_and_compacts_is_killed() {
    if let Some(memory) = child_memory() {
        return tend(&memory);
    }
    let own = "crash::r1_a_writer_that_forgets_and_compacts_is_killed";
    for engine in engines() {
        let dir = tempdir().unwrap();
        let (mut kept, mut compacted) = (0, 0);
        for cycle in 0..20_u64 {
            let mut writer = spawn_on(engine, own, dir.path());
            let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines();
            let mut forgotten = Vec::new();
            let mut count = 0;
            // Past the first few words, so that each kind of work is cut at some point of it.
            while count < 3 + cycle % 5 {
                let line = lines.next().unwrap().unwrap();
                match line.split_once(' ') {
                    Some(("kept", n)) => kept = n.parse().unwrap(),
                    Some(("forgotten", id)) => forgotten.push(id.to_owned()),
                    Some(("compacted", _)) => compacted += 1,
                    _ => continue,
                }
                count += 1;
            }
            std::thread::sleep(Duration::from_micros(cycle * 1_777 % 20_000));
            writer.kill().unwrap();
            writer.wait().unwrap();

            let memory = open_on(engine, dir.path());
            let what = format!("{engine}, cycle {cycle}");
            let held = memory.len(&todo("kept")).unwrap();
            assert!(held >= kept, "{what}: {kept} acknowledged, {held} held");
            for id in forgotten {
                assert!(memory.find(&todo(&id)).is_err(), "{what}: {id} is back");
            }
            assert_eq!(
                memory.maintenance().doctor().unwrap().findings,
                Vec::<String>::new(),
                "{what}"
            );
        }
        assert!(compacted > 5, "{engine}: only {compacted} compactions were seen");
    }
}

/// Records, forgets and compacts without end, and prints what is done.
fn tend(memory: &Memory) {
    let say = |line: String| {
        println!("{line}");
        std::io::stdout().flush().unwrap();
    };
    let mut kept = memory.session(&todo("kept")).unwrap();
    loop {
        let n = usize::try_from(kept.len()).unwrap() / 4;
        kept.record_all(exchange(n, "kept", &body(n * 5)).to_vec()).unwrap();
        say(format!("kept {}", kept.len()));
        let id = todo(&format!("weed-{n}"));
        let mut weed = memory.session(&id).unwrap();
        weed.record_all(exchange(n, "weed", &body(n * 5)).to_vec()).unwrap();
        memory.maintenance().forget(&id).unwrap();
        say(format!("forgotten {id}"));
        memory.maintenance().compact().unwrap();
        say(format!("compacted {n}"));
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

/// A test in another process, on a store of the default engine.
pub(crate) fn spawn(test: &str, store: &Path) -> Child {
    spawn_on(Engine::default(), test, store)
}

/// A test in another process, on a store of this engine. There, [`child_store`] names the store, and the test does
/// what the process is for.
pub(crate) fn spawn_on(engine: Engine, test: &str, store: &Path) -> Child {
    alone(test)
        .env(STORE, store)
        .env(ENGINE, engine.name())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

/// The store that a child was spawned on; `None` in a test that runs as itself.
pub(crate) fn child_store() -> Option<PathBuf> {
    std::env::var_os(STORE).map(PathBuf::from)
}

/// The same store, open.
pub(crate) fn child_memory() -> Option<Memory> {
    let store = child_store()?;
    let engine = std::env::var(ENGINE).unwrap().parse().unwrap();
    Some(open_on(engine, &store))
}
