//! `docs/rules.md` defines the id of every promise that a test's name begins with: each id once, each with a test that
//! is there.

use crate::story::workspace_root;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The families of ids. A word such as `utf8` is none of them, and neither is a number with a unit.
const FAMILIES: [&str; 24] = [
    "B", "BL", "BS", "C", "CX", "DS", "ET", "GW", "IN", "LAW", "LV", "MC", "MD", "N", "OM", "OP",
    "P", "PG", "PY", "R", "RC", "S", "TD", "TL",
];

const FOLDERS: [&str; 7] = ["bindings", "crates", "distill", "examples", "fuzz", "tests", "xtask"];

/// The page, and the tests of the Python package, which a checkout may be without.
const PAGE: &str = "docs/rules.md";
const PYTHON_TESTS: &str = "bindings/python/tests/";

/// A test of the sources.
#[derive(Debug, PartialEq)]
struct Test {
    file: String,
    name: String,
    is_ignored: bool,
}

/// A row of the page.
struct Row {
    id: String,
    promise: String,
    /// The name of a test, and its file.
    test: Option<(String, String)>,
}

impl Row {
    /// The page and the section of each link with which the row says where the id is defined; none where the row
    /// itself defines it.
    fn links(&self) -> Vec<(&str, &str)> {
        if !self.promise.starts_with('[') {
            return Vec::new();
        }
        let links = self.promise.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        links.filter_map(|(link, _)| link.split_once('#')).collect()
    }
}

/// The id that a part of a name is: `bl10` is BL10.
fn id(part: &str) -> Option<String> {
    let family = part.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_id = family.len() < part.len()
        && FAMILIES.iter().any(|known| known.to_ascii_lowercase() == family);
    is_id.then(|| part.to_ascii_uppercase())
}

/// The ids that a test's name begins with: `r7_c7_churn` has two.
fn ids(name: &str) -> Vec<String> {
    let name = name.strip_prefix("test_").unwrap_or(name);
    name.split('_').map_while(id).collect()
}

/// Whether the name holds the id, at its beginning or later: one test may prove two ids in two halves.
fn names(name: &str, wanted: &str) -> bool {
    name.split('_').filter_map(id).any(|found| found == wanted)
}

/// The tests of a file of Rust: functions with an attribute that ends with `test`.
fn rust_tests(file: &str, text: &str) -> Vec<Test> {
    let mut tests = Vec::new();
    let (mut is_test, mut is_ignored, mut is_open) = (false, false, false);
    for line in text.lines().map(str::trim) {
        if is_open {
            is_open = !line.ends_with(']');
        } else if let Some(attribute) = line.strip_prefix("#[") {
            let path = attribute.split(['(', ']', ' ']).next().unwrap();
            is_test |= path == "test" || path.ends_with("::test");
            is_ignored |= path == "ignore";
            is_open = !line.ends_with(']');
        } else if !line.is_empty() && !line.starts_with("//") {
            let function = line.split("fn ").nth(1).filter(|_| is_test);
            if let Some((name, _)) = function.and_then(|rest| rest.split_once('(')) {
                tests.push(Test { file: file.to_owned(), name: name.to_owned(), is_ignored });
            }
            (is_test, is_ignored) = (false, false);
        }
    }
    tests
}

/// The tests of a file of Python: functions whose names begin with `test_`.
fn python_tests(file: &str, text: &str) -> Vec<Test> {
    let mut tests = Vec::new();
    let mut is_ignored = false;
    for line in text.lines().map(str::trim) {
        let function = line.strip_prefix("async ").unwrap_or(line).strip_prefix("def ");
        if line == "@pytest.mark.skip" || line.starts_with("@pytest.mark.skip(") {
            is_ignored = true;
        } else if let Some((name, _)) = function.and_then(|rest| rest.split_once('(')) {
            if name.starts_with("test_") {
                tests.push(Test { file: file.to_owned(), name: name.to_owned(), is_ignored });
            }
            is_ignored = false;
        }
    }
    tests
}

