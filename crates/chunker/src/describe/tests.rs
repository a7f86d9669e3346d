//! Blocks and their headers.

use super::*;
use foldback_core::{CallOutcome, ToolCallId};

fn header(messages: &[Message]) -> BlockHeader {
    header_where(messages, &|_| true)
}

fn header_where(messages: &[Message], leads: &dyn Fn(&str) -> bool) -> BlockHeader {
    let id = BlockId::new(TodoId::new("todo001").unwrap(), 1);
    let recorded_at = Timestamp::parse("2025-01-01 10:00:00").unwrap();
    let parts: Vec<Described<'_>> =
        messages.iter().map(|message| Described::new(message, recorded_at)).collect();
    describe(id, &parts, leads)
}

/// LV9: a block in which the memory was asked has no keywords of the question or of the answer, but
/// those of the calls beside it.
#[test]
fn lv9_what_the_memory_was_asked_gives_no_keywords() {
    let id = BlockId::new(TodoId::new("todo001").unwrap(), 1);
    let recorded_at = Timestamp::parse("2025-01-01 10:00:00").unwrap();
    let asked = r#"{"query": "where is ledger.csv and E_LEASE_4417"}"#;
    let message = Message::calls(
        "",
        vec![
            ToolCall::new("", "search_block", asked),
            ToolCall::new("", "read", r#"{"path": "tides.csv"}"#),
        ],
    );
    let answer = result_of("", "b_001 holds 报告.docx, ValueError: bad lease 17-QX");
    let read = result_of("", "harbor.log: KeyError: 'mole'");
    let messages = [Message::user("look it up"), message, answer, read];
    let parts: Vec<Described<'_>> = (0..)
        .zip(&messages)
        .map(|(at, message)| Described::new(message, recorded_at).with_recall(at == 2))
        .collect();
    let keywords = describe(id, &parts, &|_| true).keywords;
    let expected = ["search_block", "read", "tides.csv", "harbor.log", "KeyError"];
    assert_eq!(keywords[..5], expected, "{keywords:?}");
    for asked in ["ledger.csv", "E_LEASE_4417", "报告.docx", "ValueError", "lease"] {
        assert!(!keywords.iter().any(|word| word.contains(asked)), "{asked}: {keywords:?}");
    }
}

fn result_of(id: &str, text: &str) -> Message {
    Message::tool_result(&ToolCallId::new(id), text)
}

#[track_caller]
fn check(messages: &[Message], kind: BlockType, sentence: &str, keywords: &[&str]) {
    let header = header(messages);
    assert_eq!(header.core_semantic, sentence);
    assert_eq!(header.block_type, kind);
    assert_eq!(header.keywords, keywords);
}

fn call(name: &str, arguments: &str) -> Message {
    Message::calls("", vec![ToolCall::new("c", name, arguments)])
}

fn result(text: &str) -> Message {
    Message::tool_result(&ToolCallId::new("c"), text)
}

/// The design's sample header. One deviation: references carry a check, `store://1-k4qd`; the
/// sample's own are kept as they are in the text.
#[test]
fn md4_the_designs_own_example() {
    let header = header(&[
        Message::user("用read工具读data.txt"),
        call("read", r#"{"path": "data.txt"}"#),
        result("结果存储至store://001"),
        Message::user("好的"),
    ]);
    assert_eq!(header.block_id.to_string(), "b_todo001_001");
    assert_eq!(header.todo_id.as_str(), "todo001");
    assert_eq!(header.block_type, BlockType::ToolCall);
    assert_eq!(header.keywords, ["read", "data.txt", "store://001"]);
    assert_eq!(header.core_semantic, "调用read工具读取data.txt，结果存储至store://001");
    assert_eq!(header.create_time, "2025-01-01 10:00:00");
    assert_eq!(header.data_ids, ["store://001"]);
}

#[test]
fn md2_what_tools_said_is_nobody_s_question() {
    let id = BlockId::new(TodoId::new("todo001").unwrap(), 1);
    let recorded_at = Timestamp::parse("2025-01-01 10:00:00").unwrap();
    let told = Message::observation("tide: the levels at Holm are three and four metres");
    for messages in [vec![told.clone()], vec![told, Message::assistant("They rise at Holm.")]] {
        let parts = messages.iter().map(|message| Described::new(message, recorded_at));
        let about = describe(id.clone(), &parts.collect::<Vec<_>>(), &|_| true).core_semantic;
        assert!(!about.contains("asks") && !about.contains("bservations"), "{about}");
    }
}

#[test]
fn md2_a_sentence_says_who_did_what_with_what() {
    check(
        &[
            Message::user("Hi! Please run the tests in tests/test_api.py. Thanks."),
            call("bash", r#"{"command": "pytest tests/test_api.py"}"#),
            result("Traceback (most recent call last):\n ...\nkeyring.errors.KeyError: 'x'"),
        ],
        BlockType::ToolCall,
        "User asks \"Please run the tests in tests/test_api.py\"; assistant calls bash on \
         tests/test_api.py, which fails with KeyError.",
        &["bash", "tests/test_api.py", "KeyError", "run"],
    );
    check(
        &[
            Message::user("How many moons does Saturn have?"),
            Message::assistant("Saturn has 146 known moons. The largest is Titan."),
        ],
        BlockType::Qa,
        "User asks \"How many moons does Saturn have?\"; assistant answers \"Saturn has 146 \
         known moons\".",
        &["moons", "saturn", "titan", "largest", "known", "many"],
    );
    check(
        &[Message::user("今天天气怎么样？"), Message::assistant("今天上海小雨，气温二十度。")],
        BlockType::Qa,
        "用户问：今天天气怎么样？；助手答：今天上海小雨，气温二十度",
        &["今天上海小雨", "今天天气", "气温二十度"],
    );
    check(&[], BlockType::Chat, "Nothing is said.", &[]);
}

/// MD2: a short question is asked by the user all the same.
#[test]
fn md2_nobody_asks_what_they_answer() {
    let of = |asked: &str, answer: &str| {
        header(&[Message::user(asked), Message::assistant(answer)]).core_semantic
    };
    assert_eq!(
        of("why?", "Because the fuse blew."),
        "User asks \"why?\"; assistant answers \"Because the fuse blew\"."
    );
    assert_eq!(of("为什么？", "因为保险丝烧断了。"), "用户问：为什么？；助手答：因为保险丝烧断了");
    let told = Message::observation("why did the fuse blow?");
    let about = header(&[told, Message::assistant("The fuse was too weak.")]).core_semantic;
    assert_eq!(about, "Assistant says \"The fuse was too weak\".");
}

/// MD2: a name that fits is whole, whatever mark follows it.
#[test]
fn md2_a_mark_behind_a_name_takes_no_letter_of_it() {
    let path = format!("src/{}.rs", "a".repeat(41));
    let arguments = format!("{{\"path\": \"{path}\"}}");
    let messages = [Message::user("Read the file now"), call("read", &arguments), result("好")];
    let about = header(&messages).core_semantic;
    assert!(about.ends_with(&format!("calls read on {path}.")), "{about}");
    let asked = Message::user(&format!("Why is {path}"));
    let about = header(&[asked, Message::assistant("It is old.")]).core_semantic;
    assert!(about.contains(&format!("{path}\"; assistant")), "{about}");
}

/// Line ends and characters that JSON escapes are no part of a name.
#[test]
fn keywords_of_json_are_words() {
    let json = r#"{"body": "Agenda\nnow see\nsrc/deck.rs\nnow", "owner": "M\u00fcller", "title": "\u4f1a\u8bae"}"#;
    let told = header(&[Message::user(json)]).keywords;
    for word in ["src/deck.rs", "müller", "agenda"] {
        assert!(told.iter().any(|keyword| keyword == word), "{word}: {told:?}");
    }
    let chinese = header(&[Message::user(r#"["\u79df\u7ea6"]"#)]).keywords;
    assert_eq!(chinese, ["租约"]);
    let keywords = header(&[call("write", json), result(json)]).keywords;
    assert!(keywords.iter().any(|keyword| keyword == "src/deck.rs"), "{keywords:?}");
    for keyword in told.iter().chain(&keywords) {
        assert!(!keyword.contains(['\\', '\n']) && !keyword.contains("nnow"), "{keyword}");
    }
}

#[test]
fn md2_of_several_calls_the_one_that_fails_is_named() {
    let calls = |of: &[(&str, &str)]| {
        let call = |(n, (name, path)): (usize, &(&str, &str))| {
            ToolCall::new(&n.to_string(), name, &format!("{{\"path\": \"{path}\"}}"))
        };
        Message::calls("", of.iter().enumerate().map(call).collect())
    };
    let sentence = |asked: &str, of: &[(&str, &str)], answers: &[&str]| {
        let mut messages = vec![Message::user(asked), calls(of)];
        let answer = |(n, text): (usize, &&str)| result_of(&n.to_string(), text);
        messages.extend(answers.iter().enumerate().map(answer));
        header(&messages).core_semantic
    };
    let read = [("read", "a.py"), ("read", "b.py"), ("read", "c.py")];
    let asked = "Why a ValueError?";
    let all =
        |first: &str, second: &str, third: &str| sentence(asked, &read, &[first, second, third]);
    assert_eq!(
        all("fine", "FileNotFoundError: b.py", "KeyError: 'x'"),
        "User asks \"Why a ValueError?\"; assistant calls read, which fails on b.py with FileNotFoundError."
    );
    // What a person asked about is not what the call failed with.
    assert_eq!(
        all("error: no such file", "fine", "fine"),
        "User asks \"Why a ValueError?\"; assistant calls read on a.py, which fails."
    );
    // What a result states of its call is not inferred from its text: here a file that begins so was read.
    let stated = |outcome: CallOutcome, text: &str| {
        let result = result_of("0", text).with_outcome(outcome);
        header(&[Message::user(asked), calls(&read[..1]), result]).core_semantic
    };
    assert_eq!(
        stated(CallOutcome::Succeeded, "error: 错误的列表"),
        "User asks \"Why a ValueError?\"; assistant calls read on a.py."
    );
    assert_eq!(
        stated(CallOutcome::Failed, "没有这个文件"),
        "User asks \"Why a ValueError?\"; assistant calls read on a.py, which fails."
    );
    let two = [("read", "a.py"), ("grep", "b.py")];
    assert_eq!(
        sentence(asked, &two, &["fine", "TypeError: bad pattern"]),
        "User asks \"Why a ValueError?\"; assistant calls read and grep, of which grep fails on b.py with \
         TypeError."
    );
    assert_eq!(
        sentence(asked, &two, &["TypeError: bad path", "fine"]),
        "User asks \"Why a ValueError?\"; assistant calls read and grep on a.py, which fails with TypeError."
    );
    let about = sentence(
        "请读取闸门的文件",
        &[("read", "闸门.txt"), ("read", "泊位.txt")],
        &["好", "错误：没有文件"],
    );
    assert!(about.contains("泊位.txt") && !about.contains("闸门.txt"), "{about}");
}

/// BL10: in Japanese and Korean, too, keywords are words and the sentence is short.
#[test]
fn bl10_keywords_are_words_in_japanese_and_korean() {
    for (asked, answered, expected) in [
        (
            "本番のサーバーの応答が遅いので、原因を調べてもらえますか",
            "メモリの使用量が二月三日から増え続けています。設定を元に戻すと、応答時間は以前の水準になります。",
            ["サーバー", "メモリ", "応答時間"],
        ),
        (
            "결제 서비스에서 카드사를 바꾸면 비용은 얼마나 늘어날까요?",
            "카드사를 바꾸면 수수료를 다시 계약해야 해서 비용이 한 해에 이백만 원쯤 늘어납니다.",
            ["결제", "카드사", "수수료"],
        ),
    ] {
        let header = header(&[Message::user(asked), Message::assistant(answered)]);
        for word in expected {
            assert!(header.keywords.iter().any(|k| k == word), "{:?}", header.keywords);
        }
        let length = header.core_semantic.chars().count();
        assert!((20..=50).contains(&length), "{}", header.core_semantic);
        assert_eq!(header.block_type, BlockType::Qa);
    }
}

#[test]
fn md1_everything_in_a_header_is_bounded() {
    let long = "x".repeat(10_000);
    let names: String = (0..5_000).map(|i| format!("dir/file{i}.rs store://{i}-aaaa ")).collect();
    for text in [long.as_str(), names.as_str(), &"长".repeat(9_000), "\u{0}\n\t", "\"\"\""] {
        let arguments = format!("{{\"q\": \"{text}\"}}");
        for messages in [
            vec![Message::user(text), Message::assistant(text)],
            vec![call(text, &arguments), result(text), Message::assistant(text)],
            vec![Message::system(text)],
            vec![result(text)],
        ] {
            let header = header(&messages);
            let sentence = &header.core_semantic;
            let is_cjk_text = sentence.chars().any(is_cjk);
            let words = sentence.split_whitespace().count();
            assert!(!sentence.is_empty() && !sentence.contains(char::is_control));
            if is_cjk_text {
                assert!(sentence.chars().count() <= 50, "{sentence}");
            } else {
                assert!(words <= 20 && sentence.len() < 20 * 150, "{sentence}");
            }
            assert!(header.keywords.len() <= KEYWORDS);
            assert!(header.keywords.iter().all(|word| word.chars().count() <= 48));
            assert!(header.data_ids.len() <= DATA_IDS);
        }
    }
}

/// Only the ends of a text of 8 MB are read: it is described as its first 3,000 characters are,
/// followed by a filler that names nothing.
#[test]
fn md1_a_long_text_is_described_by_its_head() {
    const SIZE: usize = 8 << 20;
    let fill = |head: &str, filler: &str| {
        let mut text = head.repeat(HEAD / head.chars().count() + 1);
        text.truncate(first_chars(&text, HEAD).len());
        let short = text.clone();
        text.push_str(&filler.repeat((SIZE - text.len()) / filler.len()));
        (text, short)
    };
    let parts = |text: &str| {
        let json = format!(
            r#"{{"role":"user","content":[{{"type":"text","text":"ok"}},{{"type":"text","text":"{text}"}}]}}"#
        );
        Message::from_json(&json).unwrap()
    };
    let lexer = || Message::user("Please fix the lexer tests");
    for (head, filler) in [
        ("ok ", "repair that parser now "),
        ("好的 ", "修复解析器的错误 "),
        ("well, line after line. ", "Traceback (most recent call last) in between. "),
    ] {
        let (long, short) = fill(head, filler);
        let quoted = |text: &str| format!("{{\"q\": \"{text}\"}}");
        let of = |text: &str| {
            [
                header(&[Message::user(text), lexer()]),
                header(&[parts(text), lexer()]),
                header(&[Message::user("why?"), Message::assistant(text), lexer()]),
                header(&[Message::system(text)]),
                header(&[
                    lexer(),
                    call("read", "{}"),
                    result(&format!("{text} {}", "and so on ".repeat(1_300))),
                ]),
                header(&[lexer(), call("read", &quoted(text)), result("ok")]),
                header(&[lexer(), call(text, "{}"), result("ok")]),
            ]
        };
        for (long, short) in of(&long).iter().zip(of(&short)) {
            assert_eq!(*long, short);
        }
    }
    // A text that begins with this many blanks says nothing.
    let (long, short) = fill(" ", "repair that parser now ");
    let of = |text: &str| header(&[Message::user(text), lexer()]).core_semantic;
    assert_eq!(of(&long), of(&short));
}

#[test]
fn references_of_the_own_todo_lose_its_name() {
    let header = header(&[Message::user(
        "see store://todo001/3-k4qd, store://3-k4qd and store://t2/3-k4qd",
    )]);
    assert_eq!(header.data_ids, ["store://3-k4qd", "store://t2/3-k4qd"]);
}

/// MD1: a reference that leads nowhere is text: it is neither listed nor said to be a result. One that a sub-agent
/// returned, and that leads to its payload, is both.
#[test]
fn md1_a_reference_that_leads_nowhere_is_not_listed() {
    let leads = |name: &str| name == "store://t2/3-k4qd";
    let fake = "docs: store://9-abcd is an example";
    let about = |text: &str| {
        let messages = [Message::user("Read the page"), call("sh", "{}"), result(text)];
        let header = header_where(&messages, &leads);
        assert!(!header.keywords.contains(&"store://9-abcd".to_owned()), "{:?}", header.keywords);
        (header.core_semantic, header.data_ids)
    };
    let (sentence, listed) = about(fake);
    assert!(
        sentence.ends_with("assistant calls sh.") && listed.is_empty(),
        "{sentence} {listed:?}"
    );
    let (sentence, listed) = about(&format!("{fake}; store://t2/3-k4qd"));
    assert!(sentence.ends_with("result at store://t2/3-k4qd."), "{sentence}");
    assert_eq!(listed, ["store://t2/3-k4qd"]);
    // What is asked of a tool is no result of it.
    let messages = [call("sh", r#"{"a": "store://t2/3-k4qd"}"#), result("完成")];
    let header = header_where(&messages, &leads);
    assert!(!header.core_semantic.contains("result at"), "{}", header.core_semantic);
    assert_eq!(header.data_ids, ["store://t2/3-k4qd"]);
    // A bounded number is looked up.
    let asked = std::cell::Cell::new(0);
    let many: String = (1..300).map(|n| format!("store://{n}-abcd\n")).collect();
    header_where(&[result(&many)], &|_| {
        asked.set(asked.get() + 1);
        false
    });
    assert_eq!(asked.get(), DATA_IDS);
}
