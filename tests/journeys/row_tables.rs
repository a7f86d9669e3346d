//! `docs/trust.md` names, for each promise of a door to foldback, the files whose tests prove it: each file exists, and
//! a test in it names the row.

use crate::story::workspace_root;
use std::collections::BTreeSet;
use std::fs;

/// The page with the tables.
const PAGE: &str = "docs/trust.md";

/// A section of the page, and the rows that must be in it: families with their last number, then single rows.
struct Door {
    heading: &'static str,
    families: &'static [(&'static str, u32)],
    rows: &'static [&'static str],
}

const DOORS: [Door; 4] = [
    Door {
        heading: "Proofs of plans",
        families: &[("OP", 20), ("ET", 16), ("MC", 21)],
        rows: &["R12", "S10", "P13"],
    },
    Door {
        heading: "Proofs of the agent",
        families: &[("DS", 12), ("OM", 18), ("TD", 4)],
        rows: &["CX2", "CX7", "CX11", "LV7", "S5", "S6", "S13", "TL8"],
    },
    Door { heading: "Proofs of the gateway", families: &[("GW", 21)], rows: &[] },
    Door { heading: "Proofs of the MCP server", families: &[("RC", 7)], rows: &[] },
];

impl Door {
    fn owed(&self) -> Vec<String> {
        let numbered = self.families.iter();
        let numbered = numbered.flat_map(|(f, last)| (1..=*last).map(move |n| format!("{f}{n}")));
        numbered.chain(self.rows.iter().map(|row| (*row).to_owned())).collect()
    }
}

/// The part of the page with the tables: from the first door's section to the end.
fn proofs() -> String {
    let page = fs::read_to_string(workspace_root().join(PAGE)).unwrap();
    let begin = page.find(&format!("\n## {}\n", DOORS[0].heading)).unwrap();
    page[begin..].to_owned()
}

/// The text of a section of the second level.
fn section<'a>(page: &'a str, heading: &str) -> Option<&'a str> {
    page.split("\n## ").skip(1).find_map(|text| text.strip_prefix(heading)?.strip_prefix('\n'))
}

/// The rows of the tables of a text: id, what it promises, and the files that prove it.
fn rows(text: &str) -> Vec<(&str, &str, Vec<&str>)> {
    let cells = text.lines().filter(|line| line.starts_with('|')).map(|line| {
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
    let proofs = proofs();
    let mut wrong = Vec::new();
    for (id, promise, files) in rows(&proofs) {
        if promise.is_empty() || files.is_empty() {
            wrong.push(format!("{id} promises nothing, or no file proves it"));
        }
        for file in files {
            match fs::read_to_string(root.join(file)) {
                Ok(text) if names(&text, id) && text.contains("#[test]") => {}
                Ok(text) if names(&text, id) && text.contains("#[tokio::test") => {}
                Ok(text) if names(&text, id) && text.contains("proptest!") => {}
                Ok(text) if names(&text, id) && text.contains("divan::bench") => {}
                Ok(_) => wrong.push(format!("no test in {file} names {id}")),
                Err(error) => wrong.push(format!("{id}: {file}: {error}")),
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new(), "{PAGE}");
}

#[test]
fn every_door_has_its_rows_and_no_others() {
    let proofs = proofs();
    let mut in_doors = 0;
    for door in &DOORS {
        let text = section(&proofs, door.heading).unwrap_or_else(|| panic!("no {}", door.heading));
        let found: Vec<_> = rows(text).into_iter().map(|(id, ..)| id.to_owned()).collect();
        in_doors += found.len();
        let (once, owed) = (BTreeSet::from_iter(&found), door.owed());
        assert_eq!(once.len(), found.len(), "{}: a row is there twice", door.heading);
        assert_eq!(once, BTreeSet::from_iter(&owed), "{}", door.heading);
    }
    assert_eq!(in_doors, rows(&proofs).len(), "a row is in none of the sections");
}

#[test]
fn a_row_is_named_by_itself_only() {
    assert!(names("/// OP1: x", "OP1") && names("fn op1_x()", "OP1"));
    assert!(!names("/// OP10: x", "OP1") && !names("STOP1", "OP1"));
}
