//! S14: an encrypted store from the command line, with the key from each of its places.

use crate::shell::{Ran, Shell, line};
use foldback_core::Message;
use std::path::Path;

/// Made up.
const SAID: &str = "canary-said-in-private";
const KEY: &str = "c41f7be2903d5a68f7b0e6d1294c8a3b5f60d79e812b4c3a6d5e0f9187c2b4a3";
const OTHER: &str = "7f3c9a1e5b8d2046e1c7a9f05d3b6812907e4f2ac8d15b36e09f7a4c2d8b1e65";

fn ran(shell: &Shell, args: &[&str], variables: &[(&str, &str)]) -> Ran {
    let mut command = shell.command();
    command.arg("--store").arg(shell.store()).args(args).envs(variables.iter().copied());
    Ran::of(command.output().unwrap())
}

fn with_key(shell: &Shell, args: &[&str]) -> Ran {
    ran(shell, args, &[("FOLDBACK_ENCRYPTION_KEY", KEY)])
}

/// The files below a folder that contain what was said, or have it in their names.
fn leaks(dir: &Path) -> Vec<String> {
    let mut leaks = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        let is_in = |bytes: &[u8]| bytes.windows(8).any(|part| part == &SAID.as_bytes()[..8]);
        match path.is_dir() {
            true => leaks.extend(self::leaks(&path)),
            false
                if is_in(&std::fs::read(&path).unwrap())
                    || path.to_string_lossy().contains("canary") =>
            {
                leaks.push(path.display().to_string());
            }
            false => {}
        }
    }
    leaks
}

fn filled() -> Shell {
    let shell = Shell::new();
    let said = line("canary-todo", vec![Message::user(SAID), Message::assistant("好的。")]);
    let file = shell.write("said.jsonl", &said);
    let imported = with_key(&shell, &["import", &file]);
    assert_eq!(imported.code, 0, "{imported:?}");
    shell
}

#[test]
fn s14_the_key_comes_from_the_environment_a_file_or_a_command() {
    let shell = filled();
    assert_eq!(leaks(&shell.store()), Vec::<String>::new());
    let file = shell.write("key", format!("{KEY}\n"));
    let (by_file, by_command) =
        ("FOLDBACK_MEMORY_ENCRYPTION_KEY_FILE", "FOLDBACK_MEMORY_ENCRYPTION_KEY_COMMAND");
    let print = format!("cat {file}");
    for given in [("FOLDBACK_ENCRYPTION_KEY", KEY), (by_file, &file), (by_command, &print)] {
        let found = ran(&shell, &["search", "--todo", "canary-todo", "said in private"], &[given]);
        assert_eq!(found.code, 0, "{found:?}");
        assert!(found.text().contains(SAID), "{found:?}");
        let checked = ran(&shell, &["doctor"], &[given]);
        assert_eq!(checked.code, 0, "{checked:?}");
    }
    let settings = shell.write("own.toml", "[memory]\nencryption_key_file = \"key\"\n");
    let seen = ran(&shell, &["--config", &settings, "encryption", "status", "--json"], &[]);
    assert_eq!(seen.json(), serde_json::json!({ "encrypted": true, "key_given": true }));
    for (given, what) in [
        (("FOLDBACK_ENCRYPTION_KEY", "short"), "an encryption key has 32 bytes"),
        ((by_file, "/nowhere/key"), "/nowhere/key"),
        ((by_command, "exit 3"), "exit status: 3"),
        ((by_command, "echo a secret that is no key"), "memory.encryption_key_command"),
        ((by_command, "yes"), "over 4096 bytes"),
        ((by_file, "/dev/zero"), "over 4096 bytes"),
    ] {
        let refused = ran(&shell, &["todos"], &[given]);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.stderr.contains(what), "{refused:?}");
        assert!(!refused.stderr.contains("a secret that is no key"), "{refused:?}");
    }
}

