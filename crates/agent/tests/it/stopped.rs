//! Runs that are stopped and resume in the same context: an effect happens once, and the model reads its
//! result.

use crate::contexts::Altered;
use crate::script::{conversation, full, running};
use crate::toolkit::{Counter, ms, settings, spec, tool};
use foldback_agent::{
    Agent, AgentError, AgentState, CallForm, Executor, Journal, JournalError, MemoryJournal,
    OnePlan, React, ReactSettings, Record, Report, Resource, SpendLimits, SpendTracker, Stop,
    Strategy, StrategyName, Task,
};
use foldback_core::{Budget, ContextError, ContextManager, Message, Role, ToolAnswer, ToolCall};
use foldback_llm::{Answer, ScriptedModel};
use foldback_tool::{Effect, Tool, ToolOutput, Toolbox};
use futures::future::BoxFuture;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// The state that the processes of a run share.
struct Lives {
    journal: Arc<MemoryJournal>,
    context: Box<dyn ContextManager>,
    sent: Counter,
    strategy: StrategyName,
    calls: CallForm,
}

impl Lives {
    fn of(strategy: StrategyName, calls: CallForm) -> Self {
        let (journal, sent) = (Arc::default(), Counter::default());
        Self { journal, context: full(), sent, strategy, calls }
    }

    fn react() -> Self {
        Self::of(React::NAME, CallForm::Native)
    }

    /// Allows one call at a time: `slow`, which takes a given time, and `send`, which has an effect.
    fn agent(&self, model: &Arc<ScriptedModel>, slow_ms: u64) -> Agent {
        let slow = tool(spec("slow", Effect::ReadOnly), move |_, _| async move {
            tokio::time::sleep(ms(slow_ms)).await;
            Ok(ToolOutput::text("潮位 3 m"))
        });
        let sent = self.sent.clone();
        let send: Arc<dyn Tool> = tool(spec("send", Effect::Effectful), move |arguments, _| {
            let count = sent.add();
            async move { Ok(ToolOutput::text(format!("sent {count}: {arguments}"))) }
        });
        let executor = Executor::new(Toolbox::new([slow, send]).unwrap())
            .with_journal(self.journal.clone())
            .with_settings(settings(|s| s.max_parallel = 1));
        running(model, executor)
    }

    fn strategy(&self) -> Box<dyn Strategy> {
        strategy(&self.strategy, self.calls)
    }

    /// One process with these answers; cancelled after a second, if `slow` takes longer.
    async fn live(
        &mut self,
        answers: impl IntoIterator<Item = Answer>,
        slow_ms: u64,
        spend: SpendTracker,
    ) -> (Arc<ScriptedModel>, Result<Report, AgentError>) {
        let model = Arc::new(ScriptedModel::new(answers));
        let agent = self.agent(&model, slow_ms);
        let task = Task::new("run", "发一次邮件 (send it once)").with_spend(spend);
        let cancelled = task.cancelled.clone();
        tokio::spawn(async move {
            tokio::time::sleep(ms(1_000)).await;
            cancelled.cancel();
        });
        let report = agent.run(&*self.strategy(), self.context.as_mut(), &task).await;
        (model, report)
    }

    fn told(&self) -> Vec<String> {
        let messages = conversation(self.context.as_ref());
        messages.iter().map(|message| message.text().into_owned()).collect()
    }
}

fn strategy(name: &StrategyName, calls: CallForm) -> Box<dyn Strategy> {
    if *name == OnePlan::NAME {
        return Box::new(OnePlan::default());
    }
    Box::new(React::new(ReactSettings::default().with_calls(calls)))
}

fn calls(names: &[&str]) -> Answer {
    let call = |name: &&str| ToolCall::new(&format!("c-{name}"), name, "{}");
    names.iter().map(call).collect::<Vec<_>>().into()
}

fn stop(report: &Result<Report, AgentError>) -> &Stop {
    &report.as_ref().unwrap().trajectory.outcome.stop
}

fn said(messages: &[Arc<Message>], text: &str) -> bool {
    messages.iter().any(|message| message.text().contains(text))
}

