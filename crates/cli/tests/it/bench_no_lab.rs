//! The measurements of the lab, in a program that was built without it.

use crate::shell::Shell;

#[test]
fn what_is_left_out_names_the_command_that_has_it() {
    let shell = Shell::new();
    let help = shell.run_bare(&["bench", "--help"]);
    for name in [
        "savings",
        "gateway",
        "retrieval",
        "segmentation",
        "plans",
        "agent",
        "recall",
        "index",
        "scale",
    ] {
        assert!(help.text().contains(&format!("\n  {name} ")), "{name}: {}", help.text());
    }
    for arguments in [
        ["bench", "plans", "--json", "--max", "5", "my plans/"].as_slice(),
        &["bench", "agent", "--services", "6"],
        &["bench", "index", "--workload", "W1", "--out", "it's.jsonl"],
        &["bench", "recall", "--model", "m"],
        &["bench", "index", "--help"],
        &["--quiet", "bench", "plans"],
    ] {
        let ran = shell.run_bare(arguments);
        assert_eq!((ran.code, ran.text()), (2, ""), "{ran:?}");
        let quoted = arguments.join(" ").replace("my plans/", "'my plans/'");
        let quoted = quoted.replace("it's.jsonl", r"'it'\''s.jsonl'");
        let command = format!("cargo run --release -p foldback-cli --features lab -- {quoted}`");
        assert!(ran.stderr.contains(&command), "{command}: {}", ran.stderr);
    }
}
