//! R3: a resource that the system refuses is named, has an exit code of its own, and costs nothing that was recorded.

use crate::shell::{Ran, Shell, line, quay};
use foldback_core::Message;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A small disk in a shell's folder, unmounted with the value.
struct Disk(PathBuf);

impl Disk {
    /// Nothing, with a note, if none can be mounted.
    fn mount(shell: &Shell, options: &str) -> Option<Self> {
        shell.folders(&["disk"]);
        let disk = Self(shell.path("disk"));
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(&disk.0);
        if mount.output().is_ok_and(|ran| ran.status.success()) {
            return Some(disk);
        }
        eprintln!("SKIPPED: a disk can be mounted by the superuser only");
        None
    }

    fn remount(&self, options: &str) {
        let mut mount = Command::new("mount");
        mount.args(["-o", &format!("remount,{options}")]).arg(&self.0);
        assert!(mount.status().unwrap().success());
    }

    /// Takes all the space that is left.
    fn fill(&self) {
        let mut file = File::create(self.0.join("fill")).unwrap();
        while file.write_all(&[7; 4096]).is_ok() {}
    }

    fn make_room(&self) {
        std::fs::remove_file(self.0.join("fill")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(&self.0).status());
    }
}

fn run(shell: &Shell, args: &[&str]) -> Ran {
    let mut command = shell.command();
    command.arg("--store").arg(shell.path("disk/store")).args(args);
    Ran::of(command.output().unwrap())
}

#[track_caller]
fn ok(shell: &Shell, args: &[&str]) -> Ran {
    let ran = run(shell, args);
    assert_eq!(ran.code, 0, "{args:?}: {ran:?}");
    ran
}

/// The exit code of a resource, and what the error says.
#[track_caller]
fn refused(shell: &Shell, args: &[&str], words: &[&str]) {
    let ran = run(shell, args);
    assert_eq!(ran.code, 3, "{args:?}: {ran:?}");
    for word in words {
        assert!(ran.stderr.contains(word), "{args:?}: {word}: {}", ran.stderr);
    }
}

fn notes(n: usize, bytes: usize) -> Vec<Message> {
    (0..n).map(|n| Message::user(&format!("{n} {}", "第一 ".repeat(bytes / 7)))).collect()
}

#[test]
fn r3_a_full_disk_gets_room_by_forgetting() {
    let shell = Shell::new();
    let Some(disk) = Disk::mount(&shell, "size=24m") else { return };
    let keep = shell.write("keep.jsonl", line("keep", quay()));
    // More than the reserve, in rows and in files.
    let large = shell.write("large.jsonl", line("large", notes(1_500, 1_400)));
    let next = shell.write("next.jsonl", line("next", notes(3, 20)));
    ok(&shell, &["import", &keep]);
    ok(&shell, &["import", &large]);
    assert!(disk.0.join("store/RESERVE").metadata().unwrap().len() >= 1 << 20);
    disk.fill();
    refused(&shell, &["import", &next], &["full"]);
    // Existing data can be read.
    assert_eq!(ok(&shell, &["export", "--todo", "keep"]).text(), line("keep", quay()));
    ok(&shell, &["verify"]);
    refused(&shell, &["doctor", "--repair"], &["the disk that holds", "is full"]);
    refused(&shell, &["compact"], &["the disk that holds", "full"]);
    ok(&shell, &["forget", "--todo", "large"]);
    assert_eq!(run(&shell, &["export", "--todo", "large"]).code, 1);
    assert_eq!(ok(&shell, &["export", "--todo", "keep"]).text(), line("keep", quay()));
    ok(&shell, &["verify"]);
    // The space of what was deleted is available again.
    ok(&shell, &["import", &next]);
    // What is left is small enough to be rewritten in the space of the log.
    ok(&shell, &["compact"]);
    disk.make_room();
    ok(&shell, &["import", &next]);
    assert!(disk.0.join("store/RESERVE").exists(), "it is kept back again");
}

