//! What a run is doing right now: the part of the screen that changes.

use super::account::Account;
use super::lines::{self, elapsed, todo, who};
use crate::output::style::{self, paint};
use crate::output::text;
use foldback_agent::{AgentEvent, Piece, Purpose, Written};
use foldback_core::{TodoId, TodoList};
use foldback_planner::StepId;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What a run is doing right now.
pub(crate) struct Board {
    run: TodoId,
    list: TodoList,
    calls: Vec<Running>,
    asked: BTreeMap<TodoId, Asked>,
    blocks: usize,
    recalls: usize,
}

/// A request that the model has not answered yet.
struct Asked {
    since: Instant,
    /// The end of what the model has written so far.
    end: String,
    /// The request that it is writing for, if several are open.
    of: Option<(Purpose, String)>,
}

/// A call that has not ended.
struct Running {
    todo: TodoId,
    turn: u32,
    step: StepId,
    words: String,
    since: Instant,
}

/// This many bytes of the model's text fill the line of any terminal.
const LINE_BYTES: usize = 2_048;
/// More calls than this are only counted.
const MOST_CALLS: usize = 8;
/// More items of the todo list than this are only counted.
const MOST_ITEMS: usize = 12;

/// The space around the words of a line, with room for a time such as `59 min 59 s`.
const TIME_COLUMNS: usize = 17;

/// The frames of the spinner, ten a second.
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

    /// Takes an event and its time.
    pub(crate) fn take(&mut self, todo: &TodoId, event: &AgentEvent, now: Instant) {
        match event {
            AgentEvent::Asked { .. } => {
                let asked = Asked { since: now, end: String::new(), of: None };
                self.asked.insert(todo.clone(), asked);
            }
            AgentEvent::Answered { .. } => {
                self.asked.remove(todo);
            }
            AgentEvent::CallBegan { turn, step, tool, arguments } => self.calls.push(Running {
                todo: todo.clone(),
                turn: *turn,
                step: *step,
                words: lines::call(tool, arguments),
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

    /// Takes a piece of the model's text. Of several requests of one todo, the line shows the first that is written to.
    pub(crate) fn take_piece(&mut self, todo: &TodoId, piece: &Piece<'_>) {
        let Some(Asked { end, of, .. }) = self.asked.get_mut(todo) else { return };
        let (purpose, key) =
            of.get_or_insert_with(|| (piece.purpose.clone(), piece.key.to_owned()));
        if (&*purpose, key.as_str()) != (piece.purpose, piece.key) {
            return;
        }
        match piece.written {
            Written::Text(text) => end.push_str(text),
            Written::Again => end.clear(),
        }
        // Cut only now and then, so that each byte is moved once.
        if end.len() > 2 * LINE_BYTES {
            let from = end.ceil_char_boundary(end.len() - LINE_BYTES);
            end.drain(..from);
        }
    }

    /// Whether a call of a todo is running.
    pub(crate) fn is_calling(&self, todo: &TodoId) -> bool {
        self.calls.iter().any(|call| call.todo == *todo)
    }

    /// The current todo list of the run.
    pub(crate) fn list(&self) -> &TodoList {
        &self.list
    }

    /// What a running call is about.
    pub(crate) fn call(&self, todo: &TodoId, event: &AgentEvent) -> Option<&str> {
        let AgentEvent::CallEnded { turn, step, .. } = event else { return None };
        let is_it = |call: &&Running| (&call.todo, call.turn, call.step) == (todo, *turn, *step);
        self.calls.iter().find(is_it).map(|call| call.words.as_str())
    }

    /// Draws the board at a time, a while after the run began.
    pub(crate) fn lines(
        &self,
        account: &Account,
        now: Instant,
        age: Duration,
        width: usize,
    ) -> Vec<String> {
        let spinner = SPINNER[(age.as_millis() / 100) as usize % SPINNER.len()];
        // Finished items are at the beginning.
        let hidden = self.list.items().len().saturating_sub(MOST_ITEMS);
        let items = self.list.items().iter().skip(hidden);
        let item = |item| format!("  {}", todo(item, width.saturating_sub(2)));
        let mut lines: Vec<String> = items.map(item).collect();
        let going = |words: &str, since: Instant| {
            let time = elapsed(now.saturating_duration_since(since));
            let room = width.saturating_sub(text::columns(&time) + 6);
            let words = text::fit(&text::plain(words), room);
            format!("  {} {words}  {}", paint(style::NAME, spinner), paint(style::DIM, time))
        };
        for (todo, Asked { since, end, .. }) in &self.asked {
            let who = who(&self.run, todo);
            let mut words =
                if who.is_empty() { "the model".to_owned() } else { format!("{who}: the model") };
            let end = text::one_line(end);
            if !end.is_empty() {
                words.push_str(": ");
                let room = width.saturating_sub(text::columns(&words) + TIME_COLUMNS);
                words.push_str(&text::fit_end(&end, room));
            }
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

/// `42 s`, `2 min 5 s`: whole seconds, so that the line does not change between them.
fn clock(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        _ => elapsed(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
            arguments: None,
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

    const REACT: &Purpose = &Purpose::REACT;

    fn wrote<'a>(key: &'a str, text: &'a str) -> Piece<'a> {
        Piece::new(REACT, key, Written::Text(text))
    }

    /// The end of the model's text is on one line, whatever it is and however long.
    #[test]
    fn it_shows_the_end_of_what_is_written() {
        let begun = Instant::now();
        let mut board = Board::new(id("trip"));
        let asked = || AgentEvent::Asked { purpose: Purpose::REACT, tokens: 9 };
        board.take(&id("trip"), &asked(), begun);
        board.take(&id("trip.hotels"), &asked(), begun);
        let lines = |board: &Board| -> Vec<String> {
            let shown = bare(board, &Account::default(), begun);
            shown.lines().take(2).map(str::to_owned).collect()
        };
        board.take_piece(&id("trip"), &wrote("1", "看\n\u{1b}[2J"));
        board.take_piece(&id("trip"), &wrote("2", "of another question"));
        board.take_piece(&id("nobody"), &wrote("1", "of nobody"));
        assert_eq!(lines(&board), ["  ⠋ the model: 看 ␛[2J  0 ms", "  ⠋ hotels: the model  0 ms"]);

        for _ in 0..2_000 {
            board.take_piece(&id("trip"), &wrote("1", "杭州的天气很好，"));
        }
        let [line, _] = lines(&board).try_into().unwrap();
        assert!(
            line.starts_with("  ⠋ the model: …") && line.ends_with("天气很好，  0 ms"),
            "{line}"
        );
        assert!((50..=60).contains(&text::columns(&line)), "{line}");
        assert!(board.asked[&id("trip")].end.len() <= 2 * LINE_BYTES + 64);

        board.take_piece(&id("trip"), &Piece::new(REACT, "1", Written::Again));
        assert_eq!(lines(&board)[0], "  ⠋ the model  0 ms");
        board.take_piece(&id("trip"), &wrote("1", "anew"));
        board.take(&id("trip"), &asked(), begun);
        assert_eq!(lines(&board)[0], "  ⠋ the model  0 ms", "another question");
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
