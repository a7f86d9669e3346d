//! S9: what a killed backup leaves is found and removed, with whatever is forgotten meanwhile.

use crate::shell::{Shell, line, names};
use foldback_core::Message;
use rustix::process::{Pid, Signal, kill_process};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A store of some megabytes, of which a todo is secret.
fn shell() -> Shell {
    let shell = Shell::with_quay();
    let secret = (0..40).map(|n| Message::user(&format!("{n} canary-of-a-secret ").repeat(9_000)));
    let file = shell.write("secret.jsonl", line("secret", secret.collect()));
    shell.ok(&["import", &file]);
    shell
}

/// The unfinished copies beside `copy`.
fn partial(shell: &Shell) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(shell.path("")).unwrap().map(|entry| entry.unwrap().path());
    let is_partial =
        |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(".copy.partial-");
    entries.filter(is_partial).collect()
}

/// A backup to `copy`, stopped in the middle of it.
fn stopped(shell: &Shell) -> Child {
    let mut command = shell.command();
    command.arg("--store").arg(shell.store()).args(["backup", "copy"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    // Once something is in it.
    while !partial(shell).iter().any(|folder| !names(folder).is_empty()) {
        assert!(begun.elapsed() < Duration::from_secs(60), "no copy is begun");
    }
    kill_process(Pid::from_child(&child), Signal::STOP).unwrap();
    assert!(!shell.path("copy").exists(), "the backup was too quick");
    child
}

/// A backup to `copy`, killed in the middle of it.
fn killed() -> Shell {
    let shell = shell();
    let mut child = stopped(&shell);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(partial(&shell).len(), 1);
    shell
}

#[test]
fn s9_upkeep_removes_what_a_killed_backup_leaves() {
    for upkeep in [
        &["forget", "--todo", "secret"][..],
        &["compact"],
        &["doctor", "--repair"],
        &["backup", "copy"],
        &["backup", "./elsewhere/../copy"],
    ] {
        let shell = killed();
        shell.folders(&["elsewhere"]);
        let found = shell.run(&["doctor"]);
        assert!(found.code == 1 && found.text().contains(".copy.partial-"), "{found:?}");
        shell.ok(upkeep);
        assert!(partial(&shell).is_empty(), "{upkeep:?}");
        assert_eq!(shell.ok(&["doctor"]).code, 0);
        assert_eq!(shell.path("copy").exists(), upkeep[0] == "backup");
    }
}

#[test]
fn s9_a_backup_that_goes_on_is_left_alone() {
    let shell = shell();
    let mut child = stopped(&shell);
    shell.ok(&["doctor", "--repair"]);
    assert_eq!(partial(&shell).len(), 1);
    // Another folder with such a name stays, too.
    shell.folders(&[".copy.partial-7/photographs"]);
    kill_process(Pid::from_child(&child), Signal::CONT).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(partial(&shell), [shell.path(".copy.partial-7")]);
    assert!(!shell.store().join("backups").read_dir().unwrap().any(|_| true), "a note is left");
    let copy = shell.path("copy");
    assert_eq!(shell.run_bare(&["--store", copy.to_str().unwrap(), "verify"]).code, 0);
}
