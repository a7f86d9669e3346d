//! A run that is killed goes on without doing anything twice.

use crate::toolkit::{
    Counter, anchor, answer, call, executor, failure, ms, object, options, pause, plan, result,
    skipped, spec, step, text, tool, wait,
};
use foldback_agent::{
    Executor, Journal, JournalError, MemoryJournal, Outcome, Record, RunError, ToolError,
    ToolOutput,
};
use foldback_planner::{Effect, FailureKind, FailurePolicy, Step, StepId, StepResult, Template};
use futures::future::BoxFuture;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// The shapes of a plan of 50 calls.
pub(crate) const SHAPES: [&str; 3] = ["parallel", "sequential", "dag"];

/// 50 calls of `work` that take 1 to 9 ms, and go on when one before them failed.
pub(crate) fn fifty(shape: &str) -> Vec<Step> {
    let after = |id: u32| match shape {
        "sequential" if id > 1 => vec![id - 1],
        "dag" if id > 4 => vec![id - 4, id - 1 - id % 3],
        _ => vec![],
    };
    let step = |id: u32| {
        let mut after = after(id);
        after.sort_unstable();
        after.dedup();
        let arguments = [
            ("step", Template::Literal(id.to_string())),
            ("ms", Template::Literal((1 + id * 7 % 9).to_string())),
            ("城市", text("沈阳")),
        ];
        let step = call(id, "work", object(&arguments), &after);
        Step { on_failure: FailurePolicy::ContinueWithError, ..step }
    };
    (1..=50).map(step).collect()
}

pub(crate) fn step_of(arguments: &str) -> u32 {
    let arguments: serde_json::Value = serde_json::from_str(arguments).unwrap();
    u32::try_from(arguments["step"].as_u64().unwrap()).unwrap()
}

/// The steps whose calls have a recorded end.
pub(crate) fn ended(records: &[Record]) -> BTreeSet<u32> {
    let ended = records.iter().filter_map(|record| match record {
        Record::Ended { step, .. } => Some(step.0),
        _ => None,
    });
    ended.collect()
}

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

/// R12: whenever a run of 50 calls is killed, the next one calls nothing that has a recorded result.
/// Calls that were under way are made again under the same key where that does no harm, and flagged
/// where it might: at most one for each of the four workers.
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

/// R12: a run that has ended is resumed without a call, to the same results and the same trace of what
/// happened.
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

/// R12: a failure that was recorded is not tried again; what it skipped is skipped again, and what had
/// run beside a `fail_fast` failure keeps its result.
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
    assert!(message.contains("nobody knows whether it took effect"), "{message}");
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
    while run.next().await != Some(foldback_agent::Event::Ended { step: StepId(4), success: true })
    {
    }
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
    // From the journal alone, too: the steps that came one by one are one plan.
    let outcome = executor.resume(options("run")).unwrap().finish().await.unwrap();
    assert_eq!((outcome.results.len(), outcome.elapsed), (3, ms(0)));
}

/// R12: a journal with another plan is refused before anything runs; so is one without the run.
#[tokio::test(start_paused = true)]
async fn r12_another_plan_under_the_same_name_is_refused() {
    let executor = executor([wait()]).with_journal(Arc::new(MemoryJournal::default()));
    assert!(matches!(executor.resume(options("run")), Err(RunError::NothingToResume { .. })));
    executor.run(&plan(vec![pause(1, 5, &[]), pause(2, 5, &[1])]), options("run")).await.unwrap();
    let error = executor
        .start(&plan(vec![pause(1, 5, &[]), pause(2, 6, &[1])]), options("run"))
        .unwrap_err();
    assert!(matches!(error, RunError::Changed { step: StepId(2), .. }), "{error:?}");
}

/// A journal that takes so many records.
pub(crate) struct Full(pub(crate) MemoryJournal, pub(crate) Mutex<usize>);

impl Journal for Full {
    fn append(&self, run: &str, record: &Record) -> Result<(), JournalError> {
        let mut left = self.1.lock().unwrap();
        if *left == 0 {
            let source = std::io::Error::other("no space left on device");
            return Err(JournalError::Io { action: "write", path: "journal".into(), source });
        }
        *left -= 1;
        self.0.append(run, record)
    }

