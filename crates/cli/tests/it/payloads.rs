//! Large payloads elsewhere than in the store's folder.

use crate::shell::{Shell, line};
#[cfg(feature = "objects")]
use foldback_core::{Check, PayloadRef};
use foldback_core::{Message, ToolCall, ToolCallId};
#[cfg(feature = "objects")]
use foldback_testkit::s3::files_below;
#[cfg(feature = "objects")]
use std::path::{Path, PathBuf};

/// A conversation with one result of this text.
pub(crate) fn conversation(todo: &str, text: &str) -> String {
    let messages = vec![
        Message::user("What does the log say?"),
        Message::calls("", vec![ToolCall::new("c", "read", "{}")]),
        Message::tool_result(&ToolCallId::new("c"), text),
        Message::assistant("The log says canary."),
    ];
    line(todo, messages)
}

/// A text of many lines, with a word to look for. It has no other words, so that it is quickly indexed.
#[cfg(feature = "objects")]
pub(crate) fn text(size: usize, seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut out = format!("canary-{seed}\n");
    while out.len() < size {
        for _ in 0..79 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            out.push(char::from(b"=-~+*/<>"[(state >> 40) as usize % 8]));
        }
        out.push('\n');
    }
    out
}

/// The reference of a conversation's first payload, which has this text.
#[cfg(feature = "objects")]
pub(crate) fn reference(text: &str) -> String {
    PayloadRef::local(1, Check::of(text.as_bytes())).to_string()
}

#[cfg(not(feature = "objects-gcs"))]
#[test]
fn bs9_a_build_without_a_service_names_the_feature_that_has_it() {
    let shell = Shell::new();
    let file = shell.write("log.jsonl", conversation("log", "short"));
    let ran = shell.run(&["--payloads", "gs://bucket/prefix", "import", &file]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("--features objects-gcs"), "{}", ran.stderr);
    assert!(!shell.store().exists());
}

#[test]
fn bs9_credentials_in_an_address_are_refused_and_not_repeated() {
    let shell = Shell::new();
    for place in ["s3://AKID:SECRET@bucket/x", "az://container/x?sig=SECRET"] {
        let ran = shell.run(&["--payloads", place, "todos"]);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains("come from the environment"), "{}", ran.stderr);
        assert!(!ran.stderr.contains("SECRET"), "{}", ran.stderr);
    }
}

#[cfg(all(unix, feature = "objects"))]
#[test]
fn bs9_payloads_in_a_folder_elsewhere() {
    let shell = Shell::new();
    let log = text(400_000, 1);
    let file = shell.write("log.jsonl", conversation("log", &log));
    let place = format!("file://{}", shell.path("elsewhere").display());
    let at = ["--payloads", place.as_str()];
    let with = |arguments: &[&str]| shell.run(&[&at[..], arguments].concat());
    assert_eq!(with(&["import", &file]).code, 0);
    assert!(!shell.store().join("payloads").exists());
    let exported = with(&["export", "--todo", "log"]);
    assert!(exported.text().contains("canary-1"));
    assert_eq!(with(&["doctor"]).code, 0);

    // The store knows where its payloads are: nothing is taken for missing.
    for wrong in
        [&["doctor"][..], &["--payloads", "store", "load", "--todo", "log", "store://1-aaaa"]]
    {
        let ran = shell.run(wrong);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains(&format!("--payloads {place}")), "{}", ran.stderr);
    }
    let other = format!("file://{}", shell.path("other").display());
    let ran = shell.run(&["--payloads", &other, "doctor"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("there are none of it"), "{}", ran.stderr);

    // A folder that was moved is the same place.
    std::fs::rename(shell.path("elsewhere"), shell.path("other")).unwrap();
    let ran = shell.run(&["--payloads", &other, "export", "--todo", "log"]);
    assert_eq!(ran.text(), exported.text());

    // A backup needs nothing of it.
    let backup = shell.path("backup");
    let backup = backup.to_str().unwrap();
    assert_eq!(shell.run(&["--payloads", &other, "backup", backup]).code, 0);
    let ran = shell.run_bare(&["--store", backup, "export", "--todo", "log"]);
    assert_eq!(ran.text(), exported.text());
    assert_eq!(shell.run_bare(&["--store", backup, "doctor"]).code, 0);
    let ran = shell.run_bare(&["--store", backup, "--payloads", &other, "doctor"]);
    assert_eq!(ran.code, 2, "{ran:?}");

    assert_eq!(shell.run(&["--payloads", &other, "forget", "--todo", "log"]).code, 0);
    let left = files_below(&shell.path("other"));
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(shell.run_bare(&["--store", backup, "doctor"]).code, 0);
}

#[cfg(all(unix, feature = "objects"))]
#[test]
fn bs9_what_was_in_the_folder_before_stays_readable() {
    let shell = Shell::new();
    let before = shell.write("before.jsonl", conversation("before", &text(400_000, 1)));
    shell.ok(&["import", &before]);
    let exported = shell.ok(&["export", "--todo", "before"]);
    let place = format!("file://{}", shell.path("elsewhere").display());
    let ok = |arguments: &[&str]| shell.ok(&[&["--payloads", place.as_str()], arguments].concat());
    let after = shell.write("after.jsonl", conversation("after", &text(400_000, 2)));
    ok(&["import", &after]);
    assert_eq!(ok(&["export", "--todo", "before"]).text(), exported.text());
    assert!(ok(&["export", "--todo", "after"]).text().contains("canary-2"));
    ok(&["doctor", "--repair"]);
    let [folder, elsewhere] = ["store/payloads", "elsewhere"].map(|name| shell.path(name));
    // There is a file with a lock for each todo, too.
    let named_by_hash = |path: &&PathBuf| path.file_name().unwrap().len() == 64;
    let count = |folder: &Path| files_below(folder).iter().filter(named_by_hash).count();
    assert_eq!((count(&folder), count(&elsewhere)), (1, 1));
    ok(&["forget", "--todo", "before"]);
    assert_eq!((count(&folder), count(&elsewhere)), (0, 1));
}

#[cfg(all(unix, feature = "objects"))]
#[test]
fn bs9_the_place_may_come_from_the_environment_and_from_a_file() {
    let shell = Shell::new();
    let file = shell.write("log.jsonl", conversation("log", &text(400_000, 1)));
    let place = format!("file://{}", shell.path("elsewhere").display());
    let store = shell.store();
    let settings = shell.write("foldback.toml", format!("[memory]\npayloads = \"{place}\"\n"));
    let mut by_file = shell.command();
    by_file.env("FOLDBACK_CONFIG", &settings).arg("--store").arg(&store).args(["import", &file]);
    // The working folder's own file would be a project's, which may not name a place.
    by_file.current_dir("/");
    assert!(by_file.status().unwrap().success());
    let mut by_variable = shell.command();
    by_variable.env("FOLDBACK_PAYLOADS", &place).arg("--store").arg(&store).arg("verify");
    by_variable.current_dir("/");
    assert!(by_variable.status().unwrap().success());
}
