//! Approval of calls before they are made.

use crate::toolkit::{
    Counter, answer, call, executor, failure, ms, object, options, pause, plan, result, settings,
    skipped, spec, step, text, times, tool, wait,
};
use foldback_agent::{
    ApprovalRequest, Approver, Decision, Executor, Journal, MemoryJournal, Record,
};
use foldback_core::ToolDefinition;
use foldback_planner::{FailurePolicy, Step, StepId};
use foldback_tool::{Effect, FailureKind, ToolOutput, ToolSpec};
use futures::future::BoxFuture;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Answers after a while, by a rule, and remembers what it was asked.
struct Person {
    takes: Duration,
    rule: fn(&ApprovalRequest) -> Decision,
    asked: Mutex<Vec<Vec<u32>>>,
}

impl Person {
    fn new(takes: u64, rule: fn(&ApprovalRequest) -> Decision) -> Arc<Self> {
        Arc::new(Self { takes: ms(takes), rule, asked: Mutex::default() })
    }

    fn asked(&self) -> Vec<Vec<u32>> {
        self.asked.lock().unwrap().clone()
    }
}

impl Approver for Person {
    fn decide<'a>(&'a self, calls: &'a [ApprovalRequest]) -> BoxFuture<'a, Vec<Decision>> {
        Box::pin(async move {
            self.asked.lock().unwrap().push(calls.iter().map(|call| call.step.0).collect());
            tokio::time::sleep(self.takes).await;
            calls.iter().map(self.rule).collect()
        })
    }
}

fn approve(_: &ApprovalRequest) -> Decision {
    Decision::Approved
}

/// Pays, and counts.
fn paying() -> (Executor, Counter) {
    let paid = Counter::default();
    let counter = paid.clone();
    let parameters = r#"{"type":"object","properties":{"amount":{"type":"integer"}}}"#;
    let definition = ToolDefinition {
        name: "pay".to_owned(),
        description: "付款".to_owned(),
        parameters: parameters.to_owned(),
    };
    let spec = ToolSpec::new(definition).with_effect(Effect::Effectful);
    let pay = tool(spec, move |arguments, _| {
        counter.add();
        async move { Ok(ToolOutput::json(arguments)) }
    });
    (executor([wait(), pay]), paid)
}

/// N7: nothing of a batch runs before the answer, including the calls that need no approval; then each
/// approved call runs once.
#[tokio::test(start_paused = true)]
async fn n7_the_whole_batch_waits() {
    let (executor, paid) = paying();
    let person = Person::new(1_000, approve);
    let executor = executor.with_approver(person.clone());
    let steps =
        vec![step(1, "pay", &[]), pause(2, 5, &[]), step(3, "pay", &[]), step(4, "pay", &[2])];
    let outcome = executor.run(&plan(steps), options("run")).await.unwrap();
    assert_eq!(person.asked(), [vec![1, 3], vec![4]], "one question a batch");
    assert_eq!([1, 2, 3].map(|id| times(&outcome, id).0), [ms(1_000); 3]);
    assert_eq!(times(&outcome, 4).0, ms(2_005));
    assert_eq!(paid.get(), 3);
}

/// N7: batches that need no approval proceed while a question is open; those that need it are asked about
/// together in the next one.
#[tokio::test(start_paused = true)]
async fn n7_other_batches_go_on() {
    let (executor, _) = paying();
    let person = Person::new(1_000, approve);
    let executor = executor.with_approver(person.clone());
    let steps = vec![
        pause(1, 10, &[]),
        pause(2, 20, &[]),
        pause(3, 30, &[]),
        step(4, "pay", &[1]),
        step(5, "pay", &[2]),
        step(6, "pay", &[3]),
        pause(7, 10, &[3]),
    ];
    let outcome = executor.run(&plan(steps), options("run")).await.unwrap();
    assert_eq!(person.asked(), [vec![4], vec![5, 6]]);
    assert_eq!(times(&outcome, 4).0, ms(1_010));
    assert_eq!(times(&outcome, 5).0, ms(2_010));
    assert_eq!(times(&outcome, 7).0, ms(2_010), "of the batch of step6");
}

