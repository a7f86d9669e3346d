//! The metadata of a closed block, made without a model.

use crate::background::background;
use crate::cues::Cues;
use crate::names::{Kind, each_name};
use crate::sentence;
use crate::stems::Stem;
use crate::terms::{damped, each_cjk_run, each_word, is_cjk};
use crate::width::folded;
use foldback_core::script::is_unspaced_alphabet;
use foldback_core::{
    BlockHeader, BlockId, BlockType, Content, Message, Offload, PayloadRef, Role, Timestamp,
    TodoId, ToolCall, first_chars, last_chars,
};
use std::borrow::Cow;
use std::collections::BTreeMap;
use unicode_normalization::char::is_combining_mark;

/// A message of a block, with its full text.
#[derive(Clone, Copy, Debug)]
pub struct Described<'a> {
    pub(crate) message: &'a Message,
    offloads: &'a [Offload],
    recorded_at: Timestamp,
    recall: bool,
}

impl<'a> Described<'a> {
    /// A message, and when it was recorded, for a block whose messages carry no time.
    #[must_use]
    pub fn new(message: &'a Message, recorded_at: Timestamp) -> Self {
        Self { message, offloads: &[], recorded_at, recall: false }
    }

    /// The same with the parts of it that are stored outside.
    #[must_use]
    pub fn with_offloads(self, offloads: &'a [Offload]) -> Self {
        Self { offloads, ..self }
    }

    /// The same, being the answer of a memory tool or not. What such an answer names, and what was
    /// asked, are no keywords: a block is found by what happened in it, and not by what somebody
    /// looked for there.
    #[must_use]
    pub fn with_recall(self, recall: bool) -> Self {
        Self { recall, ..self }
    }
}

/// Describes a block: its kind, its keywords, one sentence, its time and its payloads. `parts` are
/// the messages of the block, in order.
///
/// It costs a bounded amount of work for each message: of a text, no more is read than its first
/// 3,000 characters, for names its last 1,500 as well, and for a traceback its last 12,000. (The
/// texts of a message that holds several are put together first.)
#[must_use]
pub fn describe(id: BlockId, parts: &[Described<'_>]) -> BlockHeader {
    let at = parts.iter().find_map(|part| part.message.timestamp());
    let at = at.or_else(|| parts.first().map(|part| part.recorded_at)).unwrap_or_default();
    let data_ids = data_ids(id.todo(), parts);
    let names = Names::of(parts, &data_ids);
    let block_type = block_type(parts);
    BlockHeader {
        todo_id: id.todo().clone(),
        block_id: id,
        block_type,
        keywords: keywords(&names, parts),
        core_semantic: sentence::of(block_type, &names, parts),
        create_time: at.to_string(),
        data_ids,
    }
}

/// How many keywords a header holds at most.
const KEYWORDS: usize = 12;

/// How many references a header holds at most. A block of eight messages with more is a listing of
/// references, not a reader of them.
const DATA_IDS: usize = 64;

/// How much of a text is looked at: its first characters and its last ones, where errors stand.
const HEAD: usize = 3_000;
const TAIL: usize = 1_500;

/// What a block names, each kind without repetition and in the order of its first mention: what is
/// called and said first, what tools answered last.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) tools: Vec<String>,
    pub(crate) files: Vec<String>,
    pub(crate) ids: Vec<String>,
    pub(crate) errors: Vec<String>,
    pub(crate) references: Vec<String>,
    /// The first name that stands in the arguments of a call.
    pub(crate) target: Option<String>,
}

