//! Runs that are killed, and what is done and not done when they resume.

use super::{SHAPES, ended, fail_fast, fifty, late, step_of};
use crate::toolkit::{
    Counter, anchor, answer, executor, failure, ms, options, pause, plan, result, skipped, spec,
    step, tool, wait,
};
use foldback_agent::{Executor, Journal, MemoryJournal, Outcome, Record};
use foldback_planner::{FailurePolicy, Step, StepId, StepResult};
use foldback_tool::{Effect, FailureKind, ToolError, ToolOutput};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// How often each step was called, and with which keys.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<BTreeMap<u32, Vec<String>>>>);

impl Calls {
    fn get(&self) -> BTreeMap<u32, Vec<String>> {
        self.0.lock().unwrap().clone()
    }
}

fn worker(effect: Effect, journal: &Arc<MemoryJournal>) -> (Executor, Calls) {
    let calls = Calls::default();
    let seen = calls.clone();
    let work = tool(spec("work", effect), move |arguments, context| {
        let calls = seen.clone();
        async move {
            let step = step_of(&arguments);
            calls.0.lock().unwrap().entry(step).or_default().push(context.idempotency_key);
            tokio::time::sleep(ms(crate::toolkit::milliseconds(&arguments))).await;
            Ok(ToolOutput::text(format!("done {step}")))
        }
    });
    let settings = crate::toolkit::settings(|s| s.max_parallel = 4);
    (executor([work]).with_settings(settings).with_journal(journal.clone()), calls)
}

/// R12: whenever a run of 50 calls is killed, the next one repeats no call with a recorded result. Calls
/// that were in progress are repeated under the same key if that does no harm, and flagged if it might:
/// at most one for each of the four workers.
#[tokio::test(start_paused = true)]
async fn r12_killed_at_any_moment_nothing_is_repeated() {
    let mut flagged = 0;
    for shape in SHAPES {
        for effect in [Effect::ReadOnly, Effect::Idempotent, Effect::Effectful] {
            for moment in 0..70 {
                flagged += check_kill(shape, effect, moment).await;
            }
        }
    }
    assert!(flagged > 100, "kills hit calls that were under way: {flagged}");
}

/// How many calls were flagged.
async fn check_kill(shape: &str, effect: Effect, moment: u64) -> usize {
    let what = format!("{shape}, {effect:?}, killed after {moment} ms");
    let journal = Arc::new(MemoryJournal::default());
    let (executor, calls) = worker(effect, &journal);
    let run = executor.start(&plan(fifty(shape)), options("run")).unwrap();
    if let Ok(outcome) = tokio::time::timeout(ms(moment), run.finish()).await {
        assert_eq!(outcome.unwrap().results.len(), 50);
    }
    let before = calls.get();
    let recorded = ended(&journal.records("run").unwrap());

    let outcome = executor.resume(options("run")).unwrap().finish().await.unwrap();
    assert_eq!(outcome.results.len(), 50, "{what}: each step has a result");
    let after = calls.get();
    let mut unknown = 0;
    for id in 1..=50 {
        let times = |calls: &BTreeMap<u32, Vec<String>>| calls.get(&id).map_or(0, Vec::len);
        let (was, is) = (times(&before), times(&after));
        match result(&outcome, id) {
            StepResult::Success { data } => assert_eq!(data.text, format!("done {id}"), "{what}"),
            StepResult::Error { failure } => {
                assert_eq!(
                    failure.kind,
                    FailureKind::UnknownOutcome,
                    "{what}: {}",
                    failure.message
                );
                assert_eq!(effect, Effect::Effectful, "{what}");
                unknown += 1;
                assert_eq!((was, is), (1, 1), "{what}: step {id} is flagged, not repeated");
                continue;
            }
            other @ StepResult::Skipped { .. } => panic!("{what}: {other:?}"),
        }
        assert_eq!(outcome.calls[&StepId(id)].from_journal, recorded.contains(&id), "{what}");
        if recorded.contains(&id) {
            assert_eq!((was, is), (1, 1), "{what}: step {id} had a result");
        } else if was == 1 {
            assert_eq!(is, 2, "{what}: step {id} was under way");
            assert_eq!(after[&id][0], after[&id][1], "{what}: under one key");
        } else {
            assert_eq!((was, is), (0, 1), "{what}: step {id} had not begun");
        }
    }
    assert!(unknown <= 4, "{what}: {unknown} unknown outcomes of four workers");
    unknown
}

