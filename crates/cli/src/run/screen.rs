//! A run as it is watched: live on a terminal, line by line elsewhere, or as JSON Lines for programs.

use super::board::Board;
use super::lines::{self, Beside};
use super::meter::Meter;
use super::record::now;
use crate::output::{Output, style, text};
use foldback_agent::{AgentEvent, Observer};
use foldback_core::TodoId;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;
use serde::Serialize;
use std::convert::Infallible;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How often the part of a terminal that changes is drawn anew.
const TICK: Duration = Duration::from_millis(100);

/// Whoever watches a run.
pub(crate) struct Screen {
    out: Output,
    run: TodoId,
    began: Instant,
    /// Counts what is spent; there from the moment on in which the model is known.
    meter: OnceLock<Arc<Meter>>,
    board: Mutex<Board>,
    /// The part of a terminal that changes.
    live: Option<ProgressBar>,
    /// Held while somebody is asked, so that nothing is written meanwhile.
    asking: Mutex<()>,
}

/// An event as a program reads it.
#[derive(Serialize)]
struct EventLine<'a> {
    time: String,
    todo: &'a TodoId,
    #[serde(flatten)]
    event: &'a AgentEvent,
}

impl Screen {
    pub(crate) fn new(out: &Output, run: &TodoId) -> Arc<Self> {
        let wanted = !out.is_quiet() && !out.is_json();
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_live = wanted && !plain && io::stderr().is_terminal();
        Arc::new(Self {
            out: out.clone(),
            run: run.clone(),
            began: Instant::now(),
            meter: OnceLock::new(),
            board: Mutex::new(Board::new(run.clone())),
            live: is_live.then(live),
            asking: Mutex::new(()),
        })
    }

    /// The figures are these.
    pub(crate) fn meter(&self, meter: &Arc<Meter>) {
        // It is told once.
        drop(self.meter.set(Arc::clone(meter)));
    }

    /// Says something that is no event.
    pub(crate) fn say(&self, words: &str) {
        if self.out.is_quiet() || self.out.is_json() {
            return;
        }
        let words = text::plain(words);
        let lines = words.lines().flat_map(|line| text::wrap(line, self.out.width(), 0));
        self.print(&lines.map(|line| style::paint(style::DIM, line)).collect::<Vec<_>>());
    }

    /// Shows how time goes by, for as long as it is waited for.
    pub(crate) async fn tick_along(&self) -> Infallible {
        let mut ticks = tokio::time::interval(TICK);
        loop {
            ticks.tick().await;
            self.tick();
        }
    }

    fn tick(&self) {
        let Some(live) = &self.live else { return };
        let Some(_free) = self.asking.try_lock() else { return };
        let account = self.meter.get().map(|meter| meter.account()).unwrap_or_default();
        let board = self.board.lock();
        let width = self.out.width().saturating_sub(1);
        let lines = board.lines(&account, Instant::now(), self.began.elapsed(), width);
        drop(board);
        live.set_message(lines.join("\n"));
    }

    /// Asks whoever sits at the terminal.
    pub(crate) fn ask(
        &self,
        question: &str,
        read: impl FnOnce() -> io::Result<String>,
    ) -> io::Result<String> {
        let _alone = self.asking.lock();
        let ask = || {
            let mut stderr = anstream::stderr().lock();
            write!(stderr, "{}", style::paint(style::HEAD, text::plain(question)))?;
            stderr.flush()?;
            drop(stderr);
            read()
        };
        match &self.live {
            Some(live) => live.suspend(ask),
            None => ask(),
        }
    }

    /// Leaves the terminal as it was, with the lines that are to stay.
    pub(crate) fn end(&self) {
        if let Some(live) = &self.live {
            live.finish_and_clear();
        }
    }

    fn print(&self, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        let print = || {
            let mut text = lines.join("\n");
            text.push('\n');
            // What nobody can read is no reason to stop.
            drop(anstream::stderr().write_all(text.as_bytes()));
        };
        match &self.live {
            Some(live) => live.suspend(print),
            None => print(),
        }
    }
}

impl Observer for Screen {
    fn observe(&self, todo: &TodoId, event: &AgentEvent) {
        let lines = {
            let mut board = self.board.lock();
            let width = self.out.width().saturating_sub(1);
            let who = lines::who(&self.run, todo);
            let beside = Beside { who: &who, call: board.call(todo, event), list: board.list() };
            let lines = lines::of(&beside, event, width);
            board.take(todo, event, Instant::now());
            lines
        };
        if self.out.is_json() {
            let time = now().to_rfc3339();
            // Whoever reads the events may have gone; the run goes on.
            drop(self.out.json(&EventLine { time, todo, event }));
        } else if !self.out.is_quiet() {
            self.print(&lines);
            self.tick();
        }
    }
}

/// The part of a terminal that changes, empty.
fn live() -> ProgressBar {
    let target = ProgressDrawTarget::stderr_with_hz(12);
    let live = ProgressBar::with_draw_target(None, target);
    if let Ok(style) = ProgressStyle::with_template("{msg}") {
        live.set_style(style);
    }
    live
}
