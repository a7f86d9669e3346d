//! Little transcripts and the blocks they become. What the todo list says stands between the messages: `!switch`,
//! `!closing` and `!items 3`.
//! A block is written as its first and last message and its reason, with `*` where it is oversize.

use foldback_chunker::{Chunker, ChunkerConfig, Closed, Event, Input, Phase};
use foldback_core::{Message, ToolCallId};
use foldback_testkit::script::{Step, steps};

fn run(chunker: &mut Chunker, script: &str) -> Vec<Closed> {
    let push = |step: Step| match &step {
        Step::Message(message) => chunker.push(Event::Message(Input::of(message))),
        Step::Event(event) => match event.split_once(' ').unwrap_or((event, "")) {
            ("switch", "") => chunker.push(Event::Switch),
            ("closing", "") => chunker.push(Event::Closing(true)),
            ("items", count) => chunker.push(Event::OpenItems(count.parse().unwrap())),
            _ => panic!("{event} is nothing that a todo list says"),
        },
    };
    steps(script).into_iter().flat_map(push).collect()
}

/// A call, and its result.
fn exchange(id: usize) -> String {
    format!("assistant> read({{}}) #{id}\ntool #{id}: done\n")
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
        "
        user: 用read工具读data.txt
        assistant> read({})
        tool: done
        user: 好的
        ",
        "0-3 end",
    );
}

#[test]
fn bl4_nothing_and_one_message() {
    check("", "");
    check("user: hello", "0-0 end");
    check("system: be kind", "0-0 end");
    check("tool #1: done", "0-0 end");
}

#[test]
fn bl4_topic() {
    check(
        "
        user: I need a hotel room in Cambridge for two nights
        assistant: The Gonville hotel in Cambridge has a room for two nights.
        user: Book that room in the Gonville hotel, thanks
        assistant: The room is booked. Have a great day!
        user: What is the weather in Boston today?
        assistant: Boston has rain today, the weather service says.
        user: And the weather in Boston tomorrow?
        assistant: Boston will be sunny tomorrow.
        ",
        "0-3 topic, 4-7 end",
    );
}

#[test]
fn bl10_topic_in_chinese() {
    check(
        "
        user: 我想订一间北京的酒店房间，住两晚
        assistant: 北京饭店还有房间，两晚一千元。
        user: 就订北京饭店的房间吧，谢谢
        assistant: 房间已订好，祝您入住愉快，再见！
        user: 请问上海今天的天气怎么样？
        assistant: 上海今天天气有小雨。
        user: 那上海明天的天气呢？
        assistant: 上海明天天气晴。
        ",
        "0-3 topic, 4-7 end",
    );
}

#[test]
fn bl4_gap_of_five_minutes() {
    // Four minutes are no gap, five are one.
    check(
        "
        @2025-01-01T10:00:00Z
        user: where were we
        assistant: at the parser
        @+239s
        user: right
        assistant: so
        @+299s
        user: good morning
        assistant: good morning
        ",
        "0-3 gap, 4-5 end",
    );
    let check = |script: &str, expected: &str| {
        check(&format!("@2025-01-01T10:00:00Z\n{script}"), expected);
    };
    // A slow answer belongs to its question, and a slow tool result to its call.
    check("user: why\n@+20m\nassistant: because", "0-1 end");
    check("user: go\nassistant> read({})\n@+29m\ntool: done\nassistant: done", "0-3 end");
    // After a night it does not.
    check("user: why\n@+10h\nassistant: hello again", "0-0 gap, 1-1 end");
    // A clock that goes back is not a gap, however far. What follows counts from there.
    let back = "user: x\nassistant: y\n@-57m\nuser: z\n";
    check(&format!("{back}@+58m\nassistant: w"), "0-3 end");
    check(&format!("{back}assistant: w\n@+6m\nuser: v"), "0-3 gap, 4-4 end");
}

