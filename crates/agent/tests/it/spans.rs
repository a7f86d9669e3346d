//! The spans, as a collector sees them.

use crate::toolkit::{
    broken, call, executor, object, options, pause, plan, settings, step, text, wait,
};
use foldback_agent::{Executor, spans};
use foldback_llm::Usage;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Once};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

type Fields = BTreeMap<String, String>;

/// Collects every span, with its name and its fields, and the fields of every event.
#[derive(Clone, Default)]
struct Collector(
    Arc<Mutex<Vec<(&'static str, Fields)>>>,
    Arc<Mutex<Vec<Fields>>>,
    Arc<Mutex<Tree>>,
);

/// The parents of the spans.
#[derive(Default)]
struct Tree {
    entered: Vec<u64>,
    /// The parent of each span, in the order of their ids from 1.
    parents: Vec<Option<u64>>,
}

impl Collector {
    /// A collector that misses nothing: otherwise a place in the code that a test without a collector reaches
    /// first would be cached as having no listeners.
    fn begin() -> Self {
        static LISTENER: Once = Once::new();
        LISTENER.call_once(|| tracing::subscriber::set_global_default(Listener).unwrap());
        Self::default()
    }

    fn spans(&self) -> Vec<(&'static str, Fields)> {
        self.0.lock().unwrap().clone()
    }
}

struct Visitor<'a>(&'a mut Fields);

impl Visit for Visitor<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

impl Subscriber for Collector {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields::new();
        span.record(&mut Visitor(&mut fields));
        let mut tree = self.2.lock().unwrap();
        let parent = tree.entered.last().copied();
        tree.parents.push(parent);
        let mut spans = self.0.lock().unwrap();
        spans.push((span.metadata().name(), fields));
        Id::from_u64(spans.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let at = usize::try_from(span.into_u64()).unwrap() - 1;
        values.record(&mut Visitor(&mut self.0.lock().unwrap()[at].1));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::new();
        event.record(&mut Visitor(&mut fields));
        self.1.lock().unwrap().push(fields);
    }

    fn enter(&self, span: &Id) {
        self.2.lock().unwrap().entered.push(span.into_u64());
    }

    fn exit(&self, span: &Id) {
        let mut tree = self.2.lock().unwrap();
        let at = tree.entered.iter().rposition(|entered| *entered == span.into_u64());
        tree.entered.remove(at.unwrap());
    }
}

/// Listens to everything, and keeps nothing.
struct Listener;

impl Subscriber for Listener {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// The spans of a run with a good call and a bad one.
async fn collected(executor: Executor) -> Vec<(&'static str, Fields)> {
    let collector = Collector::begin();
    let guard = tracing::subscriber::set_default(collector.clone());
    let secret = call(1, "wait", object(&[("密码", text("hunter2"))]), &[]);
    executor.run(&plan(vec![secret, step(2, "broken", &[])]), options("run")).await.unwrap();
    drop(guard);
    collector.spans()
}

/// Each call is a span with the names of the GenAI conventions, and holds no content.
#[tokio::test(start_paused = true)]
async fn calls_are_spans_without_content() {
    let spans = collected(executor([wait(), broken()])).await;
    let names: Vec<&str> = spans.iter().map(|span| span.0).collect();
    assert_eq!(names, ["execute_tool", "execute_tool"]);
    let (good, bad) = (&spans[0].1, &spans[1].1);
    for (key, value) in [
        ("otel.name", "execute_tool wait"),
        ("otel.kind", "internal"),
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "wait"),
        ("gen_ai.tool.type", "function"),
    ] {
        assert_eq!(good.get(key).map(String::as_str), Some(value), "{key}");
    }
    assert_eq!(good["gen_ai.tool.call.id"].len(), 32);
    assert_ne!(good["gen_ai.tool.call.id"], bad["gen_ai.tool.call.id"]);
    assert_eq!(good.get("error.type"), None);
    assert_eq!(bad["error.type"], "tool");
    assert_eq!(bad["otel.status_code"], "ERROR");
    assert!(!format!("{spans:?}").contains("hunter2"));
}