/// R12, TD3: calls that a cancellation prevented or cut short are made when the run resumes, and the model
/// reads their results, in each form.
#[tokio::test(start_paused = true)]
async fn r12_a_cancelled_run_goes_on_in_its_context() {
    let block = "<execute_tools><sequential><app><slow>{}</slow></app><app><send>{}</send></app></sequential></execute_tools>";
    let plan = r#"{"action_plan": {"step1": {"function": "slow", "args": {}},
        "step2": {"function": "send", "args": {"what": "$$step1.result$$"}, "dependence": [1]}}}"#;
    for (strategy, form, first) in [
        (React::NAME, CallForm::Native, calls(&["slow", "send"])),
        (React::NAME, CallForm::ExecuteTools, block.into()),
        (OnePlan::NAME, CallForm::Native, plan.into()),
    ] {
        let what = format!("{strategy}, {form:?}");
        let mut run = Lives::of(strategy, form);
        let (_, report) = run.live([first], 100_000, SpendTracker::default()).await;
        assert_eq!((stop(&report), run.sent.get()), (&Stop::Cancelled, 0), "{what}");
        let messages = run.context.prompt(&Budget::default()).messages;
        assert!(!said(&messages, "cancelled"), "{what}: {messages:?}");

        let (model, report) = run.live(["done".into()], 1, SpendTracker::default()).await;
        assert_eq!((stop(&report), run.sent.get()), (&Stop::Answered, 1), "{what}");
        let asked = &model.requests()[0].messages;
        assert!(said(asked, "潮位 3 m") && said(asked, "sent 1"), "{what}: {asked:?}");
        let told = run.told();
        assert!(told.iter().any(|text| text.contains("sent 1")), "{what}: {told:?}");
        assert!(!told.iter().any(|text| text.contains("cancelled")), "{what}: {told:?}");
        // Once more: the same answer, and nothing happens.
        let (model, report) = run.live([], 1, SpendTracker::default()).await;
        assert_eq!((stop(&report), model.calls()), (&Stop::Answered, 0), "{what}");
        assert_eq!((run.sent.get(), run.told()), (1, told), "{what}");
    }
}

/// TD3: calls that had ended before the cancellation are in the conversation.
#[tokio::test(start_paused = true)]
async fn td3_results_before_a_cancelled_call_are_recorded() {
    let mut run = Lives::react();
    let (_, report) = run.live([calls(&["send", "slow"])], 100_000, SpendTracker::default()).await;
    assert_eq!((stop(&report), run.sent.get()), (&Stop::Cancelled, 1));
    assert_eq!(run.context.recorded(), 3, "the request, the calls, one result");
    let (model, report) = run.live(["done".into()], 1, SpendTracker::default()).await;
    assert_eq!((stop(&report), run.sent.get()), (&Stop::Answered, 1));
    assert!(said(&model.requests()[0].messages, "潮位 3 m"));
}

/// MC15, TD3: if another run follows one that was stopped, the open calls are first given a result; the
/// stopped run cannot resume then.
#[tokio::test(start_paused = true)]
async fn mc15_another_run_answers_the_calls_of_a_stopped_one() {
    let mut run = Lives::react();
    let (_, report) = run.live([calls(&["send", "slow"])], 100_000, SpendTracker::default()).await;
    assert_eq!(stop(&report), &Stop::Cancelled);
    let model = Arc::new(ScriptedModel::new(["done".into()]));
    let agent = run.agent(&model, 1);
    let report =
        agent.run(&React::default(), run.context.as_mut(), &Task::new("other", "And now?")).await;
    assert_eq!((stop(&report), run.sent.get()), (&Stop::Answered, 1));
    let messages = &model.requests()[0].messages;
    let results = messages.iter().filter(|message| *message.role() == Role::Tool);
    let results: Vec<String> = results.map(|message| message.text().into_owned()).collect();
    assert!(results[0].starts_with("sent 1") && results[1].starts_with("Not known"), "{results:?}");
    let told = run.told();
    let (_, report) = run.live([], 1, SpendTracker::default()).await;
    assert!(matches!(report, Err(AgentError::ContextMoved { .. })), "{report:?}");
    assert_eq!((run.sent.get(), run.told()), (1, told));
}

/// OM3, R12: the result of a refused call is final, even when more may be spent: the call is not made behind
/// the model's back.
#[tokio::test(start_paused = true)]
async fn r12_a_refused_call_is_not_made_unseen() {
    let allowed =
        |model_calls| SpendLimits::default().with_model_calls(model_calls).with_tool_calls(0);
    let spend = |model_calls| SpendTracker::new(allowed(model_calls), None).unwrap();
    // Stopped after the refusal.
    let mut run = Lives::react();
    let (_, report) = run.live([calls(&["send"])], 1, spend(Some(1))).await;
    let exhausted = Stop::Exhausted { resource: Resource::ModelCalls };
    assert_eq!((stop(&report), run.sent.get()), (&exhausted, 0));
    let again = [Answer::from(ToolCall::new("again", "send", "{}")), "done".into()];
    let (model, report) = run.live(again, 1, SpendTracker::default()).await;
    assert_eq!((stop(&report), run.sent.get()), (&Stop::Answered, 1));
    assert!(said(&model.requests()[0].messages, "Error (quota)"));
    // Answered after the refusal.
    for strategy in [React::NAME, OnePlan::NAME] {
        let first = match strategy == React::NAME {
            true => calls(&["send"]),
            false => r#"{"action_plan": {"step1": {"function": "send", "args": {}}}}"#.into(),
        };
        let mut run = Lives::of(strategy.clone(), CallForm::Native);
        let (_, report) = run.live([first, "It was not sent.".into()], 1, spend(None)).await;
        assert_eq!((stop(&report), run.sent.get()), (&Stop::Answered, 0), "{strategy:?}");
        let told = run.told();
        let (model, report) = run.live([], 1, SpendTracker::default()).await;
        assert_eq!((stop(&report), model.calls()), (&Stop::Answered, 0), "{strategy:?}");
        assert_eq!((run.sent.get(), run.told()), (0, told), "{strategy:?}");
    }
}

