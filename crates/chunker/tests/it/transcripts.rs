//! Little transcripts and the blocks they become.
//!
//! A line is a message: `u`, `a`, `s` and a text; `c` and the ids of calls; `r` and the id that is
//! answered. `u@7` is said seven minutes after midnight. `!switch`, `!closing` and `!items 3` are
//! what the todo list says.
//! A block is written as its first and last message and its reason, with `*` where it is oversize.

use foldback_chunker::{Chunker, ChunkerConfig, Closed, Event, Input, Phase};
use foldback_core::{Message, Timestamp, ToolCall, ToolCallId};

fn run(chunker: &mut Chunker, transcript: &str) -> Vec<Closed> {
    let mut closed = Vec::new();
    for line in transcript.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (head, text) = line.split_once(' ').unwrap_or((line, ""));
        let (who, minute) = head.split_once('@').map_or((head, None), |(who, at)| (who, Some(at)));
        let message = match who {
            "u" => Message::user(text),
            "a" => Message::assistant(text),
            "s" => Message::system(text),
            "c" => {
                let calls = text.split(' ').map(|id| ToolCall::new(id, "read", "{}"));
                Message::calls("", calls.collect())
            }
            "r" => Message::tool_result(&ToolCallId::new(text), "done"),
            "!switch" => {
                closed.extend(chunker.push(Event::Switch));
                continue;
            }
            "!closing" => {
                closed.extend(chunker.push(Event::Closing(true)));
                continue;
            }
            "!items" => {
                closed.extend(chunker.push(Event::OpenItems(text.parse().unwrap())));
                continue;
            }
            other => panic!("{other:?} is no speaker"),
        };
        let message = match minute {
            Some(minute) => message.at(Timestamp(minute.parse::<i64>().unwrap() * 60_000)),
            None => message,
        };
        closed.extend(chunker.push(Event::Message(Input::of(&message))));
    }
    closed
}

fn show(blocks: &[Closed]) -> String {
    let show = |block: &Closed| {
        let star = if block.oversize { "*" } else { "" };
        format!("{}{star} {}", block.range, block.reason)
    };
    blocks.iter().map(show).collect::<Vec<_>>().join(", ")
}

/// Blocks of up to eight messages, so that the transcripts have room for their shapes.
fn config() -> ChunkerConfig {
    ChunkerConfig::default().with_sizes(3, 8).unwrap()
}

#[track_caller]
fn check(transcript: &str, expected: &str) {
    let mut chunker = Chunker::new(config());
    let mut blocks = run(&mut chunker, transcript);
    blocks.extend(chunker.push(Event::End));
    assert_eq!(show(&blocks), expected, "{blocks:#?}");
}

#[test]
fn md4_the_designs_own_example_is_one_block() {
    check(
        "u 用read工具读data.txt
         c 1
         r 1
         u 好的",
        "0-3 end",
    );
}

#[test]
fn bl4_nothing_and_one_message() {
    check("", "");
    check("u hello", "0-0 end");
    check("s be kind", "0-0 end");
    check("r 1", "0-0 end");
}

#[test]
fn bl4_topic() {
    check(
        "u I need a hotel room in Cambridge for two nights
         a The Gonville hotel in Cambridge has a room for two nights.
         u Book that room in the Gonville hotel, thanks
         a The room is booked. Have a great day!
         u What is the weather in Boston today?
         a Boston has rain today, the weather service says.
         u And the weather in Boston tomorrow?
         a Boston will be sunny tomorrow.",
        "0-3 topic, 4-7 end",
    );
}

#[test]
fn bl10_topic_in_chinese() {
    check(
        "u 我想订一间北京的酒店房间，住两晚
         a 北京饭店还有房间，两晚一千元。
         u 就订北京饭店的房间吧，谢谢
         a 房间已订好，祝您入住愉快，再见！
         u 请问上海今天的天气怎么样？
         a 上海今天天气有小雨。
         u 那上海明天的天气呢？
         a 上海明天天气晴。",
        "0-3 topic, 4-7 end",
    );
}

#[test]
fn bl4_gap_of_five_minutes() {
    check(
        "u@0 where were we
         a@1 at the parser
         u@5 right
         a@5 so
         u@10 good morning
         a@10 good morning",
        "0-3 gap, 4-5 end",
    );
    // A slow answer belongs to its question, and a slow tool result to its call.
    check("u@0 why\n a@20 because", "0-1 end");
    check("u@0 go\n c@1 1\n r@30 1\n a@31 done", "0-3 end");
    // After a night it does not.
    check("u@0 why\n a@600 hello again", "0-0 gap, 1-1 end");
    // A clock that goes back is not a gap, however far. What follows counts from there.
    check("u@60 x\n a@60 y\n u@3 z\n a@61 w", "0-3 end");
    check("u@60 x\n a@60 y\n u@3 z\n a@3 w\n u@9 v", "0-3 gap, 4-4 end");
}

