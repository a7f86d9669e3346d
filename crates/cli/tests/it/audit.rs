//! S16, S10: look-ups are logged; the size of a todo is limited.

use crate::shell::{Ran, Shell, line, quay};
use serde_json::json;

fn with(shell: &Shell, variable: &str, value: &str, args: &[&str]) -> Ran {
    let mut command = shell.command();
    command.arg("--store").arg(shell.store()).args(args).env(variable, value);
    Ran::of(command.output().unwrap())
}

#[test]
fn s16_commands_are_noted_and_a_changed_line_is_named() {
    let shell = Shell::with_quay();
    let audited = |args: &[&str]| with(&shell, "FOLDBACK_MEMORY_AUDIT", "true", args);
    assert_eq!(audited(&["search", "--todo", "quay", "retry limit"]).code, 0);
    assert_eq!(audited(&["load", "--todo", "quay", "b_001"]).code, 0);
    assert_eq!(audited(&["view", "--todo", "quay"]).code, 0);
    let lines = shell.ok(&["--json", "audit", "--todo", "quay"]).json_lines();
    let told: Vec<_> = lines.iter().map(|line| (&line["door"], &line["what"])).collect();
    let (door, end) = (json!("cli"), json!(null));
    let expected = [json!("search"), json!("load"), json!("view")];
    assert_eq!(told[..3], expected.each_ref().map(|what| (&door, what)));
    assert_eq!(told[3], (&end, &end));
    assert_eq!(lines[1]["asked"], json!(["b_quay_001"]));
    assert_eq!(lines[3], json!({"lines": 3, "clean": true, "broken_line": null, "why": null}));
    assert_eq!((&lines[1]["given"], &lines[1]["error"]), (&json!(["b_quay_001"]), &json!(false)));
    assert_eq!(shell.ok(&["audit", "--query", "retry limit"]).text().lines().count(), 1);
    assert_eq!(shell.ok(&["audit", "--since", "2999-01-01"]).text(), "");
    assert_eq!(shell.run(&["audit", "--since", "noon"]).code, 2);

    let path = shell.store().join("audit.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("retry limit"));
    std::fs::write(&path, text.replace("b_quay_001", "b_quay_002")).unwrap();
    let broken = shell.run(&["--json", "audit"]);
    assert_eq!(broken.code, 1, "{broken:?}");
    assert_eq!(broken.json_lines().pop().unwrap()["clean"], false);
    for command in ["verify", "doctor"] {
        let found = shell.run(&[command]);
        assert!(
            found.code == 1 && found.text().contains("audit log is broken at line"),
            "{found:?}"
        );
    }
}

/// S16: a load that gives nothing is noted as such, with the reference that was asked for.
#[test]
fn s16_a_load_that_gives_nothing_is_noted_as_an_error() {
    let shell = Shell::with_quay();
    let file = shell.path("out").display().to_string();
    for args in [
        &["load", "--todo", "quay", "b_999"][..],
        &["load", "--todo", "quay", "b_999", "--out", &file],
        &["load", "--todo", "quay", "b_001", "--lines", "1"],
    ] {
        let ran = with(&shell, "FOLDBACK_MEMORY_AUDIT", "true", args);
        assert!(ran.code != 0 && ran.text().is_empty(), "{ran:?}");
    }
    let lines = shell.ok(&["--json", "audit"]).json_lines();
    assert_eq!(lines.len(), 4, "{lines:?}");
    for (line, asked) in lines.iter().zip(["b_quay_999", "b_quay_999", "b_quay_001"]) {
        assert_eq!((&line["what"], &line["asked"]), (&json!("load"), &json!([asked])));
        assert!(line["error"] == true && line["given"] == json!([]), "{line}");
    }
}

/// S16: an empty log of a store whose look-ups are not recorded is not taken for a clean one.
#[test]
fn s16_a_log_that_is_off_says_so() {
    let shell = Shell::with_quay();
    shell.ok(&["search", "--todo", "quay", "船闸"]);
    for args in [&["audit"][..], &["--json", "audit"]] {
        let off = shell.ok(args);
        assert!(off.stderr.contains("the audit log is off"), "{off:?}");
        assert!(off.stderr.contains("memory.audit = true"), "{off:?}");
        let on = with(&shell, "FOLDBACK_MEMORY_AUDIT", "true", args);
        assert!(on.code == 0 && !on.stderr.contains("is off"), "{on:?}");
    }
}

#[test]
fn s10_an_import_over_a_bound_says_which() {
    let shell = Shell::new();
    let file = shell.write("quay.jsonl", line("quay", quay()));
    let refused = with(&shell, "FOLDBACK_MEMORY_MAX_MESSAGES", "3", &["import", &file]);
    assert_ne!(refused.code, 0);
    for said in ["todo quay", "3 messages", "memory.max_messages"] {
        assert!(refused.stderr.contains(said), "{refused:?}");
    }
    let more = quay().len().to_string();
    assert_eq!(with(&shell, "FOLDBACK_MEMORY_MAX_MESSAGES", &more, &["import", &file]).code, 0);
}
