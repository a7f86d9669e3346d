//! Bad input is a clear error with its place, never a panic.

use foldback_transcript::{Conversations, Error, Limits, read_bytes, read_file, read_message_line};

fn errors(input: impl AsRef<[u8]>) -> Vec<String> {
    errors_within(input, Limits::default())
}

fn errors_within(input: impl AsRef<[u8]>, limits: Limits) -> Vec<String> {
    match Conversations::from_reader("a.jsonl", input.as_ref(), limits) {
        Ok(read) => read.filter_map(|one| one.err().map(|error| error.to_string())).collect(),
        Err(error) => vec![error.to_string()],
    }
}

/// The input gives exactly one error, and it holds each of these words.
#[track_caller]
fn check(input: impl AsRef<[u8]>, words: &[&str]) {
    let errors = errors(input);
    let [error] = errors.as_slice() else { panic!("{errors:?}") };
    for word in words {
        assert!(error.contains(word), "{word:?} is not in: {error}");
    }
}

#[test]
fn an_input_without_a_conversation_says_so() {
    for blank in ["", "\n\n", " \r\n", "\u{feff}", "\u{feff}\n"] {
        check(blank, &["a.jsonl holds no conversation", "Expected at least one line"]);
    }
    let packed = zstd::encode_all(&b""[..], 1).unwrap();
    check(packed, &["holds no conversation"]);
}

#[test]
fn a_line_that_was_cut_off_is_named() {
    let good = r#"{"id":"a","messages":[{"role":"user","content":"x"}]}"#;
    for cut in [1, 20, good.len() - 1] {
        let input = format!("{good}\n{}\n{good}", &good[..cut]);
        check(input, &["a.jsonl, line 2, column", "ends too early"]);
        check(&good[..cut], &["a.jsonl, line 1", "ends too early"]);
    }
}

#[test]
fn reading_goes_on_behind_a_bad_line() {
    let good = r#"{"id":"a","messages":[]}"#;
    let input = format!("{good}\n{{\"id\":}}\nnonsense\n{good}\n");
    let read: Vec<bool> = read_bytes(input.as_bytes()).unwrap().map(|one| one.is_ok()).collect();
    assert_eq!(read, [true, false, false, true]);
}