impl Names {
    fn of(parts: &[Described<'_>], data_ids: &[String]) -> Self {
        let mut names = Self { references: data_ids.to_vec(), ..Self::default() };
        let mut asked = Self::default();
        for (call, is_recall) in calls(parts) {
            add(&mut names.tools, ends(&call.name).0);
            let (head, tail) = ends(&call.arguments);
            let (head, tail) = (unescaped(head), unescaped(tail));
            let named = if is_recall { &mut asked } else { &mut names };
            named.read_part(&head);
            named.read_part(&tail);
            let first = named.files.first().or(named.ids.first()).cloned();
            if names.target.is_none() {
                names.target = first.or_else(|| only_value(&head));
            }
        }
        let is_tool = |part: &&Described<'_>| *part.message.role() == Role::Tool;
        // Instructions speak of everything; they say nothing about what happened.
        let spoken =
            parts.iter().filter(|part| !is_tool(part) && !part.message.role().is_instruction());
        let answered = parts.iter().filter(|part| is_tool(part) && !part.recall);
        for part in spoken.chain(answered) {
            names.read(&part.message.text());
        }
        names
    }

    fn read(&mut self, text: &str) {
        let (head, tail) = ends(text);
        self.read_part(head);
        self.read_part(tail);
    }

    fn read_part(&mut self, text: &str) {
        each_name(&folded(text), |kind, name| match kind {
            Kind::File => add(&mut self.files, name),
            Kind::Id => add(&mut self.ids, name),
            Kind::Error => add(&mut self.errors, name.rsplit('.').next().unwrap_or(name)),
            Kind::Reference => {}
        });
    }
}

/// The calls of a block, and whether a memory tool answered each. Ids may come again: a result answers the
/// first open call of its id, among those that were made last.
fn calls<'a>(parts: &[Described<'a>]) -> Vec<(&'a ToolCall, bool)> {
    let mut calls: Vec<(&ToolCall, bool)> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for part in parts {
        let made = part.message.tool_calls();
        let comes_again = |at: &usize| {
            calls.get(*at).is_some_and(|(old, _)| made.iter().any(|call| call.id == old.id))
        };
        open.retain(|at| !comes_again(at));
        open.extend(calls.len()..calls.len() + made.len());
        calls.extend(made.iter().map(|call| (call, false)));
        let Some(id) = part.message.tool_call_id() else { continue };
        let answers = |at: &usize| calls.get(*at).is_some_and(|(call, _)| call.id == *id);
        let Some(at) = open.iter().position(answers).map(|place| open.remove(place)) else {
            continue;
        };
        if let Some((_, is_recall)) = calls.get_mut(at) {
            *is_recall = part.recall;
        }
    }
    calls
}

/// Adds a name that is not there yet. A listing of hundreds of names says no more than its first.
fn add(names: &mut Vec<String>, name: &str) {
    const OF_A_KIND: usize = 24;
    if names.len() < OF_A_KIND && !names.iter().any(|known| known == name) {
        names.push(name.to_owned());
    }
}

/// JSON whose escaped CJK characters are written out: many programs escape all but ASCII.
fn unescaped(json: &str) -> Cow<'_, str> {
    if !json.contains("\\u") {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        let code = escape.strip_prefix("\\u").and_then(|code| code.get(..4));
        let c = code.and_then(|code| u32::from_str_radix(code, 16).ok()).and_then(char::from_u32);
        out.push_str(before);
        let length = if let Some(c) = c.filter(|c| is_cjk(*c)) {
            out.push(c);
            6
        } else {
            let length = escape.char_indices().nth(2).map_or(escape.len(), |(at, _)| at);
            out.push_str(&escape[..length]);
            length
        };
        rest = &escape[length..];
    }
    Cow::Owned(out + rest)
}

/// The value of arguments that are one short text, or hold one: `{"query": "rate limits"}`.
fn only_value(arguments: &str) -> Option<String> {
    let inside = arguments.trim_start().strip_prefix('{')?;
    let value = inside.split_once(':')?.1.trim_start().strip_prefix('"')?;
    let (value, _) = value.split_once('"')?;
    let words = value.split_whitespace().count();
    ((1..=4).contains(&words) && value.chars().count() <= 30 && !value.contains('\\'))
        .then(|| value.to_owned())
}

/// The first and the last characters of a text, without overlap.
pub(crate) fn ends(text: &str) -> (&str, &str) {
    let (head, rest) = text.split_at(first_chars(text, HEAD).len());
    let tail = last_chars(rest, TAIL);
    (head, tail)
}

/// The first characters of what a message says.
pub(crate) fn head(message: &Message) -> Cow<'_, str> {
    match message.text() {
        Cow::Borrowed(text) => folded(ends(text).0),
        Cow::Owned(text) => Cow::Owned(folded(ends(&text).0).into_owned()),
    }
}

fn block_type(parts: &[Described<'_>]) -> BlockType {
    let calls = |part: &Described<'_>| {
        *part.message.role() == Role::Tool || !part.message.tool_calls().is_empty()
    };
    if parts.iter().any(calls) {
        return BlockType::ToolCall;
    }
    let asked = parts.iter().position(|part| {
        *part.message.role() == Role::User && Cues::of(&part.message.text()).has(Cues::ASKS)
    });
    let answered = asked.is_some_and(|asked| {
        parts.iter().skip(asked + 1).any(|part| {
            *part.message.role() == Role::Assistant && !part.message.content().is_blank()
        })
    });
    if answered { BlockType::Qa } else { BlockType::Chat }
}