/// MC15, R12: after a failure of the context the run resumes with the calls of that turn, and the model reads
/// their results.
#[tokio::test(start_paused = true)]
async fn r12_a_run_goes_on_after_its_context_failed() {
    static IS_BROKEN: AtomicBool = AtomicBool::new(true);
    let mut run = Lives::react();
    run.context = Box::new(Altered::loading(|_| {
        if IS_BROKEN.load(Ordering::SeqCst) {
            return Err(ContextError { message: "磁盘 is full".to_owned(), source: None });
        }
        Ok(ToolAnswer { text: "recalled".to_owned(), is_error: false })
    }));
    let (_, report) = run.live([calls(&["load", "send"])], 1, SpendTracker::default()).await;
    assert!(matches!(report, Err(AgentError::Context(_))), "{report:?}");
    assert_eq!(run.sent.get(), 0);
    IS_BROKEN.store(false, Ordering::SeqCst);
    let (model, report) = run.live(["done".into()], 1, SpendTracker::default()).await;
    assert_eq!((stop(&report), run.sent.get()), (&Stop::Answered, 1));
    let asked = &model.requests()[0].messages;
    assert!(said(asked, "recalled") && said(asked, "sent 1"), "{asked:?}");
    assert_eq!(asked.iter().filter(|message| *message.role() == Role::Tool).count(), 2);
}

/// R12: a run's name is bound to its request and its strategy: with another it is refused, without any request
/// or call, and the run is unchanged.
#[tokio::test(start_paused = true)]
async fn r12_a_run_is_of_one_request_and_one_strategy() {
    let mut run = Lives::react();
    let (_, report) = run.live([calls(&["send"]), "done".into()], 1, SpendTracker::default()).await;
    assert_eq!((stop(&report), run.sent.get()), (&Stop::Answered, 1));
    let model = Arc::new(ScriptedModel::new([]));
    let agent = run.agent(&model, 1);
    let request = "发一次邮件 (send it once)";
    for (strategy, request, why) in [
        (React::NAME, "Something else.", "with another request"),
        (OnePlan::NAME, request, "by the strategy react, and not by one-plan"),
    ] {
        let strategy = super::stopped::strategy(&strategy, CallForm::Native);
        let error = agent.run(&*strategy, full().as_mut(), &Task::new("run", request)).await;
        match error {
            Err(AgentError::OtherTask { run, found }) => {
                assert_eq!((run.as_str(), found.as_str()), ("run", why));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((model.calls(), run.sent.get()), (0, 1));
    assert_eq!(agent.state("run").unwrap(), AgentState::Finished);
    let (_, report) = run.live([], 1, SpendTracker::default()).await;
    assert_eq!(report.unwrap().answer(), Some("done"));
}

/// ET10: the record of a resumed run has all of it, and marks what came from the journal.
#[tokio::test(start_paused = true)]
async fn r12_the_record_of_a_run_that_went_on_is_whole() {
    let mut run = Lives::react();
    let (_, report) = run.live([calls(&["slow", "send"])], 100_000, SpendTracker::default()).await;
    let first = report.unwrap().trajectory;
    let (_, report) = run.live(["done".into()], 1, SpendTracker::default()).await;
    let record = report.unwrap().trajectory;
    let told: Vec<bool> = record.model_calls().map(|call| call.from_journal).collect();
    assert_eq!(told, [true, false]);
    let (was, is) = (first.model_calls().next().unwrap(), record.model_calls().next().unwrap());
    assert_eq!(was.message.as_ref().unwrap().get(), is.message.as_ref().unwrap().get());
    assert_eq!((was.usage, was.from_journal, record.tool_calls().count()), (is.usage, false, 2));
}

/// A journal that says how many notes of the model it held at each sync.
#[derive(Default)]
struct Synced {
    inner: MemoryJournal,
    answers: AtomicU32,
    syncs: Mutex<Vec<u32>>,
}

impl Journal for Synced {
    fn append(&self, run: &str, record: &Record) -> Result<(), JournalError> {
        if matches!(record, Record::Note { kind, .. } if kind == "model") {
            self.answers.fetch_add(1, Ordering::SeqCst);
        }
        self.inner.append(run, record)
    }

    fn sync(&self) -> BoxFuture<'_, Result<(), JournalError>> {
        self.syncs.lock().unwrap().push(self.answers.load(Ordering::SeqCst));
        self.inner.sync()
    }

    fn records(&self, run: &str) -> Result<Vec<Record>, JournalError> {
        self.inner.records(run)
    }
}

/// R12: an answer is durable before the context holds it.
#[tokio::test(start_paused = true)]
async fn r12_an_answer_is_durable() {
    let journal = Arc::new(Synced::default());
    let model = Arc::new(ScriptedModel::new(["done".into()]));
    let executor = Executor::new(Toolbox::new([]).unwrap()).with_journal(journal.clone());
    let report = running(&model, executor)
        .run(&React::default(), full().as_mut(), &Task::new("run", "go"))
        .await;
    assert_eq!(report.unwrap().answer(), Some("done"));
    assert_eq!(*journal.syncs.lock().unwrap(), [1]);
}
