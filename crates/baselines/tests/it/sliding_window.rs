//! The window holds the last messages, and requests stay valid.

use crate::support::{Characters, prompt, record, result, texts, todo, unit};
use foldback_baselines::SlidingWindow;
use foldback_core::{Content, ContextManager, Message, Part, Role, SeqNo, ToolCall, ToolCallId};
use std::sync::Arc;

fn start(keep_messages: usize) -> Box<dyn ContextManager> {
    let mut context = SlidingWindow { keep_messages }.start(todo(), Arc::new(Characters));
    record(context.as_mut(), [Message::system("Be brief.")]);
    context
}

fn talk(turns: std::ops::Range<usize>) -> impl Iterator<Item = Message> {
    turns.flat_map(|i| [Message::user(&format!("问 {i}")), Message::assistant(&format!("a {i}"))])
}

#[test]
fn the_hundredth_message_stays_and_the_next_pushes_one_out() {
    let mut context = SlidingWindow::default().start(todo(), Arc::new(Characters));
    record(context.as_mut(), talk(0..50));
    assert_eq!(texts(context.as_ref()).len(), 100);
    record(context.as_mut(), [Message::user("问 50")]);
    let shown = texts(context.as_ref());
    // The window begins with an answer now, so the question before it is put at the front.
    assert_eq!(shown[..3], ["问 0", "a 0", "问 1"]);
    record(context.as_mut(), [Message::assistant("a 50")]);
    assert_eq!(texts(context.as_ref())[..2], ["问 1", "a 1"]);
    assert_eq!(texts(context.as_ref()).len(), 100);
}

#[test]
fn instructions_stay_and_a_unit_leaves_whole() {
    let mut context = start(4);
    record(context.as_mut(), [Message::user("读吧。")]);
    record(context.as_mut(), unit(&["a", "b", "c"]));
    // Five messages: the question leaves, and is put before the window.
    assert_eq!(texts(context.as_ref()), ["Be brief.", "读吧。", "I read.", "r a", "r b", "r c"]);
    record(context.as_mut(), unit(&["d"]));
    // The cut would fall after the call of a: its results leave with it.
    assert_eq!(texts(context.as_ref()), ["Be brief.", "读吧。", "I read.", "r d"]);
}

#[test]
fn the_newest_unit_stays_whole_however_long_it_is() {
    let mut context = start(3);
    record(context.as_mut(), [Message::user("Go.")]);
    record(context.as_mut(), unit(&["a"]));
    record(context.as_mut(), unit(&["b", "c", "d", "e"]));
    let expected = ["Be brief.", "Go.", "I read.", "r b", "r c", "r d", "r e"];
    assert_eq!(texts(context.as_ref()), expected);
}

#[test]
fn a_pinned_question_is_shown_once() {
    let mut context = start(3);
    record(context.as_mut(), [Message::user("Go.")]);
    context.pin(SeqNo(1)).unwrap();
    record(context.as_mut(), unit(&["a"]));
    record(context.as_mut(), unit(&["b"]));
    assert_eq!(texts(context.as_ref()), ["Be brief.", "Go.", "I read.", "r b"]);
    let error = context.pin(SeqNo(2)).unwrap_err().to_string();
    assert!(error.contains("message 2 is gone"), "{error}");
}

/// Results without a call are not a unit: however many come, the window keeps its bound.
#[test]
fn results_without_a_call_leave_one_by_one() {
    let mut context = start(4);
    record(context.as_mut(), [Message::user("读吧。")]);
    for i in 0..5_000 {
        record(context.as_mut(), [result("gone", &format!("r {i}"))]);
        // The instruction, the question, the window.
        assert!(prompt(context.as_ref()).messages.len() <= 6);
    }
    assert_eq!(prompt(context.as_ref()).messages.last().unwrap().text(), "r 4999");
}

/// The non-text parts of a pinned message stay with it.
#[test]
fn a_pinned_image_stays() {
    let image = Part::Other(r#"{"type":"image_url","image_url":{"url":"u"}}"#.into());
    let content = Content::Parts(vec![Part::Text("看".to_owned()), image.clone()]);
    let mut context = start(3);
    record(context.as_mut(), [Message::user("Go.")]);
    record(context.as_mut(), [Message::calls("", vec![ToolCall::new("a", "look", "{}")])]);
    let id = Some(ToolCallId::new("a"));
    record(context.as_mut(), [Message::compose(Role::Tool, content, Vec::new(), id)]);
    context.pin(SeqNo(3)).unwrap();
    record(context.as_mut(), talk(0..4));
    texts(context.as_ref());
    let shown = prompt(context.as_ref()).messages;
    let expected = Content::Parts(vec![Part::Text("[tool] 看".to_owned()), image]);
    assert_eq!((shown[1].role(), shown[1].content()), (&Role::User, &expected));
}
