//! The limits of a deep search: efforts, models, the spend tracker, cancellation.

use super::{
    Library, Searcher, agent, insufficient, model, node, plain, queries, search, two, user_text,
    usual,
};
use crate::script::{full, running};
use foldback_agent::{Executor, Resource, SpendLimits, SpendTracker, Stop, Task};
use foldback_deep_search::{DeepSearch, Effort};
use foldback_llm::{ModelError, ModelErrorKind, ScriptedModel};
use foldback_tool::Toolbox;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// DS3: efforts limit queries and rounds, whatever the model asks for.
#[tokio::test(start_paused = true)]
async fn ds3_efforts_bound_the_search() {
    for (effort, rounds, searches) in
        [(Effort::Low, 1, 1), (Effort::Medium, 3, 3 + 2 * 5), (Effort::High, 10, 5 + 9 * 5)]
    {
        let model = model(|request| match node(request) {
            "queries/queries" => {
                let many: Vec<String> = (0..20).map(|n| format!("first {n}")).collect();
                let many: Vec<&str> = many.iter().map(String::as_str).collect();
                queries(&many).as_str().into()
            }
            node if node.starts_with("reflection/") => {
                let many: Vec<String> = (0..20).map(|n| format!("{node} {n}")).collect();
                let many: Vec<&str> = many.iter().map(String::as_str).collect();
                insufficient(&many).as_str().into()
            }
            "answer/answer" => "as far as is known".into(),
            _ => "nothing [citation:1]".into(),
        });
        let library = Library::new(two);
        let report = search(&agent(&model, &library, plain().with_effort(effort))).await;
        assert_eq!(report.state.research_loop_count, rounds, "{effort:?}");
        assert_eq!(library.asked().len(), searches, "{effort:?}");
        assert_eq!(report.report.answer(), Some("as far as is known"));
        // The request for the answer says what is still open.
        let asked = model.requests().pop().unwrap();
        assert!(user_text(&asked).ends_with(r#"What could not be found: "缺潮时""#));
    }
}

/// DS3: three models, each for its own nodes, at the right temperature.
#[tokio::test(start_paused = true)]
async fn ds3_three_models() {
    let of = |name: &str| Arc::new(ScriptedModel::answering(usual).named(name));
    let (own, asking, judging, writing) = (model(usual), of("q"), of("r"), of("a"));
    let library = Library::new(two);
    let deep = DeepSearch::new(library)
        .with_settings(plain())
        .with_query_model(asking.clone())
        .with_reflection_model(judging.clone())
        .with_answer_model(writing.clone());
    let agent = running(&own, Executor::new(Toolbox::default()));
    let report = search(&Searcher { agent, deep }).await;
    assert_eq!((own.calls(), asking.calls(), judging.calls(), writing.calls()), (0, 4, 2, 1));
    assert_eq!(report.state.reasoning_model, "r");
    let drawn = |model: &ScriptedModel| -> Vec<Option<f64>> {
        model.requests().iter().map(|request| request.sampling.temperature).collect()
    };
    assert_eq!(drawn(&asking), [Some(1.0), Some(0.0), Some(0.0), Some(0.0)]);
    assert_eq!((drawn(&judging)[0], drawn(&writing)[0]), (Some(1.0), Some(0.0)));
}

/// DS3: a request that fails for a passing reason is retried twice.
#[tokio::test(start_paused = true)]
async fn ds3_two_retries() {
    for (failures, answers) in [(2, true), (3, false)] {
        let left = Mutex::new(failures);
        let model = model(move |request| {
            let mut left = left.lock().unwrap();
            if node(request) == "queries/queries" && *left > 0 {
                *left -= 1;
                return ModelError::new(ModelErrorKind::Unavailable, "busy").into();
            }
            usual(request)
        });
        let report = search(&agent(&model, &Library::new(two), plain())).await;
        assert_eq!(report.report.answer().is_some(), answers, "{failures}");
        if !answers {
            assert_eq!(model.calls(), 3);
            let stop = Stop::ModelFailed { message: "busy".to_owned() };
            assert_eq!(report.report.trajectory.outcome.stop, stop);
        }
    }
}

/// Spend limits apply to a search; a run that is cancelled ends.
#[tokio::test(start_paused = true)]
async fn ds3_spend_limits_and_cancellation() {
    let task = || Task::new("run", "潮差多少?");
    for most in 0..8 {
        let model = model(usual);
        let limits = SpendLimits::default().with_model_calls(most);
        let task = task().with_spend(SpendTracker::new(limits, None).unwrap());
        let agent = agent(&model, &Library::new(two), plain());
        let report = agent.run(full().as_mut(), &task).await;
        assert_eq!(model.calls() as u64, most.min(7));
        let resource = Resource::ModelCalls;
        let stop = if most < 7 { Stop::Exhausted { resource } } else { Stop::Answered };
        assert_eq!(report.trajectory.outcome.stop, stop, "{most}");
    }
    let model = model(|request| usual(request).after(Duration::from_secs(10)));
    let agent = agent(&model, &Library::new(two), plain());
    for seconds in [5, 15, 25, 45] {
        let task = task();
        let cancelled = task.cancelled.clone();
        let watch = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            cancelled.cancel();
        });
        let report = agent.run(full().as_mut(), &task).await;
        assert_eq!(report.trajectory.outcome.stop, Stop::Cancelled, "{seconds}");
        watch.await.unwrap();
    }
}
