//! Documentation pages name, for each promise, the file whose tests prove it: the file exists, and a
//! test in it names the row.

use crate::story::workspace_root;
use std::fs;

/// A page, and the rows that must be on it: families with their last number, then single rows.
struct Page {
    path: &'static str,
    families: &'static [(&'static str, u32)],
    rows: &'static [&'static str],
}

const PAGES: [Page; 4] = [
    Page {
        path: "docs/planning.md",
        families: &[("OP", 20), ("ET", 16), ("MC", 21)],
        rows: &["R12", "S6", "S10", "P13"],
    },
    Page {
        path: "docs/agent.md",
        families: &[("DS", 12), ("OM", 18), ("TD", 4)],
        rows: &[
            "CX2", "CX7", "CX11", "LV7", "MC14", "MC21", "OP14", "OP15", "OP16", "OP17", "OP18",
            "OP19", "OP20", "S5", "S6", "S13", "TL8",
        ],
    },
    Page { path: "docs/gateway.md", families: &[("GW", 4)], rows: &["GW12", "GW13", "GW17"] },
    Page { path: "docs/mcp.md", families: &[("RC", 5)], rows: &[] },
];

impl Page {
    fn owed(&self) -> Vec<String> {
        let numbered = self.families.iter();
        let numbered = numbered.flat_map(|(f, last)| (1..=*last).map(move |n| format!("{f}{n}")));
        numbered.chain(self.rows.iter().map(|row| (*row).to_owned())).collect()
    }
}

/// The rows of the page's tables: id, what it promises, and the files that prove it.
fn rows(page: &str) -> Vec<(&str, &str, Vec<&str>)> {
    let cells = page.lines().filter(|line| line.starts_with('|')).map(|line| {
        let cells: Vec<_> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        cells
    });
    let rows = cells.filter_map(|cells| match cells.as_slice() {
        [id, promise, proof] if id.ends_with(|c: char| c.is_ascii_digit()) => {
            Some((*id, *promise, proof.split('`').skip(1).step_by(2).collect()))
        }
        _ => None,
    });
    rows.collect()
}

/// Whether the text names the row: `OP1` and `op1_parses`, but not `OP10`.
fn names(text: &str, id: &str) -> bool {
    let (text, id) = (text.to_ascii_lowercase(), id.to_ascii_lowercase());
    text.match_indices(&id).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + id.len()..].chars().next();
        !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(|c| c.is_ascii_digit())
    })
}

#[test]
fn every_row_has_a_test_that_names_it() {
    let root = workspace_root();
    let mut wrong = Vec::new();
    for page in &PAGES {
        let path = page.path;
        let text = fs::read_to_string(root.join(path)).unwrap();
        let rows = rows(&text);
        for id in page.owed() {
            if !rows.iter().any(|(row, ..)| *row == id) {
                wrong.push(format!("{path}: {id} is not there"));
            }
        }
        for (id, promise, files) in &rows {
            if promise.is_empty() || files.is_empty() {
                wrong.push(format!("{path}: {id} promises nothing, or no file proves it"));
            }
            for file in files {
                match fs::read_to_string(root.join(file)) {
                    Ok(text) if names(&text, id) && text.contains("#[test]") => {}
                    Ok(text) if names(&text, id) && text.contains("#[tokio::test") => {}
                    Ok(text) if names(&text, id) && text.contains("proptest!") => {}
                    Ok(text) if names(&text, id) && text.contains("divan::bench") => {}
                    Ok(_) => wrong.push(format!("{path}: no test in {file} names {id}")),
                    Err(error) => wrong.push(format!("{path}: {id}: {file}: {error}")),
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn a_row_is_named_by_itself_only() {
    assert!(names("/// OP1: x", "OP1") && names("fn op1_x()", "OP1"));
    assert!(!names("/// OP10: x", "OP1") && !names("STOP1", "OP1"));
}