#[test]
fn bl4_one_time_in_the_future_does_not_end_all_gaps() {
    // Messages an hour apart, one of which is dated 2096.
    let entry = |i: usize| {
        let year = if i == 17 { 2096 } else { 2025 };
        let (day, hour) = (1 + i / 24, i % 24);
        let who = ["user", "assistant"][i % 2];
        format!("@{year}-01-{day:02}T{hour:02}:00:00Z\n{who}: message {i}\n")
    };
    let script: String = (0..40).map(entry).collect();
    let blocks = run(&mut Chunker::new(config()), &script);
    assert_eq!(blocks.len(), 38);
    assert!(blocks.iter().all(|block| block.reason.as_str() == "gap"), "{blocks:#?}");
    // Only before the message that is earlier than its predecessor, nothing is cut.
    assert!(blocks.iter().all(|block| block.range.last().0 != 17), "{blocks:#?}");
}

#[test]
fn bl2_an_instruction_between_a_call_and_its_result_parts_them_never() {
    let go = "@2025-01-01T10:00:00Z\nuser: go\nassistant> read({}) #1\n";
    let check = |rest: &str, expected: &str| check(&format!("{go}{rest}"), expected);
    check("@+6m\nsystem: remember the rules\n@+2m\ntool #1: done\nassistant: done", "0-4 end");
    check(
        "assistant> read({}) #2\n@+6m\nsystem: x\n@+2m\ntool #2: done\n\
         @+12m\nsystem: y\n@+20m\ntool #1: done\nassistant: done",
        "0-6 end",
    );
    check("!switch\nsystem: remember\ntool #1: done\nuser: next", "0-3 switch, 4-4 end");
    // If no call waits, it is a message like any other.
    check("tool #1: done\n@+6m\nsystem: remember\nuser: next", "0-2 gap, 3-4 end");
    // A message of anyone else in between shows that the calls were abandoned.
    let later = "@+6m\nsystem: remember\n@+6m\n";
    check(&format!("{later}user: stop\ntool #1: done"), "0-2 gap, 3-4 end");
    check(&format!("{later}assistant: so\ntool #1: done"), "0-2 gap, 3-4 end");
}

#[test]
fn bl4_switch_of_todo() {
    check("user: one\nassistant: two\n!switch\nuser: three", "0-1 switch, 2-2 end");
    // An open call waits for its results first.
    check(
        "
        user: go
        assistant> read({}) #1
        assistant> read({}) #2
        tool #2: done
        !switch
        tool #1: done
        user: next
        ",
        "0-3 switch, 4-4 end",
    );
    check("user: go\nassistant> read({})\n!switch\nuser: never mind", "0-1 switch, 2-2 end");
    check("!switch\nuser: hello", "0-0 end");
}

#[test]
fn bl4_loop_and_bl6_granularity() {
    // A task is cut finely at its beginning, coarsely in the tool-heavy middle, and finely again
    // when the todo list says that it is closing.
    let calls = |ids: std::ops::Range<usize>| ids.map(exchange).collect::<String>();
    let script = format!(
        "user: fix the parser\n{}!closing\n{}assistant: The parser is fixed.",
        calls(0..12),
        calls(20..27)
    );
    let mut chunker = Chunker::new(config());
    let blocks = run(&mut chunker, &script);
    let sizes: Vec<u64> = blocks.iter().map(|block| block.range.len()).collect();
    assert!(blocks.iter().all(|block| block.reason.as_str() == "loop"), "{blocks:#?}");
    assert!((3..=5).contains(&sizes[0]), "{sizes:?}");
    assert!(sizes[1..3].iter().all(|size| (5..=8).contains(size)), "{sizes:?}");
    assert!((3..=5).contains(sizes.last().unwrap()), "{sizes:?}");
}

#[test]
fn bl3_blocks_hold_three_to_five_messages_unless_it_is_said_otherwise() {
    let calls: String = (0..12).map(exchange).collect();
    let script = format!("user: fix the parser\n{calls}assistant: It is fixed.");
    let mut chunker = Chunker::new(ChunkerConfig::default());
    let mut blocks = run(&mut chunker, &script);
    blocks.extend(chunker.push(Event::End));
    let sizes: Vec<u64> = blocks.iter().map(|block| block.range.len()).collect();
    assert_eq!(sizes.iter().sum::<u64>(), 26);
    assert!(sizes.iter().all(|size| (3..=5).contains(size)), "{sizes:?}");
}

