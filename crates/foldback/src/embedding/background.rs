//! The thread that re-embeds messages while a memory is open.

use super::reembed::Work;
use crate::Error;
use crate::error::Failure;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

/// The thread that re-embeds messages while a memory is open.
#[derive(Default)]
pub(crate) struct Reembedder {
    stop: Arc<AtomicBool>,
    turns: Arc<Mutex<Turns>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Whether the thread is running, and whether it is to begin again.
#[derive(Default)]
struct Turns {
    running: bool,
    again: bool,
}

impl Reembedder {
    /// Begins the work; if it is under way, another pass follows.
    pub(crate) fn start(&self, work: Work) -> Result<(), Error> {
        let Some(path) = work.lock.clone() else { return Ok(()) };
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if turns.running {
            turns.again = true;
            return Ok(());
        }
        let (stop, shared) = (self.stop.clone(), self.turns.clone());
        let run = move || {
            loop {
                // Failures are noted, and tried again the next time.
                drop(work.run(&stop, None));
                let mut turns = shared.lock().unwrap_or_else(PoisonError::into_inner);
                turns.running = std::mem::take(&mut turns.again) && !stop.load(Ordering::Relaxed);
                if !turns.running {
                    break;
                }
            }
        };
        let started = Builder::new().name("foldback-reembedder".to_owned()).spawn(run);
        *thread = Some(started.map_err(|source| Failure::Io { path, source })?);
        turns.running = true;
        Ok(())
    }
}

impl Drop for Reembedder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = thread.take() {
            drop(thread.join());
        }
    }
}