#[test]
fn bl4_one_time_in_the_future_does_not_end_all_gaps() {
    // Messages an hour apart, one of which is dated 2096.
    let line = |i: i64| {
        let minute = if i == 17 { 66_225_600 } else { 27_000_000 + i * 60 };
        format!("{}@{minute} message {i}\n", if i % 2 == 0 { "u" } else { "a" })
    };
    let transcript: String = (0..40).map(line).collect();
    let blocks = run(&mut Chunker::new(config()), &transcript);
    assert_eq!(blocks.len(), 38);
    assert!(blocks.iter().all(|block| block.reason.as_str() == "gap"), "{blocks:#?}");
    // Only before the message that is earlier than its predecessor, nothing is cut.
    assert!(blocks.iter().all(|block| block.range.last().0 != 17), "{blocks:#?}");
}

#[test]
fn bl2_an_instruction_between_a_call_and_its_result_parts_them_never() {
    check("u@0 go\n c@0 1\n s@6 remember the rules\n r@8 1\n a@8 done", "0-4 end");
    check("u@0 go\n c@0 1 2\n s@6 x\n r@8 2\n s@20 y\n r@40 1\n a@40 done", "0-6 end");
    check("u go\n c 1\n !switch\n s remember\n r 1\n u next", "0-3 switch, 4-4 end");
    // If no call waits, it is a message like any other.
    check("u@0 go\n c@0 1\n r@1 1\n s@7 remember\n u@7 next", "0-2 gap, 3-4 end");
    // A message of anyone else in between shows that the calls were abandoned.
    check("u@0 go\n c@0 1\n s@6 remember\n u@12 stop\n r@12 1", "0-2 gap, 3-4 end");
    check("u@0 go\n c@0 1\n s@6 remember\n a@12 so\n r@12 1", "0-2 gap, 3-4 end");
}

#[test]
fn bl4_switch_of_todo() {
    check("u one\n a two\n !switch\n u three", "0-1 switch, 2-2 end");
    // An open call waits for its results first.
    check("u go\n c 1 2\n r 2\n !switch\n r 1\n u next", "0-3 switch, 4-4 end");
    check("u go\n c 1\n !switch\n u never mind", "0-1 switch, 2-2 end");
    check("!switch\n u hello", "0-0 end");
}

#[test]
fn bl4_loop_and_bl6_granularity() {
    // A task is cut finely at its beginning, coarsely in the tool-heavy middle, and finely again
    // when the todo list says that it is closing.
    let mut transcript = String::from("u fix the parser\n");
    for i in 0..12 {
        transcript.push_str(&format!("c {i}\n r {i}\n"));
    }
    transcript.push_str("!closing\n");
    for i in 20..27 {
        transcript.push_str(&format!("c {i}\n r {i}\n"));
    }
    transcript.push_str("a The parser is fixed.");
    let mut chunker = Chunker::new(config());
    let blocks = run(&mut chunker, &transcript);
    let sizes: Vec<u64> = blocks.iter().map(|block| block.range.len()).collect();
    assert!(blocks.iter().all(|block| block.reason.as_str() == "loop"), "{blocks:#?}");
    assert!((3..=5).contains(&sizes[0]), "{sizes:?}");
    assert!(sizes[1..3].iter().all(|size| (5..=8).contains(size)), "{sizes:?}");
    assert!((3..=5).contains(sizes.last().unwrap()), "{sizes:?}");
}

#[test]
fn bl3_blocks_hold_three_to_five_messages_unless_it_is_said_otherwise() {
    let transcript: String = (0..12).map(|i| format!("c {i}\n r {i}\n")).collect();
    let mut chunker = Chunker::new(ChunkerConfig::default());
    let mut blocks = run(&mut chunker, &format!("u fix the parser\n{transcript}a It is fixed."));
    blocks.extend(chunker.push(Event::End));
    let sizes: Vec<u64> = blocks.iter().map(|block| block.range.len()).collect();
    assert!(sizes.iter().all(|size| (3..=5).contains(size)), "{sizes:?}");
}

#[test]
fn bl2_a_reply_joins_the_unit_before_it() {
    check(
        "u look at all three files
         c 1 2 3
         r 1
         r 3
         r 2
         a They agree.
         u good
         c 4
         r 4
         a Done.",
        "0-5 loop, 6-9 end",
    );
}

