//! Invariants of every planned run, whatever fails and whatever the planner writes.

use crate::script::{agent, asked, conversation, fails, full, running, says, task};
use crate::toolkit::{spec, tool};
use foldback_agent::{Executor, MemoryJournal, OnePlan, OnePlanSettings, Purpose, Report, Stop};
use foldback_llm::{Answer, ScriptedModel};
use foldback_planner::{StepId, StepResult};
use foldback_tool::{Effect, FunctionTool, Tool, ToolOutput, Toolbox};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const TOOLS: [&str; 6] = ["quick", "slow", "down", "late", "refuse", "anchor_function"];

/// A step: its tool, and how far back the steps are that it waits for.
type Drawn = (usize, Vec<u32>);

fn steps() -> impl Strategy<Value = Vec<Drawn>> {
    let after = prop::collection::vec(1_u32..5, 0..3);
    prop::collection::vec((0..TOOLS.len(), after), 0..8)
}

/// The planner's answers, one after the other: plans that are sound, and texts that are not plans.
fn answers() -> impl Strategy<Value = Vec<Option<Vec<Drawn>>>> {
    prop::collection::vec(prop::option::weighted(0.85, steps()), 1..6)
}

/// Writes a generated plan as text, with its steps numbered from `first`.
fn written(steps: &[Drawn], first: u32) -> String {
    let steps = steps.iter().zip(first..).map(|((tool, back), id)| {
        let mut after: Vec<u32> =
            back.iter().filter_map(|back| id.checked_sub(*back)).filter(|on| *on >= 1).collect();
        after.sort_unstable();
        after.dedup();
        let tool = TOOLS[*tool];
        // The number makes each call distinct.
        format!(r#""step{id}": {{"function": "{tool}", "args": {{"task": "第{id}步"}}, "dependence": {after:?}}}"#)
    });
    format!(r#"{{"action_plan": {{{}}}}}"#, steps.collect::<Vec<_>>().join(", "))
}

/// Returns the number that new steps begin with, as the planner sees it.
fn first_number(asked: &str) -> u32 {
    let told = asked.rsplit_once("Number new steps from ").map(|(_, rest)| rest);
    told.and_then(|rest| rest.split('.').next()?.parse().ok()).unwrap_or(1)
}

fn tools() -> Vec<Arc<dyn Tool>> {
    let late = FunctionTool::new(spec("late", Effect::ReadOnly), |_, _| std::future::pending());
    vec![
        says("quick", 10, "晴"),
        says("slow", 70, "雨"),
        fails("down", 20),
        Arc::new(late.with_timeout(Duration::from_millis(50))),
        says("refuse", 5, r#"{"status":"fail"}"#),
    ]
}

/// Goes through a run, and checks the invariants.
async fn check(answers: Vec<Option<Vec<Drawn>>>, max_replans: u32, stream: bool) -> Report {
    let model = planning(answers);
    let settings = OnePlanSettings::default().with_max_replans(max_replans).with_stream(stream);
    let agent = agent(&model, tools());
    let mut context = full();
    let (task, one_plan) = (task("go"), OnePlan::new(settings));
    let run = agent.run(&one_plan, context.as_mut(), &task);
    // By the paused clock: nothing here takes an hour, so a run that does so hangs.
    let report = tokio::time::timeout(Duration::from_secs(3600), run).await.unwrap().unwrap();

    let record = &report.trajectory;
    assert_eq!(record.outcome.stop, Stop::Answered);
    let calls = |purpose| record.tokens.get(&purpose).map_or(0, |spent| spent.calls);
    assert_eq!(calls(Purpose::PLANNER), 1);
    assert!(calls(Purpose::REPLAN) <= u64::from(max_replans));
    assert!(calls(Purpose::REPAIR) <= 1 + calls(Purpose::REPLAN));
    assert_eq!(calls(Purpose::ANSWER) + calls(Purpose::REACT), 1, "one of them answers");

    // Each step of each accepted plan has exactly one result, and was called at most once.
    let taken = record.plan.iter().filter(|plan| plan.findings.is_empty());
    let planned: Vec<StepId> = taken.flat_map(|plan| plan.steps.iter().map(|s| s.id)).collect();
    let results: BTreeMap<StepId, &StepResult> =
        record.results.iter().map(|result| (result.step, &result.result)).collect();
    assert_eq!(results.len(), record.results.len());
    for step in &planned {
        assert!(results.contains_key(step), "{step} has no result");
    }
    let mut called: Vec<StepId> = record.tool_calls().map(|call| call.step).collect();
    called.sort_unstable();
    let count = called.len();
    called.dedup();
    assert_eq!(called.len(), count, "no step is called twice");
    for step in &called {
        assert!(!matches!(results[step], StepResult::Skipped { .. }), "{step} ran");
    }
    assert_eq!(record.timing.calls.len(), record.calls.len());
    conversation(context.as_ref());
    report
}

/// A model that gives the generated plans, then plans nothing more, and answers.
fn planning(answers: Vec<Option<Vec<Drawn>>>) -> Arc<ScriptedModel> {
    let plans = std::sync::Mutex::new(answers.into_iter());
    Arc::new(ScriptedModel::answering(move |request| {
        if !request.messages[0].text().contains("action_plan") {
            return Answer::text("答案 :)").after(Duration::from_millis(30));
        }
        let plan = plans.lock().unwrap().next().unwrap_or_default();
        let text = match plan {
            Some(steps) => written(&steps, first_number(&asked(request))),
            None => "no plan at all".to_owned(),
        };
        Answer::text(&text).after(Duration::from_millis(40)).paced(7, Duration::from_millis(1))
    }))
}

/// Kills a run after each of several times, and lets it end; each process has another model.
async fn check_killed(lives: Vec<(Vec<Option<Vec<Drawn>>>, u64)>, stream: bool) {
    let keys = Arc::new(std::sync::Mutex::new(Vec::new()));
    let act = |name: &str, ms: u64| -> Arc<dyn Tool> {
        let keys = Arc::clone(&keys);
        tool(spec(name, Effect::Effectful), move |_, context| {
            keys.lock().unwrap().push(context.idempotency_key);
            async move {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                Ok(ToolOutput::text("晴"))
            }
        })
    };
    let mut all = tools();
    all[0] = act("quick", 10);
    all[1] = act("slow", 70);
    let journal = Arc::new(MemoryJournal::default());
    let last = lives.len() - 1;
    for (life, (answers, killed_after)) in lives.into_iter().enumerate() {
        let executor = Executor::new(Toolbox::new(all.clone()).unwrap());
        let agent = running(&planning(answers), executor.with_journal(journal.clone()));
        let one_plan = OnePlan::new(OnePlanSettings::default().with_stream(stream));
        let (mut context, task) = (full(), task("go"));
        let run = agent.run(&one_plan, context.as_mut(), &task);
        let time = Duration::from_millis(if life == last { 3_600_000 } else { killed_after });
        match tokio::time::timeout(time, run).await {
            Ok(report) => assert_eq!(report.unwrap().trajectory.outcome.stop, Stop::Answered),
            Err(_) => assert!(life < last, "it hangs"),
        }
    }
    let mut keys = keys.lock().unwrap().clone();
    let count = keys.len();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), count, "no effect was had twice");
}

fn on_a_paused_clock<T>(run: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build().unwrap().block_on(run)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// OP9-OP14, OP16, OP20: a run ends with an answer, each step has one result and at most one call, the
    /// planner is asked no more often than it may be, and the conversation is valid.
    #[test]
    fn op14_every_run_ends_in_an_answer(answers in answers(), most in 0_u32..4, stream in any::<bool>()) {
        on_a_paused_clock(check(answers, most, stream));
    }

    /// R12: whenever a planned run is killed, it resumes to an answer, and no effect happens twice, whatever
    /// another model says.
    #[test]
    fn r12_killed_runs_go_on(
        lives in prop::collection::vec((answers(), 0_u64..400), 2..5),
        stream in any::<bool>(),
    ) {
        on_a_paused_clock(check_killed(lives, stream));
    }

    /// OP11: a plan of steps that succeed is one call of the planner and one answer, streamed or not.
    #[test]
    fn op11_a_clean_plan_is_never_replanned(mut steps in steps(), stream in any::<bool>()) {
        steps.iter_mut().for_each(|step| step.0 %= 2);
        let report = on_a_paused_clock(check(vec![Some(steps)], 3, stream));
        prop_assert_eq!(report.trajectory.spent().calls, 2);
    }
}
