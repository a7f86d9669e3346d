//! What is read is written back byte for byte.

use foldback_testkit::{data, generate, skip_without_data};
use foldback_transcript::{Conversation, Conversations, Envelope, Format, Limits, read_bytes};
use foldback_transcript::{MessageLines, read_file, read_message_line};
use proptest::prelude::*;
use std::io::{Read, Write};

fn read(input: impl AsRef<[u8]>) -> Vec<Conversation> {
    read_bytes(input.as_ref()).unwrap().collect::<Result<_, _>>().unwrap()
}

fn one(input: impl AsRef<[u8]>) -> Conversation {
    let mut all = read(input);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

#[track_caller]
fn check(text: &str, format: Format, id: Option<&str>, messages: usize) {
    let read = one(text);
    assert_eq!(read.envelope.format(), format);
    assert_eq!(read.id.as_deref(), id);
    assert_eq!(read.messages.len(), messages);
    assert_eq!(read.to_original(), text);
}

/// Keys of log lines do not turn a conversation into a log, nor do parts of other APIs.
#[test]
fn a_conversation_with_keys_of_others_stays_as_it_is() {
    use Format::*;
    let messages =
        r#""messages":[{"role":"user","content":"嗨"},{"role":"assistant","content":"y"}]"#;
    let thinking = r#""messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"t"},{"type":"text","text":"y"}]}]"#;
    for line in [
        format!(r#"{{"id":"a","type":"chat","sessionId":"s",{messages}}}"#),
        format!(
            r#"{{"id":"a","type":"user","uuid":"u","sessionId":"s","parentUuid":null,{messages}}}"#
        ),
        format!(
            r#"{{"id":"a","timestamp":"2026-01-01T00:00:00Z","instructions":"Be brief",{messages}}}"#
        ),
        format!(r#"{{"id":"a","type":"compacted","payload":{{}},{messages}}}"#),
        format!(r#"{{"id":"a","session_id":"s","type":"user",{messages}}}"#),
        format!(
            r#"{{"id":"a","request":{{"messages":[]}},"response":{{"choices":[]}},{messages}}}"#
        ),
        format!(r#"{{"id":"a","qa":[1],"system":"s",{messages}}}"#),
        format!(r#"{{"id":"a","qa": [1],{thinking}}}"#),
    ] {
        let count = if line.contains("thinking") { 1 } else { 2 };
        check(&line, FoldbackJsonLines, Some("a"), count);
        let two = format!("{line}\n{line}\n");
        assert_eq!(read(two).len(), 2, "each line is one: {line}");
    }
    check(
        r#"{"model":"m","system":{"os":"linux"},"messages":[{"role":"user","content":"a"}]}"#,
        ChatCompletionsBody,
        None,
        1,
    );
    check(
        r#"{"messages":[{"role":"developer","content":"d"},{"role":"user","content":[{"type":"image","source":{"data":"x"}}]}]}"#,
        ChatCompletionsBody,
        None,
        2,
    );
}

#[test]
fn each_format_is_recognised_by_its_content() {
    use Format::*;
    check(r#"{"id":"a","messages":[]}"#, FoldbackJsonLines, Some("a"), 0);
    check(
        r#"{"messages": [{"role":"user","content":"x"}],"id":7}"#,
        FoldbackJsonLines,
        Some("7"),
        1,
    );
    check(
        r#"[{"role":"user","content":"x"},  {"role":"assistant"}]"#,
        ChatCompletionsArray,
        None,
        2,
    );
    check(
        r#"{"model":"m","messages":[ ],"tools":[{"type":"function"}]}"#,
        ChatCompletionsBody,
        None,
        0,
    );
    check(
        r#"{"messages":[{"role":"user","content":"x"}],"max_tokens":5}"#,
        ChatCompletionsBody,
        None,
        1,
    );
    check(
        "{\n  \"id\": \"问\",\r\n  \"messages\": [\n    {\"role\": \"user\",\n \"content\": \"答\"}\n]\n}",
        FoldbackJsonLines,
        Some("问"),
        1,
    );
    // A body with a tool role is chat-completions whatever else it holds.
    check(
        r#"{"system":"s","messages":[{"role":"tool","tool_call_id":"c","content":[{"type":"tool_result"}]}]}"#,
        ChatCompletionsBody,
        None,
        1,
    );
}

#[test]
fn white_space_around_is_no_part_of_a_conversation() {
    let line = r#"{"id":"a","messages":[]}"#;
    let input = format!("\u{feff}\r\n\n  {line}\t\r\n \n{line}");
    let read = read(&input);
    assert_eq!(read.len(), 2);
    assert!(read.iter().all(|conversation| conversation.to_original() == line));
}

#[test]
fn packed_input_reads_like_plain_input() {
    let text = "{\"id\":\"a\",\"messages\":[]}\n{\"id\":\"b\",\"messages\":[]}\n";
    let packed = zstd::encode_all(text.as_bytes(), 3).unwrap();
    assert_eq!(read(&packed), read(text));
    // Two consecutive frames are one text, as `cat a.zst b.zst` makes them.
    assert_eq!(read([packed.clone(), packed].concat()).len(), 4);
}

#[test]
fn the_line_of_each_conversation_is_known() {
    let text = "\n{\"id\":\"a\",\"messages\":[]}\n\n{\"id\":\"b\",\"messages\":[]}\n";
    let mut conversations = read_bytes(text.as_bytes()).unwrap();
    let mut lines = vec![conversations.line()];
    while conversations.next().is_some() {
        lines.push(conversations.line());
    }
    assert_eq!(lines, [0, 2, 4]);
}

#[test]
fn other_keys_are_kept_and_can_be_asked_for() {
    let text =
        r#"{"qa":[{"q":1.50}],"messages":[{"role":"user","content":"x"}],"b":[3, 7],"b":[4]}"#;
    let read = one(text);
    assert_eq!(read.envelope.get("qa").as_deref(), Some(r#"[{"q":1.50}]"#));
    assert_eq!(read.envelope.get("b").as_deref(), Some("[4]"));
    assert_eq!(read.envelope.get("c"), None);
    let keys: Vec<_> = read.envelope.fields().into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, ["qa", "messages", "b", "b"]);
    let kept: Envelope =
        serde_json::from_str(&serde_json::to_string(&read.envelope).unwrap()).unwrap();
    assert_eq!(Conversation::from_parts(None, read.messages, kept).to_original(), text);
}

#[test]
fn a_json_line_keeps_messages_and_values_as_they_stand() {
    #[track_caller]
    fn check(text: &str, id: Option<&str>, expected: &str) {
        let mut read = one(text);
        if id.is_some() {
            read.id = id.map(str::to_owned);
        }
        assert_eq!(read.to_json_line(), expected);
        assert!(
            one(expected)
                .messages
                .iter()
                .map(|m| m.json())
                .eq(one(read.to_json_line()).messages.iter().map(|m| m.json()))
        );
    }
    let message = r#"{"content": "\u00e9\/", "role":"user", "n": 1.50}"#;
    check(
        &format!(r#"{{ "id" : "a", "messages" : [ {message} ], "k": 1e5 }}"#),
        None,
        &format!(r#"{{"id":"a","messages":[{message}],"k":1e5}}"#),
    );
    check(&format!("[{message}]"), None, &format!(r#"{{"messages":[{message}]}}"#));
    check(
        &format!("[{message},{message}]"),
        Some("新"),
        &format!(r#"{{"id":"新","messages":[{message},{message}]}}"#),
    );
    check(
        r#"{"k":0,"id":"old","messages":[]}"#,
        Some("new"),
        r#"{"k":0,"id":"new","messages":[]}"#,
    );
    check(
        "{\"id\":\"a\",\n\"messages\":[{\"role\":\n\"user\"}\r\n]}",
        None,
        r#"{"id":"a","messages":[{"role": "user"}]}"#,
    );
}

#[test]
fn a_conversation_made_of_parts_is_a_line() {
    let messages = foldback_testkit::transcript("user: a\nassistant: b");
    let made = Conversation::from_parts(Some("x".into()), messages, Envelope::default());
    let line = made.to_json_line();
    let read = one(&line);
    assert_eq!((read.id.as_deref(), &read.messages), (Some("x"), &made.messages));
    assert_eq!(read.to_original(), line);
}

#[test]
fn messages_are_read_line_by_line() {
    let text = "\u{feff}{\"role\":\"user\"}\r\n\n {\"role\":\"assistant\",\"x\":1.0}";
    let read: Vec<_> = MessageLines::from_reader("stdin", text.as_bytes(), Limits::default())
        .unwrap()
        .map(|message| message.unwrap().json().to_owned())
        .collect();
    assert_eq!(read, [r#"{"role":"user"}"#, r#"{"role":"assistant","x":1.0}"#]);
    assert_eq!(read_message_line(" {\"role\":\"user\"}\n", 1).unwrap().json(), read[0]);
}

#[test]
fn a_message_is_given_as_soon_as_its_line_is_there() {
    // A reader that fails after the first line shows that nothing beyond it was read.
    struct Slow(usize);
    impl Read for Slow {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            self.0 += 1;
            if self.0 > 1 {
                return Err(std::io::Error::other("asked for more"));
            }
            let line = b"{\"role\":\"user\"}\n";
            buf[..line.len()].copy_from_slice(line);
            Ok(line.len())
        }
    }
    let mut lines = MessageLines::from_reader("pipe", Slow(0), Limits::default()).unwrap();
    assert!(lines.next().unwrap().is_ok());
    let error = lines.next().unwrap().unwrap_err().to_string();
    assert!(error.contains("pipe could not be read: asked for more"), "{error}");
    assert!(lines.next().is_none());
}

/// Every conversation of the data, compared with the lines that the files hold.
#[test]
fn every_recorded_conversation_comes_back_byte_for_byte() {
    skip_without_data!();
    let (mut files, mut conversations, mut messages) = (0, 0, 0);
    for path in data::files(&[]) {
        let mut bytes = std::fs::read(&path).unwrap();
        if path.to_string_lossy().ends_with(".zst") {
            bytes = zstd::decode_all(bytes.as_slice()).unwrap();
        }
        let text = String::from_utf8(bytes).unwrap();
        let expected: Vec<&str> = if path.to_string_lossy().ends_with(".json") {
            vec![text.trim()]
        } else {
            text.lines().filter(|line| !line.trim().is_empty()).collect()
        };
        let mut read = 0;
        for (line, conversation) in expected.iter().zip(read_file(&path).unwrap()) {
            let conversation = conversation.unwrap();
            assert!(
                conversation.to_original() == **line,
                "{} {:?}",
                path.display(),
                conversation.id
            );
            // As a line of its own it says the same.
            let again = one(conversation.to_json_line());
            assert_eq!(again.messages.len(), conversation.messages.len());
            let as_json = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
            assert!(as_json(&conversation.to_json_line()) == as_json(line));
            assert_eq!(conversation.envelope.format(), Format::FoldbackJsonLines);
            messages += conversation.messages.len();
            read += 1;
        }
        assert_eq!(read, expected.len(), "{}", path.display());
        files += 1;
        conversations += read;
    }
    eprintln!("{files} files, {conversations} conversations, {messages} messages");
    assert!(conversations > 0);
}

#[test]
fn files_are_read_plain_and_packed() {
    let folder = tempfile::tempdir().unwrap();
    let text = "{\"id\":\"a\",\"messages\":[]}\n";
    let plain = folder.path().join("plain.zst");
    std::fs::write(&plain, text).unwrap();
    let packed = folder.path().join("packed.jsonl");
    let mut file = std::fs::File::create(&packed).unwrap();
    file.write_all(&zstd::encode_all(text.as_bytes(), 1).unwrap()).unwrap();
    for path in [plain, packed] {
        let all: Vec<_> = read_file(path).unwrap().map(Result::unwrap).collect();
        assert_eq!(all[0].to_original(), text.trim());
    }
}

/// A conversation, except for a bare list without messages, which is not one.
fn conversation_json(one_line: bool) -> impl Strategy<Value = String> {
    let is_empty = |text: &str| text.starts_with('[') && !text.contains('{');
    generate::conversation_json(one_line)
        .prop_filter("a bare list holds a message", move |text| !is_empty(text.trim()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn odd_json_comes_back_byte_for_byte(
        lines in proptest::collection::vec(conversation_json(true), 1..4),
        packed: bool,
    ) {
        let text = lines.join("\n");
        let bytes = if packed { zstd::encode_all(text.as_bytes(), 1).unwrap() } else { text.into_bytes() };
        let read = read(bytes);
        prop_assert_eq!(read.len(), lines.len());
        for (conversation, line) in read.iter().zip(&lines) {
            prop_assert_eq!(&conversation.to_original(), line);
            let json_line = conversation.to_json_line();
            prop_assert!(!json_line.contains('\n'));
            let again = one(&json_line);
            prop_assert_eq!(&again.messages, &conversation.messages);
            // A line of ours is its own original, and making it again changes nothing.
            prop_assert_eq!(&again.to_original(), &json_line);
            prop_assert_eq!(&again.to_json_line(), &json_line);
        }
    }

    #[test]
    fn pretty_printed_json_comes_back_byte_for_byte(text in conversation_json(false)) {
        // A first line that is whole makes the text JSON Lines, and this one is not meant to be.
        prop_assume!(text.lines().count() > 1 && !text.lines().next().unwrap().ends_with(['}', ']']));
        let read = one(&text);
        prop_assert_eq!(read.to_original(), text);
        let again = one(read.to_json_line());
        prop_assert_eq!(again.messages.len(), read.messages.len());
        for (a, b) in again.messages.iter().zip(&read.messages) {
            prop_assert_eq!((a.role(), a.content(), a.tool_calls()), (b.role(), b.content(), b.tool_calls()));
        }
    }

    #[test]
    fn bytes_of_any_kind_are_read_or_refused_by_name(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        match Conversations::from_reader("a.jsonl", bytes.as_slice(), Limits::default()) {
            Ok(conversations) => for conversation in conversations {
                let error = conversation.err().map_or("a.jsonl".to_owned(), |error| error.to_string());
                prop_assert!(error.contains("a.jsonl"), "{}", error);
            },
            Err(error) => prop_assert!(error.to_string().contains("a.jsonl"), "{}", error),
        }
    }

    #[test]
    fn a_damaged_conversation_is_read_or_refused_with_its_place(
        text in generate::conversation_json(true), at: prop::sample::Index, byte: u8, cut: bool,
    ) {
        let mut bytes = text.into_bytes();
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        for conversation in read_bytes(&bytes).unwrap() {
            match conversation {
                Ok(conversation) => prop_assert!(bytes.trim_ascii().ends_with(conversation.to_original().as_bytes()) || !cut),
                Err(error) => prop_assert!(error.to_string().contains("the input"), "{}", error),
            }
        }
    }
}
