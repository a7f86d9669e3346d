//! The view of a run in progress: live on a terminal, line by line elsewhere, or as JSON Lines for programs.

use super::board::Board;
use super::lines::{self, Beside};
use super::meter::Meter;
use super::record::now;
use super::speech::Speech;
use super::time::to_the_millisecond;
use crate::output::{Output, style, terminal, text};
use foldback_agent::{AgentEvent, Observer, Piece, Purpose, Written};
use foldback_core::TodoId;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;
use serde::Serialize;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::io::{self, IsTerminal as _};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The interval at which the changing part of a terminal is redrawn.
const TICK: Duration = Duration::from_millis(100);

/// The note for words of the model that turned out not to be the answer.
const ANEW: &str = "· the text above is not the answer yet: the model writes it again";

/// The output of a run in progress.
pub(crate) struct Screen {
    out: Output,
    run: TodoId,
    began: Instant,
    /// Counts what is spent; set once the model is known.
    meter: OnceLock<Arc<Meter>>,
    board: Mutex<Board>,
    /// The tools whose calls run alone; set once the agent is ready.
    exclusive: OnceLock<BTreeSet<String>>,
    /// Whether part of it changes: on a terminal.
    is_live: bool,
    /// The purposes for which the model's words are written to the terminal as they come; empty if the answer is
    /// printed at the end.
    spoken: Vec<Purpose>,
    view: Mutex<View>,
}

/// What is written, and what is not yet.
struct View {
    /// The changing part of a terminal; absent while somebody is asked.
    live: Option<ProgressBar>,
    /// While somebody is asked, the lines to write afterwards.
    held: Option<Vec<String>>,
    /// The model's words, if they are written as they come.
    speech: Speech,
    /// Whether the run is over: nothing more is shown, although something in the background may not be finished.
    is_over: bool,
}

/// A question on the screen. Once it is dropped, what happened meanwhile is written.
#[must_use = "it is open for as long as this lives"]
pub(crate) struct Asked<'s>(&'s Screen);

impl Asked<'_> {
    /// Ends the question, answered or not.
    pub(crate) fn answered(self, is_typed: bool) {
        self.0.resume(is_typed);
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.0.resume(false);
    }
}

/// An event in the form for programs.
#[derive(Serialize)]
struct EventLine<'a> {
    time: String,
    todo: &'a TodoId,
    #[serde(flatten)]
    event: &'a AgentEvent,
}

impl Screen {
    /// Creates the screen of a run. On a terminal, what the model writes for the purposes in `spoken` is written as it
    /// comes.
    pub(crate) fn new(out: &Output, run: &TodoId, spoken: Vec<Purpose>) -> Arc<Self> {
        let wanted = !out.is_quiet() && !out.is_json();
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_live = wanted && !plain && io::stderr().is_terminal();
        Arc::new(Self {
            out: out.clone(),
            run: run.clone(),
            began: Instant::now(),
            meter: OnceLock::new(),
            board: Mutex::new(Board::new(run.clone())),
            exclusive: OnceLock::new(),
            is_live,
            spoken: if wanted && io::stdout().is_terminal() { spoken } else { Vec::new() },
            view: Mutex::new(View {
                live: is_live.then(live),
                held: None,
                speech: Speech::default(),
                is_over: false,
            }),
        })
    }

    /// The name for a todo of the run: the sub-agent's name; empty for the run itself.
    pub(crate) fn who(&self, todo: &TodoId) -> String {
        lines::who(&self.run, todo)
    }

    /// Takes the figures.
    pub(crate) fn meter(&self, meter: &Arc<Meter>) {
        // It is set once.
        drop(self.meter.set(Arc::clone(meter)));
    }

    /// Takes the names of the tools whose calls run alone.
    pub(crate) fn run_alone(&self, tools: impl Iterator<Item = String>) {
        // It is set once.
        drop(self.exclusive.set(tools.collect()));
    }

    /// Reports something that has no event of its own, to programs too.
    pub(crate) fn note(&self, words: &str) {
        if self.view.lock().is_over {
            return;
        }
        match self.out.is_json() {
            true => self.observe(&self.run, &AgentEvent::Noted { text: words.to_owned() }),
            false => self.say(words),
        }
    }

    /// Shows something to a person.
    pub(crate) fn say(&self, words: &str) {
        if self.out.is_quiet() || self.out.is_json() {
            return;
        }
        let words = text::plain(words);
        let lines = words.lines().flat_map(|line| text::wrap(line, self.out.width(), 0));
        self.print(lines.map(|line| style::paint(style::DIM, line)).collect());
    }

    /// Shows the passing of time until a future is done.
    pub(crate) async fn tick_along(&self) -> Infallible {
        let mut ticks = tokio::time::interval(TICK);
        loop {
            ticks.tick().await;
            self.tick();
        }
    }

    fn tick(&self) {
        if self.view.lock().live.is_none() {
            return;
        }
        let account = self.meter.get().map(|meter| meter.account()).unwrap_or_default();
        let board = self.board.lock();
        let width = self.out.width().saturating_sub(1);
        let lines = board.lines(&account, Instant::now(), self.began.elapsed(), width);
        drop(board);
        // Somebody may have been asked something meanwhile.
        if let Some(live) = &self.view.lock().live {
            live.set_message(terminal::styled(&lines.join("\n")).into_owned());
        }
    }

