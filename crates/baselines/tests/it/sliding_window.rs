//! The window holds the last messages, and requests stay valid.

use crate::support::{Characters, record, texts, todo, unit};
use foldback_baselines::SlidingWindow;
use foldback_core::{ContextManager, Message, SeqNo};
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
    // The window begins with an answer now, so the question before it stands in front.
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
    // Five messages: the question leaves, and stands in front of the window.
    assert_eq!(texts(context.as_ref()), ["Be brief.", "读吧。", "I read.", "r a", "r b", "r c"]);
    record(context.as_mut(), unit(&["d"]));
    // The cut would fall behind the call of a: its results leave with it.
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
