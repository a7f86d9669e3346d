//! Properties of every policy in the registry.

use crate::support::{prompt, record, result, todo, unit};
use foldback_baselines::{BASELINES, Baseline, Counters, VARIANTS, baseline};
use foldback_core::{
    Budget, ContextManager, Estimate, Message, SeqNo, SideCall, TodoId, TokenCounter, ToolCall,
    check_request, message_tokens,
};
use foldback_testkit::generate::{Shape, conversation};
use proptest::prelude::*;
use std::sync::Arc;

/// A counter by which short conversations exceed every trigger.
struct Heavy;

impl TokenCounter for Heavy {
    fn count(&self, text: &str) -> usize {
        Estimate.count(text) * 300
    }
}

fn all() -> impl Iterator<Item = &'static Baseline> {
    BASELINES.iter().chain(VARIANTS)
}

fn start(policy: &Baseline) -> Box<dyn ContextManager> {
    policy.start(todo(), Arc::new(Heavy))
}

/// A conversation long enough for the window to slide, with results that are worth clearing.
fn shape(odd: bool) -> Shape {
    Shape { units: 1..120, parallel: 6, odd, times: false, long: 6 }
}

/// The prompt after each message, and the calls of a summarising model.
fn run(policy: &Baseline, messages: &[Message]) -> (Vec<Vec<Arc<Message>>>, Vec<SideCall>) {
    let mut context = start(policy);
    let mut prompts = Vec::new();
    for message in messages {
        record(context.as_mut(), [message.clone()]);
        prompts.push(prompt(context.as_ref()).messages);
    }
    (prompts, context.take_side_calls())
}

#[test]
fn names_are_unique_and_found() {
    for policy in all() {
        assert!(std::ptr::eq(baseline(policy.name).unwrap(), policy), "{}", policy.name);
        assert!(!policy.title.is_empty() && policy.about.ends_with('.'));
    }
    assert!(baseline("foldback").is_none());
}

#[test]
fn a_policy_says_what_it_cannot_do() {
    for policy in all() {
        let mut context = policy.start(todo(), Arc::new(Estimate));
        record(context.as_mut(), [Message::user("Repair gate 7.")]);
        let tight = context.prompt(&Budget { tokens: Some(1) });
        assert!(!tight.unfit.is_empty(), "{}", policy.name);
        assert!(context.prompt(&Budget { tokens: Some(1_000) }).unfit.is_empty());
        context.pin(SeqNo(0)).unwrap();
        let error = context.pin(SeqNo(1)).unwrap_err().to_string();
        assert!(error.contains("no message 1"), "{error}");
        let answer = context.call(&ToolCall::new("c", "no_such_tool", "{}")).unwrap();
        assert!(answer.is_error && answer.text.contains("no_such_tool"), "{}", answer.text);
        let child = context.child(TodoId::new("child").unwrap()).unwrap();
        assert_eq!(child.todo().to_string(), "child");
        assert!(prompt(child.as_ref()).messages.is_empty());
        assert_eq!(prompt(child.as_ref()).tools, context.tools());
    }
}

/// CX10: the mode is a flag of the policy: in compress mode there is no tool to look back with.
#[test]
fn cx10_the_mode_is_part_of_the_name() {
    let tools = |name: &str| start(baseline(name).unwrap()).tools().len();
    assert_eq!((tools("stm-ltm"), tools("stm-ltm:compress")), (2, 0));
    assert!(BASELINES.iter().all(|policy| policy.name != "stm-ltm:compress"));
    assert!(baseline("stm-ltm:offload").is_none() && baseline("full:compress").is_none());
}

/// One counter decides when a policy acts, and another counts its own calls.
#[test]
fn own_calls_are_billed_by_a_counter_of_their_own() {
    struct Tenfold;
    impl TokenCounter for Tenfold {
        fn count(&self, text: &str) -> usize {
            Estimate.count(text) * 10
        }
    }
    let mut messages = vec![Message::user("Begin. 开始。")];
    messages.extend((0..200).flat_map(|i| unit(&[&format!("c{i}")])));
    for name in ["summary-top-n", "deepagents", "stm-ltm", "stm-ltm:compress"] {
        let run = |bills: Arc<dyn TokenCounter>| {
            let counters = Counters { sizes: Arc::new(Heavy), bills };
            let mut context = baseline(name).unwrap().start(todo(), counters);
            record(context.as_mut(), messages.clone());
            (prompt(context.as_ref()).messages, context.take_side_calls())
        };
        let ((shown, once), (also, tenfold)) = (run(Arc::new(Estimate)), run(Arc::new(Tenfold)));
        assert_eq!((shown, once.len()), (also, tenfold.len()), "{name}");
        assert!(!once.is_empty(), "{name}");
        for (once, tenfold) in once.iter().zip(tenfold) {
            // The frame of a message has the same size for every counter.
            assert_eq!(once.output_tokens * 10, tenfold.output_tokens, "{name}");
            assert!(once.input_tokens * 5 < tenfold.input_tokens, "{name}: {once:?} {tenfold:?}");
        }
    }
}

