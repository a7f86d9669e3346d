//! What leaves goes to files that can be searched, and a summary names them.

use crate::support::{Characters, prompt, record, result, texts, todo, unit};
use foldback_baselines::{DeepAgents, Span};
use foldback_core::{
    Content, ContextManager, Message, Part, Role, SeqNo, ToolAnswer, ToolCall, ToolCallId,
};
use foldback_o200k::O200k;
use std::sync::Arc;

const HISTORY: &str = "/conversation_history/session.md";

fn start(config: DeepAgents) -> Box<dyn ContextManager> {
    config.start(todo(), Arc::new(Characters))
}

/// The tokens of the two tools in each request.
fn tool_tokens() -> usize {
    prompt(start(DeepAgents::default()).as_ref()).tokens
}

/// Summaries of at most 200 tokens, due from `trigger` tokens of messages on.
fn small(trigger: usize) -> DeepAgents {
    let trigger_tokens = trigger.saturating_add(tool_tokens());
    DeepAgents { trigger_tokens, summary_tokens: 200, ..DeepAgents::default() }
}

fn talk(turns: std::ops::Range<usize>) -> impl Iterator<Item = Message> {
    turns.flat_map(|i| {
        [Message::user(&format!("Gate {i}? 闸门 {i}？")), Message::assistant(&format!("Shut {i}."))]
    })
}

fn call(context: &mut dyn ContextManager, name: &str, arguments: &str) -> ToolAnswer {
    context.call(&ToolCall::new("c", name, arguments)).unwrap()
}

/// The arguments of the first call of a message in the prompt.
fn arguments_of(context: &dyn ContextManager, at: usize) -> String {
    prompt(context).messages[at].tool_calls()[0].arguments.clone()
}

#[test]
fn the_defaults_are_those_of_the_original() {
    let config = DeepAgents::default();
    assert_eq!((config.trigger_tokens, config.keep), (170_000, Span::Messages(6)));
    let window = DeepAgents::with_window(128_000);
    assert_eq!((window.trigger_tokens, window.keep), (108_800, Span::Tokens(12_800)));
    let odd = DeepAgents::with_window(8_191);
    assert_eq!((odd.trigger_tokens, odd.keep), (6_962, Span::Tokens(819)), "85 % and 10 %");
}

/// The documentation states the tokens of the tools.
#[test]
fn the_two_tools_take_129_tokens() {
    let context = DeepAgents::default().start(todo(), Arc::new(O200k));
    assert_eq!(prompt(context.as_ref()).tokens, 129);
}

#[test]
fn at_the_trigger_all_but_the_last_six_give_way_to_a_summary() {
    let run = |trigger| {
        let mut context = start(small(trigger));
        record(context.as_mut(), [Message::system("Be brief.")]);
        record(context.as_mut(), talk(0..20));
        record(context.as_mut(), [Message::user("And now?")]);
        context
    };
    let whole = prompt(run(usize::MAX).as_ref()).tokens - tool_tokens();
    let mut under = run(whole);
    assert_eq!(texts(under.as_ref()).len(), 8, "at the trigger it is due");
    assert_eq!(texts(run(whole + 1).as_ref()).len(), 42);
    let shown = texts(under.as_ref());
    assert_eq!(shown[0], "Be brief.");
    assert!(shown[1].contains(HISTORY) && shown[1].contains("extracted by rule"), "{}", shown[1]);
    assert_eq!(shown[2..4], ["Shut 17.", "Gate 18? 闸门 18？"]);
    let calls = under.take_side_calls();
    assert_eq!(calls.len(), 1);
    let (summary, kept) = (shown[1].chars().count(), &shown[2..]);
    let kept: usize = kept.iter().map(|text| text.chars().count() + 4).sum();
    assert_eq!(calls[0].input_tokens, whole - kept - "Be brief.".len() - 4);
    assert!((1..=200).contains(&calls[0].output_tokens) && calls[0].output_tokens < summary);
    assert_eq!(under.take_side_calls(), []);
}