#[test]
fn bl2_a_reply_joins_the_unit_before_it() {
    check(
        "
        user: look at all three files
        assistant> read({}) #1
        assistant> read({}) #2
        assistant> read({}) #3
        tool #1: done
        tool #3: done
        tool #2: done
        assistant: They agree.
        user: good
        assistant> read({}) #4
        tool #4: done
        assistant: Done.
        ",
        "0-5 loop, 6-9 end",
    );
}

#[test]
fn bl3_a_unit_that_is_too_large_is_a_block_of_its_own() {
    let calls = "assistant> read({})\n".repeat(9) + &"tool: done\n".repeat(9);
    check(
        &format!("user: read them all\n{calls}assistant: All read.\nuser: thanks"),
        "0-0 size, 1-10* size, 11-12 end",
    );
    // It ends with the conversation.
    let call = "assistant> read({}) #1\nassistant> read({}) #2\ntool #1: done\n";
    check(&(call.to_owned() + &"tool #2: done\n".repeat(8)), "0-9* size");
}

#[test]
fn bl2_orphans_and_abandoned_calls() {
    check("tool #1: done\ntool #2: done\ntool #3: done", "0-2 end");
    check(
        "
        user: hi
        tool #9: done
        assistant> read({}) #1
        user: no, wait
        tool #1: done
        assistant: fine
        ",
        "0-5 end",
    );
}

#[test]
fn bl4_size_where_nothing_is_complete() {
    // Five messages of one speaker and no end in sight.
    let script = "user: one\n".to_owned() + &"assistant: and so on\n".repeat(12);
    let mut chunker = Chunker::new(config());
    let blocks = run(&mut chunker, &script);
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
    let blocks = run(&mut chunker, "user: one\n!items 3\nassistant: two\n!closing\nuser: three");
    assert_eq!(show(&blocks), "");
    assert!(chunker.complexity().is_complex());
    assert_eq!(chunker.phase(), Phase::Closing);
    assert_eq!((chunker.open_from().0, chunker.next().0), (0, 3));
}

#[test]
fn lv6_answers_of_memory_tools_do_not_steer_the_cuts() {
    let state = |result: &str| {
        let mut chunker = Chunker::new(config());
        run(&mut chunker, "user: what did we find?\nassistant> read({}) #1");
        let result = Message::tool_result(&ToolCallId::new("1"), result);
        chunker.push(Event::Message(Input::of(&result).with_vector(&[1.0]).without_text()));
        chunker.state().clone()
    };
    assert_eq!(state("hello, the weather in Boston"), state("an old block about hotels"));
}

#[test]
fn bl8_meetings_have_no_topic_cuts() {
    let mut chunker = Chunker::new(config());
    let mut blocks = Vec::new();
    for i in 0..60 {
        let name = ["ann", "bob", "cy"][i % 3];
        let text =
            if i % 10 == 0 { "Hello, what is the weather?" } else { "Can you book a hotel?" };
        blocks.extend(run(&mut chunker, &format!("user {name}: {text}")));
    }
    assert!(blocks.len() >= 60 / 8 - 1, "{blocks:?}");
    assert!(!blocks.iter().any(|block| block.reason.is_topic_cut()), "{blocks:#?}");
}

#[test]
fn evidence_reads_as_a_sentence() {
    let mut chunker = Chunker::new(config());
    let blocks = run(
        &mut chunker,
        "
        @2025-01-01T10:00:00Z
        user: I need a hotel room in Cambridge
        assistant: The room is booked, anything else I can help you with?
        user: No thanks, bye
        user: What's the weather in Boston going to be?
        assistant: Rain in Boston.
        user: And snow in Boston?
        assistant: No snow.
        @+8m
        user: hello
        ",
    );
    let why: Vec<String> = blocks.iter().map(|block| block.evidence.to_string()).collect();
    assert!(why[0].starts_with("the topic changes (score "), "{why:?}");
    assert_eq!(why[1], "nothing was said for 8 minutes");
}