#[test]
fn special_floats_of_python_are_named() {
    for word in ["NaN", "Infinity", "-Infinity"] {
        let value =
            format!(r#"{{"id":"a","messages":[{{"role":"user","content":"x","v":{word}}}]}}"#);
        check(&value, &["a.jsonl, line 1, column", &format!("{word} is not JSON")]);
        let pretty = format!("{{\"id\":\"a\",\n\"score\": {word},\n\"messages\":[]}}");
        check(&pretty, &["a.jsonl, line 2, column", &format!("{word} is not JSON")]);
    }
    check(r#"{"id":NaNs,"messages":[]}"#, &["this is not JSON"]);
    let error = read_message_line(r#"{"role":"user","v":NaN}"#, 7).unwrap_err().to_string();
    assert!(error.contains("line 7") && error.contains("NaN is not JSON"), "{error}");
}

#[test]
fn bytes_that_are_no_text_are_named_with_their_offset() {
    let mut input = b"{\"id\":\"a\",\"messages\":[]}\n{\"id\":\"".to_vec();
    let offset = input.len();
    input.extend(b"\xff\",\"messages\":[]}\n");
    check(&input, &["a.jsonl, line 2", &format!("byte {offset} of the text is not valid UTF-8")]);
    let mut with_mark = b"\xef\xbb\xbf".to_vec();
    with_mark.extend(&input);
    check(&with_mark, &[&format!("byte {} of the text", offset + 3)]);
    check(b"{\n\"id\":\n\"\xe4\xbd\"}", &["a.jsonl, line 3", "byte 9"]);
}

#[test]
fn deep_nesting_is_refused_without_a_stack() {
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let line =
        |depth| format!(r#"{{"id":"a","messages":[{{"role":"user","x":{}}}]}}"#, deep(depth));
    assert_eq!(errors(line(117)), [""; 0]);
    check(line(118), &["a.jsonl, line 1", "nested 121 deep; at most 120"]);
    check(line(100_000), &["nested 100003 deep"]);
    check("[".repeat(100_000), &["nested 100000 deep"]);
    check("{\"a\":".repeat(100_000), &["nested 100000 deep"]);
    let error = read_message_line(&deep(100_000), 1).unwrap_err();
    assert!(matches!(error, Error::TooDeep { depth: 100_000, .. }), "{error}");
}

#[test]
fn a_large_message_is_refused_by_name() {
    let limits = Limits { message_bytes: 100, ..Limits::default() };
    let large = "x".repeat(100);
    let input = format!("[{{\"role\":\"user\"}},\n{{\"role\":\"user\",\"content\":\"{large}\"}}]");
    let errors = errors_within(&input, limits);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].starts_with("a.jsonl, line 2: message 1 has 128 bytes"), "{errors:?}");
    let input = input.replace('\n', "");
    let input = format!("{{\"id\":\"问\",\"messages\":{input}}}");
    let errors = errors_within(&input, limits);
    assert!(errors[0].contains("message 1 of conversation \"问\" has 128 bytes"), "{errors:?}");
}

#[test]
fn a_message_over_100_mb_is_refused_by_default() {
    let text = "x".repeat(100_000_000);
    let line =
        format!("{{\"id\":\"a\",\"messages\":[{{\"role\":\"user\",\"content\":\"{text}\"}}]}}");
    check(&line, &["message 0 of conversation \"a\"", "100000000 bytes at most"]);
    let message = format!("{{\"role\":\"user\",\"content\":\"{text}\"}}");
    let error = read_message_line(&message, 3).unwrap_err().to_string();
    assert!(error.contains("line 3: message 2 has"), "{error}");
}

#[test]
fn a_line_over_the_limit_is_not_held_in_memory() {
    let limits = Limits { conversation_bytes: 1_000, ..Limits::default() };
    let good = r#"{"id":"a","messages":[]}"#;
    let input = format!("{good}\n{{\"id\":\"{}\",\"messages\":[]}}\n", "x".repeat(2_000));
    let errors = errors_within(&input, limits);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].starts_with("a.jsonl, line 2: the conversation has over 1000 bytes"));
    // Just the allowed size is read.
    let exact = format!("{{\"id\":\"a\",\"messages\":[],\"x\":\"{}\"}}", "y".repeat(969));
    assert_eq!(exact.len(), 1_000);
    assert_eq!(errors_within(&exact, limits), [""; 0]);
    let pretty = format!("{{\n\"id\":\"{}\"}}", "x".repeat(2_000));
    assert!(errors_within(pretty, limits)[0].contains("over 1000 bytes"));
}

#[test]
fn a_damaged_archive_is_named() {
    let text = "{\"id\":\"a\",\"messages\":[]}\n".repeat(1_000);
    let packed = zstd::encode_all(text.as_bytes(), 3).unwrap();
    let cut = errors(&packed[..packed.len() / 2]);
    assert!(
        cut.last().unwrap().contains("a.jsonl begins like a zstd file, but cannot be"),
        "{cut:?}"
    );
    // With a checksum, as the zstd tool writes it, a flipped byte is found wherever it is.
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
    encoder.include_checksum(true).unwrap();
    std::io::copy(&mut text.as_bytes(), &mut encoder).unwrap();
    let mut flipped = encoder.finish().unwrap();
    let last = flipped.len() - 1;
    flipped[last] ^= 0xff;
    let flipped = errors(&flipped);
    assert!(flipped.last().unwrap().contains("cannot be unpacked"), "{flipped:?}");
    check([&[0x28, 0xb5, 0x2f, 0xfd][..], b"nonsense"].concat(), &["cannot be unpacked"]);
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = read_file("no/such/file.jsonl").err().unwrap().to_string();
    assert!(error.starts_with("no/such/file.jsonl could not be read"), "{error}");
}