/// Every policy that has summaries has the same rule write them, with the same bound.
#[test]
fn one_rule_writes_every_summary() {
    let dup = "the gate 闸门 sticks. ".repeat(400);
    for name in ["summary-top-n", "deepagents", "stm-ltm"] {
        let policy = baseline(name).unwrap();
        assert!(policy.about.contains("extracted by rule"), "{name}");
        assert!(policy.about.contains("at most 2,000 tokens"), "{name}");
        let mut context = policy.start(todo(), Arc::new(Estimate));
        record(context.as_mut(), [Message::user("Repair the gates. 修理。")]);
        let mut calls = Vec::new();
        for i in 0..150 {
            let id = format!("c{i}");
            let call = ToolCall::new(&id, "look", &format!("{{\"gate\": {i}}}"));
            let result = result(&id, &format!("E{i:04}: {dup}"));
            record(context.as_mut(), [Message::calls("I look.", vec![call]), result]);
            calls.extend(context.take_side_calls());
        }
        assert!(!calls.is_empty(), "{name}");
        assert!(calls.iter().all(|call| call.output_tokens <= 2_000), "{name}: {calls:?}");
        assert!(calls.iter().any(|call| call.output_tokens > 1_700), "{name}: {calls:?}");
        let shown = prompt(context.as_ref()).messages;
        let summary = shown.iter().map(|m| m.text()).find(|t| t.contains("extracted by rule"));
        let summary = summary.unwrap();
        assert!(summary.contains("look {\"gate\":"), "{name}: calls stand in it: {summary}");
        assert!(summary.contains("-> E0"), "{name}: results stand in it: {summary}");
    }
}

#[test]
fn a_child_has_its_parents_rule_and_nothing_else() {
    for policy in all() {
        let mut parent = start(policy);
        let mut messages = vec![Message::user("Begin. 开始。")];
        let ids: Vec<String> = (0..120).map(|i| format!("c{i}")).collect();
        messages.extend(ids.iter().flat_map(|id| unit(&[id])));
        record(parent.as_mut(), messages.clone());
        let mut child = parent.child(TodoId::new("child").unwrap()).unwrap();
        record(child.as_mut(), messages);
        assert_eq!(prompt(child.as_ref()).messages, prompt(parent.as_ref()).messages);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// LV3: each request is valid wherever one may follow, and ends as the history does.
    #[test]
    fn every_request_is_valid(messages in conversation(shape(false))) {
        for policy in all() {
            let (prompts, _) = run(policy, &messages);
            for (at, shown) in prompts.iter().enumerate() {
                if check_request(&messages[..=at]).is_empty() {
                    let found = check_request(shown.iter().map(Arc::as_ref));
                    prop_assert_eq!(found, [], "{} at {}", policy.name, at);
                    let newest = shown.last().map(|newest| newest.role());
                    prop_assert_eq!(newest, Some(messages[at].role()), "{}", policy.name);
                }
            }
        }
    }

    /// Whatever is recorded, the same history gives the same bytes, and the reported tokens are those
    /// of the messages and tools.
    #[test]
    fn every_history_is_taken(messages in conversation(shape(true))) {
        for policy in all() {
            prop_assert_eq!(run(policy, &messages), run(policy, &messages), "{}", policy.name);
            let mut context = start(policy);
            for message in &messages {
                record(context.as_mut(), [message.clone()]);
                let shown = prompt(context.as_ref());
                let texts = shown.tools.iter().flat_map(|t| [&t.name, &t.description, &t.parameters]);
                let tools: usize = texts.map(|text| Heavy.count(text)).sum();
                let tokens = shown.messages.iter().map(|message| message_tokens(&Heavy, message));
                prop_assert_eq!(shown.tokens, tools + tokens.sum::<usize>(), "{}", policy.name);
            }
        }
    }

    /// LV2: what was pinned while it was in the prompt is in every later request.
    #[test]
    fn pinned_messages_stay(messages in conversation(shape(false)), every in 3..12_usize) {
        for policy in all() {
            let mut context = start(policy);
            for (at, message) in messages.iter().enumerate() {
                record(context.as_mut(), [message.clone()]);
                if at % every == 0 {
                    context.pin(SeqNo(at as u64)).unwrap();
                }
                if !check_request(&messages[..=at]).is_empty() {
                    continue;
                }
                let shown = prompt(context.as_ref()).messages;
                for pinned in messages[..=at].iter().step_by(every) {
                    prop_assert!(shown.iter().any(|m| tells(m, pinned)), "{} lost {pinned:?}", policy.name);
                }
            }
        }
    }
}

/// Returns whether a message of a prompt says everything that another said.
fn tells(shown: &Message, pinned: &Message) -> bool {
    let mut calls = pinned.tool_calls().iter();
    shown.text().ends_with(pinned.text().as_ref()) && shown.tool_calls() == pinned.tool_calls()
        || shown.text().contains(pinned.text().as_ref())
            && calls.all(|call| shown.text().contains(&call.arguments))
}
