//! Searches that fail, and answers that are not usable.

use super::{
    Library, agent, links, model, node, plain, queries, search, sufficient, two, user_text, usual,
};
use foldback_agent::{AgentEvent, Observer, Stop, Task};
use foldback_core::{Role, TodoId};
use foldback_llm::{Answer, ModelError, ModelErrorKind};
use foldback_tool::ToolError;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

/// Returns the notes.
#[derive(Default)]
struct Noted(Mutex<Vec<String>>);

impl Observer for Noted {
    fn observe(&self, _todo: &TodoId, event: &AgentEvent) {
        if let AgentEvent::Noted { text } = event {
            self.0.lock().unwrap().push(text.clone());
        }
    }
}

/// DS4: an answer of another shape is repaired once; the model learns what is wrong. A second such answer
/// ends the run, with an error that says what was expected, if it was to give the queries; if it was to be
/// the reflection, the answer is written from the results so far.
#[tokio::test(start_paused = true)]
async fn ds4_one_repair() {
    let broken = |at: &'static str, times: usize| {
        model(move |request| {
            let node = node(request);
            if node == at || (times > 1 && node == format!("{at}-repair")) {
                return "潮汐".into();
            }
            if node == format!("{at}-repair") {
                let told = request.messages.last().unwrap().text();
                assert!(told.contains("expected one JSON object like {"), "{told}");
                assert_eq!(*request.messages[2].role(), Role::Assistant);
                return match at {
                    "queries/queries" => queries(&["潮差"]).as_str().into(),
                    _ => sufficient().as_str().into(),
                };
            }
            usual(request)
        })
    };
    for at in ["queries/queries", "reflection/round-1"] {
        let report = search(&agent(&broken(at, 1), &Library::new(two), plain())).await;
        assert_eq!(report.report.trajectory.outcome.stop, Stop::Answered, "{at}");
    }
    let report = search(&agent(&broken("queries/queries", 2), &Library::new(two), plain())).await;
    let Stop::ModelFailed { message } = &report.report.trajectory.outcome.stop else {
        panic!("{:?}", report.report.trajectory.outcome)
    };
    assert!(message.starts_with("the answer is not a SearchQueryList:"), "{message}");
    assert_eq!(report.report.answer(), None);

    let noted = Arc::new(Noted::default());
    let task = Task::new("run", "潮差多少?").with_observer(noted.clone());
    let agent = agent(&broken("reflection/round-1", 2), &Library::new(two), plain());
    let report = agent.run_in_full(&task).await;
    assert_eq!(report.report.trajectory.outcome.stop, Stop::Answered);
    assert_eq!(report.sources.len(), 4);
    let noted = noted.0.lock().unwrap();
    assert!(noted[0].contains("the reflection could not be read: the answer is not a Reflection:"));
}

/// DS5: the queries of a round are searched and summarised in parallel, a limited number at once.
#[tokio::test(start_paused = true)]
async fn ds5_a_round_is_parallel() {
    for (width, took, at_once) in [(8, 300, 4), (2, 600, 2), (1, 1200, 1)] {
        let model = model(|request| match node(request) {
            "queries/queries" => queries(&["a", "b", "c", "d"]).as_str().into(),
            "reflection/round-1" => sufficient().as_str().into(),
            "answer/answer" => "done".into(),
            // The first takes longest, and the results are still in the order of the queries.
            "research/query-1" => Answer::text("1 [citation:1]").after(Duration::from_millis(200)),
            node => Answer::text(node).after(Duration::from_millis(200)),
        });
        let library = Library::new(two);
        let settings = plain().with_max_parallel(width).with_number_of_initial_queries(4);
        let began = Instant::now();
        let report = search(&agent(&model, &library, settings)).await;
        assert_eq!(began.elapsed().as_millis(), took, "width {width}");
        assert_eq!(library.going.lock().unwrap().1, at_once);
        let order: Vec<u32> =
            report.state.web_research_result.iter().map(|result| result.query.id).collect();
        assert_eq!(order, [1, 2, 3, 4]);
    }
}

/// DS5: a search or a summary that fails does not lose the round, and is reported as such.
#[tokio::test(start_paused = true)]
async fn ds5_failures_stay_single() {
    let library = Library::new(|query| match query {
        "broken" => Err(ToolError::permanent("断网: the network is down")),
        "empty" => Ok(Vec::new()),
        query => two(query),
    });
    let model = model(|request| match node(request) {
        "queries/queries" => queries(&["broken", "empty", "mute", "潮差"]).as_str().into(),
        "reflection/round-1" => sufficient().as_str().into(),
        "research/query-3" => ModelError::new(ModelErrorKind::Request, "not that").into(),
        "research/query-4" => "潮差三米。[citation:2]".into(),
        "answer/answer" => format!("三米 {}", links(request).join(" ")).as_str().into(),
        node => panic!("{node}"),
    });
    let settings = plain().with_number_of_initial_queries(4);
    let report = search(&agent(&model, &library, settings)).await;
    assert_eq!(report.text.as_deref(), Some("三米 [潮汐表](docs/潮差.md#bytes=0-8)"));
    let outcomes: Vec<Result<&str, &str>> = report
        .state
        .web_research_result
        .iter()
        .map(|result| result.outcome.as_ref().map(|s| s.text.as_str()).map_err(String::as_str))
        .collect();
    assert_eq!(
        outcomes,
        [
            Err("断网: the network is down"),
            Ok(r#"Nothing was found for "empty"."#),
            Err("not that"),
            Ok("潮差三米。"),
        ]
    );
    let requests = model.requests();
    let reflected = requests.iter().find(|r| node(r) == "reflection/round-1").unwrap();
    let told = user_text(reflected);
    assert!(
        told.contains(r#"The search for "broken" failed: "断网: the network is down""#),
        "{told}"
    );
}