#[test]
fn a_message_of_another_shape_is_named() {
    let line =
        |message: &str| format!("{{\"id\":\"a\",\"messages\":[{{\"role\":\"user\"}},{message}]}}");
    check(line("{}"), &["message 1 of conversation \"a\" is invalid", "has the key \"role\""]);
    check(line("7"), &["message 1", "a message is a JSON object"]);
    check(line(r#"{"role":7}"#), &["message 1", "a string, not 7"]);
    check(line(r#"{"role":"user","content":{}}"#), &["a string, null or a list of parts"]);
    check(line(r#"{"role":"assistant","tool_calls":{}}"#), &["a list of calls"]);
    check("[{\"role\":\"user\"},\n{\"role\":\"user\"},\n\n{\"rule\":1}]", &["line 4: message 2"]);
}

#[test]
fn foreign_files_are_named_with_what_was_tried() {
    const TRIED: &str = "Formats tried: foldback JSON Lines";
    for (input, name) in [
        ("hello\nworld\n", "The text begins with \"hello\""),
        ("id,role,content\n1,user,x\n", "The text begins with \"id,role,content\""),
        ("7", "not a JSON object or array"),
        ("{}", "an object without keys"),
        ("[1,2]", "a list that begins with 1"),
        (r#"{"a":1,"b":2}"#, "an object with the keys \"a\", \"b\""),
        (r#"[{"a":1}]"#, "an object with the keys \"a\""),
        (r#"[{"id":"a","messages":[]}]"#, "a list of conversations"),
        (
            r#"[{"type":"user","uuid":"u","parentUuid":null,"sessionId":"s","message":{}}]"#,
            "a list whose items look like a line of a session log of Claude Code",
        ),
        (r#"{"id":"a","messages":7}"#, "The key \"messages\" holds 7, not a list"),
        (r#"{"id":"a","messages":[],"messages":[]}"#, "appears twice"),
        (r#"{"role":"user","content":"x"}"#, "one message and not a conversation"),
        (r#"{"type":"system","subtype":"init","session_id":"s"}"#, "stream output of Claude Code"),
        (r#"{"type":"thread.started","thread_id":"t"}"#, "codex exec --json"),
        (r#"{"session_id":"s","ts":1,"text":"x"}"#, "a history of prompts"),
        (
            r#"{"lc":1,"type":"constructor","id":["x"],"kwargs":{}}"#,
            "LangChain data that is not a message",
        ),
        (r#"{"sessionId":"s","projectHash":"h","messages":[]}"#, "Gemini CLI"),
        (r#"{"trajectory":[],"history":[]}"#, "trajectory file"),
        (r#"{"object":"response","output":[]}"#, "OpenAI Responses"),
        (r#"[{"type":"function_call","call_id":"c"}]"#, "OpenAI Responses"),
        (r#"{"object":"chat.completion","choices":[]}"#, "chat-completions response"),
        (
            r#"{"type":"message","role":"assistant","content":[],"stop_reason":"x"}"#,
            "an Anthropic response",
        ),
        ("## Summarized at 2026-01-01\n\nHuman: x\n", "history of deepagents"),
    ] {
        let errors = errors(input);
        assert!(errors[0].contains(name), "{name:?} is not in {:?}", errors[0]);
        assert!(errors[0].contains("a.jsonl, line 1: ") && errors[0].contains(TRIED), "{errors:?}");
    }
    for (input, name) in [
        (&b"SQLite format 3\0..."[..], "an SQLite database"),
        (b"\x1f\x8b\x08...", "packed with gzip"),
        (b"PK\x03\x04", "a zip archive"),
        (b"\xff\xfe{\0", "UTF-16"),
    ] {
        check(input, &[name, TRIED]);
    }
}

#[test]
fn an_empty_list_is_no_conversation() {
    check("[]", &["a.jsonl, line 1: ", "a chat-completions array that holds no message"]);
    check("\n[\n]\n", &["line 2: ", "no message"]);
}

#[test]
fn foreign_text_is_said_once_and_not_for_each_line() {
    assert_eq!(errors("a\nb\nc\n").len(), 1);
}