    fn sync(&self) -> BoxFuture<'_, Result<(), JournalError>> {
        self.0.sync()
    }

    fn records(&self, run: &str) -> Result<Vec<Record>, JournalError> {
        self.0.records(run)
    }
}

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

/// A journal that says what was asked of it.
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

/// R12, N3: an effectful call is durable before it is made; what does no harm twice does not wait for
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

fn fail_fast(step: Step) -> Step {
    Step { on_failure: FailurePolicy::FailFast, ..step }
}

/// Fails after 100 ms.
fn late() -> Arc<dyn foldback_agent::Tool> {
    tool(spec("late", Effect::ReadOnly), |_, _| async {
        tokio::time::sleep(ms(100)).await;
        Err(ToolError::permanent("坏了"))
    })
}

/// R12: a plan that broke off while it was being written is not resumed: what was held back until its
/// end is not called.
#[tokio::test(start_paused = true)]
async fn r12_half_a_plan_is_not_resumed() {
    let paid = Counter::default();
    let counter = paid.clone();
    let pay = tool(spec("pay", Effect::Effectful), move |_, _| {
        counter.add();
        async { Ok(ToolOutput::default()) }
    });
    let executor = executor([pay]).with_journal(Arc::new(MemoryJournal::default()));
    let mut run = executor.open(options("run")).unwrap();
    run.extend(&[step(1, "pay", &[])]).unwrap();
    while run.next().await.is_some() {}
    drop(run);
    let error = executor.resume(options("run")).unwrap_err();
    assert!(matches!(error, RunError::Unfinished { .. }), "{error:?}");
    // Written again, whole, it goes on; and is whole for whoever resumes it then.
    let whole = plan(vec![step(1, "pay", &[]), step(2, "pay", &[1])]);
    executor.run(&whole, options("run")).await.unwrap();
    let again = executor.resume(options("run")).unwrap().finish().await.unwrap();
    assert_eq!((again.results.len(), paid.get()), (2, 2));
}

/// R12: a longer plan, a shorter one and one of other numbers are other plans, and leave the run as it
/// was.
#[tokio::test(start_paused = true)]
async fn r12_the_whole_plan_has_to_be_the_same() {
    let executor = executor([wait()]).with_journal(Arc::new(MemoryJournal::default()));
    let both = || vec![pause(1, 5, &[]), pause(2, 5, &[1])];
    let first = executor.run(&plan(both()), options("run")).await.unwrap();
    let longer = [both(), vec![pause(3, 5, &[])]].concat();
    for (steps, differing) in [(longer, 3), (both()[..1].to_vec(), 2), (vec![pause(7, 5, &[])], 1)]
    {
        match executor.start(&plan(steps), options("run")) {
            Err(RunError::Changed { step, .. }) => assert_eq!(step, StepId(differing)),
            other => panic!("{other:?}"),
        }
    }
    let again = executor.resume(options("run")).unwrap().finish().await.unwrap();
    assert_eq!(again.results, first.results);
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

/// R12, OP10: a run that planned anew and then failed fast is resumed to the same results: the answered
/// anchor and what ran outrank the failure, which still holds for what had not started.
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

/// R12, OP8: a streamed plan that failed fast is streamed again: what ran beside the failure has its
/// result.
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

/// R12: a run goes on once at a time; without a name it has no journal.
#[tokio::test(start_paused = true)]
async fn r12_a_run_goes_on_once_at_a_time() {
    let journal = Arc::new(MemoryJournal::default());
    let executor = executor([wait()]).with_journal(journal.clone());
    let one = || plan(vec![pause(1, 5, &[])]);
    let run = executor.start(&one(), options("run")).unwrap();
    let other = crate::toolkit::executor([wait()]).with_journal(journal);
    let error = other.start(&one(), options("run")).unwrap_err();
    assert!(matches!(error, RunError::InUse { .. }), "{error:?}");
    let beside =
        crate::toolkit::executor([wait()]).with_journal(Arc::new(MemoryJournal::default()));
    beside.run(&one(), options("run")).await.unwrap();
    run.finish().await.unwrap();
    other.run(&one(), options("run")).await.unwrap();
    assert!(matches!(executor.start(&one(), options("")), Err(RunError::Unnamed)));
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

/// R12, N2: a run that is cancelled while a call is being written down does not make it, and says so:
/// the next run may.
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

/// S10, R12: the calls of a run are bounded over all the processes that work on it.
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
