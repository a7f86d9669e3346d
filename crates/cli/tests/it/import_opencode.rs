//! Sessions of OpenCode, from its database. The files in `opencode/` are those of a session with the released client
//! (1.18.33), with the tables that are read, before and after its second question.

use crate::shell::Shell;
use serde_json::Value;

pub(crate) const SESSION: &str = "ses_df5f46a7fffeXeIaMZFyiH7WMk";
pub(crate) const BEGUN: &[u8] = include_bytes!("opencode/begun.db");
pub(crate) const GONE_ON: &[u8] = include_bytes!("opencode/gone-on.db");

/// Roles and texts of what was imported.
fn said(shell: &Shell) -> Vec<(String, String)> {
    let export = shell.json(&["export", "--todo", SESSION]);
    let messages = export["messages"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    messages.map(|message| (text(&message["role"]), text(&message["content"]))).collect()
}

#[test]
fn rc6_sessions_of_opencode_are_read_from_its_database() {
    let shell = Shell::new();
    let file = shell.write("opencode.db", BEGUN);
    let imported = shell.json(&["import", &file]);
    assert_eq!(
        (&imported["id"], &imported["recorded"]),
        (&SESSION.into(), &4.into()),
        "{imported}"
    );
    let begun = said(&shell);
    let roles: Vec<_> = begun.iter().map(|(role, _)| role.as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
    assert!(begun[2].1.contains("1: The port is 7001."), "{begun:?}");
    assert_eq!(begun[3].1, "The port is 7001.");
    // It continues, and what was recorded of the first messages meanwhile makes no difference.
    shell.write("opencode.db", GONE_ON);
    let imported = shell.json(&["import", &file]);
    assert_eq!((&imported["recorded"], &imported["held"]), (&4.into(), &4.into()), "{imported}");
    assert_eq!(said(&shell)[..4], begun[..]);
    // The folder of the work is known.
    let found =
        shell.json(&["search", "--all-todos", "--source", "opencode", "--folder", "/work", "port"]);
    assert!(found.to_string().contains(SESSION), "{found}");
    shell.ok(&["verify"]);
}

#[test]
fn rc6_a_database_of_another_program_is_named() {
    let shell = Shell::with_quay();
    let file = shell.store().join("store.sqlite").display().to_string();
    let ran = shell.run(&["import", &file]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(
        ran.stderr.contains("an SQLite database without OpenCode's table \"session\""),
        "{ran:?}"
    );
    let cut = shell.write("cut.db", &BEGUN[..2_000]);
    let ran = shell.run(&["import", &cut]);
    assert!(ran.code != 0 && ran.stderr.contains("cut.db"), "{ran:?}");
}