#[test]
fn bl3_a_unit_that_is_too_large_is_a_block_of_its_own() {
    check(
        "u read them all
         c 1 2 3 4 5 6 7 8 9
         r 1\n r 2\n r 3\n r 4\n r 5\n r 6\n r 7\n r 8\n r 9
         a All read.
         u thanks",
        "0-0 size, 1-10* size, 11-12 end",
    );
    // It ends with the conversation.
    check("c 1 2\n r 1\n r 2\n r 2\n r 2\n r 2\n r 2\n r 2\n r 2\n r 2", "0-9* size");
}

#[test]
fn bl2_orphans_and_abandoned_calls() {
    check("r 1\n r 2\n r 3", "0-2 end");
    check("u hi\n r 9\n c 1\n u no, wait\n r 1\n a fine", "0-5 end");
}

#[test]
fn bl4_size_where_nothing_is_complete() {
    // Five messages of one speaker and no end in sight.
    let transcript = "u one\n".to_owned() + &"a and so on\n".repeat(12);
    let mut chunker = Chunker::new(config());
    let blocks = run(&mut chunker, &transcript);
    assert!(blocks.iter().all(|block| block.reason.as_str() == "size"), "{blocks:?}");
    assert!(!blocks.is_empty());
}

#[test]
fn bl5_vectors_merge_what_is_alike() {
    // Rough blocks of four messages each; the vectors decide whether the second joins the first.
    let sizes = |vectors: [[f32; 2]; 8]| {
        let config = config().with_same_topic(0.5).unwrap();
        let mut chunker = Chunker::new(config);
        let mut sizes = Vec::new();
        for (i, vector) in std::iter::repeat_n(vectors, 4).flatten().enumerate() {
            let text = format!("message {i}");
            let message = if i % 2 == 0 { Message::user(&text) } else { Message::assistant(&text) };
            let input = Input::of(&message).with_vector(&vector);
            sizes.extend(chunker.push(Event::Message(input)).iter().map(|b| b.range.len()));
        }
        sizes
    };
    let (a, b) = ([1.0, 0.0], [0.0, 1.0]);
    assert_eq!(sizes([a, a, a, a, b, b, b, b])[1..4], [4, 4, 4]);
    assert_eq!(sizes([a; 8])[2..], [6, 6, 6]);
}

#[test]
fn bl9_what_the_todo_list_says_cuts_nothing() {
    let mut chunker = Chunker::new(config());
    assert!(!chunker.complexity().is_complex());
    let blocks = run(&mut chunker, "u one\n !items 3\n a two\n !closing\n u three");
    assert_eq!(show(&blocks), "");
    assert!(chunker.complexity().is_complex());
    assert_eq!(chunker.phase(), Phase::Closing);
    assert_eq!((chunker.open_from().0, chunker.next().0), (0, 3));
}

#[test]
fn lv6_answers_of_memory_tools_do_not_steer_the_cuts() {
    let state = |result: &str| {
        let mut chunker = Chunker::new(config());
        run(&mut chunker, "u what did we find?\n c 1");
        let result = Message::tool_result(&ToolCallId::new("1"), result);
        chunker.push(Event::Message(Input::of(&result).with_vector(&[1.0]).without_text()));
        chunker.state().clone()
    };
    assert_eq!(state("hello, the weather in Boston"), state("an old block about hotels"));
}

#[test]
fn bl8_meetings_have_no_topic_cuts() {
    let mut chunker = Chunker::new(config());
    for i in 0..60 {
        let name = ["ann", "bob", "cy"][i % 3];
        let text =
            if i % 10 == 0 { "Hello, what is the weather?" } else { "Can you book a hotel?" };
        let json = format!(r#"{{"role":"user","name":"{name}","content":"{text}"}}"#);
        let message = Message::from_json(&json).unwrap();
        for block in chunker.push(Event::Message(Input::of(&message))) {
            assert!(!block.reason.is_topic_cut(), "{block:?}");
        }
    }
}

#[test]
fn evidence_reads_as_a_sentence() {
    let mut chunker = Chunker::new(config());
    let blocks = run(
        &mut chunker,
        "u@0 I need a hotel room in Cambridge
         a@0 The room is booked, anything else I can help you with?
         u@1 No thanks, bye
         u@1 What's the weather in Boston going to be?
         a@1 Rain in Boston.
         u@1 And snow in Boston?
         a@1 No snow.
         u@9 hello",
    );
    let why: Vec<String> = blocks.iter().map(|block| block.evidence.to_string()).collect();
    assert!(why[0].starts_with("the topic changes (score "), "{why:?}");
    assert_eq!(why[1], "nothing was said for 8 minutes");
}