/// N7: a refused call is a typed result that was not executed; its siblings run.
#[tokio::test(start_paused = true)]
async fn n7_a_refused_call_is_not_executed() {
    let (executor, paid) = paying();
    let person = Person::new(5, |call| match call.step.0 {
        1 => Decision::Denied { reason: "太贵了".to_owned() },
        _ => Decision::Approved,
    });
    let executor = executor.with_approver(person);
    let steps = vec![step(1, "pay", &[]), step(2, "pay", &[]), step(3, "wait", &[1])];
    let outcome = executor.run(&plan(steps), options("run")).await.unwrap();
    assert_eq!(failure(&outcome, 1), (FailureKind::Denied, "not_executed: 太贵了"));
    assert_eq!(result(&outcome, 3), &skipped(1));
    assert_eq!(paid.get(), 1);
}

/// N7: arguments may be changed; the actual call is recorded, and arguments that do not fit the tool are
/// not called.
#[tokio::test(start_paused = true)]
async fn n7_arguments_may_be_changed() {
    let (executor, paid) = paying();
    let person = Person::new(5, |call| {
        let arguments = if call.step.0 == 1 { r#"{"amount":5}"# } else { r#"{"amount":"five"}"# };
        Decision::Changed { arguments: arguments.to_owned() }
    });
    let journal = Arc::new(MemoryJournal::default());
    let executor = executor.with_approver(person).with_journal(journal.clone());
    let amount = |id| {
        call(
            id,
            "pay",
            object(&[("amount", foldback_planner::Template::Literal("500".into()))]),
            &[],
        )
    };
    let outcome = executor.run(&plan(vec![amount(1), amount(2)]), options("run")).await.unwrap();
    assert_eq!(answer(&outcome, 1), r#"{"amount":5}"#);
    let (kind, message) = failure(&outcome, 2);
    assert_eq!(kind, FailureKind::Arguments);
    assert!(message.contains("amount"), "{message}");
    assert_eq!(paid.get(), 1);
    let called: Vec<String> = journal
        .records("run")
        .unwrap()
        .into_iter()
        .filter_map(|record| match record {
            Record::Began { arguments, .. } => Some(arguments),
            _ => None,
        })
        .collect();
    assert_eq!(called, [r#"{"amount":5}"#]);
}

/// N7: a question that nobody answers expires; so does one whose answer is unusable.
#[tokio::test(start_paused = true)]
async fn n7_questions_expire() {
    struct Odd;
    impl Approver for Odd {
        fn decide<'a>(&'a self, calls: &'a [ApprovalRequest]) -> BoxFuture<'a, Vec<Decision>> {
            assert!(calls.len() > 1, "one call is a reason to panic");
            Box::pin(async { vec![Decision::Approved] })
        }
    }
    let (executor, paid) = paying();
    let executor = executor.with_settings(settings(|s| s.approval_timeout = Some(ms(60_000))));
    let slow = executor.clone().with_approver(Person::new(100_000, approve));
    let outcome = slow.run(&plan(vec![step(1, "pay", &[])]), options("run")).await.unwrap();
    assert_eq!(outcome.elapsed, ms(60_000));
    let message = "not_executed: nobody approved it within 60s";
    assert_eq!(failure(&outcome, 1), (FailureKind::Denied, message));

    let odd = executor.with_approver(Arc::new(Odd));
    let two = vec![step(1, "pay", &[]), step(2, "pay", &[])];
    let outcome = odd.run(&plan(two), options("run")).await.unwrap();
    assert_eq!(failure(&outcome, 2).1, "not_executed: 1 decisions were given for 2 calls");
    let outcome = odd.run(&plan(vec![step(1, "pay", &[])]), options("run")).await.unwrap();
    assert_eq!(failure(&outcome, 1).1, "not_executed: the approver panicked");
    assert_eq!(paid.get(), 0);
}

/// N7, R12: a run that is killed while it waits asks again; earlier decisions are not asked for again, and
/// their calls run once.
#[tokio::test(start_paused = true)]
async fn n7_a_killed_run_asks_again_and_runs_once() {
    let (executor, paid) = paying();
    let person = Person::new(1_000, |call| match call.step.0 {
        3 => Decision::Denied { reason: "不行".to_owned() },
        _ => Decision::Approved,
    });
    let journal = Arc::new(MemoryJournal::default());
    let executor = executor.with_approver(person.clone()).with_journal(journal.clone());
    let steps = || {
        vec![step(1, "pay", &[]), pause(2, 2_000, &[1]), step(3, "pay", &[]), step(4, "pay", &[2])]
    };
    // Killed while the first question is open.
    let run = executor.start(&plan(steps()), options("run")).unwrap();
    assert!(tokio::time::timeout(ms(500), run.finish()).await.is_err());
    assert_eq!(paid.get(), 0);
    // Killed while the second one is.
    let run = executor.resume(options("run")).unwrap();
    assert!(tokio::time::timeout(ms(3_500), run.finish()).await.is_err());
    assert_eq!((person.asked(), paid.get()), (vec![vec![1, 3], vec![1, 3], vec![4]], 1));
    let outcome = executor.resume(options("run")).unwrap().finish().await.unwrap();
    assert_eq!(person.asked()[3..], [vec![4]]);
    assert_eq!(paid.get(), 2);
    assert_eq!(failure(&outcome, 3).1, "not_executed: 不行");
    assert_eq!(answer(&outcome, 4), "{}");
}

/// N7, R12: a call that was approved but had not begun when the run was killed begins without a question.
#[tokio::test(start_paused = true)]
async fn n7_an_approval_outlives_the_run() {
    let (executor, paid) = paying();
    let person = Person::new(10, approve);
    let journal = Arc::new(MemoryJournal::default());
    // One place, and a call before it that takes long: the approved call waits for its turn.
    let executor = executor
        .with_settings(settings(|s| s.max_parallel = 1))
        .with_approver(person.clone())
        .with_journal(journal);
    let steps = vec![pause(1, 1_000, &[]), step(2, "pay", &[])];
    let run = executor.start(&plan(steps), options("run")).unwrap();
    assert!(tokio::time::timeout(ms(500), run.finish()).await.is_err());
    let outcome = executor.resume(options("run")).unwrap().finish().await.unwrap();
    assert_eq!(person.asked(), [vec![2]]);
    assert_eq!((paid.get(), answer(&outcome, 2)), (1, "{}"));
}

/// N7: the approver may decide by the arguments which calls need approval.
#[tokio::test(start_paused = true)]
async fn n7_what_needs_asking_may_depend_on_the_arguments() {
    struct Careful(Person);
    impl Approver for Careful {
        fn needs(&self, _: &ToolSpec, arguments: &str) -> bool {
            arguments.contains("生产")
        }
        fn decide<'a>(&'a self, calls: &'a [ApprovalRequest]) -> BoxFuture<'a, Vec<Decision>> {
            self.0.decide(calls)
        }
    }
    let run_tool = tool(spec("run", Effect::Effectful), |arguments, _| async move {
        Ok(ToolOutput::json(arguments))
    });
    let person = Careful(Person {
        takes: ms(10),
        rule: |_| Decision::Denied { reason: "no".into() },
        asked: Mutex::default(),
    });
    let executor = executor([run_tool]).with_approver(Arc::new(person));
    let on = |id, host: &str| call(id, "run", object(&[("host", text(host))]), &[]);
    let outcome =
        executor.run(&plan(vec![on(1, "测试"), on(2, "生产")]), options("run")).await.unwrap();
    assert_eq!(answer(&outcome, 1), r#"{"host":"测试"}"#);
    assert_eq!(failure(&outcome, 2).0, FailureKind::Denied);
}

/// N7, OP16: a refused `fail_fast` step cancels the calls that were approved beside it: nothing is called
/// after it was reported as skipped.
#[tokio::test(start_paused = true)]
async fn n7_a_refusal_may_call_off_its_batch() {
    let (executor, paid) = paying();
    let person = Person::new(10, |call| match call.step.0 {
        2 => Decision::Denied { reason: "不行".to_owned() },
        _ => Decision::Approved,
    });
    let journal = Arc::new(MemoryJournal::default());
    let executor = executor.with_approver(person).with_journal(journal);
    let strict = Step { on_failure: FailurePolicy::FailFast, ..step(2, "pay", &[]) };
    let steps = || vec![step(1, "pay", &[]), strict.clone(), step(3, "pay", &[])];
    for _ in 0..2 {
        let outcome = executor.run(&plan(steps()), options("run")).await.unwrap();
        assert_eq!((result(&outcome, 1), result(&outcome, 3)), (&skipped(2), &skipped(2)));
        assert_eq!((paid.get(), outcome.calls.len()), (0, 0));
    }
}

/// N7, R12: changed arguments that do not fit the tool are not called by a resumed run either.
#[tokio::test(start_paused = true)]
async fn n7_changed_arguments_are_checked_on_resume() {
    let (executor, paid) = paying();
    let person =
        Person::new(10, |_| Decision::Changed { arguments: r#"{"amount":"五"}"#.to_owned() });
    let executor =
        executor.with_approver(person.clone()).with_journal(Arc::new(MemoryJournal::default()));
    let first = executor.run(&plan(vec![step(1, "pay", &[])]), options("run")).await.unwrap();
    let again = executor.resume(options("run")).unwrap().finish().await.unwrap();
    assert_eq!(again.results, first.results);
    assert_eq!(failure(&again, 1).0, FailureKind::Arguments);
    assert_eq!((paid.get(), person.asked().len()), (0, 1));
}

/// N3, N7: a call with changed arguments is another call, with a key of its own.
#[tokio::test(start_paused = true)]
async fn n7_changed_arguments_have_their_own_key() {
    let change = |arguments: &'static str| {
        let (executor, _) = paying();
        let decision =
            move |_: &ApprovalRequest| Decision::Changed { arguments: arguments.to_owned() };
        struct Changes<F>(F);
        impl<F: Fn(&ApprovalRequest) -> Decision + Send + Sync> Approver for Changes<F> {
            fn decide<'a>(&'a self, calls: &'a [ApprovalRequest]) -> BoxFuture<'a, Vec<Decision>> {
                Box::pin(async { calls.iter().map(&self.0).collect() })
            }
        }
        let executor = executor.with_approver(Arc::new(Changes(decision)));
        async move {
            let outcome = executor.run(&plan(vec![step(1, "pay", &[])]), options("run")).await;
            outcome.unwrap().calls[&StepId(1)].key.clone()
        }
    };
    let five = change(r#"{"amount":5}"#).await;
    assert_eq!(five, change(r#"{"amount":5}"#).await);
    assert_ne!(five, change(r#"{"amount":6}"#).await);
}

/// N7, OP8: an approved call is not asked about again when the plan is written once more.
#[tokio::test(start_paused = true)]
async fn n7_an_approval_outlives_a_streamed_run() {
    let (executor, paid) = paying();
    let person = Person::new(10, approve);
    let executor = executor
        .with_settings(settings(|s| s.max_parallel = 1))
        .with_approver(person.clone())
        .with_journal(Arc::new(MemoryJournal::default()));
    for limit in [500, 5_000] {
        let mut run = executor.open(options("run")).unwrap();
        run.extend(&[pause(1, 1_000, &[]), step(2, "pay", &[])]).unwrap();
        run.seal().unwrap();
        let _ = tokio::time::timeout(ms(limit), run.finish()).await;
    }
    assert_eq!((person.asked(), paid.get()), (vec![vec![2]], 1));
}

/// N7: a refusal is no reason for a new plan, which would only circumvent it.
#[tokio::test(start_paused = true)]
async fn n7_a_refusal_wants_no_new_plan() {
    let (executor, _) = paying();
    let person = Person::new(10, |_| Decision::Denied { reason: "no".to_owned() });
    let executor = executor.with_approver(person);
    let outcome = executor.run(&plan(vec![step(1, "pay", &[])]), options("run")).await.unwrap();
    assert_eq!(outcome.trace.to_string(), "   0.010 s  step1 failed\n");
}

/// N7, B3: an approver that panics at the question whether a call needs approval is asked to approve it.
#[tokio::test(start_paused = true)]
async fn n7_a_panic_is_a_question() {
    struct Odd(Person);
    impl Approver for Odd {
        fn needs(&self, _: &ToolSpec, _: &str) -> bool {
            panic!("no idea")
        }
        fn decide<'a>(&'a self, calls: &'a [ApprovalRequest]) -> BoxFuture<'a, Vec<Decision>> {
            self.0.decide(calls)
        }
    }
    let rule = |_: &ApprovalRequest| Decision::Denied { reason: "no".to_owned() };
    let odd = Odd(Person { takes: ms(10), rule, asked: Mutex::default() });
    let executor = executor([wait()]).with_approver(Arc::new(odd));
    let outcome = executor.run(&plan(vec![pause(1, 5, &[])]), options("run")).await.unwrap();
    assert_eq!(failure(&outcome, 1).0, FailureKind::Denied);
}
