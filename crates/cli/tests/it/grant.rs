//! What one todo lets another load, and files for other tools.

use crate::shell::{Shell, line};
use foldback_core::Message;

/// A shell whose store has `quay` and a todo of one message, and the first payload of `quay`.
fn two_todos() -> (Shell, String) {
    let shell = Shell::with_quay();
    let other = shell.write("other.jsonl", line("other", vec![Message::user("你好")]));
    shell.ok(&["import", &other]);
    let blocks = shell.json(&["blocks", "--todo", "quay"]);
    let ids = blocks.as_array().unwrap().iter().flat_map(|b| b["data_ids"].as_array().unwrap());
    let payload = ids.map(|id| id.as_str().unwrap()).next().unwrap();
    let payload = payload.replace("store://", "store://quay/");
    (shell, payload)
}

/// TD2: granted, listed, loaded by the full name, revoked.
#[test]
fn td2_a_grant_from_the_command_line() {
    let (shell, payload) = two_todos();
    let load = |reference: &str| shell.run(&["load", "--todo", "other", reference]);
    let own = shell.ok(&["load", "--todo", "quay", &payload]).stdout;
    for reference in ["b_quay_001", &payload] {
        let (refused, never) = (load(reference), load(&reference.replace("quay", "no")));
        assert_eq!((refused.code, refused.stdout.len()), (1, 0));
        assert_eq!(
            refused.stderr,
            never.stderr.replace("_no_", "_quay_").replace("/no/", "/quay/")
        );
    }
    let short = payload.replace("quay/", "");
    let granted = shell.json(&["grant", "--todo", "quay", "--to", "other", "b_001", &short]);
    assert_eq!(granted["granted"], serde_json::json!(["b_quay_001", payload]));
    let again = shell.json(&["grant", "--todo", "quay", "--to", "other", "b_001"]);
    assert_eq!(again["granted"], serde_json::json!([]));

    assert_eq!(load(&payload).stdout, own);
    assert!(load("b_quay_001").text().starts_with("b_quay_001 · messages"));
    let json = shell.json(&["load", "--todo", "other", &payload, "--lines", "1-2"]);
    assert_eq!(json["ref"], payload.as_str());
    let listed = shell.json(&["todos", "--grants"]);
    let listed: Vec<_> = listed.as_array().unwrap().iter().map(|row| row["ref"].clone()).collect();
    assert_eq!(listed.len(), 2);
    assert!(listed.contains(&payload.clone().into()), "{listed:?}");
    for todo in ["quay", "other"] {
        let listed = shell.ok(&["todos", "--grants", "--todo", todo]);
        assert!(listed.text().contains("b_quay_001") && listed.text().contains("other"));
    }

    let revoke = ["grant", "--todo", "quay", "--to", "other", "--revoke", payload.as_str()];
    assert_eq!(shell.json(&revoke)["revoked"], serde_json::json!([payload]));
    assert_eq!(shell.run(&revoke).code, 1, "it was taken back before");
    shell.ok(&["forget", "--todo", "quay"]);
    assert_eq!(load("b_quay_001").code, 1);
    assert_eq!(shell.json(&["todos", "--grants"]), serde_json::json!([]));
}

/// TD2: a refused grant says why.
#[test]
fn td2_what_cannot_be_granted_says_why() {
    let (shell, _) = two_todos();
    #[track_caller]
    fn check(shell: &Shell, args: &[&str], code: i32, said: &str) {
        let mut all = vec!["grant", "--todo", "quay"];
        all.extend(args);
        let ran = shell.run(&all);
        assert_eq!(ran.code, code, "{ran:?}");
        assert!(ran.stderr.contains(said), "{ran:?}");
    }
    check(&shell, &["--to", "nobody", "b_001"], 1, "the store holds no todo nobody");
    check(
        &shell,
        &["--to", "other", "b_099"],
        1,
        "nothing is stored under b_quay_099 in todo quay",
    );
    check(&shell, &["--to", "other", "b_other_001"], 2, "its own blocks and payloads only");
    check(&shell, &["--to", "other", "../../etc/passwd"], 2, "is not a reference");
    check(&shell, &["--to", "other"], 2, "REF");
    check(&shell, &["--to", "quay", "b_001"], 2, "without a grant");
    check(&shell, &["--to", "other", "b_0000001"], 2, "is not a reference");
}

