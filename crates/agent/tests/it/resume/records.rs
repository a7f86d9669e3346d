//! The records before a call is made, and what is known without them.

use super::{Full, fail_fast, late};
use crate::toolkit::{
    Counter, answer, executor, failure, ms, options, pause, plan, spec, step, tool, wait,
};
use foldback_agent::{Journal, JournalError, MemoryJournal, Outcome, Record, RunError};
use foldback_tool::{Effect, FailureKind, ToolOutput};
use futures::future::BoxFuture;
use std::sync::{Arc, Mutex};

/// R12: when the journal fails, nothing more is called, and the run says so.
#[tokio::test(start_paused = true)]
async fn r12_nothing_is_called_without_a_record() {
    for room in 0..20 {
        let paid = Counter::default();
        let counter = paid.clone();
        let pay = tool(spec("pay", Effect::Effectful), move |_, _| {
            counter.add();
            async { Ok(ToolOutput::default()) }
        });
        let journal = Arc::new(Full(MemoryJournal::default(), Mutex::new(room)));
        let executor = executor([pay]).with_journal(journal.clone());
        let chain = (1..=5)
            .map(|id| step(id, "pay", if id == 1 { vec![] } else { vec![id - 1] }.as_slice()));
        let outcome: Result<Outcome, RunError> =
            executor.run(&plan(chain.collect()), options("run")).await;
        let began = journal.records("run").unwrap();
        let began = began.iter().filter(|record| matches!(record, Record::Began { .. })).count();
        assert_eq!(paid.get(), began, "room for {room} records");
        match outcome {
            Ok(outcome) => assert_eq!((room >= 11, outcome.results.len()), (true, 5)),
            Err(error) => {
                assert!(room < 11, "room for {room} records: {error}");
                if let RunError::Journal { outcome: Some(outcome), .. } = &error {
                    let done = outcome.calls.values().filter(|call| call.attempts > 0).count();
                    assert_eq!((outcome.results.len(), done), (5, paid.get()), "nothing is lost");
                } else {
                    assert_eq!(room, 0, "it had begun: {error:?}");
                }
                assert_eq!(
                    error.to_string(),
                    "cannot write the journal journal: no space left on device"
                );
            }
        }
    }
}

/// A journal that reports its uses.
#[derive(Default)]
struct Watched(MemoryJournal, Arc<Mutex<Vec<&'static str>>>);

impl Journal for Watched {
    fn append(&self, run: &str, record: &Record) -> Result<(), JournalError> {
        self.1.lock().unwrap().push(match record {
            Record::Began { .. } => "began",
            Record::Ended { .. } => "ended",
            _ => "other",
        });
        self.0.append(run, record)
    }

    fn sync(&self) -> BoxFuture<'_, Result<(), JournalError>> {
        self.1.lock().unwrap().push("sync");
        self.0.sync()
    }

    fn records(&self, run: &str) -> Result<Vec<Record>, JournalError> {
        self.0.records(run)
    }
}

/// R12, N3: an effectful call is durable before it is made; a call that does no harm twice does not wait for
/// the disk; the end of a run is durable.
#[tokio::test(start_paused = true)]
async fn r12_effects_are_durable_before_they_are_made() {
    for (effect, expected) in [
        (Effect::Effectful, &["other", "began", "sync", "called", "ended", "sync"][..]),
        (Effect::Idempotent, &["other", "began", "called", "ended", "sync"][..]),
        (Effect::ReadOnly, &["other", "began", "called", "ended", "sync"][..]),
    ] {
        let journal = Watched::default();
        let log = journal.1.clone();
        let seen = log.clone();
        let act = tool(spec("act", effect), move |_, _| {
            seen.lock().unwrap().push("called");
            async { Ok(ToolOutput::default()) }
        });
        let executor = executor([act]).with_journal(Arc::new(journal));
        executor.run(&plan(vec![step(1, "act", &[])]), options("run")).await.unwrap();
        assert_eq!(*log.lock().unwrap(), expected, "{effect:?}");
    }
}

/// R12: a plan that broke off and is streamed again, in other portions, is in the journal once.
#[tokio::test(start_paused = true)]
async fn r12_steps_are_recorded_once() {
    let executor = executor([wait()]).with_journal(Arc::new(MemoryJournal::default()));
    let mut run = executor.open(options("run")).unwrap();
    run.extend(&[pause(1, 5, &[])]).unwrap();
    drop(run);
    for _ in 0..2 {
        let mut run = executor.open(options("run")).unwrap();
        run.extend(&[pause(1, 5, &[]), pause(2, 5, &[])]).unwrap();
        run.seal().unwrap();
        run.finish().await.unwrap();
    }
    let again = executor.resume(options("run")).unwrap().finish().await.unwrap();
    assert_eq!((again.results.len(), again.elapsed), (2, ms(0)));
}

