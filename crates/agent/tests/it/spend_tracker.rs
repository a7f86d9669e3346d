//! The spending of a run.

use crate::keeping::Watching;
use crate::script::{agent, conversation, fails, full, model, running, says, task, texts};
use crate::toolkit::{ms, spec, tool};
use foldback_agent::{
    Agent, AgentEvent, Executor, Journal, MemoryJournal, OnePlan, React, Report, Resource,
    SpendError, SpendLimits, SpendTracker, Stop, Task, TokenPrices,
};
use foldback_core::{
    ContextError, ContextLayer, ContextManager, Message, Recorded, Role, SideCall, SideCalls,
    ToolCall,
};
use foldback_llm::{Answer, ModelError, ModelErrorKind, ScriptedModel, Usage};
use foldback_planner::{StepId, StepResult};
use foldback_tool::{Effect, FailureKind, Tool, ToolOutput, Toolbox};
use std::sync::Arc;

const PRICES: TokenPrices =
    TokenPrices { input: 3.0, output: 15.0, cached_read: 0.3, cached_write: 3.75 };

fn usage(input: u64, output: u64) -> Usage {
    Usage { input, output, ..Usage::default() }
}

fn with(spend: &SpendTracker) -> Task {
    task("go").with_spend(spend.clone())
}

/// A model that calls `read` for ever, for 90 tokens in and 10 out.
fn looping() -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::answering(|request| {
        let id = format!("c{}", request.messages.len());
        let call = ToolCall::new(&id, "read", &format!(r#"{{"n":{}}}"#, request.messages.len()));
        Answer::from(call).with_usage(usage(90, 10))
    }))
}

fn stopped(report: &Report) -> Resource {
    match &report.trajectory.outcome.stop {
        Stop::Exhausted { resource } => *resource,
        other => panic!("{other:?}"),
    }
}

/// S10: a limit on model calls, tokens, money or time ends the run before the next question; no last words are
/// requested, and the conversation stays a valid request.
#[tokio::test(start_paused = true)]
async fn s10_a_run_ends_when_it_may_spend_no_more() {
    let none = SpendLimits::default();
    for (limits, resource, calls) in [
        (none.with_model_calls(3), Resource::ModelCalls, 3),
        (none.with_tokens(250), Resource::Tokens, 3),
        // 90 tokens in and 10 out are 0.00042.
        (none.with_cost(0.001), Resource::Cost, 3),
        (none.with_time(ms(25)), Resource::Time, 3),
    ] {
        let spend = SpendTracker::new(limits, Some(PRICES)).unwrap();
        let model = looping();
        let agent = agent(&model, vec![says("read", 10, "ok")]);
        let mut context = full();
        let report = agent.run(&React::default(), context.as_mut(), &with(&spend)).await.unwrap();
        assert_eq!((stopped(&report), model.calls()), (resource, calls));
        let told = format!("Terminated: the run may spend no more {resource}");
        assert_eq!(report.trajectory.outcome.told(), told);
        assert_eq!(conversation(context.as_ref()).last().unwrap().role(), &Role::Tool);
        assert_eq!(spend.spent().model_calls, calls as u64);
        assert!((spend.spent().cost - 0.00042 * calls as f64).abs() < 1e-12);
    }
}

