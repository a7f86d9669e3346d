//! Recorded conversations of others, if the folder exists.

use crate::shell::Shell;
use foldback_testkit::data;

#[test]
fn the_example_conversations_come_through() {
    let files = data::files(&["examples"]);
    if files.is_empty() {
        eprintln!("SKIPPED: there is no folder of recorded conversations, set FOLDBACK_DATA");
        return;
    }
    let shell = Shell::new();
    let mut args = vec!["replay", "--json"];
    args.extend(files.iter().map(|file| file.to_str().unwrap()));
    let ran = shell.run_bare(&args);
    assert_eq!(ran.code, 0, "{ran:?}");
    let reports = ran.json_lines();
    assert_eq!(reports.len(), files.len());
    for report in reports {
        assert_eq!(report["lossless"], true, "{report}");
        assert_eq!(report["orphans"], 0, "{report}");
        assert_eq!(report["units_cut"], 0, "{report}");
        assert!(report["window_max_messages"].as_u64().unwrap() <= 12, "{report}");
    }
}