/// R12: a run that has ended is resumed without a call, to the same results and the same trace.
#[tokio::test(start_paused = true)]
async fn r12_a_finished_run_is_reused_whole() {
    let journal = Arc::new(MemoryJournal::default());
    let (executor, calls) = worker(Effect::Effectful, &journal);
    let first = executor.run(&plan(fifty("dag")), options("run")).await.unwrap();
    let records = journal.records("run").unwrap();
    for _ in 0..2 {
        let again = executor.run(&plan(fifty("dag")), options("run")).await.unwrap();
        assert_eq!(again.results, first.results);
        assert_eq!(again.elapsed, ms(0));
        assert_eq!(journal.records("run").unwrap(), records, "and nothing new to write down");
    }
    assert!(calls.get().values().all(|calls| calls.len() == 1));
    let other = executor.run(&plan(fifty("dag")), options("other")).await.unwrap();
    assert_eq!(other.results, first.results);
    assert!(calls.get().values().all(|calls| calls.len() == 2), "another run is another run");
}

/// R12: a recorded failure is not tried again; the steps that it skipped are skipped again, and those that
/// had run beside a `fail_fast` failure keep their results.
#[tokio::test(start_paused = true)]
async fn r12_recorded_failures_stay() {
    let tries = Counter::default();
    let counter = tries.clone();
    let fail = tool(spec("fail", Effect::ReadOnly), move |_, _| {
        counter.add();
        async { Err(ToolError::permanent("坏了")) }
    });
    let journal = Arc::new(MemoryJournal::default());
    let executor = executor([wait(), fail]).with_journal(journal);
    let failing = Step { on_failure: FailurePolicy::FailFast, ..step(2, "fail", &[1]) };
    let steps = || {
        vec![
            pause(1, 10, &[]),
            failing.clone(),
            pause(3, 50, &[]),
            pause(4, 5, &[3]),
            pause(5, 5, &[2]),
        ]
    };
    let first = executor.run(&plan(steps()), options("run")).await.unwrap();
    let again = executor.run(&plan(steps()), options("run")).await.unwrap();
    assert_eq!(again.results, first.results);
    assert_eq!(answer(&again, 3), r#"{"ms":50}"#);
    assert_eq!(tries.get(), 1);
}

/// R12: calls that were cancelled are made again by the next run; those that might have taken effect
/// are flagged.
#[tokio::test(start_paused = true)]
async fn r12_a_cancelled_run_goes_on() {
    let slow = |name: &str, effect| {
        let first = Counter::default();
        tool(spec(name, effect), move |_, _| {
            let long = if first.add() == 1 { 10_000 } else { 1 };
            async move {
                tokio::time::sleep(ms(long)).await;
                Ok(ToolOutput::text("done"))
            }
        })
    };
    let journal = Arc::new(MemoryJournal::default());
    let executor =
        executor([wait(), slow("look", Effect::ReadOnly), slow("pay", Effect::Effectful)])
            .with_journal(journal);
    let steps =
        vec![pause(1, 10, &[]), step(2, "look", &[]), step(3, "pay", &[]), step(4, "wait", &[2])];
    let first = options("run");
    let token = first.cancelled.clone();
    tokio::spawn(async move {
        tokio::time::sleep(ms(100)).await;
        token.cancel();
    });
    let cancelled = executor.run(&plan(steps.clone()), first).await.unwrap();
    assert_eq!(failure(&cancelled, 2).0, FailureKind::Cancelled);

    let outcome = executor.run(&plan(steps), options("run")).await.unwrap();
    assert!(outcome.calls[&StepId(1)].from_journal);
    assert_eq!((answer(&outcome, 2), answer(&outcome, 4)), ("done", "{}"));
    let (kind, message) = failure(&outcome, 3);
    assert_eq!(kind, FailureKind::UnknownOutcome);
    assert!(message.contains("not known whether the call took effect"), "{message}");
}

/// R12: a run with a new plan in the middle is resumed from the journal alone, notes included.
#[tokio::test(start_paused = true)]
async fn r12_replans_and_notes_are_in_the_journal() {
    let journal = Arc::new(MemoryJournal::default());
    let executor = executor([wait()]).with_journal(journal.clone());
    let first = vec![pause(1, 10, &[]), anchor(2, &[1]), step(3, "wait", &[2])];
    let mut run = executor.start(&plan(first), options("run")).unwrap();
    run.note("planner", "第一个计划").unwrap();
    while run.next().await.is_some() {}
    run.note("planner", "第二个计划").unwrap();
    run.replanned(StepId(2)).unwrap();
    run.extend(&[pause(4, 10, &[1]), pause(5, 10, &[2, 4])]).unwrap();
    while run.next().await
        != Some(foldback_agent::executor::Event::Ended { step: StepId(4), success: true })
    {}
    drop(run);

    let run = executor.resume(options("run")).unwrap();
    assert_eq!(run.past_notes("planner").collect::<Vec<_>>(), ["第一个计划", "第二个计划"]);
    assert_eq!(run.past_notes("else").count(), 0);
    let outcome = run.finish().await.unwrap();
    assert_eq!(outcome.elapsed, ms(10), "only the last step was left");
    assert_eq!(outcome.results.len(), 5);
    assert_eq!(answer(&outcome, 5), r#"{"ms":10}"#);
    assert_eq!(result(&outcome, 3), &skipped(2));
    let plans = journal
        .records("run")
        .unwrap()
        .into_iter()
        .filter(|record| matches!(record, Record::Steps { .. } | Record::Replanned { .. }));
    assert_eq!(plans.count(), 3, "what is in the journal is not written again");
}

/// R12: a plan that was still being written when its run was killed is resumed by being written again.
#[tokio::test(start_paused = true)]
async fn r12_a_streamed_plan_is_resumed() {
    let journal = Arc::new(MemoryJournal::default());
    let executor = executor([wait()]).with_journal(journal);
    let steps = [pause(1, 10, &[]), pause(2, 10, &[3]), pause(3, 10, &[])];
    let mut run = executor.open(options("run")).unwrap();
    run.extend(&steps[..1]).unwrap();
    while run.next().await.is_some() {}
    drop(run);

    let mut run = executor.open(options("run")).unwrap();
    for step in &steps {
        run.extend(std::slice::from_ref(step)).unwrap();
    }
    run.seal().unwrap();
    let outcome = run.finish().await.unwrap();
    assert!(outcome.calls[&StepId(1)].from_journal);
    assert_eq!(outcome.elapsed, ms(20));
    // From the journal alone, too: the steps that were added one by one are one plan.
    let outcome = executor.resume(options("run")).unwrap().finish().await.unwrap();
    assert_eq!((outcome.results.len(), outcome.elapsed), (3, ms(0)));
}

/// R12, OP10: a run that replanned and then failed fast is resumed to the same results: the answered anchor
/// and the steps that ran take precedence over the failure, which still applies to steps that had not
/// started.
#[tokio::test(start_paused = true)]
async fn r12_a_failure_after_a_new_plan_is_resumed() {
    let journal = Arc::new(MemoryJournal::default());
    let executor = executor([wait(), late()]).with_journal(journal.clone());
    let first = vec![
        pause(1, 10, &[]),
        anchor(2, &[1]),
        fail_fast(step(3, "late", &[])),
        pause(4, 5, &[2]),
        pause(5, 5, &[1, 3]),
    ];
    let second = [pause(6, 10, &[2]), pause(7, 500, &[2]), pause(8, 5, &[7])];
    let mut run = executor.start(&plan(first), options("run")).unwrap();
    while run.anchors_reached().next().is_none() {
        run.next().await;
    }
    run.replanned(StepId(2)).unwrap();
    run.extend(&second).unwrap();
    let first = run.finish().await.unwrap();
    assert_eq!((result(&first, 4), result(&first, 8)), (&skipped(2), &skipped(3)));
    let records = journal.records("run").unwrap();
    for _ in 0..2 {
        let again = executor.resume(options("run")).unwrap().finish().await.unwrap();
        assert_eq!(again.results, first.results);
        assert_eq!((again.elapsed, journal.records("run").unwrap()), (ms(0), records.clone()));
    }
}

/// R12, OP8: a streamed plan that failed fast is streamed again: the steps that ran beside the failure have
/// their results.
#[tokio::test(start_paused = true)]
async fn r12_a_failure_in_a_streamed_plan_is_resumed() {
    let executor = executor([wait(), late()]).with_journal(Arc::new(MemoryJournal::default()));
    for _ in 0..2 {
        let mut run = executor.open(options("run")).unwrap();
        for step in [fail_fast(step(1, "late", &[])), pause(2, 10, &[])] {
            run.extend(&[step]).unwrap();
        }
        while run.next().await.is_some() {}
        run.seal().unwrap();
        let outcome = run.finish().await.unwrap();
        assert_eq!(failure(&outcome, 1).0, FailureKind::Tool);
        assert_eq!(answer(&outcome, 2), r#"{"ms":10}"#);
    }
}

/// R12, OP16: what a later plan's `fail_fast` kept from starting does not start when the run is resumed, before
/// that plan is there again.
#[tokio::test(start_paused = true)]
async fn r12_a_failure_of_a_later_plan_is_resumed_before_it() {
    let paid = Counter::default();
    let counter = paid.clone();
    let pay = tool(spec("pay", Effect::Effectful), move |_, _| {
        counter.add();
        async { Ok(ToolOutput::default()) }
    });
    let journal = Arc::new(MemoryJournal::default());
    let executor = executor([wait(), late(), pay]).with_journal(journal.clone());
    let first = vec![
        pause(1, 10, &[]),
        anchor(2, &[1]),
        pause(3, 500, &[]),
        step(4, "pay", &[3]),
        step(5, "pay", &[2]),
    ];
    let mut run = executor.start(&plan(first), options("run")).unwrap();
    while run.anchors_reached().next().is_none() {
        run.next().await;
    }
    run.replanned(StepId(2)).unwrap();
    run.extend(&[fail_fast(step(6, "late", &[2]))]).unwrap();
    let first = run.finish().await.unwrap();
    let skips = |outcome: &Outcome| {
        assert_eq!(result(outcome, 4), &skipped(6));
        assert_eq!(result(outcome, 5), &skipped(2));
    };
    skips(&first);
    for _ in 0..2 {
        let again = executor.resume(options("run")).unwrap().finish().await.unwrap();
        assert_eq!(again.results, first.results);
        assert_eq!((again.elapsed, paid.get()), (ms(0), 0));
    }
    // Killed between the failure and the end of the call that ran beside it.
    let records = journal.records("run").unwrap();
    let beside = |record: &Record| matches!(record, Record::Ended { step: StepId(3), .. });
    for record in records.iter().filter(|record| !beside(record)) {
        journal.append("killed", record).unwrap();
    }
    let killed = executor.resume(options("killed")).unwrap().finish().await.unwrap();
    skips(&killed);
    assert_eq!((result(&killed, 3), paid.get()), (&skipped(6), 0));
}

/// R12, OP12: a call whose outcome is unknown since the run was killed is not repeated by a new plan.
#[tokio::test(start_paused = true)]
async fn r12_an_unknown_effect_is_not_repeated_by_a_new_plan() {
    let paid = Counter::default();
    let counter = paid.clone();
    let pay = tool(spec("pay", Effect::Effectful), move |_, _| {
        counter.add();
        std::future::pending()
    });
    let executor = executor([wait(), pay]).with_journal(Arc::new(MemoryJournal::default()));
    let first = plan(vec![step(1, "pay", &[])]);
    let run = executor.start(&first, options("run")).unwrap().finish();
    assert!(tokio::time::timeout(ms(100), run).await.is_err());
    let mut run = executor.resume(options("run")).unwrap();
    run.extend(&[step(2, "pay", &[])]).unwrap();
    let outcome = run.finish().await.unwrap();
    assert_eq!(failure(&outcome, 1).0, FailureKind::UnknownOutcome);
    let call = &outcome.calls[&StepId(1)];
    assert_eq!((call.function.as_str(), call.from_journal), ("pay", true));
    assert!(call.arguments.starts_with('{'), "who is asked about it can be shown it");
    let (kind, message) = failure(&outcome, 2);
    assert_eq!(kind, FailureKind::Arguments);
    assert!(message.starts_with("not called: step1 was exactly this"), "{message}");
    assert_eq!(paid.get(), 1);
}

/// R12, OP12: a call of an earlier plan that a later plan has made meanwhile is not made by a resumed run, before
/// that plan is there again; nor is the same call refused within one plan.
#[tokio::test(start_paused = true)]
async fn r12_an_effect_of_a_later_plan_is_not_repeated_before_it() {
    let paid = Counter::default();
    let counter = paid.clone();
    let pay = tool(spec("pay", Effect::Effectful), move |_, _| {
        counter.add();
        async { Ok(ToolOutput::default()) }
    });
    let executor = executor([wait(), pay]).with_journal(Arc::new(MemoryJournal::default()));
    let first = vec![
        pause(1, 10, &[]),
        anchor(2, &[1]),
        pause(3, 500, &[]),
        step(4, "pay", &[3]),
        step(5, "pay", &[3]),
    ];
    let mut run = executor.start(&plan(first), options("run")).unwrap();
    while run.anchors_reached().next().is_none() {
        run.next().await;
    }
    run.replanned(StepId(2)).unwrap();
    run.extend(&[step(6, "pay", &[]), step(7, "pay", &[])]).unwrap();
    let first = run.finish().await.unwrap();
    for _ in 0..2 {
        let again = executor.resume(options("run")).unwrap().finish().await.unwrap();
        assert_eq!(again.results, first.results);
        for id in [4, 5] {
            let (kind, message) = failure(&again, id);
            assert_eq!(kind, FailureKind::Arguments);
            assert!(message.contains("does exactly this already"), "{message}");
        }
        assert_eq!((answer(&again, 6), answer(&again, 7), paid.get()), ("", "", 2));
    }
}
