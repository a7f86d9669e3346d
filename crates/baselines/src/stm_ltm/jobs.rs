//! The work beside the loop: folding steps, and summing L up.

use super::step::{Fold, Step};
use super::{Scene, StmLtm, StmLtmConfig, error, fields};
use crate::Counters;
use crate::compressor::{Compressor, Finished, Written, trim};
use foldback_core::{BackgroundJob, BackgroundJobDone, BackgroundWork, ContextError};
use std::sync::Arc;

/// The result of a job. It keeps the token of the job alive until it is absorbed.
struct Done {
    token: Arc<()>,
    work: Work,
}

enum Work {
    Folded(Written),
    /// A summary of a number of the oldest notes.
    SummedUp(usize, Written),
}

impl BackgroundWork for StmLtm {
    /// Returns a job for the oldest finished step that has none; else, if L exceeds its limit, one that
    /// sums it up. Jobs may run in any order and in parallel. A dropped job is issued again.
    fn next_job(&mut self) -> Option<BackgroundJob> {
        let token = Arc::new(());
        if let Some(at) = self.recent.iter().position(|step| step.fold.is_free()) {
            let finished = self.recent.get(at).map(|step| self.finished(step))?;
            self.recent.get_mut(at)?.fold = Fold::Out(Arc::downgrade(&token));
            let StmLtmConfig { scene, compressor, .. } = self.config.clone();
            let counters = self.counters.clone();
            return Some(job(token, move || {
                Work::Folded(fold(&finished, &scene, compressor.as_ref(), &counters))
            }));
        }
        let is_over = self.memory.tokens() > self.config.memory_tokens;
        if !is_over || self.summing.strong_count() > 0 {
            return None;
        }
        self.summing = Arc::downgrade(&token);
        let count = self.memory.notes().len();
        let sum_up = self.sum_up_job(Arc::clone(&self.config.compressor));
        Some(job(token, move || Work::SummedUp(count, sum_up())))
    }

    /// Takes what a job has written. What the rule has done in the meantime remains.
    ///
    /// # Errors
    /// When it does not come from a job that this kind of policy issued.
    fn absorb(&mut self, done: BackgroundJobDone) -> Result<(), ContextError> {
        let done = done.0.downcast::<Done>();
        let Done { token, work } = *done.map_err(|_| {
            error("this is not the result of a job that the policy stm-ltm issued".to_owned())
        })?;
        let token = Arc::downgrade(&token);
        match work {
            Work::Folded(mut written) => {
                self.side_calls.extend(written.call.take());
                let is_its =
                    |step: &&mut Step| matches!(&step.fold, Fold::Out(out) if out.ptr_eq(&token));
                if let Some(step) = self.recent.iter_mut().find(is_its) {
                    step.fold = Fold::Done(written);
                }
            }
            Work::SummedUp(count, written) if self.summing.ptr_eq(&token) => {
                self.take_summary(count, written);
            }
            Work::SummedUp(_, written) => self.side_calls.extend(written.call),
        }
        self.settle();
        Ok(())
    }
}

fn job(token: Arc<()>, work: impl FnOnce() -> Work + Send + 'static) -> BackgroundJob {
    BackgroundJob(Box::new(move || BackgroundJobDone(Box::new(Done { work: work(), token }))))
}

/// Folds a step: by the compressor or, if that fails, by the rule; adds the schema's fields that it
/// contains.
pub(super) fn fold(
    step: &Finished,
    scene: &Scene,
    compressor: &dyn Compressor,
    counters: &Counters,
) -> Written {
    let mut written = compressor
        .fold(step, counters)
        .unwrap_or_else(|_| Written { notes: trim(step, counters), call: None });
    let texts: Vec<_> = step.messages.iter().map(|(_, message)| message.text()).collect();
    let sizes = counters.sizes.as_ref();
    written.notes.extend(fields::find(&scene.schema, texts.iter().map(AsRef::as_ref), sizes));
    written
}
