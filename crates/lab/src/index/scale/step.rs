//! The figures of a store in a database at one step, and how they grow.

use crate::index::load::Measured;
use crate::index::machine::{MB, Times, told};
use crate::index::slope::{Slope, cells};
use crate::index::table::{Column, table};
use foldback_bench::Sheet;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;

/// Everything that was measured at one step. Times are in milliseconds.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Step {
    #[serde(flatten)]
    pub(super) filled: Filled,
    #[serde(flatten)]
    pub(super) used: Used,
    #[serde(flatten)]
    pub(super) cold: Cold,
    /// The bytes of each table with its indexes once the store was filled, and `all`.
    pub(super) bytes: BTreeMap<String, u64>,
    /// The files of the node that filled the store, without the space that it reserves, and their size.
    pub(super) files: u64,
    pub(super) folder_mb: f64,
}

/// What was recorded.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Filled {
    pub(super) todos: u32,
    pub(super) blocks: u64,
    pub(super) messages: u64,
    /// The bytes of the messages as JSON.
    pub(super) raw_bytes: u64,
    /// Messages per second, durable, in transactions of up to 256.
    pub(super) messages_per_s: f64,
}

/// The times of a node that knows the todos.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Used {
    pub(super) search_p50: f64,
    pub(super) search_p95: f64,
    pub(super) resume_p50: f64,
    pub(super) append_p50: f64,
    pub(super) append_p95: f64,
    /// A transaction of one insertion of as many bytes, through the same kind of connection.
    pub(super) own_commit_p50: f64,
    pub(super) own_commit_p95: f64,
    /// `SELECT 1`.
    pub(super) round_trip_p50: f64,
    /// The connections of the node.
    pub(super) connections: u64,
    /// The memory of the process at the end.
    pub(super) rss_mb: Option<f64>,
}

/// The times of a node with an empty folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Cold {
    pub(super) open_ms: f64,
    /// The first search, after the store was opened, and the second.
    pub(super) first_ms: f64,
    pub(super) second_ms: f64,
    /// The growth of its memory, without file pages.
    pub(super) own_mb: Option<f64>,
}

impl Cold {
    pub(super) fn median(all: &[Self]) -> Self {
        let of = |figure: fn(&Self) -> f64| all.iter().map(figure).collect::<Times>().p50();
        Self {
            open_ms: of(|cold| cold.open_ms),
            first_ms: of(|cold| cold.first_ms),
            second_ms: of(|cold| cold.second_ms),
            own_mb: all.iter().map(|cold| cold.own_mb).collect::<Option<Times>>().map(|t| t.p50()),
        }
    }
}

impl Step {
    /// Returns a line on it, for a person who waits.
    pub(super) fn line(&self) -> String {
        format!(
            "{} todos, {} blocks: append {:.2} ms beside {:.2} ms, cold search {:.0} ms",
            self.filled.todos,
            self.filled.blocks,
            self.used.append_p50,
            self.used.own_commit_p50,
            self.cold.first_ms
        )
    }

    fn table_mb(&self, name: &str) -> f64 {
        self.bytes.get(name).map_or(0.0, |bytes| *bytes as f64 / MB)
    }
}

const SIZES: [Column<Step>; 3] = [
    ("todos", |step| step.filled.todos.to_string()),
    ("blocks", |step| step.filled.blocks.to_string()),
    ("messages", |step| step.filled.messages.to_string()),
];

const TIMES: [Column<Step>; 12] = [
    ("bulk /s", |step| format!("{:.0}", step.filled.messages_per_s)),
    ("append", |step| format!("{:.2}", step.used.append_p50)),
    ("p95", |step| format!("{:.2}", step.used.append_p95)),
    ("own commit", |step| format!("{:.2}", step.used.own_commit_p50)),
    ("p95", |step| format!("{:.2}", step.used.own_commit_p95)),
    ("round trip", |step| format!("{:.2}", step.used.round_trip_p50)),
    ("resume", |step| format!("{:.2}", step.used.resume_p50)),
    ("search", |step| format!("{:.2}", step.used.search_p50)),
    ("p95", |step| format!("{:.2}", step.used.search_p95)),
    ("open", |step| format!("{:.1}", step.cold.open_ms)),
    ("first search", |step| format!("{:.1}", step.cold.first_ms)),
    ("second", |step| format!("{:.1}", step.cold.second_ms)),
];

const COUNTS: [Column<Step>; 10] = [
    ("raw MB", |step| format!("{:.2}", step.filled.raw_bytes as f64 / MB)),
    ("database MB", |step| format!("{:.2}", step.table_mb("all"))),
    ("record", |step| format!("{:.2}", step.table_mb("record"))),
    ("head", |step| format!("{:.2}", step.table_mb("head"))),
    ("commit", |step| format!("{:.2}", step.table_mb("commit"))),
    ("files", |step| step.files.to_string()),
    ("folder MB", |step| format!("{:.2}", step.folder_mb)),
    ("connections", |step| step.used.connections.to_string()),
    ("memory MB", |step| told(step.used.rss_mb, 0)),
    ("cold MB", |step| told(step.cold.own_mb, 1)),
];

/// The size of a step along a ladder; `None` for a step of the other one.
type Of = fn(&Step) -> Option<f64>;

const LADDERS: [(&str, Of); 2] = [
    ("blocks", |step| (step.filled.todos == 1).then_some(step.filled.blocks as f64)),
    ("todos", |step| (step.filled.todos > 1).then_some(f64::from(step.filled.todos))),
];

const FIGURES: [(&str, Of); 7] = [
    ("append_p50", |step| Some(step.used.append_p50)),
    ("resume_p50", |step| Some(step.used.resume_p50)),
    ("search_p50", |step| Some(step.used.search_p50)),
    ("open_ms", |step| Some(step.cold.open_ms)),
    ("first_ms", |step| Some(step.cold.first_ms)),
    ("database_bytes", |step| step.bytes.get("all").map(|bytes| *bytes as f64)),
    ("folder_mb", |step| Some(step.folder_mb)),
];

/// Returns the tables of all steps, and the slopes along both ladders.
pub(super) fn measured(steps: &[Step]) -> Measured {
    let title = "Slopes of the logarithms (0: none, 1: in proportion), 95 % bounds";
    let mut slopes = Sheet::new(title, &["along", "figure"], &["slope", "from", "to"]);
    let mut fitted = Vec::new();
    for (along, size) in LADDERS {
        for (figure, of) in FIGURES {
            let points: Vec<_> = steps.iter().filter_map(|step| size(step).zip(of(step))).collect();
            let Some(slope) = Slope::of_logs(&points) else { continue };
            let names = [along, figure].map(str::to_owned);
            slopes.row(names.into_iter().chain(cells(Some(slope))));
            fitted.push(json!({ "along": along, "figure": figure, "slope": slope }));
        }
    }
    let times = "Growth in a database: messages per second in bulk; then milliseconds (median), \
                 the last three with an empty folder";
    let sheets = vec![
        table(times, &[&SIZES, &TIMES], steps),
        table("Bytes in the database by table, and on a node", &[&SIZES, &COUNTS], steps),
        slopes,
    ];
    Measured { sheets, json: json!({ "steps": steps, "slopes": fitted }), note: NOTE.to_owned() }
}

const NOTE: &str = "\"own commit\" is a transaction of one insertion of as many bytes, made after each append through \
    the same kind of connection. Searches look for the todo and its counter of commits first, which is two round trips. The \
    server's own memory is warm; cold is the node.";