#[test]
fn a_unit_at_the_cut_stays_whole() {
    let mut context = start(small(250));
    record(context.as_mut(), talk(0..10));
    record(context.as_mut(), [Message::user("Read. 读。")]);
    assert!(texts(context.as_ref())[0].contains(HISTORY));
    record(context.as_mut(), unit(&["a", "b", "c", "d", "e", "f", "g"]));
    let shown = texts(context.as_ref());
    assert_eq!(shown[1], "I read.", "the six last are results, their call stays with them");
    assert_eq!(shown.len(), 9);
}

#[test]
fn a_window_keeps_a_tenth_of_its_tokens() {
    let mut context = start(DeepAgents { summary_tokens: 300, ..DeepAgents::with_window(2_000) });
    let mut sizes = Vec::new();
    for i in 0..200 {
        record(context.as_mut(), [Message::user(&format!("{i:046}"))]);
        sizes.push(prompt(context.as_ref()).messages.len());
        record(context.as_mut(), [Message::assistant("Noted.")]);
    }
    // 50 tokens per question, 10 per answer: three pairs are the last 200, and a summary.
    let at = sizes.windows(2).position(|pair| pair[1] < pair[0]).unwrap() + 1;
    assert_eq!(sizes[at], 1 + 6);
    // The trigger is 1,700 tokens, including the tools.
    assert_eq!(at, (1_700 - 50 - tool_tokens()).div_ceil(60));
}