/// R12: an effect whose outcome is unknown is flagged whatever else has changed: after a recorded
/// `fail_fast` failure, without its tool, with another schema, with every call spent.
#[tokio::test(start_paused = true)]
async fn r12_an_unknown_outcome_is_always_flagged() {
    let slow = |parameters: &str| {
        let mut spec = spec("pay", Effect::Effectful);
        spec.definition.parameters = parameters.to_owned();
        tool(spec, |_, _| async {
            tokio::time::sleep(ms(1_000)).await;
            Ok(ToolOutput::default())
        })
    };
    let any = r#"{"type":"object"}"#;
    let strict = r#"{"type":"object","required":["金额"]}"#;
    let spent = crate::toolkit::settings(|s| s.quota.calls = 0);
    for (what, next) in [
        ("the same", executor([late(), slow(any)])),
        ("no tool", executor([late()])),
        ("another schema", executor([late(), slow(strict)])),
        ("nothing left", executor([late(), slow(any)]).with_settings(spent)),
    ] {
        for first in [fail_fast(step(1, "late", &[])), step(1, "late", &[])] {
            let journal = Arc::new(MemoryJournal::default());
            let executor = executor([late(), slow(any)]).with_journal(journal.clone());
            let run =
                executor.start(&plan(vec![first, step(2, "pay", &[])]), options("run")).unwrap();
            assert!(tokio::time::timeout(ms(500), run.finish()).await.is_err());
            let next = next.clone().with_journal(journal);
            let outcome = next.resume(options("run")).unwrap().finish().await.unwrap();
            assert_eq!(failure(&outcome, 1).0, FailureKind::Tool, "{what}");
            assert_eq!(failure(&outcome, 2).0, FailureKind::UnknownOutcome, "{what}");
        }
    }
}

/// A journal on a slow disk.
#[derive(Default)]
struct Slow(MemoryJournal);

impl Journal for Slow {
    fn append(&self, run: &str, record: &Record) -> Result<(), JournalError> {
        self.0.append(run, record)
    }

    fn sync(&self) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(async {
            tokio::time::sleep(ms(100)).await;
            Ok(())
        })
    }

    fn records(&self, run: &str) -> Result<Vec<Record>, JournalError> {
        self.0.records(run)
    }
}

/// R12, N2: a run that is cancelled while a call is being recorded does not make it, and says so: the next run
/// may.
#[tokio::test(start_paused = true)]
async fn r12_a_cancelled_call_is_not_made() {
    let paid = Counter::default();
    let counter = paid.clone();
    let pay = tool(spec("pay", Effect::Effectful), move |_, _| {
        counter.add();
        async { Ok(ToolOutput::default()) }
    });
    let executor = executor([pay]).with_journal(Arc::new(Slow::default()));
    let first = options("run");
    let token = first.cancelled.clone();
    tokio::spawn(async move {
        tokio::time::sleep(ms(50)).await;
        token.cancel();
    });
    let outcome = executor.run(&plan(vec![step(1, "pay", &[])]), first).await.unwrap();
    assert_eq!((failure(&outcome, 1).0, paid.get()), (FailureKind::Cancelled, 0));
    let outcome = executor.resume(options("run")).unwrap().finish().await.unwrap();
    assert_eq!((answer(&outcome, 1), paid.get()), ("", 1));
}

/// S10, R12: the calls of a run are limited over all the processes that work on it.
#[tokio::test(start_paused = true)]
async fn s10_calls_are_counted_over_resumes() {
    let called = Counter::default();
    let counter = called.clone();
    let look = tool(spec("look", Effect::ReadOnly), move |_, _| {
        counter.add();
        async { Ok(ToolOutput::default()) }
    });
    let executor = executor([look])
        .with_settings(crate::toolkit::settings(|s| s.quota.calls = 2))
        .with_journal(Arc::new(MemoryJournal::default()));
    let steps = plan((1..=6).map(|id| step(id, "look", &[])).collect());
    for _ in 0..3 {
        let outcome = executor.run(&steps, options("run")).await.unwrap();
        assert_eq!((failure(&outcome, 6).0, called.get()), (FailureKind::Quota, 2));
    }
}