/// S10: a limit on tokens or money holds where a server reports no usage: estimates count, which the run says once,
/// and they count again when it is resumed. Without such a limit nothing is estimated.
#[tokio::test(start_paused = true)]
async fn s10_tokens_that_no_server_counts_are_estimated() {
    let none = SpendLimits::default();
    let bounds = [
        (none.with_model_calls(9), Resource::ModelCalls, false),
        (none.with_tokens(250), Resource::Tokens, true),
        (none.with_cost(0.001), Resource::Cost, true),
    ];
    for (limits, resource, is_estimated) in bounds {
        let journal = Arc::new(MemoryJournal::default());
        let mut spent = Vec::new();
        for is_resumed in [false, true] {
            let model = Arc::new(ScriptedModel::answering(|request| {
                let n = request.messages.len();
                let call =
                    ToolCall::new(&format!("c{n}"), "read", &format!(r#"{{"q":"潮位{n}"}}"#));
                Answer::from(call).with_usage(Usage::default())
            }));
            let spend = SpendTracker::new(limits, Some(PRICES)).unwrap();
            let executor = Executor::new(Toolbox::new([says("read", 10, "三米")]).unwrap());
            let agent = running(&model, executor.with_journal(journal.clone()));
            let watching = Arc::new(Watching::default());
            let task = with(&spend).with_observer(watching.clone());
            let report = agent.run(&React::default(), full().as_mut(), &task).await.unwrap();
            assert_eq!(stopped(&report), resource);
            let events = watching.0.lock();
            let is_note = |event: &AgentEvent| matches!(event, AgentEvent::Noted { .. });
            let notes = events.iter().filter(|(_, event)| is_note(event)).count();
            assert_eq!(notes, usize::from(is_estimated && !is_resumed), "{limits:?}");
            assert!(!is_resumed || model.calls() == 0);
            spent.push(spend.spent());
        }
        assert_eq!(spent[0], spent[1]);
        assert_eq!(spent[0].usage.input > 0 && spent[0].usage.output > 0, is_estimated);
    }
}

/// S10: a tool that may not be called any more is a result that says what is exhausted; the model can
/// still answer.
#[tokio::test(start_paused = true)]
async fn s10_a_refused_tool_call_says_what_is_exhausted() {
    let read = |id: &str| ToolCall::new(id, "read", "{}");
    let model = model([vec![read("c1"), read("c2"), read("c3")].into(), "够了".into()]);
    let spend = SpendTracker::new(SpendLimits::default().with_tool_calls(2), None).unwrap();
    let agent = agent(&model, vec![says("read", 1, "ok")]);
    let report = agent.run(&React::default(), full().as_mut(), &with(&spend)).await.unwrap();
    assert_eq!(report.answer(), Some("够了"));
    let StepResult::Error { failure } = report.trajectory.result(0, StepId(3)).unwrap() else {
        panic!("it was called")
    };
    assert_eq!(failure.kind, FailureKind::Quota);
    assert!(failure.message.contains("calls of tools"), "{}", failure.message);
    assert_eq!(spend.spent().tool_calls, 2);
}

/// S10: when the time is up, calls in progress and an open question to the model are stopped.
#[tokio::test(start_paused = true)]
async fn s10_time_that_is_up_stops_what_is_under_way() {
    let of_time = || SpendTracker::new(SpendLimits::default().with_time(ms(100)), None).unwrap();
    let hang = tool(spec("read", Effect::ReadOnly), |_, call| async move {
        call.cancelled.cancelled().await;
        Ok(ToolOutput::text("half"))
    });
    let begun = tokio::time::Instant::now();
    let agent_ = agent(&looping(), vec![hang]);
    let report = agent_.run(&React::default(), full().as_mut(), &with(&of_time())).await.unwrap();
    assert_eq!((stopped(&report), begun.elapsed()), (Resource::Time, ms(100)));

    let slow = model([Answer::text("late").after(ms(5_000))]);
    let begun = tokio::time::Instant::now();
    let report = agent(&slow, vec![])
        .run(&React::default(), full().as_mut(), &with(&of_time()))
        .await
        .unwrap();
    assert_eq!((stopped(&report), begun.elapsed()), (Resource::Time, ms(100)));
}

/// S10: a planned run keeps the same limits: without a call left for the answer it ends with its work on
/// record.
#[tokio::test(start_paused = true)]
async fn s10_a_planned_run_keeps_the_bounds() {
    let plan = r#"{"action_plan": {"step1": {"function": "read", "args": {}}}}"#;
    let spend = SpendTracker::new(SpendLimits::default().with_model_calls(1), None).unwrap();
    let model = texts(&[plan, "never"]);
    let agent = agent(&model, vec![says("read", 1, "小雨")]);
    let mut context = full();
    let report = agent.run(&OnePlan::default(), context.as_mut(), &with(&spend)).await.unwrap();
    assert_eq!((stopped(&report), model.calls()), (Resource::ModelCalls, 1));
    assert_eq!(conversation(context.as_ref()).last().unwrap().text(), "小雨");
}

/// S10: what a share spends counts for its parents, too; the smallest of their limits applies.
#[test]
fn s10_shares_are_charged_to_whoever_gave_them() {
    let all = SpendTracker::new(SpendLimits::default().with_model_calls(3), Some(PRICES)).unwrap();
    let one = all.share(SpendLimits::default().with_model_calls(2)).unwrap();
    let other = all.counting();
    for spend in [&one, &one, &other] {
        spend.begin_model_call(0).unwrap().charge(usage(1_000, 100));
    }
    assert_eq!(one.begin_model_call(0).unwrap_err(), Resource::ModelCalls);
    let refused = other.begin_model_call(0).unwrap_err();
    assert_eq!(refused, Resource::ModelCalls, "the others took the rest");
    let calls = [&all, &one, &other].map(|spend| spend.spent().model_calls);
    assert_eq!(calls, [3, 2, 1], "a refused call is counted nowhere");
    assert!((all.spent().cost - 3.0 * 0.0045).abs() < 1e-12);
    assert_eq!(other.exhausted(), Some(Resource::ModelCalls));
}

/// S10: no more calls that begin at the same moment are made than are allowed.
#[test]
fn s10_the_last_call_is_taken_once() {
    let all = SpendTracker::new(SpendLimits::default().with_tool_calls(100), None).unwrap();
    let share = all.counting();
    let taken: usize = std::thread::scope(|scope| {
        let take = || (0..100).filter(|_| share.begin_tool_call().is_ok()).count();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(take)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!((taken, all.spent().tool_calls, share.spent().tool_calls), (100, 100, 100));
}

/// N3, S10: a resumed run counts what it spent before it was killed.
#[tokio::test(start_paused = true)]
async fn n3_what_was_spent_before_a_run_was_killed_is_spent() {
    let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::default());
    let agent = |model: &Arc<ScriptedModel>| {
        let tools: Vec<Arc<dyn Tool>> = vec![says("read", 1, "ok")];
        let executor = Executor::new(Toolbox::new(tools).unwrap()).with_journal(journal.clone());
        Agent::new(model.clone(), executor)
    };
    let of = |most| SpendTracker::new(SpendLimits::default().with_model_calls(most), None).unwrap();
    let first = looping();
    agent(&first).run(&React::default(), full().as_mut(), &with(&of(2))).await.unwrap();
    let (second, spend) = (looping(), of(5));
    let report =
        agent(&second).run(&React::default(), full().as_mut(), &with(&spend)).await.unwrap();
    assert_eq!((stopped(&report), second.calls()), (Resource::ModelCalls, 3));
    assert_eq!((spend.spent().model_calls, spend.spent().tool_calls), (5, 5));
}

/// A context whose policy asks a model for each message.
struct Summing(Box<dyn ContextManager>, usize);

impl ContextLayer for Summing {
    fn inner(&self) -> &dyn ContextManager {
        self.0.as_ref()
    }

    fn inner_mut(&mut self) -> &mut dyn ContextManager {
        self.0.as_mut()
    }

    fn record(&mut self, message: Message) -> Result<Recorded, ContextError> {
        self.1 += 1;
        self.0.record(message)
    }

    fn side_calls(&mut self) -> Option<&mut dyn SideCalls> {
        Some(self)
    }
}

impl SideCalls for Summing {
    fn take(&mut self) -> Vec<SideCall> {
        let call =
            SideCall { purpose: "summary", input_tokens: 1_000, output_tokens: 100, cost: None };
        vec![call; std::mem::take(&mut self.1)]
    }
}

/// CX11: the policy's own requests to a model are charged to the run.
#[tokio::test(start_paused = true)]
async fn cx11_side_calls_are_charged() {
    let answers = [
        Answer::from(ToolCall::new("c", "read", "{}")).with_usage(usage(10, 1)),
        Answer::text("done").with_usage(usage(10, 1)),
    ];
    let spend = SpendTracker::new(SpendLimits::default(), Some(PRICES)).unwrap();
    let agent = agent(&model(answers), vec![says("read", 1, "ok")]);
    agent.run(&React::default(), &mut Summing(full(), 0), &with(&spend)).await.unwrap();
    let spent = spend.spent();
    // Request, call, result and answer.
    assert_eq!((spent.model_calls, spent.usage), (2 + 4, usage(20 + 4_000, 2 + 400)));
}

/// S10: a question that fails, and one that was not sent, cost nothing.
#[tokio::test(start_paused = true)]
async fn s10_only_what_was_spent_is_counted() {
    let spend = SpendTracker::default();
    let agent = agent(&model([]), vec![fails("read", 1)]);
    let report = agent.run(&React::default(), full().as_mut(), &with(&spend)).await.unwrap();
    assert!(matches!(report.trajectory.outcome.stop, Stop::ModelFailed { .. }));
    assert_eq!((spend.spent().model_calls, spend.spent().usage), (1, Usage::default()));
    assert_eq!(spend.exhausted(), None);
}

/// S10: calls in progress count as spent with their estimated input: no more concurrent calls begin than there
/// are tokens and money for. A call without an answer costs nothing.
#[test]
fn s10_calls_under_way_count_as_spent() {
    let none = SpendLimits::default();
    // 1,000 tokens of input are 0.003.
    for (limits, resource) in
        [(none.with_tokens(2_500), Resource::Tokens), (none.with_cost(0.0075), Resource::Cost)]
    {
        let all = SpendTracker::new(limits, Some(PRICES)).unwrap();
        let shares = [(); 4].map(|()| all.counting());
        let begun: Vec<_> = shares.iter().map(|share| share.begin_model_call(1_000)).collect();
        assert!(begun[..3].iter().all(Result::is_ok), "{begun:?}");
        assert_eq!(*begun[3].as_ref().unwrap_err(), resource);
        drop(begun);
        assert_eq!((all.spent().model_calls, all.exhausted()), (3, None));
        shares[0].begin_model_call(9_000).unwrap().charge(usage(1_000, 0));
        assert_eq!((all.spent().usage, all.exhausted()), (usage(1_000, 0), None));
    }
}

/// S10: a limit that would never take effect is an error that says so.
#[test]
fn s10_a_bound_that_never_holds_is_refused() {
    let of_money = |cost| SpendLimits::default().with_cost(cost);
    let error = SpendTracker::new(of_money(1.5), None).unwrap_err();
    assert_eq!(error, SpendError::NoPrices(1.5));
    assert!(error.to_string().contains("no prices of tokens are given"), "{error}");
    assert_eq!(
        SpendTracker::default().share(of_money(0.0)).unwrap_err(),
        SpendError::NoPrices(0.0)
    );
    for bad in [f64::NAN, -1.0, f64::INFINITY] {
        let prices = TokenPrices { output: bad, ..PRICES };
        let error = SpendTracker::new(SpendLimits::default(), Some(prices)).unwrap_err();
        assert!(matches!(error, SpendError::Price(_)), "{error}");
        let error = SpendTracker::new(of_money(bad), Some(PRICES)).unwrap_err();
        assert!(matches!(error, SpendError::Cost(_)), "{error}");
    }
    let free = TokenPrices { input: 0.0, output: 0.0, cached_read: 0.0, cached_write: 0.0 };
    assert!(SpendTracker::new(of_money(0.0), Some(free)).is_ok());
}

/// A run by a journal, with these answers and a limit of 5,000 tokens.
async fn bounded(
    journal: &Arc<MemoryJournal>,
    answers: impl IntoIterator<Item = Answer>,
    limits: SpendLimits,
) -> (Report, SpendTracker) {
    let spend = SpendTracker::new(limits.with_tokens(5_000), Some(PRICES)).unwrap();
    let executor = Executor::new(Toolbox::new([says("read", 1, "ok")]).unwrap());
    let agent = running(&model(answers), executor.with_journal(journal.clone()));
    let report = agent.run(&React::default(), full().as_mut(), &with(&spend)).await.unwrap();
    (report, spend)
}

/// S10: an answer that cannot be read costs what the provider reports, also after a kill.
#[tokio::test(start_paused = true)]
async fn s10_an_unreadable_answer_counts() {
    let journal = Arc::new(MemoryJournal::default());
    let unreadable =
        || ModelError::new(ModelErrorKind::Response, "no call").with_usage(usage(1_990, 10)).into();
    let answers = std::iter::repeat_with(unreadable).take(9);
    let (report, spend) = bounded(&journal, answers, SpendLimits::default()).await;
    let calls = spend.spent().model_calls;
    assert!(calls <= 3, "{calls} calls");
    assert_eq!(spend.spent().usage, usage(1_990 * calls, 10 * calls));
    assert_eq!(report.trajectory.spent().usage, spend.spent().usage);
    let (_, resumed) = bounded(&journal, [], SpendLimits::default().with_model_calls(0)).await;
    assert_eq!(resumed.spent().usage, spend.spent().usage);
    assert!(resumed.spent().cost > 0.0);
}

/// S10: what an answer took that broke off, or was stopped in its middle, is estimated from the request and from what
/// came, also after a kill. An answer that never began took nothing.
#[tokio::test(start_paused = true)]
async fn s10_an_answer_that_broke_off_counts() {
    let down = || ModelError::new(ModelErrorKind::Unavailable, "it broke off");
    let begun = || Answer::text(&"潮位三米。".repeat(40)).paced(50, ms(100));
    let none = SpendLimits::default();
    for (answer, limits, is_counted) in [
        (begun().failing(down()), none, true),
        (begun(), none.with_time(ms(250)), true),
        (down().into(), none, false),
    ] {
        let journal = Arc::new(MemoryJournal::default());
        let (report, spend) = bounded(&journal, [answer], limits).await;
        assert_ne!(report.trajectory.outcome.stop, Stop::Answered);
        let spent = spend.spent();
        assert_eq!(spent.usage.input > 0 && spent.usage.output > 10, is_counted, "{spent:?}");
        let (report, resumed) = bounded(&journal, ["好了".into()], none).await;
        assert_eq!(report.answer(), Some("好了"));
        let last = report.trajectory.spent().usage;
        let mut all = spent.usage;
        all += last;
        assert_eq!(resumed.spent().usage, all, "{limits:?}");
    }
}
