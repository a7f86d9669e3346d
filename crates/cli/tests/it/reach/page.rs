//! The page: rows of tables, and what their cells hold.

use std::path::PathBuf;

/// A line of a table that begins with a number.
pub(super) struct Row {
    pub(super) line: usize,
    pub(super) number: u32,
    mechanism: String,
    pub(super) ways: Ways,
    pub(super) seen: Vec<Sight>,
    /// The exit codes that are not 0, in the order of the commands.
    pub(super) codes: Vec<i32>,
    cells: usize,
}

/// What a user types, and what the settings say meanwhile.
#[derive(Default, PartialEq, Eq, Hash)]
pub(super) struct Ways {
    pub(super) commands: Vec<String>,
    /// `[section] key = value`
    pub(super) settings: Vec<String>,
    /// `cargo run .. --example name`
    pub(super) programs: Vec<String>,
}

/// Something that must, or must not, be seen.
pub(super) struct Sight {
    pub(super) place: Place,
    pub(super) text: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In what the commands print.
    Printed,
    /// Nowhere in what they print.
    NotPrinted,
    /// In a request to the model.
    Asked,
    /// Not in the last request.
    NotAsked,
}

/// Words of the last cell that say where to look, up to its next sentence.
const PLACES: [(&str, Place); 3] = [
    ("is not printed", Place::NotPrinted),
    ("the model does not get", Place::NotAsked),
    ("the model gets", Place::Asked),
];

pub(super) fn path(name: &str) -> PathBuf {
    super::root().join("docs").join(name)
}

pub(super) fn rows() -> Vec<Row> {
    let text = std::fs::read_to_string(path("reach.md")).unwrap();
    text.lines().enumerate().filter_map(|(n, line)| Row::read(n + 1, line)).collect()
}

impl Row {
    fn read(line: usize, text: &str) -> Option<Self> {
        let cells = cells(text)?;
        let number = cells[0].parse().ok()?;
        let cell = |n: usize| cells.get(n).map_or("", String::as_str);
        let mut ways = Ways::default();
        for (is_code, part) in parts(cell(2)) {
            if is_code && part.starts_with("foldback ") {
                ways.commands.push(part.to_owned());
            } else if is_code && part.starts_with('[') {
                ways.settings.push(part.to_owned());
            } else if is_code && part.starts_with("cargo run ") {
                ways.programs.push(part.to_owned());
            }
        }
        let (seen, codes) = sights(cell(3));
        let mechanism = cell(1).to_owned();
        Some(Self { line, number, mechanism, ways, seen, codes, cells: cells.len() })
    }

    /// What is missing in it.
    pub(super) fn faults(&self) -> Vec<String> {
        let settings = std::fs::read_to_string(path("settings.md")).unwrap_or_default();
        let unknown = |setting: &&String| {
            let (section, rest) = setting[1..].split_once(']').unwrap_or_default();
            let key = format!("`{section}.{}`", rest.split('=').next().unwrap_or("").trim());
            // Further models have names of their own, and the keys of the first.
            !section.starts_with("models.") && !settings.contains(&key)
        };
        let unknown = self.ways.settings.iter().filter(unknown);
        let mut faults: Vec<String> =
            unknown.map(|it| format!("docs/settings.md does not have {it}")).collect();
        let is_lacking = [
            (self.cells != 4, "has not four cells"),
            (self.mechanism.is_empty(), "names no mechanism"),
            (self.ways.commands.is_empty() && self.ways.programs.is_empty(), "names no command"),
            (self.seen.is_empty(), "does not say what is seen"),
        ];
        faults.extend(
            is_lacking.iter().filter(|(lacks, _)| *lacks).map(|(_, what)| (*what).to_owned()),
        );
        faults
            .iter()
            .map(|what| format!("line {}, mechanism {}: {what}", self.line, self.number))
            .collect()
    }
}

/// The cells of a line of a table.
fn cells(line: &str) -> Option<Vec<String>> {
    let inner = line.strip_prefix('|')?.trim_end().strip_suffix('|')?;
    let cells = inner.replace("\\|", "\u{0}");
    Some(cells.split('|').map(|cell| cell.replace('\u{0}', "|").trim().to_owned()).collect())
}

/// Words and code spans, in turn.
fn parts(cell: &str) -> impl Iterator<Item = (bool, &str)> {
    cell.split('`').enumerate().map(|(n, part)| (n % 2 == 1, part))
}

/// What is wrong with a row that names a program of `examples/`, which the journeys run: they look for what
/// the row says.
pub(super) fn unproven(row: &Row) -> Vec<String> {
    let journeys =
        std::fs::read_to_string(super::root().join("tests/journeys/examples.rs")).unwrap();
    let is_run = |command: &String| {
        let name = command.split_whitespace().next_back().unwrap_or("");
        let run = journeys.split_once(&format!("examples/{name}.rs\",")).map(|(_, after)| after);
        let words = run.and_then(|after| after.split(");").next());
        words.is_some_and(|words| row.seen.iter().all(|sight| words.contains(&sight.text)))
    };
    let unproven = row.ways.programs.iter().filter(|command| !is_run(command));
    let told = |it: &String| {
        format!("line {}: tests/journeys/examples.rs does not see that in `{it}`", row.line)
    };
    unproven.map(told).collect()
}

/// What the last cell expects to see, and the exit codes that it names.
fn sights(cell: &str) -> (Vec<Sight>, Vec<i32>) {
    let (mut seen, mut place, mut codes) = (Vec::new(), Place::Printed, Vec::new());
    for (is_code, part) in parts(cell) {
        if is_code {
            seen.push(Sight { place, text: part.to_owned() });
            continue;
        }
        let sentence = part.rsplit([';', '.']).next().unwrap_or(part);
        if sentence.len() < part.len() {
            place = Place::Printed;
        }
        if let Some((_, found)) = PLACES.iter().find(|(words, _)| sentence.contains(words)) {
            place = *found;
        }
        if let Some((_, number)) = part.split_once("exit code ") {
            codes.push(
                number
                    .chars()
                    .take_while(char::is_ascii_digit)
                    .collect::<String>()
                    .parse()
                    .unwrap(),
            );
        }
    }
    (seen, codes)
}
