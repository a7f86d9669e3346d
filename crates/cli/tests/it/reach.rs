//! `docs/reach.md`: each mechanism, the command or setting that shows it, and what is seen. Every command of the page
//! is run, with a script in place of a model, and the expected output is looked for.

mod check;
mod page;
mod room;
mod tasks;
mod words;

use check::Seen;
use page::Row;
use room::Rooms;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Mutex;
use tasks::Tasks;

/// Mechanisms have numbers from 1 to this.
const LAST: u32 = 117;

/// The commands of one cell, and the rows that it shows.
type Work<'a> = (&'a page::Ways, Vec<&'a Row>);

#[test]
fn every_mechanism_is_reached_as_the_page_says() {
    let rows = page::rows();
    let mut wrong = numbers(&rows);
    let tasks = Tasks::read();
    let mut work: HashMap<&page::Ways, Vec<&Row>> = HashMap::new();
    for row in &rows {
        wrong.extend(row.faults());
        if row.ways.commands.is_empty() {
            wrong.extend(page::unproven(row));
        } else {
            work.entry(&row.ways).or_default().push(row);
        }
    }
    let mut work: Vec<Work<'_>> = work.into_iter().collect();
    work.sort_by_key(|(_, rows)| rows[0].line);
    let named: HashSet<&str> = work.iter().flat_map(|(ways, _)| tasks.named_by(ways)).collect();
    wrong.extend(tasks.unnamed(&named));

    let rooms = Rooms::new();
    let (work, found) = (Mutex::new(work), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while let Some((ways, rows)) = { work.lock().unwrap().pop() } {
                    let faults = show(&rooms, &tasks, ways, &rows);
                    found.lock().unwrap().extend(faults);
                }
            });
        }
    });
    wrong.append(&mut found.into_inner().unwrap());
    wrong.sort();
    assert!(wrong.is_empty(), "docs/reach.md:\n{}", wrong.join("\n"));
}

/// The folder of the project.
fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// What is wrong with the numbers of the rows.
fn numbers(rows: &[Row]) -> Vec<String> {
    let mut lines: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for row in rows {
        lines.entry(row.number).or_default().push(row.line);
    }
    let mut wrong = Vec::new();
    for number in 1..=LAST {
        match lines.remove(&number) {
            None => wrong.push(format!("mechanism {number} is missing")),
            Some(at) if at.len() > 1 => {
                wrong.push(format!("mechanism {number} is in lines {at:?}"));
            }
            Some(_) => {}
        }
    }
    let others = lines.into_iter();
    wrong.extend(others.map(|(n, at)| format!("line {at:?}: there is no mechanism {n}")));
    wrong
}

/// Runs the commands once, and returns what is wrong in any of the rows that they show.
fn show(rooms: &Rooms, tasks: &Tasks, ways: &page::Ways, rows: &[&Row]) -> Vec<String> {
    let all: Vec<String> = rows.iter().map(|row| row.number.to_string()).collect();
    let told = |why: String| format!("line {}, mechanism {}: {why}", rows[0].line, all.join(", "));
    let script = match tasks.script(ways) {
        Ok(script) => script,
        Err(why) => return vec![told(why)],
    };
    let seen: Seen = match rooms.run(ways, script) {
        Ok(seen) => seen,
        Err(why) => return vec![told(why)],
    };
    rows.iter().flat_map(|row| seen.faults(row)).collect()
}