/// R3: a store that has filled its disk itself, line by line, is emptied again.
#[test]
fn r3_a_disk_filled_by_recording_gets_room_by_forgetting() {
    let shell = Shell::new();
    let Some(_disk) = Disk::mount(&shell, "size=24m") else { return };
    let lines: String =
        notes(2_000, 15_000).iter().map(|one| format!("{}\n", one.json())).collect();
    for _ in 0..2 {
        let input = shell.write("lines.jsonl", &lines);
        let mut command = shell.command();
        command.arg("--store").arg(shell.path("disk/store")).args(["record", "--todo", "large"]);
        command.stdin(File::open(&input).unwrap());
        let ran = Ran::of(command.output().unwrap());
        assert_eq!(ran.code, 3, "{ran:?}");
        assert!(ran.stderr.contains("messages were recorded before it"), "{ran:?}");
        ok(&shell, &["verify"]);
        ok(&shell, &["forget", "--todo", "large"]);
        ok(&shell, &["compact"]);
    }
}

#[test]
fn r3_a_disk_for_reading_only_is_named() {
    let shell = Shell::new();
    let Some(disk) = Disk::mount(&shell, "size=24m") else { return };
    let file = shell.write("quay.jsonl", line("quay", quay()));
    let next = shell.write("next.jsonl", line("next", notes(3, 20)));
    ok(&shell, &["import", &file]);
    disk.remount("ro");
    refused(&shell, &["import", &next], &["can only be read"]);
    refused(&shell, &["forget", "--todo", "quay"], &["can only be read"]);
    // A copy that cannot be written there is not the store's fault.
    let copy = disk.0.join("copy");
    refused(&shell, &["backup", copy.to_str().unwrap()], &["a folder in", "Read-only file system"]);
    ok(&shell, &["verify"]);
    ok(&shell, &["backup", "elsewhere"]);
}

#[test]
fn r3_a_disk_that_fails_to_read_is_no_damage() {
    if Command::new("strace").arg("-V").output().is_err() {
        eprintln!("SKIPPED: there is no `strace` to let reads fail with");
        return;
    }
    let shell = Shell::with_quay();
    let database = shell.store().join("store.sqlite");
    let mut failed = 0;
    for command in
        [&["verify"][..], &["export", "--todo", "quay"], &["search", "--todo", "quay", "lease"]]
    {
        for when in ["1", "3", "6", "2+"] {
            let foldback = shell.command();
            let mut strace = Command::new("strace");
            strace.args(["-f", "-qq", "-o", "/dev/null", "-P"]).arg(&database);
            strace.args(["-e", &format!("inject=pread64:error=EIO:when={when}")]);
            strace.arg(foldback.get_program()).arg("--store").arg(shell.store()).args(command);
            strace.current_dir(shell.path("")).env("HOME", shell.path(""));
            let ran = Ran::of(strace.output().unwrap());
            let said = format!("{}{}", ran.text(), ran.stderr);
            assert!([0, 3].contains(&ran.code), "{command:?}, {when}: {ran:?}");
            assert!(!said.contains("damaged"), "{command:?}, {when}: {said}");
            failed += usize::from(ran.code == 3);
        }
    }
    assert!(failed > 0, "no read failed");
    shell.ok(&["verify"]);
}

#[test]
fn r3_what_has_no_room_in_the_output_is_told_apart_from_bad_usage() {
    let full = Path::new("/dev/full");
    if !full.exists() {
        eprintln!("SKIPPED: there is no {}", full.display());
        return;
    }
    let shell = Shell::with_quay();
    let mut command = shell.command();
    command.arg("--store").arg(shell.store()).args(["export", "--todo", "quay"]);
    let ran =
        Ran::of(command.stdout(File::options().write(true).open(full).unwrap()).output().unwrap());
    assert_eq!(ran.code, 3, "{ran:?}");
}
