//! The part of a conversation that a window keeps, and the part of a result that a model is shown.

use crate::script::{agent, full, model, says, task, walk_by};
use foldback_agent::{React, ReactSettings};
use foldback_baselines::{SlidingWindow, baseline};
use foldback_core::{
    Budget, ContextManager, Estimate, Message, Role, TodoId, ToolCall, check_request,
};
use proptest::prelude::*;
use std::sync::Arc;

/// The content of a turn: words, or a number of calls of one message with their results.
#[derive(Clone, Debug)]
enum Turn {
    Asked,
    Said,
    Called(usize),
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let turn = prop_oneof![
        1 => Just(Turn::Asked),
        2 => Just(Turn::Said),
        5 => (1usize..9).prop_map(Turn::Called),
    ];
    proptest::collection::vec(turn, 1..60)
}

/// The messages of turns, after a request.
fn messages(turns: &[Turn]) -> Vec<Message> {
    let mut messages = vec![Message::user("杭州两日游")];
    for (at, turn) in turns.iter().enumerate() {
        match turn {
            Turn::Asked => messages.push(Message::user(&format!("问 {at}"))),
            Turn::Said => messages.push(Message::assistant(&format!("答 {at}"))),
            Turn::Called(many) => {
                let call = |n| ToolCall::new(&format!("c{at}-{n}"), "look", "{}");
                let calls: Vec<ToolCall> = (0..*many).map(call).collect();
                let ids: Vec<_> = calls.iter().map(|call| call.id.clone()).collect();
                messages.push(Message::calls("", calls));
                messages.extend(ids.iter().map(|id| Message::tool_result(id, "晴")));
            }
        }
    }
    messages
}

fn valid(context: &dyn ContextManager) -> Vec<Arc<Message>> {
    let shown = context.prompt(&Budget::default()).messages;
    assert_eq!(check_request(shown.iter().map(AsRef::as_ref)), []);
    shown
}

proptest! {
    /// OM14: whatever was said, no request of a window separates a call from its results, however small the window
    /// is; and it keeps no more than it may, except for one message of many calls that is larger than the window,
    /// and the question that a request has to begin with.
    #[test]
    fn om14_no_window_parts_a_call_from_its_results(turns in turns(), keep in 1usize..20) {
        let todo = TodoId::new("task").unwrap();
        let mut context = SlidingWindow { keep_messages: keep }.start(todo, Arc::new(Estimate));
        let recorded = messages(&turns);
        let mut waiting = 0;
        for message in &recorded {
            context.record(message.clone()).unwrap();
            waiting = match message.role() {
                Role::Tool => waiting - 1,
                _ => message.tool_calls().len(),
            };
            if waiting == 0 {
                let shown = valid(context.as_ref());
                prop_assert!(shown.len() <= keep.max(9) + 1, "{} of {keep}", shown.len());
                let last = shown.last().map(|message| message.text().into_owned());
                prop_assert_eq!(last, Some(message.text().into_owned()));
            }
        }
    }
}

/// OM14: the window has 100 messages: of more, the last 100 are kept; and never fewer than a call and its
/// result need.
#[test]
fn om14_the_window_is_one_of_a_hundred_messages() {
    let todo = TodoId::new("task").unwrap();
    let mut context = baseline("sliding-window").unwrap().start(todo, Arc::new(Estimate));
    let mut shown = Vec::new();
    for message in messages(&vec![Turn::Called(1); 80]) {
        let is_whole = message.tool_calls().is_empty();
        context.record(message).unwrap();
        if is_whole {
            shown.push(valid(context.as_ref()).len());
        }
    }
    assert_eq!(shown[..50], (0..50).map(|n| 2 * n + 1).collect::<Vec<_>>()[..], "all of it");
    // Fifty calls with their results, and the question before them.
    assert_eq!(shown[50..], [101; 31]);
}

/// OM14: an observation of 10,000 characters is shown whole; a longer one as 10,000 and a mark that says where
/// all of it is.
#[tokio::test(start_paused = true)]
async fn om14_an_observation_has_ten_thousand_characters() {
    let usual = ReactSettings::default().with_max_observe(ReactSettings::MAX_OBSERVE);
    for (characters, is_whole) in [(10_000, true), (10_001, false)] {
        let text = "潮".repeat(characters);
        let model = model([ToolCall::new("c", "read", "{}").into(), "done".into()]);
        let agent = agent(&model, vec![says("read", 1, &text)]);
        let shown = walk_by(&agent, usual.clone()).await.1[2].text().into_owned();
        assert_eq!(shown == text, is_whole, "{characters}");
        assert_eq!(shown.matches('潮').count(), 10_000, "{characters}");
        let mark = "[… 1 of 10001 characters left out; all of it: observation_read";
        assert_eq!(shown.contains(mark), !is_whole, "{characters}");
        // Without a limit nothing is cut.
        let model = crate::script::model([ToolCall::new("c", "read", "{}").into(), "done".into()]);
        let agent = crate::script::agent(&model, vec![says("read", 1, &text)]);
        let mut context = full();
        agent.run(&React::default(), context.as_mut(), &task("go")).await.unwrap();
        assert_eq!(valid(context.as_ref())[2].text(), text);
    }
}