/// BS8: a file for a tool: whole or not there.
#[test]
fn bs8_a_file_for_another_tool() {
    let (shell, payload) = two_todos();
    let own = shell.ok(&["load", "--todo", "quay", &payload]).stdout;
    let file = shell.path("out.txt");
    let path = file.to_str().unwrap();
    std::fs::write(&file, "before").unwrap();
    let missing = shell.run(&["load", "--todo", "quay", "store://99-aaaa", "--out", path]);
    assert_eq!(missing.code, 1);
    assert_eq!(std::fs::read(&file).unwrap(), b"before", "a failure leaves what was there");
    let told = shell.json(&["load", "--todo", "quay", &payload, "--out", path]);
    assert_eq!(std::fs::read(&file).unwrap(), own);
    assert_eq!(
        (told["kind"].as_str(), told["bytes"].as_u64()),
        (Some("file"), Some(own.len() as u64))
    );
    // A block is its messages as JSON Lines.
    shell.ok(&["load", "--todo", "quay", "b_quay_001", "--out", path]);
    let lines = std::fs::read_to_string(&file).unwrap();
    let block = shell.json(&["load", "--todo", "quay", "b_quay_001"]);
    let messages: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(messages, *block["messages"].as_array().unwrap());
    assert_eq!(shell.run(&["load", "--todo", "other", &payload, "--out", path]).code, 1);
    let both = shell.run(&["load", "--todo", "quay", &payload, "--out", path, "--lines", "1-2"]);
    assert_eq!(both.code, 2);
    let nowhere = shell.path("no/such/folder/out.txt");
    let ran = shell.run(&["load", "--todo", "quay", &payload, "--out", nowhere.to_str().unwrap()]);
    assert!(ran.code == 2 && ran.stderr.contains("could not be written"), "{ran:?}");
    let dash = shell.run(&["load", "--todo", "quay", &payload, "--out", "-"]);
    assert!(dash.code == 2 && dash.stderr.contains("- is not a file"), "{dash:?}");
    let left = std::fs::read_dir(file.parent().unwrap()).unwrap().count();
    assert_eq!(left, 4, "no temporary file is left: quay.jsonl, other.jsonl, out.txt, store");
}

/// BS8: a file that is replaced keeps its permissions and its links; a new one is like any other.
#[cfg(unix)]
#[test]
fn bs8_a_file_is_written_as_others_are() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let (shell, payload) = two_todos();
    let own = shell.ok(&["load", "--todo", "quay", &payload]).stdout;
    let mode = |name: &str| shell.path(name).metadata().unwrap().permissions().mode() & 0o777;
    let load = |name: &str| {
        let path = shell.path(name);
        shell.ok(&["load", "--todo", "quay", &payload, "--out", path.to_str().unwrap()]);
        assert_eq!(std::fs::read(path).unwrap(), own);
    };
    std::fs::write(shell.path("any"), "").unwrap();
    load("new");
    assert_eq!(mode("new"), mode("any"));
    for kept in [0o640, 0o755] {
        let permissions = std::fs::Permissions::from_mode(kept);
        std::fs::set_permissions(shell.path("any"), permissions).unwrap();
        load("any");
        assert_eq!(mode("any"), kept);
    }
    std::fs::create_dir(shell.path("folder")).unwrap();
    symlink("folder/target", shell.path("link")).unwrap();
    for _ in 0..2 {
        // The first time, nothing is there yet.
        load("link");
        assert!(shell.path("link").is_symlink() && !shell.path("folder/target").is_symlink());
        assert_eq!(std::fs::read(shell.path("folder/target")).unwrap(), own);
    }
}
