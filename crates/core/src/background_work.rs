//! Work that a context policy wants done alongside the loop.

use crate::ContextError;
use std::any::Any;

/// A policy with work that need not hold up the loop. The policy hands out the work as a value, the loop runs it
/// anywhere, and hands the result back.
pub trait BackgroundWork: Send {
    /// Returns the next piece of work, if there is any. Its result comes back through [`absorb`](Self::absorb). Work
    /// whose result never comes back may be handed out again.
    fn next_job(&mut self) -> Option<BackgroundJob>;

    /// Takes the result of work that [`next_job`](Self::next_job) handed out.
    ///
    /// # Errors
    /// When the work failed in a way that the policy cannot ignore, or is not this policy's work.
    fn absorb(&mut self, done: BackgroundJobDone) -> Result<(), ContextError>;
}

/// Work that may run alongside the loop, on any thread.
pub struct BackgroundJob(pub Box<dyn FnOnce() -> BackgroundJobDone + Send>);

/// The result of such work; only the policy that handed out the work can read it.
pub struct BackgroundJobDone(pub Box<dyn Any + Send>);
