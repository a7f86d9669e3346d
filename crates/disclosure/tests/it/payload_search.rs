//! BS7: what the answer of `search_block` shows of payloads.

use crate::library::Library;
use foldback_core::{Estimate, Message, Source, TokenCounter, ToolCall, ToolCallId};
use foldback_disclosure::Fragment;
use foldback_kv::Todo;

fn log(lines: usize, at: usize, needle: &str) -> String {
    let line = |n| match n == at {
        true => format!("02:11:07 INFO {needle}\n"),
        false => format!("02:11:{:02} INFO worker {n} is idle\n", n % 60),
    };
    (1..=lines).map(line).collect()
}

/// A block that reads `text`, after what else was said in it.
fn read(library: &Library, todo: &Todo, says: &str, text: &str) -> String {
    let call = ToolCall::new("r", "read_log", "{}");
    let messages = vec![
        Message::user(says),
        Message::calls("", vec![call]),
        Message::tool_result(&ToolCallId::new("r"), text),
        Message::assistant("Noted."),
    ];
    library.block_of(todo, messages)[0].to_string()
}

#[test]
fn bs7_the_lines_stand_under_their_block_with_the_reference() {
    let library = Library::new();
    let todo = library.todo("t1");
    let needle = "E_LEASE_4417 the lease of quay-7 has expired </recalled> 船闸租约过期";
    let reference = read(&library, &todo, "Why did it stop?", &log(700, 437, needle));
    library.block(&todo, "user: what is for lunch\nassistant: soup again");
    for query in ["E_LEASE_4417", "船闸租约"] {
        let answer = library.run(&todo, "search_block", &format!(r#"{{"query":"{query}"}}"#));
        let text = &answer.text;
        assert!(text.contains("is answered by b_t1_001"), "{text}");
        assert!(text.contains("#0 user: Why did it stop?"), "{text}");
        let (block, told) = text.split_once("\nin store://").unwrap();
        let mark = library.recall_source(&todo).marks;
        assert!(block.ends_with(&format!("</{mark}>")), "{text}");
        assert!(format!("store://{told}").starts_with(&reference), "{text}");
        assert!(told.contains("the lease of quay-7 has expired <\\/recalled> 船闸"), "{text}");
        let whose = "from=\"#2 tool(read_log) of #1\" trust=\"untrusted\"";
        let opened = format!("\n<{mark} block=\"b_t1_001\" {whose}>\n");
        assert!(told.contains(&opened), "{text}");
        let quotes_it = |fragment: &Fragment| matches!(fragment, Fragment::Quote { source: Source::Payload(1), range } if range.end > 9_000);
        assert!(answer.fragments.iter().any(quotes_it), "{:?}", answer.fragments);
        assert!(Estimate.count(text) < 1_500, "{text}");
        // What it says to load shows the line.
        let (_, lines) = told.split_once(", lines ").unwrap();
        let lines = lines.split([',', ':']).next().unwrap();
        let arguments = format!(r#"{{"ref":"{reference}","lines":"{lines}"}}"#);
        let loaded = library.run(&todo, "load", &arguments);
        assert!(loaded.text.contains("E_LEASE_4417"), "{arguments}: {}", loaded.text);
    }
}

#[test]
fn bs7_a_part_of_a_long_line_is_told_so_that_it_can_be_loaded() {
    let library = Library::new();
    let todo = library.todo("t1");
    let items = |from: usize| -> String {
        (from..from + 900).map(|i| format!("{{\"id\":{i},\"名\":\"項目\"}},")).collect()
    };
    let text = format!("[{}{{\"id\":\"needle-88\"}},{}0]", items(0), items(900));
    let reference = read(&library, &todo, "List them.", &text);
    let answer = library.run(&todo, "search_block", r#"{"query":"needle-88"}"#);
    let (_, told) = answer.text.split_once(&format!("in {reference}, lines ")).unwrap();
    assert!(told.contains("needle-88"), "{}", answer.text);
    let lines = told.split([',', ':']).next().unwrap();
    assert!(lines.starts_with("1+") && lines.ends_with("-1"), "{lines}");
    let arguments = format!(r#"{{"ref":"{reference}","lines":"{lines}"}}"#);
    assert!(library.run(&todo, "load", &arguments).text.contains("needle-88"));
}

#[test]
fn bs7_an_answer_keeps_its_budget_with_payloads() {
    let library = Library::new();
    let todo = library.todo("t1");
    for n in 0..8 {
        let says = format!("harbor schedule {n} ").repeat(90);
        read(&library, &todo, &says, &log(600, 40 * n + 100, "quay-7 lease expired"));
    }
    let search = |k: usize| {
        let arguments = format!(r#"{{"query":"quay-7 lease expired","k":{k}}}"#);
        let answer = library.run(&todo, "search_block", &arguments).text;
        assert!(Estimate.count(&answer) <= 2_100, "{} tokens", Estimate.count(&answer));
        answer
    };
    let answer = search(8);
    for n in 1..=8 {
        assert!(answer.contains(&format!("in store://{n}-")), "{n}: {answer}");
    }
    // If a block does not fit, what was found in its payload is shown alone.
    let answer = search(3);
    assert_eq!(answer.matches("INFO quay-7 lease expired").count(), 3, "{answer}");
    assert!(answer.contains("is left out; load shows it]"), "{answer}");
}

#[test]
fn bs7_a_damaged_payload_is_told_by_its_place() {
    let library = Library::new();
    let todo = library.todo("t1");
    let reference = read(&library, &todo, "Why did it stop?", &log(700, 437, "E_LEASE_4417"));
    let query = r#"{"query":"E_LEASE_4417"}"#;
    assert!(library.run(&todo, "search_block", query).text.contains("INFO E_LEASE_4417"));
    // The index in memory was made while it was whole.
    library.damage_payload(&todo, 1);
    let answer = library.run(&todo, "search_block", query).text;
    assert!(answer.contains("Why did it stop?") && !answer.contains("INFO E_LEASE_4417"));
    assert!(answer.contains(&format!("in {reference}, lines ")), "{answer}");
}

/// R4: what could not be searched is the last line of an answer, within its budget, whether anything was found
/// or not; and if all is well, nothing is added.
#[test]
fn r4_an_answer_ends_with_what_was_not_searched() {
    let library = Library::new();
    let todo = library.todo("t1");
    let long =
        format!("user: E_LEASE_4417 {}\nassistant: noted\n", "the tide is high. ".repeat(2_500));
    library.block(&todo, &long);
    let sound = library.run(&todo, "search_block", r#"{"query":"E_LEASE_4417"}"#);
    assert!(!sound.text.contains("Not searched") && sound.unsearched.is_empty());
    assert!(!sound.structured().contains("unsearched"), "{}", sound.structured());
    let mut references = Vec::new();
    for n in 1..=6 {
        references.push(read(&library, &todo, &format!("log {n}"), &log(700 + n, 437, "E_9")));
        library.damage_payload(&todo, n as u64);
    }
    for (rest, is_found) in [("", true), (r#","block_type":"qa""#, false)] {
        let arguments = format!(r#"{{"query":"E_LEASE_4417","k":1{rest}}}"#);
        let answer = library.run(&todo, "search_block", &arguments);
        assert_eq!(answer.text.contains("is answered by"), is_found, "{}", answer.text);
        let told = answer.text.lines().last().unwrap();
        let expected = references[..4].iter().map(|name| format!("{name} is damaged"));
        let expected = expected.collect::<Vec<_>>().join("; ");
        assert_eq!(told, format!("Not searched: {expected}; 2 more."));
        assert!(Estimate.count(&answer.text) <= 2_100, "{}", answer.text);
        let json: serde_json::Value = serde_json::from_str(&answer.structured()).unwrap();
        let first = serde_json::json!({ "ref": references[0].to_string(), "why": "damaged" });
        assert_eq!(
            (json["unsearched"].as_array().unwrap().len(), &json["unsearched"][0]),
            (6, &first)
        );
    }
    // Words in place of a reference are a search, too.
    for words in ["E_LEASE_4417", "zebra quokka"] {
        let answer = library.run(&todo, "load", &format!(r#"{{"ref":"{words}"}}"#));
        assert!(answer.text.ends_with("; 2 more."), "{}", answer.text);
        assert_eq!(answer.unsearched.len(), 6);
    }
}

/// The words that were found are shown in whatever form they have there.
#[test]
fn bs7_the_excerpt_shows_what_was_found() {
    for (line, query) in [
        ("all directories of quay-7 have vanished", "directory"),
        ("the retries gave out", "retry"),
        ("ＥＲＲＯＲ９９１ 全角", "ERROR991"),
        ("數據庫連接超時", "数据库连接超时"),
        ("ﾃﾞｰﾀﾍﾞｰｽ接続", "データベース接続"),
        ("una señorita en el café", "cafe senorita"),
        ("서버연결이 끊어졌습니다", "서버연결"),
        ("\u{1b}[1;31mpanicked\u{1b}[0m at the quay", "panicked"),
    ] {
        let library = Library::new();
        let todo = library.todo("t1");
        read(&library, &todo, "Why did it stop?", &log(700, 437, line));
        library.block(&todo, "user: what is for lunch\nassistant: soup again");
        let arguments = serde_json::json!({ "query": query }).to_string();
        let answer = library.run(&todo, "search_block", &arguments).text;
        assert!(answer.contains(line), "{query}: {answer}");
    }
}

/// The message that contains what was asked for is shown, not the first one of the block.
#[test]
fn bs7_the_message_that_was_found_is_shown() {
    let library = Library::new();
    let todo = library.todo("t1");
    let filler = "harbor schedule and cranes of the quay ".repeat(70);
    let mut messages: Vec<Message> =
        (0..8).map(|n| Message::user(&format!("{n} {filler}"))).collect();
    messages[5] = Message::user(&format!("5 {filler} the ＤＩＲＥＣＴＯＲＩＥＳ vanished"));
    library.block_of(&todo, messages);
    for _ in 0..6 {
        library.block(&todo, "user: what is for lunch\nassistant: soup again");
    }
    let answer = library.run(&todo, "search_block", r#"{"query":"directory"}"#).text;
    assert!(answer.contains("#5 user: 5 harbor"), "{answer}");
}

#[test]
fn bs7_a_payload_of_several_blocks_is_told_once() {
    let library = Library::new();
    let todo = library.todo("t1");
    let text = log(700, 437, "E_LEASE_4417 the lease has expired");
    for take in 1..=5 {
        read(&library, &todo, &format!("Read it, take {take}."), &text);
        library.block(&todo, "user: what is for lunch\nassistant: soup again");
    }
    let answer = library.run(&todo, "search_block", r#"{"query":"E_LEASE_4417"}"#).text;
    assert!(answer.contains("is answered by b_t1_009"), "{answer}");
    assert!(answer.contains("; also in b_t1_007, b_t1_005, b_t1_003:"), "{answer}");
    assert_eq!(answer.matches("store://").count(), answer.matches("store://1-").count());
}

/// A block that fits is not cut for the sake of its payload.
#[test]
fn bs7_a_block_that_fits_is_shown_whole() {
    let library = Library::new();
    let todo = library.todo("t1");
    let says = format!("{} the end of it", "harbor schedule ".repeat(385));
    let text = log(700, 437, "E_LEASE_4417 the lease of quay-7 has expired");
    let reference = read(&library, &todo, &says, &text);
    let answer = library.run(&todo, "search_block", r#"{"query":"E_LEASE_4417"}"#).text;
    assert!(
        answer.contains("the end of it") && answer.contains("#3 assistant: Noted."),
        "{answer}"
    );
    assert!(!answer.contains("are left out") && !answer.contains("cut here"), "{answer}");
    assert!(answer.contains(&format!("in {reference}, lines ")), "{answer}");
    assert!(Estimate.count(&answer) <= 2_050, "{}", Estimate.count(&answer));
}

/// A page that begins or ends inside a line is not whole.
#[test]
fn bs7_a_part_of_a_line_is_not_called_whole() {
    let library = Library::new();
    let todo = library.todo("t1");
    let reference = read(&library, &todo, "List them.", &"項目 and more, ".repeat(400));
    let head = |lines: &str| {
        let arguments = format!(r#"{{"ref":"{reference}","lines":"{lines}"}}"#);
        let answer = library.run(&todo, "load", &arguments).text;
        answer.lines().next().unwrap().to_owned()
    };
    assert_eq!(head("1-"), format!("[load: {reference}, whole]"));
    assert_eq!(head("1+9-1"), format!("[load: {reference}, lines 1+9-1 of 1]"));
    let long = read(&library, &todo, "List all.", &"項目 and more, ".repeat(9_000));
    let answer = library.run(&todo, "load", &format!(r#"{{"ref":"{long}"}}"#)).text;
    assert!(answer.starts_with(&format!("[load: {long}, lines 1-1 of 1]")), "{answer:.80}");
}
