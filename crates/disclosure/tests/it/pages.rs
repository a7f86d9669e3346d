//! Answers that are continued by a further call.

use crate::library::Library;
use crate::play::block;
use foldback_core::{
    Block, CloseReason, Estimate, Message, SeqNo, SeqRange, TokenCounter, ToolCall, ToolCallId,
};
use foldback_disclosure::{RecallSource, run_tool};

/// TL2: a page without room for the open messages is not the last one.
#[test]
fn tl2_the_open_messages_follow_a_full_page() {
    let library = Library::new();
    let todo = library.todo("t1");
    for i in 1..=2 {
        library.block(&todo, &format!("user: 问题 {i}\nassistant: answer\n"));
    }
    library.open_tail(&todo, vec![Message::user("还没结束")]);
    let range = SeqRange::new(SeqNo(4), SeqNo(4)).unwrap();
    let open = Block { close_reason: CloseReason::Open, ..block("t1", 3, range) };
    let list = |arguments: &str| {
        let recall = RecallSource { open: Some(&open), ..library.recall_source(&todo) };
        run_tool(&recall, &ToolCall::new("c", "list_blocks", arguments)).unwrap()
    };
    let full = list(r#"{"limit": 2}"#);
    let next = r#"{"cursor": 2, "limit": 2}"#;
    assert_eq!((full.next.as_deref(), full.references.len()), (Some(next), 2), "{}", full.text);
    assert!(!full.text.contains("These are the last"), "{}", full.text);
    let rest = list(next);
    let head = "[list_blocks: no closed blocks after block 2; there are 2]\nb_t1_003 (still open)";
    assert!(rest.text.starts_with(head) && rest.next.is_none(), "{}", rest.text);
    let all = list("{}");
    assert!(all.text.ends_with("These are the last. load reads a block."), "{}", all.text);
    assert_eq!(all.references, ["b_t1_001", "b_t1_002", "b_t1_003"]);
}

/// TL3: a page of many matches is within its budget, and what continues it looks for the same, however long that is.
#[test]
fn tl3_the_rest_of_many_matches_is_looked_for_with_the_same_pattern() {
    let library = Library::new();
    let todo = library.todo("t1");
    let text: String = (0..4_000)
        .map(|n| if n % 8 == 0 { "潮位\n".to_owned() } else { format!("{n}\n") })
        .collect();
    library.block_of(&todo, vec![Message::user(&text)]);
    let pattern = format!("潮位|{}", "never said|".repeat(30) + "nor this");
    let mut arguments = serde_json::json!({"ref": "b_t1_001", "match": pattern}).to_string();
    let mut found = 0;
    for page in 0.. {
        let answer = library.run(&todo, "load", &arguments);
        assert!(Estimate.count(&answer.text) < 4_500, "{}", answer.text.len());
        found += answer.text.matches("潮位\n").count();
        let Some(next) = answer.next else {
            assert!(page > 1, "it takes several pages");
            break;
        };
        assert!(answer.text.ends_with("\"} and the same \"match\"."), "{}", answer.text);
        assert!(!answer.text.contains("never said") && next.contains(&pattern), "{next}");
        arguments = next;
    }
    assert_eq!(found, 500);
}

/// TL1: of a message that does not fit, the part that answers is shown, and the calls that are named show the rest.
#[test]
fn tl1_a_long_message_is_shown_where_it_answers() {
    let library = Library::new();
    let todo = library.todo("t1");
    let lines = |word: &str| -> String {
        let line = |n| match n {
            201 => format!("{n} {word} is here\n"),
            n => format!("{n} 港口的潮汐数据 and words of no weight that go on for a while\n"),
        };
        (1..=400).map(line).collect()
    };
    for word in ["zanzibarquux", "船闸重复计费"] {
        for text in [lines(word), lines(word).replace('\n', " ")] {
            let block = vec![Message::user("早上好"), Message::user(&text), Message::user("好的")];
            library.block_of(&todo, block);
            let query = serde_json::json!({ "query": word, "k": 1 }).to_string();
            let found = library.run(&todo, "search_block", &query).text;
            assert!(found.contains(&format!("201 {word} is here")), "{found}");
            assert!(Estimate.count(&found) < 2_100, "{}", Estimate.count(&found));
            assert!(found.contains(" user goes on: "), "{found}");
            let calls: Vec<&str> =
                found.split("load {").skip(1).map(|call| call.split_once('}').unwrap().0).collect();
            assert_eq!(calls.len(), 2, "{found}");
            let [before, after] =
                [0, 1].map(|at| library.run(&todo, "load", &format!("{{{}}}", calls[at])).text);
            assert!(before.contains(": 1 港口"), "{before}");
            let cut = found.split("[cut here").next().unwrap().trim_end();
            let (_, rest) = after.split_once(" goes on: ").unwrap();
            let end: String = cut.chars().skip(cut.chars().count() - 60).collect();
            let both = end + &rest.chars().take(60).collect::<String>();
            assert!(
                text.replace([' ', '\n'], "").contains(&both.replace([' ', '\n'], "")),
                "{both}"
            );
        }
    }
}

/// TL3: only what is shown whole is called whole; the address of an image is shown.
#[test]
fn tl3_what_is_not_text_is_not_called_whole() {
    let library = Library::new();
    let todo = library.todo("t1");
    for (at, (part, shown, whole)) in (1..).zip([
        (r#"{"url":"https://example.org/图.png"}"#, "[image: https://example.org/图.png]", "whole"),
        (
            r#"{"url":"data:image/png;base64,QUJD"}"#,
            "[image, 3 bytes: not shown]",
            "all of its text",
        ),
        (r#"{"url":"https://a/</recalled>"}"#, "[image: https://a/<\\/recalled>]", "whole"),
    ]) {
        let json = format!(
            r#"{{"role":"user","content":[{{"type":"text","text":"看图"}},{{"type":"image_url","image_url":{part}}}]}}"#
        );
        library.block_of(&todo, vec![Message::from_json(&json).unwrap()]);
        let text = library.run(&todo, "load", &format!("{{\"ref\": \"b_t1_00{at}\"}}")).text;
        assert!(text.starts_with(&format!("[load: b_t1_00{at}, {whole}]\n")), "{text}");
        assert!(text.contains(shown), "{text}");
    }
}

/// TL1: what comes before a part of a long line ends in that line, also where characters are several bytes long.
#[test]
fn tl1_what_comes_before_a_part_of_a_line_ends_in_that_line() {
    let library = Library::new();
    let todo = library.todo("t1");
    let line = "港口的潮汐数据".repeat(600);
    let text = format!("{line}船闸重复计费{line}\n{line}\n{line}");
    library.block_of(&todo, vec![Message::user(&text)]);
    let found = library.run(&todo, "search_block", r#"{"query": "船闸重复计费", "k": 1}"#).text;
    assert!(found.contains("船闸重复计费"), "{found}");
    let (named, _) = found.split_once("} shows what comes before]").unwrap();
    assert!(named.ends_with(r#""lines": "1-1""#), "{named}");
}

/// BS3: a place behind the end of a line is an error that says how long the line is, with or without a pattern.
#[test]
fn bs3_a_place_behind_the_end_of_a_line_is_an_error() {
    let library = Library::new();
    let todo = library.todo("t1");
    let log = "一行\n".repeat(2_000);
    let call = Message::calls("", vec![ToolCall::new("c", "t", "{}")]);
    let messages =
        vec![Message::user("你好"), call, Message::tool_result(&ToolCallId::new("c"), &log)];
    let stored = library.block_of(&todo, messages)[0].to_string();
    for (reference, bytes) in [("b_t1_001", "#0 user: 你好\n".len()), (&stored, "一行\n".len())]
    {
        for arguments in [
            serde_json::json!({ "ref": reference, "lines": "1+9999" }),
            serde_json::json!({ "ref": reference, "lines": "1+9999-" }),
            serde_json::json!({ "ref": reference, "lines": format!("1+{bytes}-2"), "match": "行" }),
        ] {
            let answer = library.run(&todo, "load", &arguments.to_string());
            let expected = format!("{reference} has {bytes} bytes in line 1; ask for a place");
            assert!(answer.is_error && answer.text.contains(&expected), "{}", answer.text);
        }
        let inside = serde_json::json!({ "ref": reference, "lines": "1+3-2" }).to_string();
        assert!(!library.run(&todo, "load", &inside).is_error);
    }
}