/// Every test of the workspace.
fn tests() -> Vec<Test> {
    fn look(root: &Path, folder: &Path, found: &mut Vec<Test>) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.map(Result::unwrap) {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if entry.file_type().unwrap().is_dir() {
                if name != "target" && !name.starts_with('.') {
                    look(root, &path, found);
                }
                continue;
            }
            let file = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
            if name.ends_with(".rs") {
                found.extend(rust_tests(&file, &fs::read_to_string(&path).unwrap()));
            } else if file.starts_with(PYTHON_TESTS) && name.ends_with(".py") {
                found.extend(python_tests(&file, &fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let (root, mut found) = (workspace_root(), Vec::new());
    for folder in FOLDERS {
        look(&root, &root.join(folder), &mut found);
    }
    found
}

fn cells(line: &str) -> Option<Vec<&str>> {
    let row = line.strip_prefix('|')?.trim_end().strip_suffix('|')?;
    Some(row.split(" | ").map(str::trim).collect())
}

/// The rows of the page. A cell that names a test has its name and its file, each between backticks.
fn rows(page: &str) -> Vec<Row> {
    let found = page.lines().filter_map(cells).filter_map(|cells| {
        let [first, promise, test] = cells.as_slice() else { return None };
        if *first == "id" || first.starts_with('-') {
            return None;
        }
        let test = match test.split('`').collect::<Vec<_>>().as_slice() {
            ["", name, " in ", file, ""] => Some(((*name).to_owned(), (*file).to_owned())),
            _ => None,
        };
        Some(Row { id: (*first).to_owned(), promise: (*promise).to_owned(), test })
    });
    found.collect()
}

/// The ids that each section of a page defines, by the anchor of the section.
type Sections = BTreeMap<String, BTreeSet<String>>;

/// Reads the rows of tables that say what holds, and the numbers of the list of laws.
fn defined(page: &str) -> Sections {
    let mut sections = Sections::new();
    let (mut anchor, mut defines, mut is_code) = (String::new(), false, false);
    for line in page.lines() {
        is_code ^= line.starts_with("```");
        if is_code {
            continue;
        }
        if let Some(heading) = line.strip_prefix('#') {
            let of = slug(heading.trim_start_matches('#').trim());
            // A heading that was there before gets a number, as it does where Markdown is shown.
            let again = (0..).map(|n| if n == 0 { of.clone() } else { format!("{of}-{n}") });
            anchor = again.into_iter().find(|slug| !sections.contains_key(slug)).unwrap();
            sections.insert(anchor.clone(), BTreeSet::new());
        }
        let law = line.split_once(". **").map(|(n, _)| format!("law{n}"));
        let row = match cells(line).as_deref() {
            Some(["row", "what holds" | "promise", ..]) => {
                defines = true;
                None
            }
            Some([first, ..]) if defines => id(&first.to_ascii_lowercase()),
            Some(_) => None,
            None => {
                defines = false;
                law.filter(|_| anchor == "the-laws").and_then(|law| id(&law))
            }
        };
        if let (Some(row), Some(section)) = (row, sections.get_mut(&anchor)) {
            section.insert(row);
        }
    }
    sections
}

/// The anchor of a heading.
fn slug(heading: &str) -> String {
    let letters = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    letters.collect::<String>().to_lowercase().replace(' ', "-")
}

/// The page itself, and what every page defines that it links to, by the page's name in the link.
fn pages() -> (Vec<Row>, BTreeMap<String, Sections>) {
    let docs = workspace_root().join("docs");
    let rows = rows(&fs::read_to_string(workspace_root().join(PAGE)).unwrap());
    let linked: BTreeSet<_> =
        rows.iter().flat_map(Row::links).map(|(page, _)| page.to_owned()).collect();
    let read = |page: String| {
        let text = fs::read_to_string(docs.join(&page)).unwrap_or_else(|e| panic!("{page}: {e}"));
        (page, defined(&text))
    };
    (rows, linked.into_iter().map(read).collect())
}

#[test]
fn every_id_of_a_test_is_a_rule() {
    let known: BTreeSet<_> = pages().0.into_iter().map(|row| row.id).collect();
    let tests = tests();
    assert!(tests.len() > 1_000, "only {} tests were found", tests.len());
    let mut wrong = BTreeSet::new();
    for test in &tests {
        let unknown = ids(&test.name).into_iter().filter(|id| !known.contains(id));
        wrong.extend(unknown.map(|id| format!("{id} of {} in {}", test.name, test.file)));
    }
    assert_eq!(wrong, BTreeSet::new(), "{PAGE} does not define them");
}

#[test]
fn every_rule_has_a_test() {
    let tests = tests();
    let mut wrong = Vec::new();
    for row in pages().0 {
        let id = &row.id;
        let Some((name, file)) = &row.test else {
            wrong.push(format!("{id}: the last cell is not \"`test` in `file`\""));
            continue;
        };
        if file.starts_with(PYTHON_TESTS) && !workspace_root().join(file).exists() {
            continue;
        }
        if !names(name, id) {
            wrong.push(format!("{id}: {name} does not name it"));
        }
        match tests.iter().find(|test| test.name == *name && test.file == *file) {
            None => wrong.push(format!("{id}: there is no test {name} in {file}")),
            Some(test) if test.is_ignored => wrong.push(format!("{id}: {name} is not run")),
            Some(_) => {}
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn every_rule_is_defined_once() {
    let (rows, pages) = pages();
    let (mut seen, mut wrong) = (BTreeSet::new(), Vec::new());
    for row in &rows {
        let (id, links) = (&row.id, row.links());
        if self::id(&id.to_ascii_lowercase()).as_ref() != Some(id) {
            wrong.push(format!("{id} is no id of a family"));
        }
        if !seen.insert(id) {
            wrong.push(format!("{id} has two rows"));
        }
        for (page, section) in &links {
            if !pages[*page].contains_key(*section) {
                wrong.push(format!("{id}: {page} has no section #{section}"));
            }
        }
        let defines = |(page, section): &(&str, &str)| {
            pages[*page].get(*section).is_some_and(|ids| ids.contains(id))
        };
        let elsewhere = |ids: &Sections| ids.values().any(|of| of.contains(id));
        if !links.is_empty() && !links.iter().any(defines) {
            wrong.push(format!("{id}: none of its links leads to its definition"));
        }
        if links.is_empty() && row.promise.is_empty() {
            wrong.push(format!("{id} promises nothing"));
        }
        if links.is_empty() && pages.values().any(elsewhere) {
            wrong.push(format!("{id} is defined on another page as well"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn a_word_with_a_number_is_no_id() {
    assert_eq!(ids("r7_c7_churn_returns_space"), ["R7", "C7"]);
    assert_eq!(ids("test_py2_every_slot"), ["PY2"]);
    assert_eq!(ids("b6_step1_is_not_found_in_step10"), ["B6"]);
    assert_eq!(ids("utf8_is_kept"), [""; 0]);
    assert_eq!(ids("o200k_counts_exactly"), [""; 0]);
    assert!(names("bl4_loop_and_bl6_granularity", "BL6") && !names("op10_x", "OP1"));
}

#[test]
fn tests_are_found_by_their_attributes() {
    let rust = [
        "#[test]",
        "/// Said in words.",
        "#[ignore = \"slow\"]",
        "fn r1_slow() {}",
        "#[tokio::test(start_paused = true)]",
        "async fn n2_x() {}",
        "#[cfg(",
        "    unix",
        ")]",
        "fn r2_no_test() {}",
    ];
    let found = rust_tests("a.rs", &rust.join("\n"));
    let short: Vec<_> = found.iter().map(|test| (test.name.as_str(), test.is_ignored)).collect();
    assert_eq!(short, [("r1_slow", true), ("n2_x", false)]);
    let python =
        "@pytest.mark.skip(reason=\"x\")\ndef test_py1_a():\ndef py1_b():\nasync def test_py2_c():";
    let found = python_tests("a.py", python);
    let short: Vec<_> = found.iter().map(|test| (test.name.as_str(), test.is_ignored)).collect();
    assert_eq!(short, [("test_py1_a", true), ("test_py2_c", false)]);
}

#[test]
fn definitions_are_found_in_their_sections() {
    let page = "## Flow\n```\n# flow\n```\n## `<Flow>`\n| row | what holds | proof |\n|---|---|---|\n| OM1 | x | `y` |\n\n\
                | row | what was done | test |\n| R1 | x | y |\n## The laws\n7. **A fold** x\n";
    let found = defined(page);
    let of = |section: &str| found[section].iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!((of("flow"), of("flow-1")), (vec![], vec!["OM1"]));
    assert_eq!(of("the-laws"), ["LAW7"]);
}
