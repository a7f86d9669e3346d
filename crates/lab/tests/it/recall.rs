//! Facts that were stated long ago, and a model that is asked for them.

use foldback_agent::ContextWindow;
use foldback_lab::recall::{Config, Figures, Recalled, measure};
use foldback_llm::{Answer, ChatRequest, ScriptedModel, StopReason};
use foldback_policies::Policy;
use std::sync::Arc;

/// A model that reads out its whole request, and searches for nothing.
fn reader(request: &ChatRequest) -> Answer {
    let said: Vec<_> = request.messages.iter().map(|message| message.text().into_owned()).collect();
    Answer::text(&said.join("\n"))
}

fn measured(policies: &[&str], needles: u32, tokens: u64) -> Recalled {
    let policies = policies.iter().map(|name| Policy::named(name).unwrap()).collect();
    let model = Arc::new(ScriptedModel::answering(reader).named("reader"));
    let window = ContextWindow::default();
    let config = Config { model, window, policies, needles, tokens: tokens..=tokens, seed: 7 };
    let mut asked = 0;
    let found = measure(&config, || asked += 1).unwrap();
    assert_eq!(asked, config.questions());
    found
}

fn row<'a>(found: &'a Recalled, context: &str) -> &'a Figures {
    found.contexts.iter().find(|row| row.context == context).unwrap()
}

/// Hints supply what a model that never asks would not know: each fact is in the prompt, in English and
/// in Chinese.
#[test]
fn hints_show_what_was_said_long_ago() {
    let found = measured(&["full", "foldback", "summary-top-n"], 20, 2_000);
    let names: Vec<_> = found.contexts.iter().map(|row| row.context.as_str()).collect();
    assert_eq!(names, ["full", "foldback", "foldback, no hints", "summary-top-n"]);
    let full = row(&found, "full");
    assert_eq!((full.right, full.right_english, full.right_chinese, full.calls), (20, 10, 10, 20));
    let shown = row(&found, "foldback");
    assert!(shown.right_english >= 9 && shown.right_chinese >= 8, "{shown:?}");
    assert!(row(&found, "foldback, no hints").right <= 2, "{found:?}");
    assert_eq!((found.model.as_str(), found.needles), ("reader", 20));
    let html = found.page().unwrap().html();
    assert!(
        html.contains("runs that are right") && html.contains("tokens of all requests"),
        "{html}"
    );
}

/// A model that names the value and continues until it is cut off knew it.
#[test]
fn an_answer_that_was_cut_off_counts() {
    let model = ScriptedModel::answering(|request| reader(request).stopped(StopReason::Length));
    let policies = vec![Policy::named("full").unwrap()];
    let (model, window) = (Arc::new(model), ContextWindow::default());
    let config = Config { model, window, policies, needles: 2, tokens: 100..=200, seed: 1 };
    let found = measure(&config, || {}).unwrap();
    let full = row(&found, "full");
    assert_eq!((full.right, full.unanswered), (2, 0), "{full:?}");
}

/// A model that fails gives no right answer, and each reason is counted.
#[test]
fn a_run_without_an_answer_is_counted() {
    let model = Arc::new(ScriptedModel::new([]));
    let policies = vec![Policy::named("full").unwrap()];
    let window = ContextWindow::default();
    let config = Config { model, window, policies, needles: 2, tokens: 100..=200, seed: 1 };
    let found = measure(&config, || {}).unwrap();
    let full = row(&found, "full");
    assert_eq!((full.right, full.unanswered), (0, 2), "{full:?}");
    assert_eq!(full.reasons.values().sum::<u32>(), 2, "{full:?}");
    assert_eq!(found.sheet().rows.len(), 1);
    assert!(found.page().unwrap().html().contains("Facts from long ago"));
}