#[test]
fn all_that_left_can_be_found_word_for_word() {
    let mut context = start(small(900));
    let messages: Vec<Message> = talk(0..60).collect();
    record(context.as_mut(), messages.clone());
    assert!(context.take_side_calls().len() > 2, "the history grew in sections");
    let shown = texts(context.as_ref());
    for message in &messages {
        let text = message.text();
        let pattern = serde_json::json!({ "pattern": text, "path": "/conversation_history" });
        let answer = call(context.as_mut(), "grep", &pattern.to_string());
        let found = answer.text.contains(&format!(">{text}</message>"));
        assert!(
            found != shown.contains(&text.to_string()),
            "{text} is in one place: {}",
            answer.text
        );
    }
    let summaries = call(context.as_mut(), "grep", r#"{"pattern": "extracted by rule"}"#);
    assert_eq!(summaries.text, "No line matches.", "a summary is not filed");
}

#[test]
fn grep_and_read_file_answer_in_lines() {
    let mut context = start(small(250));
    let none = call(context.as_mut(), "read_file", r#"{"file_path": "/x"}"#);
    assert!(none.is_error && none.text.contains("Files: none yet"), "{}", none.text);
    record(context.as_mut(), talk(0..10));
    record(context.as_mut(), [Message::user("Now.")]);
    let found = call(context.as_mut(), "grep", r#"{"pattern": "闸门 [12]？", "regex": true}"#);
    let expected = format!(
        "{HISTORY}:\n5: <message type=\"user\">Gate 1? 闸门 1？</message>\n\
         7: <message type=\"user\">Gate 2? 闸门 2？</message>"
    );
    assert_eq!(found.text, expected);
    let literal = call(context.as_mut(), "grep", r#"{"pattern": "闸门 [12]？"}"#);
    assert_eq!((literal.text.as_str(), literal.is_error), ("No line matches.", false));
    let read = format!(r#"{{"file_path": "{HISTORY}", "offset": 2, "limit": 2}}"#);
    let read = call(context.as_mut(), "read_file", &read);
    let lines: Vec<&str> = read.text.lines().collect();
    assert!(
        lines[0].starts_with("lines 3-4 of ") && lines[0].ends_with("next offset 4"),
        "{lines:?}"
    );
    assert_eq!(
        lines[1..],
        [
            "<message type=\"user\">Gate 0? 闸门 0？</message>",
            "<message type=\"assistant\">Shut 0.</message>"
        ]
    );
    for (arguments, expected) in [
        (r#"{"pattern": "闸门 1？", "path": null, "regex": null}"#, "5: <message"),
        (r#"{"pattern": "闸门 1？", "path": "/"}"#, "5: <message"),
    ] {
        let answer = call(context.as_mut(), "grep", arguments);
        assert!(!answer.is_error && answer.text.contains(expected), "{}", answer.text);
    }
    let nulls = format!(r#"{{"file_path": "{HISTORY}", "offset": null, "limit": null}}"#);
    assert!(call(context.as_mut(), "read_file", &nulls).text.starts_with("lines 1-"));
    for (name, arguments, expected) in [
        ("grep", r#"{"pattern": "(", "regex": true}"#, "not a regular expression"),
        ("grep", r#"{"pattren": "x"}"#, "arguments of grep"),
        ("read_file", r#"{"file_path": "/y"}"#, HISTORY),
        ("grep", r#"{"pattern": "Gate", "path": "/nowhere"}"#, "no file or folder \"/nowhere\""),
        ("grep", r#"{"pattern": "Gate", "path": "/nowhere"}"#, HISTORY),
        ("read_file", &format!(r#"{{"file_path": "{HISTORY}", "offset": 999}}"#), "has "),
    ] {
        let answer = call(context.as_mut(), name, arguments);
        assert!(answer.is_error && answer.text.contains(expected), "{}", answer.text);
    }
}

#[test]
fn a_result_of_80000_characters_stays_and_one_more_goes_to_a_file() {
    for character in ["x", "门"] {
        let mut context = start(DeepAgents::default());
        record(context.as_mut(), [Message::user("Go.")]);
        for (id, characters) in [("x", 80_000), ("a/1", 80_001), ("a_1", 80_001)] {
            let first = format!("first {id}\n");
            let text = first.clone() + &character.repeat(characters - first.len());
            let calls = vec![ToolCall::new(id, "fetch", "{}")];
            record(context.as_mut(), [Message::calls("", calls), result(id, &text)]);
        }
        let shown = texts(context.as_ref());
        assert_eq!(shown[2].chars().count(), 80_000);
        assert!(shown[4].contains("/large_tool_results/a_1.") && shown[4].contains("1  first a/1"));
        assert!(shown[6].contains("/large_tool_results/a_1-2."), "{}", shown[6]);
        assert!(shown[6].chars().count() < 1_400);
        let read = r#"{"file_path": "/large_tool_results/a_1-2"}"#;
        let read = call(context.as_mut(), "read_file", read);
        let lines: Vec<&str> = read.text.lines().collect();
        assert_eq!(lines[..2], ["lines 1-1 of 2, next offset 1", "first a_1"]);
        assert_eq!(lines[2].matches(character).count(), 80_000 - "first a_1\n".len());
    }
}

#[test]
fn an_answer_is_bounded_and_says_where_to_go_on() {
    let mut context = start(DeepAgents::default());
    let calls = vec![ToolCall::new("a", "fetch", "{}"), ToolCall::new("b", "fetch", "{}")];
    record(context.as_mut(), [Message::user("Go."), Message::calls("", calls)]);
    let lines = "门".repeat(999) + "\n";
    record(context.as_mut(), [result("a", &lines.repeat(200)), result("b", &"闸".repeat(90_000))]);
    let read = r#"{"file_path": "/large_tool_results/a", "offset": 10, "limit": 150}"#;
    let read = call(context.as_mut(), "read_file", read);
    assert!(read.text.starts_with("lines 11-90 of 200, next offset 90\n"), "{}", &read.text[..60]);
    assert_eq!(read.text.matches('门').count(), 80 * 999);
    let found = call(context.as_mut(), "grep", r#"{"pattern": "门"}"#);
    assert!(found.text.ends_with("be more specific.") && found.text.chars().count() < 80_100);
    let long = call(context.as_mut(), "read_file", r#"{"file_path": "/large_tool_results/b"}"#);
    assert!(long.text.starts_with("lines 1-1 of 1\n闸"), "{}", &long.text[..40]);
    assert_eq!(long.text.matches('闸').count(), 80_000);
}

#[test]
fn what_is_no_text_stays_and_long_questions_go_to_a_file_too() {
    let image = Part::Other(r#"{"type":"image_url","image_url":{"url":"u"}}"#.into());
    let content = Content::Parts(vec![Part::Text("门".repeat(80_001)), image.clone()]);
    let id = ToolCallId::new("a");
    let mut context = start(DeepAgents { trigger_tokens: usize::MAX, ..DeepAgents::default() });
    record(context.as_mut(), [Message::user(&"问".repeat(200_000))]);
    record(context.as_mut(), [Message::user(&"问".repeat(200_001))]);
    record(context.as_mut(), [Message::calls("", vec![ToolCall::new("a", "look", "{}")])]);
    record(context.as_mut(), [Message::compose(Role::Tool, content, Vec::new(), Some(id))]);
    let shown = prompt(context.as_ref()).messages;
    assert_eq!(shown[0].text().chars().count(), 200_000);
    assert!(shown[1].text().contains("/large_messages/message."));
    let Content::Parts(parts) = shown[3].content() else { panic!("{:?}", shown[3]) };
    assert!(parts.len() == 2 && parts[1] == image, "{parts:?}");
}

#[test]
fn old_arguments_of_writing_tools_are_clipped() {
    let mut context = start(DeepAgents::default());
    let arguments = format!(r#"{{"file_path": "a", "content": "{}"}}"#, "门".repeat(2_001));
    let writes = ToolCall::new("w", "write_file", &arguments);
    record(context.as_mut(), [Message::user("Write."), Message::calls("", vec![writes])]);
    record(context.as_mut(), [result("w", "done")]);
    record(context.as_mut(), talk(0..9));
    record(context.as_mut(), [Message::user("22nd")]);
    // The call is the second of 22 messages: the last 20 do not include it.
    let clipped = arguments_of(context.as_ref(), 1);
    assert_eq!(clipped.matches('门').count(), 20);
    assert!(clipped.contains(r#""file_path": "a""#), "{clipped}");
    serde_json::from_str::<serde_json::Value>(&clipped).unwrap();
    context.pin(SeqNo(1)).unwrap();
    assert_eq!(arguments_of(context.as_ref(), 1), arguments, "a pinned message is as it was");
}

#[test]
fn arguments_are_clipped_after_a_summary_too() {
    let mut context = start(small(4_000));
    record(context.as_mut(), talk(0..150));
    record(context.as_mut(), [Message::user("Write.")]);
    assert_eq!(context.take_side_calls().len(), 1, "most of the history has left");
    let arguments = format!(r#"{{"content": "{}"}}"#, "x".repeat(2_001));
    let writes = ToolCall::new("w", "write_file", &arguments);
    record(context.as_mut(), [Message::calls("", vec![writes]), result("w", "done")]);
    record(context.as_mut(), talk(150..160));
    record(context.as_mut(), [Message::user("Now?")]);
    assert_eq!(context.take_side_calls(), []);
    let shown = prompt(context.as_ref()).messages;
    let calls: Vec<_> = shown.iter().flat_map(|message| message.tool_calls()).collect();
    assert_eq!(calls.len(), 1);
    assert!(calls[0].arguments.ends_with("... (clipped)\"}"), "{}", calls[0].arguments);
}

#[test]
fn a_known_window_clips_arguments_from_its_trigger_on() {
    let config = DeepAgents { summary_tokens: 300, ..DeepAgents::with_window(10_000) };
    let mut context = start(config);
    let arguments = |id: usize| format!(r#"{{"n": {id}, "content": "{}"}}"#, "x".repeat(2_001));
    let mut lengths = |id: usize| {
        let writes = ToolCall::new(&format!("w{id}"), "write_file", &arguments(id));
        record(context.as_mut(), [Message::user("写。"), Message::calls("", vec![writes])]);
        record(context.as_mut(), [result(&format!("w{id}"), "done")]);
        assert_eq!(context.take_side_calls().len(), usize::from(id == 40), "at {id}");
        let shown = prompt(context.as_ref()).messages;
        let calls = shown.iter().flat_map(|message| message.tool_calls());
        calls.filter(|call| call.arguments.len() > 2_000).count()
    };
    // Three calls and the tools are under 8,500 tokens, four are over; the last 1,000 include none.
    assert_eq!([lengths(0), lengths(1), lengths(2), lengths(3)], [1, 2, 3, 0]);
}

#[test]
fn an_argument_among_the_last_twenty_messages_is_whole() {
    let mut context = start(DeepAgents::default());
    let arguments = format!(r#"{{"content": "{}"}}"#, "x".repeat(3_000));
    record(context.as_mut(), [Message::user("Write.")]);
    let writes = ToolCall::new("w", "write_file", &arguments);
    record(context.as_mut(), [Message::calls("", vec![writes]), result("w", "done")]);
    record(context.as_mut(), talk(0..9));
    assert_eq!(arguments_of(context.as_ref(), 1), arguments);
}

#[test]
fn results_that_overflow_the_window_go_to_files() {
    let mut context = start(DeepAgents { summary_tokens: 100, ..DeepAgents::with_window(4_000) });
    record(context.as_mut(), [Message::user("Go.")]);
    let calls = ["a", "b"].map(|id| ToolCall::new(id, "fetch", "{}")).to_vec();
    record(context.as_mut(), [Message::calls("", calls)]);
    let text = "line\n".repeat(500);
    record(context.as_mut(), [result("a", &text), result("b", &text)]);
    assert!(prompt(context.as_ref()).tokens < 3_800);
    let shown = texts(context.as_ref());
    assert!(shown.iter().filter(|text| text.contains("/large_tool_results/")).count() == 2);
}

/// A pin brings back the words of a message that went to a file, and the file stays.
#[test]
fn a_pin_brings_a_large_result_back() {
    let mut context = start(DeepAgents { trigger_tokens: usize::MAX, ..DeepAgents::default() });
    let text = "门".repeat(100_000);
    let calls = vec![ToolCall::new("a", "fetch", "{}")];
    record(context.as_mut(), [Message::user("Go."), Message::calls("", calls), result("a", &text)]);
    let small = prompt(context.as_ref()).tokens;
    assert!(small < 2_500);
    context.pin(SeqNo(2)).unwrap();
    assert_eq!(texts(context.as_ref())[2], text);
    let shown = prompt(context.as_ref());
    assert_eq!((shown.tokens, shown.pinned), (100_000 + 22 + tool_tokens(), 1));
    record(context.as_mut(), [Message::assistant("Read."), Message::user("Go on.")]);
    assert_eq!(texts(context.as_ref())[2], text);
    let found = call(context.as_mut(), "grep", r#"{"pattern": "门"}"#);
    assert!(found.text.starts_with("/large_tool_results/a:"), "{}", &found.text[..40]);
}

/// The summary is made from what was asked, not from the stub in its place.
#[test]
fn a_summary_tells_of_a_question_that_went_to_a_file() {
    let mut context = start(DeepAgents { trigger_tokens: 3_000, ..DeepAgents::default() });
    let asked = format!("Repair gate 7. {}", "问".repeat(200_001));
    record(context.as_mut(), [Message::user(&asked)]);
    record(context.as_mut(), talk(0..80));
    record(context.as_mut(), [Message::user("Now.")]);
    let summary = texts(context.as_ref()).swap_remove(0);
    assert!(summary.contains("- user: Repair gate 7. 问"), "{summary}");
    assert!(!summary.contains("too large to be shown"), "{summary}");
    let history = call(context.as_mut(), "grep", r#"{"pattern": "/large_messages/message"}"#);
    assert!(history.text.starts_with(HISTORY), "the history holds the stub: {}", history.text);
}

/// A result that went to a file when it arrived does not go to another when the window overflows.
#[test]
fn a_result_goes_to_a_file_once() {
    let mut context = start(DeepAgents { summary_tokens: 100, ..DeepAgents::with_window(1_500) });
    record(context.as_mut(), [Message::user("Go.")]);
    let calls = ["a", "b"].map(|id| ToolCall::new(id, "fetch", "{}")).to_vec();
    record(context.as_mut(), [Message::calls("", calls)]);
    // The stub of one large line takes over a thousand tokens, so that two overflow the window.
    let text = "门".repeat(80_001);
    record(context.as_mut(), [result("a", &text), result("b", &text)]);
    let listed = call(context.as_mut(), "read_file", r#"{"file_path": "/x"}"#).text;
    assert_eq!(listed.matches("/large_tool_results/").count(), 2, "{listed}");
}