/// References inside the own todo lose its name, so that one payload has one id.
fn data_ids(todo: &TodoId, parts: &[Described<'_>]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut add = |reference: String| {
        if found.len() < DATA_IDS && !found.contains(&reference) {
            found.push(reference);
        }
    };
    for part in parts {
        for offload in part.offloads {
            add(offload.reference().to_string());
        }
        let read = |text: &str, add: &mut dyn FnMut(String)| {
            let (head, tail) = ends(text);
            for text in [head, tail].iter().filter(|text| text.contains(PayloadRef::SCHEME)) {
                each_name(text, |kind, name| {
                    if kind != Kind::Reference {
                        return;
                    }
                    match name.parse::<PayloadRef>() {
                        Ok(known) if known.todo.as_ref() == Some(todo) => {
                            add(PayloadRef::local(known.n, known.check).to_string());
                        }
                        _ => add(name.to_owned()),
                    }
                });
            }
        };
        if let Content::Text(_) | Content::Parts(_) = part.message.content() {
            read(&part.message.text(), &mut add);
        }
        for call in part.message.tool_calls() {
            read(&call.arguments, &mut add);
        }
    }
    found
}

/// Names first, then the words that tell most.
fn keywords(names: &Names, parts: &[Described<'_>]) -> Vec<String> {
    let mut keywords: Vec<String> = Vec::with_capacity(KEYWORDS);
    let kinds = [
        (&names.tools, 4),
        (&names.files, 4),
        (&names.ids, 3),
        (&names.errors, 2),
        (&names.references, 2),
    ];
    for (kind, most) in kinds {
        for name in kind.iter().take(most) {
            let name = sentence::word(name);
            if keywords.len() < KEYWORDS && !keywords.contains(&name) {
                keywords.push(name);
            }
        }
    }
    for word in words(parts) {
        if keywords.len() >= KEYWORDS {
            break;
        }
        let known = |keyword: &String| keyword.to_lowercase().contains(&word);
        if !keywords.iter().any(known) {
            keywords.push(word);
        }
    }
    keywords
}

/// The words of what was said, those that tell most first. Where nobody said a word, those of what
/// the tools answered.
fn words(parts: &[Described<'_>]) -> Vec<String> {
    let mut counts: BTreeMap<String, u8> = BTreeMap::new();
    let is_spoken = |part: &&Described<'_>| {
        matches!(part.message.role(), Role::User | Role::Assistant | Role::Other(_))
    };
    for part in parts.iter().filter(is_spoken) {
        count_words(&part.message.text(), &mut counts);
    }
    if counts.is_empty() {
        for part in parts.iter().filter(|part| !is_spoken(part) && !part.recall) {
            count_words(&part.message.text(), &mut counts);
        }
        counts.retain(|_, count| *count > 1);
    }
    // A run of Chinese characters is a phrase rather than a word, unless it is said again.
    let is_phrase = |word: &str| word.chars().any(is_cjk);
    let some_names = counts.keys().any(|word| !is_phrase(word));
    let tool_talk = parts.iter().any(|part| !part.message.tool_calls().is_empty());
    counts.retain(|word, count| !is_phrase(word) || *count > 1 || !(some_names || tool_talk));
    let weight = |word: &str, count: u8| background(Stem::of(word).term) * damped(count);
    let mut words: Vec<(f32, String)> =
        counts.into_iter().map(|(word, count)| (weight(&word, count), word)).collect();
    words.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    words.into_iter().map(|(_, word)| word).take(2 * KEYWORDS).collect()
}

fn count_words(text: &str, counts: &mut BTreeMap<String, u8>) {
    let head = folded(ends(text).0);
    let mut count = |word: &str| {
        let count = counts.entry(word.to_owned()).or_default();
        *count = count.saturating_add(1);
    };
    each_word(&head, |word| {
        let is_letter = |c: char| c.is_alphabetic() || is_combining_mark(c);
        let is_of_words = |c: char| is_letter(c) && !is_cjk(c) && !is_unspaced_alphabet(c);
        let fits = (3..=24).contains(&word.len()) && word.chars().all(is_of_words);
        if fits && !Stem::of(word).is_stop_word {
            count(word);
        }
    });
    each_cjk_run(&head, &mut count);
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_core::ToolCallId;

    fn header(messages: &[Message]) -> BlockHeader {
        let id = BlockId::new(TodoId::new("todo001").unwrap(), 1);
        let recorded_at = Timestamp::parse("2025-01-01 10:00:00").unwrap();
        let parts: Vec<Described<'_>> =
            messages.iter().map(|message| Described::new(message, recorded_at)).collect();
        describe(id, &parts)
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
        let keywords = describe(id, &parts).keywords;
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
    /// sample's own are kept as they stand in the text.
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
            let about = describe(id.clone(), &parts.collect::<Vec<_>>()).core_semantic;
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
        let names: String =
            (0..5_000).map(|i| format!("dir/file{i}.rs store://{i}-aaaa ")).collect();
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

    /// Of a text of 8 MB, no more than its ends is read: it is described as its first 3,000
    /// characters are, with what stands behind them a filler that names nothing.
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
        // What begins with so many blanks says nothing.
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
}