#[test]
fn s14_without_the_key_nothing_is_opened() {
    let shell = filled();
    for args in [
        &["todos"][..],
        &["verify"],
        &["doctor", "--repair"],
        &["export", "--todo", "canary-todo"],
        &["doctor", "--accept-loss"],
        &["import", "said.jsonl"],
    ] {
        for variables in [&[][..], &[("FOLDBACK_ENCRYPTION_KEY", OTHER)]] {
            let refused = ran(&shell, args, variables);
            assert_eq!(refused.code, 2, "{args:?}: {refused:?}");
            assert!(refused.stderr.contains("is encrypted"), "{args:?}: {refused:?}");
            assert!(!refused.stderr.contains("canary"), "{args:?}: {refused:?}");
        }
    }
    let missing = ran(&shell, &["todos"], &[]);
    assert!(missing.stderr.contains("FOLDBACK_ENCRYPTION_KEY"), "{missing:?}");
    let open = Shell::with_quay();
    let refused = with_key(&open, &["todos"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    for words in ["is not encrypted", "--store NEW restore", "that of FOLDBACK_ENCRYPTION_KEY"] {
        assert!(refused.stderr.contains(words), "{words}: {refused:?}");
    }
}

#[test]
fn s14_a_store_is_copied_converted_and_given_another_key() {
    let shell = filled();
    let copy = shell.path("copy");
    assert_eq!(with_key(&shell, &["backup", copy.to_str().unwrap()]).code, 0);
    assert_eq!(leaks(&copy), Vec::<String>::new());
    let new = shell.write("new", OTHER);
    let rekeyed = with_key(&shell, &["encryption", "rekey", "--new-key-file", &new]);
    assert_eq!(rekeyed.code, 0, "{rekeyed:?}");
    assert!(rekeyed.stderr.contains("FOLDBACK_ENCRYPTION_KEY still gives the old"), "{rekeyed:?}");
    assert_eq!(with_key(&shell, &["todos"]).code, 2);
    let verified = ran(&shell, &["verify"], &[("FOLDBACK_ENCRYPTION_KEY", OTHER)]);
    assert_eq!(verified.code, 0, "{verified:?}");
    // The copy keeps its key.
    let mut command = shell.command();
    command.arg("--store").arg(&copy).arg("verify").env("FOLDBACK_ENCRYPTION_KEY", KEY);
    assert_eq!(Ran::of(command.output().unwrap()).code, 0);
    let exported =
        ran(&shell, &["export", "--todo", "canary-todo"], &[("FOLDBACK_ENCRYPTION_KEY", OTHER)]);
    let all = shell.write("all.jsonl", exported.text());
    let mut command = shell.command();
    command.arg("--store").arg(shell.path("plain")).args(["import", &all]);
    assert_eq!(Ran::of(command.output().unwrap()).code, 0);
    assert_ne!(leaks(&shell.path("plain")), Vec::<String>::new());
}

#[test]
fn s14_the_status_of_a_store_that_is_not_encrypted_is_no_error_with_a_key() {
    let shell = Shell::with_quay();
    let seen = with_key(&shell, &["encryption", "status"]);
    assert_eq!(seen.code, 0, "{seen:?}");
    assert!(seen.text().contains("not encrypted, although FOLDBACK_ENCRYPTION_KEY"), "{seen:?}");
    let seen = with_key(&shell, &["--json", "encryption", "status"]);
    assert_eq!(seen.json(), serde_json::json!({ "encrypted": false, "key_given": true }));
    // A store that is missing, or has another key, is still refused.
    let refused = ran(&filled(), &["encryption", "status"], &[("FOLDBACK_ENCRYPTION_KEY", OTHER)]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert_eq!(with_key(&Shell::new(), &["encryption", "status"]).code, 1);
}

#[test]
fn s14_a_new_key_names_the_setting_that_gives_the_old_one() {
    let shell = filled();
    let (old, new) = (shell.write("old", KEY), shell.write("new", OTHER));
    let settings = shell.write("own.toml", "[memory]\nencryption_key_file = \"old\"\n");
    let rekey = ["--config", &settings, "--json", "encryption", "rekey", "--new-key-file", &new];
    let rekeyed = ran(&shell, &rekey, &[]);
    assert_eq!(rekeyed.json(), serde_json::json!({ "rekeyed": true }));
    for named in ["memory.encryption_key_file", &old, "own.toml:2"] {
        assert!(rekeyed.stderr.contains(named), "{named}: {rekeyed:?}");
    }
}
