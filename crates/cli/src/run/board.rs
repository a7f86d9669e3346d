//! What a run is doing right now: the part of the screen that changes.

use super::account::Account;
use super::lines::{brief, elapsed, todo, who};
use crate::output::style::{self, paint};
use crate::output::text;
use foldback_agent::AgentEvent;
use foldback_core::{TodoId, TodoList};
use foldback_planner::StepId;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What a run is doing right now.
pub(crate) struct Board {
    run: TodoId,
    list: TodoList,
    calls: Vec<Running>,
    asked: BTreeMap<TodoId, Instant>,
    blocks: usize,
    recalls: usize,
}

/// A call that has not ended.
struct Running {
    todo: TodoId,
    turn: u32,
    step: StepId,
    words: String,
    since: Instant,
}

/// More calls than this are counted only.
const MOST_CALLS: usize = 8;
/// More items of the todo list than this are counted only.
const MOST_ITEMS: usize = 12;

/// Signs that follow each other while something goes on, ten a second.
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

impl Board {
    pub(crate) fn new(run: TodoId) -> Self {
        Self {
            run,
            list: TodoList::default(),
            calls: Vec::new(),
            asked: BTreeMap::new(),
            blocks: 0,
            recalls: 0,
        }
    }

    /// Takes what happened at a time.
    pub(crate) fn take(&mut self, todo: &TodoId, event: &AgentEvent, now: Instant) {
        match event {
            AgentEvent::Asked { .. } => {
                self.asked.insert(todo.clone(), now);
            }
            AgentEvent::Answered { .. } => {
                self.asked.remove(todo);
            }
            AgentEvent::CallBegan { turn, step, tool, arguments } => self.calls.push(Running {
                todo: todo.clone(),
                turn: *turn,
                step: *step,
                words: format!("{tool} {}", brief(arguments)),
                since: now,
            }),
            AgentEvent::CallEnded { turn, step, .. } => {
                let is_it =
                    |call: &Running| (&call.todo, call.turn, call.step) == (todo, *turn, *step);
                self.calls.retain(|call| !is_it(call));
            }
            AgentEvent::Folded { blocks, .. } => self.blocks += blocks.len(),
            AgentEvent::Recalled { .. } => self.recalls += 1,
            AgentEvent::Todos { list } if *todo == self.run => self.list = list.clone(),
            AgentEvent::Ended { .. } => {
                self.asked.remove(todo);
                self.calls.retain(|call| call.todo != *todo);
            }
            _ => {}
        }
    }

    /// The run's todo list as it stands.
    pub(crate) fn list(&self) -> &TodoList {
        &self.list
    }

    /// What a call that goes on is about.
    pub(crate) fn call(&self, todo: &TodoId, event: &AgentEvent) -> Option<&str> {
        let AgentEvent::CallEnded { turn, step, .. } = event else { return None };
        let is_it = |call: &&Running| (&call.todo, call.turn, call.step) == (todo, *turn, *step);
        self.calls.iter().find(is_it).map(|call| call.words.as_str())
    }

    /// What it looks like at a time, a while after the run began.
    pub(crate) fn lines(
        &self,
        account: &Account,
        now: Instant,
        age: Duration,
        width: usize,
    ) -> Vec<String> {
        let spinner = SPINNER[(age.as_millis() / 100) as usize % SPINNER.len()];
        // What is done is at the beginning.
        let hidden = self.list.items().len().saturating_sub(MOST_ITEMS);
        let items = self.list.items().iter().skip(hidden);
        let item = |item| format!("  {}", todo(item, width.saturating_sub(2)));
        let mut lines: Vec<String> = items.map(item).collect();
        let going = |words: &str, since: Instant| {
            let time = elapsed(now.saturating_duration_since(since));
            let room = width.saturating_sub(text::columns(&time) + 6);
            let words = text::fit(words, room);
            format!("  {} {words}  {}", paint(style::NAME, spinner), paint(style::DIM, time))
        };
        for (todo, since) in &self.asked {
            let who = who(&self.run, todo);
            let words =
                if who.is_empty() { "the model".into() } else { format!("{who}: the model") };
            lines.push(going(&words, *since));
        }
        for call in self.calls.iter().take(MOST_CALLS) {
            let who = who(&self.run, &call.todo);
            let words =
                if who.is_empty() { call.words.clone() } else { format!("{who}: {}", call.words) };
            lines.push(going(&words, call.since));
        }
        if self.calls.len() > MOST_CALLS {
            lines.push(format!("    and {} more calls", self.calls.len() - MOST_CALLS));
        }
        let status = self.status(account, age);
        lines.push(paint(style::DIM, text::fit(&status, width)));
        lines
    }