    /// Puts a question to the person at the terminal. What happens until it is answered is written
    /// afterwards, and delays nobody.
    pub(crate) fn ask(&self, question: &str) -> Asked<'_> {
        self.hush();
        let mut view = self.view.lock();
        if let Some(live) = view.live.take() {
            live.finish_and_clear();
        }
        view.held.get_or_insert_default();
        // If it cannot be shown, there will be no answer either.
        drop(terminal::print_aside(&style::paint(style::HEAD, text::plain(question))));
        Asked(self)
    }

    /// Resumes after a question. If nothing was typed, the next output begins on a line of its own.
    pub(crate) fn resume(&self, is_typed: bool) {
        if self.hush() {
            return;
        }
        let mut view = self.view.lock();
        let Some(held) = view.held.take() else { return };
        let first = (!is_typed).then(String::new);
        write_lines(first.into_iter().chain(held));
        view.live = self.is_live.then(live);
    }

    /// The lines that wait for the end of a question.
    #[cfg(test)]
    pub(crate) fn held(&self) -> Vec<String> {
        let held = self.view.lock().held.clone().unwrap_or_default();
        held.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect()
    }

    /// Leaves the terminal as it was, with the lines that are to stay.
    pub(crate) fn end(&self) {
        self.resume(false);
        let mut view = self.view.lock();
        view.is_over = true;
        if let Some(live) = view.live.take() {
            live.finish_and_clear();
        }
    }

    /// Whether this answer is on the terminal already, as the model wrote it.
    pub(crate) fn has_said(&self, answer: &str) -> bool {
        self.view.lock().speech.is(answer)
    }

    /// Writes more of the model's words. Other events meanwhile are written after them.
    fn speak(&self, purpose: &Purpose, words: &str) {
        let view = &mut *self.view.lock();
        // After a question, they are printed at the end.
        if view.is_over || view.held.is_some() && !view.speech.is_open {
            return;
        }
        let (is_first, is_anew) = (!view.speech.is_open, view.speech.is_anew(purpose));
        let Some(words) = view.speech.more(purpose, words) else { return };
        if is_first {
            if let Some(live) = view.live.take() {
                live.finish_and_clear();
            }
            view.held.get_or_insert_default();
        }
        if is_anew {
            write_lines([style::paint(style::DIM, ANEW)]);
        }
        if terminal::print(&words).is_err() {
            // They are printed at the end, where the failure is reported.
            view.speech = Speech::default();
        }
    }

    /// Notes that the model's words were not the answer yet: it writes others in their place.
    fn take_back(&self) {
        if self.hush() {
            self.print(vec![style::paint(style::DIM, ANEW)]);
        }
        self.view.lock().speech = Speech::default();
    }

    /// Ends the line of the model's words, and writes what happened meanwhile. Returns true if there was one.
    fn hush(&self) -> bool {
        let mut view = self.view.lock();
        if !view.speech.end() {
            return false;
        }
        drop(terminal::print("\n"));
        write_lines(view.held.take().unwrap_or_default());
        view.live = self.is_live.then(live);
        true
    }

    fn print(&self, lines: Vec<String>) {
        if lines.is_empty() {
            return;
        }
        let View { live, held, .. } = &mut *self.view.lock();
        match (held, live) {
            (Some(held), _) => held.extend(lines),
            (None, Some(live)) => live.suspend(|| write_lines(lines)),
            (None, None) => write_lines(lines),
        }
    }
}

/// Writes lines at once, so that nothing comes between.
fn write_lines(lines: impl IntoIterator<Item = String>) {
    let text: String = lines.into_iter().map(|line| line + "\n").collect();
    // Output that nobody can read is no reason to stop.
    drop(terminal::print_aside(&text));
}

impl Observer for Screen {
    fn observe(&self, todo: &TodoId, event: &AgentEvent) {
        let is_said = *todo == self.run && ends_words(event) && self.hush();
        if let AgentEvent::Answered { purpose, calls, .. } = event
            && *todo == self.run
        {
            self.view.lock().speech.answered(purpose, *calls > 0);
        }
        let lines = {
            let mut board = self.board.lock();
            let width = self.out.width().saturating_sub(1);
            let who = self.who(todo);
            let none = BTreeSet::new();
            let exclusive = self.exclusive.get().unwrap_or(&none);
            let (call, list) = (board.call(todo, event), board.list());
            let beside = Beside { who: &who, call, list, exclusive };
            let lines = lines::of(&beside, event, width);
            board.take(todo, event, Instant::now());
            // The words of an answer are shown in full.
            let is_told = is_said && !matches!(event, AgentEvent::Answered { error: Some(_), .. });
            if is_told { Vec::new() } else { lines }
        };
        if self.out.is_json() {
            let time = to_the_millisecond(now());
            // The reader of the events may be gone; the run continues.
            drop(self.out.json(&EventLine { time, todo, event }));
        } else if !self.out.is_quiet() {
            self.print(lines);
            self.tick();
        }
    }

    fn wrote(&self, todo: &TodoId, piece: &Piece<'_>) {
        if !self.is_live && self.spoken.is_empty() {
            return;
        }
        let is_of_call = {
            let mut board = self.board.lock();
            // It is drawn with the next tick.
            board.take_piece(todo, piece);
            board.is_calling(todo)
        };
        // Text that the model writes for a tool is not shown to the person.
        if *todo == self.run && !is_of_call && self.spoken.contains(piece.purpose) {
            match piece.written {
                Written::Text(words) => self.speak(piece.purpose, words),
                Written::Again => self.take_back(),
            }
        }
    }
}

/// Whether the model writes nothing more after an event.
fn ends_words(event: &AgentEvent) -> bool {
    matches!(event, AgentEvent::Answered { .. } | AgentEvent::Ended { .. })
}

/// The changing part of a terminal, empty.
fn live() -> ProgressBar {
    let target = ProgressDrawTarget::stderr_with_hz(12);
    let live = ProgressBar::with_draw_target(None, target);
    if let Ok(style) = ProgressStyle::with_template("{msg}") {
        live.set_style(style);
    }
    live
}
