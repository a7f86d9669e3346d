//! A progress bar for long work.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::OnceCell;
use std::time::{Duration, Instant};

/// A bar on stderr that appears only if the work takes a while, and leaves nothing behind.
pub(crate) struct Progress {
    what: &'static str,
    steps: u64,
    wanted: bool,
    begun: Instant,
    done: u64,
    bar: OnceCell<ProgressBar>,
}

/// Work that is finished by then needs no bar.
const PATIENCE: Duration = Duration::from_millis(700);

impl Progress {
    pub(super) fn new(what: &'static str, steps: u64, wanted: bool) -> Self {
        Self { what, steps, wanted, begun: Instant::now(), done: 0, bar: OnceCell::new() }
    }

    /// Adds this many finished steps.
    pub(crate) fn advance(&mut self, steps: u64) {
        self.done += steps;
        if self.wanted && self.begun.elapsed() > PATIENCE {
            self.bar().set_position(self.done);
        }
    }

    /// Runs `print`, which writes to the terminal, with the bar out of the way.
    pub(crate) fn around<T>(&self, print: impl FnOnce() -> T) -> T {
        match self.bar.get() {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    fn bar(&self) -> &ProgressBar {
        self.bar.get_or_init(|| {
            let target = ProgressDrawTarget::stderr();
            let bar = ProgressBar::with_draw_target(Some(self.steps), target);
            let template = "{msg} {wide_bar} {pos}/{len} {eta}";
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style.progress_chars("━╸─"));
            }
            bar.with_message(self.what)
        })
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}