    /// The figures so far, on one line.
    fn status(&self, account: &Account, age: Duration) -> String {
        let mut parts = vec![
            clock(age),
            text::count(account.calls, "call"),
            format!("{} in", text::short(account.usage.input)),
            format!("{} out", text::short(account.usage.output)),
        ];
        parts.extend(account.cost.map(|cost| format!("cost {cost:.4}")));
        parts.push(text::count(self.blocks as u64, "block"));
        parts.push(text::count(self.recalls as u64, "recall"));
        if account.full > account.sent {
            let saved = text::saved(account.sent as f64, account.full as f64);
            parts.push(format!("full {}, {saved} saved", text::short(account.full)));
        }
        parts.join(" · ")
    }
}

/// `42 s`, `2 min 5 s`: whole seconds, so that the line stands still between them.
fn clock(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        _ => elapsed(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_agent::Purpose;
    use foldback_core::TodoItem;

    fn id(name: &str) -> TodoId {
        TodoId::new(name).unwrap()
    }

    fn bare(board: &Board, account: &Account, now: Instant) -> String {
        let lines = board.lines(account, now, Duration::from_secs(65), 60).join("\n");
        anstream::adapter::strip_str(&lines).to_string()
    }

    #[test]
    fn it_shows_what_goes_on_and_for_how_long() {
        let begun = Instant::now();
        let later = begun + Duration::from_millis(3_100);
        let mut board = Board::new(id("trip"));
        let call = |step| AgentEvent::CallBegan {
            turn: 0,
            step: StepId(step),
            tool: "file_read".to_owned(),
            arguments: r#"{"path": "天气.md"}"#.to_owned(),
        };
        let list = TodoList::new(vec![TodoItem::new(id("a"), "Read")]).unwrap();
        board.take(&id("trip"), &AgentEvent::Todos { list }, begun);
        board.take(&id("trip"), &call(1), begun);
        board.take(&id("trip.hotels"), &call(1), begun);
        let asked = AgentEvent::Asked { purpose: Purpose::REACT, tokens: 9 };
        board.take(&id("trip"), &asked, begun);
        // A sub-agent's list is its own.
        board.take(&id("trip.hotels"), &AgentEvent::Todos { list: TodoList::default() }, begun);
        let account = Account { calls: 2, sent: 100, full: 400, ..Account::default() };
        assert_eq!(
            bare(&board, &account, later),
            "  ☐ Read\n  ⠋ the model  3.1 s\n  ⠋ file_read 天气.md  3.1 s\n  \
             ⠋ hotels: file_read 天气.md  3.1 s\n\
             1 min 5 s · 2 calls · 0 in · 0 out · 0 blocks · 0 recalls ·…"
        );
        let ended = AgentEvent::CallEnded {
            turn: 0,
            step: StepId(1),
            tool: "file_read".to_owned(),
            success: true,
            exit_code: None,
            excerpt: String::new(),
            took_us: 0,
            from_journal: false,
        };
        board.take(&id("trip.hotels"), &ended, later);
        let shown = bare(&board, &account, later);
        assert!(shown.contains("  ⠋ file_read 天气.md") && !shown.contains("hotels"), "{shown}");
    }

    #[test]
    fn it_stays_small() {
        let begun = Instant::now();
        let mut board = Board::new(id("trip"));
        let items = (0..40).map(|n| TodoItem::new(id(&format!("i{n}")), &format!("item {n}")));
        let list = TodoList::new(items.collect()).unwrap();
        board.take(&id("trip"), &AgentEvent::Todos { list }, begun);
        for step in 0..30 {
            let (tool, arguments) = ("shell_run".to_owned(), "{}".to_owned());
            let call = AgentEvent::CallBegan { turn: 0, step: StepId(step), tool, arguments };
            board.take(&id("trip"), &call, begun);
        }
        let lines = bare(&board, &Account::default(), begun);
        assert_eq!(lines.lines().count(), MOST_ITEMS + MOST_CALLS + 2);
        assert!(lines.contains("and 22 more calls") && lines.contains("item 39"), "{lines}");
    }
}