/// Spans hold arguments and results if that was requested.
#[tokio::test(start_paused = true)]
async fn content_is_in_the_spans_when_asked_for() {
    let executor = executor([wait(), broken()]).with_settings(settings(|s| s.trace_content = true));
    let spans = collected(executor).await;
    let content = r#"{"密码":"hunter2"}"#;
    assert_eq!(spans[0].1["gen_ai.tool.call.arguments"], content);
    assert_eq!(spans[0].1["gen_ai.tool.call.result"], content);
    assert_eq!(spans[1].1.get("gen_ai.tool.call.result"), None);
}

/// The spans around the calls: an agent's run and a call to a model, with tokens.
#[test]
fn agents_and_models_have_spans_with_usage() {
    let collector = Collector::begin();
    tracing::subscriber::with_default(collector.clone(), || {
        let usage = Usage { input: 1_000, output: 20, cached_read: 900, cached_write: 100 };
        spans::record_usage(&spans::invoke_agent("旅行助手", "todo-1"), &usage);
        let chat = spans::chat("small-1");
        spans::record_usage(&chat, &usage);
        spans::record_error(&chat, "timeout");
    });
    let spans = collector.spans();
    assert_eq!(spans[0].1["otel.name"], "invoke_agent 旅行助手");
    assert_eq!(spans[0].1["gen_ai.conversation.id"], "todo-1");
    assert_eq!(spans[1].1["otel.name"], "chat small-1");
    assert_eq!(spans[1].1["otel.kind"], "client");
    assert_eq!(spans[1].1["error.type"], "timeout");
    for (_, fields) in spans {
        assert_eq!(fields["gen_ai.usage.input_tokens"], "1000");
        assert_eq!(fields["gen_ai.usage.output_tokens"], "20");
        assert_eq!(fields["gen_ai.usage.cache_read.input_tokens"], "900");
        assert_eq!(fields["gen_ai.usage.cache_creation.input_tokens"], "100");
    }
}

/// ET10: a run is a span around its calls of the model, with their tokens; each turn's class is logged, and so
/// is the reason why a run continues step by step.
#[tokio::test(start_paused = true)]
async fn et10_runs_are_spans_and_turns_are_logged() {
    use crate::script::{agent, model, plan_and_run, says};
    use foldback_core::ToolCall;

    let react = r#"{"mode": "react", "reason": "未知领域"}"#;
    let look = |id: &str| ToolCall::new(id, "look", "{}");
    let model =
        model([react.into(), vec![look("a"), look("b")].into(), look("c").into(), "done".into()]);
    let collector = Collector::begin();
    let guard = tracing::subscriber::set_default(collector.clone());
    let report = plan_and_run(&agent(&model, vec![says("look", 1, "晴")])).await;
    drop(guard);

    let spans = collector.spans();
    let names: Vec<&str> = spans.iter().map(|span| span.0).collect();
    let call = "execute_tool";
    assert_eq!(names, ["invoke_agent", "chat", "chat", call, call, "chat", call, "chat"]);
    let sum = report.trajectory.spent().usage.input;
    assert_eq!(spans[0].1["gen_ai.usage.input_tokens"], sum.to_string());
    assert_eq!(spans[0].1["gen_ai.conversation.id"], "task");
    assert_eq!(spans[1].1["gen_ai.request.model"], "scripted");
    let events = collector.1.lock().unwrap();
    let logged: Vec<String> = events
        .iter()
        .filter_map(|event| {
            let value = event.get("class").or_else(|| event.get("detail"))?;
            Some(format!("{}: {value}", event["message"]))
        })
        .collect();
    assert_eq!(
        logged,
        [
            "degraded to react: 未知领域",
            "turn classified: plan_once",
            "turn classified: step_observe",
        ]
    );
}

/// The calls of a run are in the span of its driver, also those that start later.
#[tokio::test(start_paused = true)]
async fn calls_stand_in_the_span_of_the_run() {
    use tracing::Instrument;
    let collector = Collector::begin();
    let guard = tracing::subscriber::set_default(collector.clone());
    let executor = executor([wait()]);
    let steps = plan(vec![pause(1, 5, &[]), pause(2, 5, &[]), pause(3, 5, &[1])]);
    let run = async { executor.run(&steps, options("run")).await.unwrap() };
    run.instrument(spans::invoke_agent("agent", "todo")).await;
    drop(guard);
    assert_eq!(collector.2.lock().unwrap().parents, [None, Some(1), Some(1), Some(1)]);
}
