//! Old results are replaced by a line; new and pinned ones stay.

use crate::support::{Characters, prompt, record, result, texts, todo, unit};
use foldback_baselines::{ClearToolResults, MaskObservations};
use foldback_core::{ContextManager, Message, SeqNo, ToolCall};
use std::sync::Arc;

fn masking(keep_results: usize) -> Box<dyn ContextManager> {
    let mut context = MaskObservations { keep_results }.start(todo(), Arc::new(Characters));
    record(context.as_mut(), [Message::user("读吧。")]);
    context
}

/// The results that a prompt shows.
fn results(context: &dyn ContextManager) -> Vec<String> {
    texts(context).into_iter().filter(|text| text != "I read." && text != "读吧。").collect()
}

#[test]
fn the_defaults_are_those_of_the_originals() {
    let clear = ClearToolResults::default();
    assert_eq!((clear.trigger_tokens, clear.keep_results), (100_000, 3));
    assert_eq!(MaskObservations::default().keep_results, 10);
}

#[test]
fn all_but_the_last_results_are_one_line_each() {
    let mut context = masking(2);
    let call = vec![ToolCall::new("a", "read", "{}")];
    record(context.as_mut(), [Message::calls("I read.", call), result("a", "一\n二\n三")]);
    record(context.as_mut(), unit(&["b"]));
    assert_eq!(results(context.as_ref()), ["一\n二\n三", "r b"]);
    record(context.as_mut(), unit(&["c"]));
    assert_eq!(results(context.as_ref()), ["[old result, 3 lines left out]", "r b", "r c"]);
    record(context.as_mut(), unit(&["d"]));
    let left_out = "[old result, 1 line left out]";
    assert_eq!(results(context.as_ref())[1..], [left_out, "r c", "r d"]);
}

#[test]
fn what_the_model_has_not_seen_stays() {
    let mut context = masking(2);
    record(context.as_mut(), unit(&["a", "b", "c", "d"]));
    assert_eq!(results(context.as_ref()), ["r a", "r b", "r c", "r d"]);
    record(context.as_mut(), unit(&["e"]));
    let left_out = "[old result, 1 line left out]";
    assert_eq!(results(context.as_ref()), [left_out, left_out, left_out, "r d", "r e"]);
}

#[test]
fn a_pin_brings_a_masked_result_back() {
    let mut context = masking(1);
    for id in ["a", "b", "c"] {
        record(context.as_mut(), unit(&[id]));
    }
    let before = prompt(context.as_ref()).tokens;
    context.pin(SeqNo(2)).unwrap();
    record(context.as_mut(), unit(&["d"]));
    assert_eq!(results(context.as_ref())[0], "r a");
    assert!(prompt(context.as_ref()).tokens < before + 60);
    context.pin(SeqNo(4)).unwrap();
    assert_eq!(results(context.as_ref())[..2], ["r a", "r b"]);
    assert_eq!(prompt(context.as_ref()).pinned, 2);
}

#[test]
fn results_are_cleared_over_the_trigger_and_not_at_it() {
    let text = |id: &str| format!("结果 {id} {}", "x".repeat(200));
    let read = |id: &str| {
        let call = Message::calls("I read.", vec![ToolCall::new(id, "read", "{}")]);
        [call, result(id, &text(id))]
    };
    let start = |trigger_tokens| {
        let config = ClearToolResults { trigger_tokens, keep_results: 3 };
        let mut context = config.start(todo(), Arc::new(Characters));
        record(context.as_mut(), [Message::user("读吧。")]);
        record(context.as_mut(), ["a", "b", "c", "d", "e"].into_iter().flat_map(read));
        context
    };
    let whole = prompt(start(usize::MAX).as_ref()).tokens;
    let cleared = "[result cleared]";
    let mut at = start(whole);
    assert_eq!(results(at.as_ref()), ["a", "b", "c", "d", "e"].map(text));
    let over = start(whole - 1);
    assert_eq!(results(over.as_ref())[..2], [cleared, cleared]);
    assert_eq!(results(over.as_ref())[2..], ["c", "d", "e"].map(text));
    // The whole conversation decides, not what is left of it.
    record(at.as_mut(), ["f", "g"].into_iter().flat_map(read));
    assert!(prompt(at.as_ref()).tokens < whole);
    assert_eq!(results(at.as_ref())[..4], [cleared; 4]);
    assert_eq!(results(at.as_ref())[4..], ["e", "f", "g"].map(text));
}
