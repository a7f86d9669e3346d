//! What holds for every policy of the registry.

use foldback_baselines::{BASELINES, baseline};
use foldback_core::{
    Budget, Estimate, Message, SeqNo, TodoId, ToolCall, ToolCallId, check_request,
};
use std::sync::Arc;

fn todo() -> TodoId {
    TodoId::new("t").unwrap()
}

/// Steps of a tool loop whose results are large enough for any policy to act.
fn steps(n: usize) -> Vec<Message> {
    let mut messages = vec![Message::system("You repair gates."), Message::user("修理闸门 7。")];
    for i in 0..n {
        let ids = [format!("a{i}"), format!("b{i}")];
        let calls = ids.iter().map(|id| ToolCall::new(id, "read", "{\"path\": \"log\"}")).collect();
        messages.push(Message::calls("I read on.", calls));
        for id in &ids {
            let text = format!("line {i} of the log. ").repeat(200);
            messages.push(Message::tool_result(&ToolCallId::new(id), &text));
        }
    }
    messages
}

#[test]
fn names_are_unique_and_found() {
    for policy in BASELINES {
        assert!(std::ptr::eq(baseline(policy.name).unwrap(), policy), "{}", policy.name);
        assert!(!policy.title.is_empty() && policy.about.ends_with('.'));
    }
    assert!(baseline("foldback").is_none());
}

#[test]
fn every_prompt_is_a_valid_request_and_the_same_again() {
    for policy in BASELINES {
        let prompts = || {
            let mut context = policy.start(todo(), Arc::new(Estimate));
            let mut prompts = Vec::new();
            for message in steps(80) {
                let seq = SeqNo(prompts.len() as u64);
                let asks = !message.tool_calls().is_empty();
                if asks {
                    let prompt = context.prompt(&Budget::default());
                    let request = prompt.messages.iter().map(Arc::as_ref);
                    assert_eq!(check_request(request), [], "{} at {seq}", policy.name);
                }
                assert_eq!(context.record(message).unwrap().seq, seq);
                prompts.push(context.prompt(&Budget::default()).messages);
            }
            prompts
        };
        assert_eq!(prompts(), prompts(), "{}", policy.name);
    }
}

#[test]
fn a_policy_says_what_it_cannot_do() {
    for policy in BASELINES {
        let mut context = policy.start(todo(), Arc::new(Estimate));
        context.record(Message::user("Repair gate 7.")).unwrap();
        let tight = context.prompt(&Budget { tokens: Some(1) });
        assert!(!tight.unfit.is_empty(), "{}", policy.name);
        assert!(context.prompt(&Budget { tokens: Some(100) }).unfit.is_empty());
        context.pin(SeqNo(0)).unwrap();
        let error = context.pin(SeqNo(1)).unwrap_err().to_string();
        assert!(error.contains("no message 1"), "{error}");
        let answer = context.call(&ToolCall::new("c", "no_such_tool", "{}")).unwrap();
        assert!(answer.is_error && answer.text.contains("no_such_tool"), "{}", answer.text);
        let child = context.child(TodoId::new("child").unwrap()).unwrap();
        assert_eq!(child.todo().to_string(), "child");
        assert!(child.prompt(&Budget::default()).messages.is_empty());
    }
}
