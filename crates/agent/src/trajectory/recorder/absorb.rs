//! A run inside a run, added to the record of the whole.

use super::Recorder;
use crate::Report;
use crate::trajectory::{CallRecord, CallTime};

impl Recorder {
    /// Adds the record of a run inside this one that has just ended: its turns follow the existing ones.
    pub(crate) fn absorb(&self, report: Report) {
        let Report { trajectory: run, traces } = report;
        let first = self.next_turn();
        let record = &mut *self.record.lock();
        let began = record.now().saturating_sub(run.timing.total_us);
        record.plan.extend(run.plan.into_iter().map(|mut plan| {
            plan.turn += first;
            plan
        }));
        record.strategy.turns.extend(run.strategy.turns.into_iter().map(|mut turn| {
            turn.turn += first;
            turn
        }));
        record.calls.extend(run.calls.into_iter().map(|mut call| {
            if let CallRecord::Tool(call) = &mut call {
                call.turn += first;
            }
            call
        }));
        let times = run.timing.calls.into_iter();
        record.times.extend(times.map(|CallTime { start_us, end_us }| CallTime {
            start_us: began + start_us,
            end_us: began + end_us,
        }));
        for result in run.results {
            record.results.insert((result.turn + first, result.step), result.result);
        }
        record.traces.extend(traces.into_iter().map(|trace| (first, None, trace)));
        for (purpose, spent) in run.tokens {
            let sum = record.tokens.entry(purpose).or_default();
            sum.calls += spent.calls;
            sum.usage += spent.usage;
        }
    }
}
