//! Streams whose pieces come one after the other, with pauses between them.

use crate::wire::{KEY, pieces, question};
use foldback_llm::{ChatChunk, ChatModel, ModelErrorKind};
use foldback_providers::{ApiKey, ModelConfig, Provider, RemoteModel};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// The pause between two pieces.
const PAUSE: Duration = Duration::from_millis(40);

/// How long a model waits for a piece: longer than some pauses, and less than a whole answer.
const SILENCE: Duration = Duration::from_millis(400);

/// Serves one answer, whose parts are sent with pauses between them; it ends with the last part, or
/// stays open after it. Returns the base URL.
async fn serve(parts: Vec<Vec<u8>>, stays_open: bool) -> String {
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n".to_vec();
    serve_raw([vec![head], parts].concat(), stays_open).await
}

/// The same for parts that begin with the head of the answer.
async fn serve_raw(parts: Vec<Vec<u8>>, stays_open: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 65536];
        let _ = stream.read(&mut request).await.unwrap();
        for part in parts {
            // A client that has given up no longer reads.
            if stream.write_all(&part).await.is_err() || stream.flush().await.is_err() {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
        if stays_open {
            std::future::pending::<()>().await;
        }
    });
    base
}

fn frame(json: &str) -> Vec<u8> {
    format!("data: {json}\n\n").into_bytes()
}

fn delta(json: &str) -> Vec<u8> {
    frame(&format!(r#"{{"choices":[{{"delta":{json}}}]}}"#))
}

fn end() -> Vec<u8> {
    let end = r#"{"choices":[{"delta":{"content":"好"},"finish_reason":"stop"}]}"#;
    [frame(end), frame("[DONE]")].concat()
}

fn model(provider: Provider, base: &str) -> RemoteModel {
    let mut config = ModelConfig::new(provider, base, "m");
    config.timeouts.silence = SILENCE;
    RemoteModel::new(config).unwrap()
}

fn text(text: &str) -> ChatChunk {
    ChatChunk::Text(text.to_owned())
}

/// Frames without text: thinking, empty texts, pieces of a call without an index. Together they take
/// twice as long as the silence timeout.
#[tokio::test]
async fn any_frame_keeps_a_stream_alive() {
    for quiet in [
        r#"{"reasoning_details":[{"type":"reasoning.text","text":"x"}]}"#,
        r#"{"content":""}"#,
        r#"{"tool_calls":[{"function":{"arguments":"1"}}]}"#,
        r#"{"audio":null}"#,
    ] {
        let begin = r#"{"tool_calls":[{"id":"c","function":{"name":"t","arguments":""}}]}"#;
        let mut parts = vec![delta(begin)];
        parts.extend(std::iter::repeat_n(delta(quiet), 20));
        parts.push(end());
        let base = serve(parts, false).await;
        let model = model(Provider::OpenAiCompatible, &base);
        let (chunks, error) = pieces(&model, &question()).await;
        assert_eq!(error, None, "{quiet}");
        assert!(chunks.contains(&text("好")), "{quiet}");
    }
}

/// A piece is shown when it comes, even if it has no text.
#[tokio::test]
async fn pieces_come_out_at_once() {
    let call = r#"{"tool_calls":[{"id":"c","function":{"name":"t","arguments":"{}"}}]}"#;
    let anthropic = [
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"上"}}"#,
    ];
    for (provider, parts) in [
        (Provider::OpenAiCompatible, vec![delta(call)]),
        // Without `event:`, as some gateways send it.
        (Provider::Anthropic, anthropic.map(frame).to_vec()),
    ] {
        let base = serve(parts, true).await;
        let (chunks, error) = pieces(&model(provider, &base), &question()).await;
        assert_eq!(chunks.len(), 1, "{provider:?}");
        let error = error.unwrap();
        assert_eq!(error.kind, ModelErrorKind::Timeout);
        assert_eq!(error.message, "no more of the answer came within 0.4 seconds");
    }
}

/// Anthropic's frames without their names, together slower than the silence timeout, on a connection
/// that is not closed.
#[tokio::test]
async fn frames_without_names_are_read_as_they_come() {
    let begin =
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
    let more =
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"上"}}"#;
    let mut parts = vec![frame(begin)];
    parts.extend(std::iter::repeat_n(frame(more), 20));
    parts.push(frame(r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#));
    parts.push(frame(r#"{"type":"message_stop"}"#));
    let base = serve(parts, true).await;
    let (chunks, error) = pieces(&model(Provider::Anthropic, &base), &question()).await;
    assert_eq!(error, None);
    let Some(ChatChunk::Done(response)) = chunks.last() else { panic!("{chunks:?}") };
    assert_eq!(response.message.text(), "上".repeat(20));
}

/// A stream that stops without an end, cut in the middle of a character: the pieces before it came through.
#[tokio::test]
async fn silent_streams_are_given_up() {
    let whole = delta(r#"{"content":"上"}"#);
    let cut = whole.windows(3).position(|bytes| bytes == "上".as_bytes()).unwrap() + 1;
    let base = serve(vec![whole[..cut].to_vec(), whole[cut..].to_vec()], true).await;
    let (chunks, error) = pieces(&model(Provider::OpenAiCompatible, &base), &question()).await;
    assert_eq!(chunks, [text("上")]);
    assert_eq!(error.unwrap().kind, ModelErrorKind::Timeout);
}

/// A piece that is not UTF-8: the pieces before it came through.
#[tokio::test]
async fn pieces_that_are_no_text_are_a_typed_error() {
    let parts = vec![[delta(r#"{"content":"上"}"#), b"data: \xff\n\n".to_vec(), end()].concat()];
    let base = serve(parts, true).await;
    let (chunks, error) = pieces(&model(Provider::OpenAiCompatible, &base), &question()).await;
    assert_eq!(chunks, [text("上")]);
    let error = error.unwrap();
    assert_eq!(error.kind, ModelErrorKind::Response);
    assert!(error.message.starts_with("the answer cannot be read: invalid utf-8"), "{error}");
}

/// A stream of keep-alives alone is waited for.
#[tokio::test]
async fn signs_of_life_keep_a_stream_alive() {
    for sign in [": still at it\n\n", "event: ping\ndata: {\"type\": \"ping\"}\n\n"] {
        let mut parts = vec![delta(r#"{"content":"上"}"#)];
        parts.extend(std::iter::repeat_n(sign.as_bytes().to_vec(), 20));
        parts.push(end());
        let base = serve(parts, false).await;
        let (chunks, error) = pieces(&model(Provider::OpenAiCompatible, &base), &question()).await;
        assert_eq!(error, None, "{sign}");
        assert_eq!(chunks[..2], [text("上"), text("好")]);
    }
}

/// But not forever: the next piece must come within the time of a whole answer.
#[tokio::test]
async fn signs_of_life_alone_are_no_answer() {
    for (first, what) in [
        (Vec::new(), "no answer came within 0.5 seconds"),
        (delta(r#"{"content":"上"}"#), "no more of the answer came within 0.5 seconds"),
    ] {
        let mut parts = vec![first];
        parts.extend(std::iter::repeat_n(b": still at it\n\n".to_vec(), 200));
        let base = serve(parts, true).await;
        let mut config = ModelConfig::new(Provider::OpenAiCompatible, &base, "m");
        config.timeouts.silence = SILENCE;
        config.timeouts.answer = Duration::from_millis(500);
        let (_, error) = pieces(&RemoteModel::new(config).unwrap(), &question()).await;
        let error = error.unwrap();
        assert_eq!((error.kind, error.message.as_str()), (ModelErrorKind::Timeout, what));
    }
}

/// Error bodies that stall, before they begin or within them: status, wait and what came are reported.
#[tokio::test]
async fn a_refusal_whose_words_stall_keeps_its_status() {
    let head = b"HTTP/1.1 429 Busy\r\nretry-after: 7\r\ncontent-length: 99\r\n\r\n".to_vec();
    for (words, expected) in [
        ("", "the provider answered with status 429"),
        ("慢一点", "the provider answered with status 429: 慢一点"),
        ("bad key sk-very-secr", "the provider answered with status 429: bad key [key]"),
    ] {
        let parts = vec![[head.clone(), words.as_bytes().to_vec()].concat()];
        for is_streamed in [false, true] {
            let base = serve_raw(parts.clone(), true).await;
            let mut config = ModelConfig::new(Provider::OpenAiCompatible, &base, "m");
            config.api_key = Some(ApiKey::new(KEY));
            config.timeouts.silence = SILENCE * 2;
            // Over before the wait for the body is abandoned, and yet there was an answer.
            config.timeouts.answer = SILENCE;
            let model = RemoteModel::new(config).unwrap();
            let error = if is_streamed {
                pieces(&model, &question()).await.1.unwrap()
            } else {
                model.complete(&question()).await.unwrap_err()
            };
            assert_eq!((error.kind, error.message.as_str()), (ModelErrorKind::RateLimit, expected));
            assert_eq!(error.retry_after, Some(Duration::from_secs(7)));
        }
    }
}

/// Answers without end: whole, and as one event of a stream.
#[tokio::test]
async fn answers_are_read_up_to_a_bound() {
    let long = vec![b'x'; (64 << 20) + 1];
    for (is_streamed, what) in [(false, "the answer"), (true, "an event of the answer")] {
        let base = serve(vec![long.clone()], true).await;
        let mut config = ModelConfig::new(Provider::OpenAiCompatible, &base, "m");
        config.stream = is_streamed;
        config.timeouts.answer = Duration::from_secs(60);
        let model = RemoteModel::new(config).unwrap();
        let error = if is_streamed {
            pieces(&model, &question()).await.1.unwrap()
        } else {
            model.complete(&question()).await.unwrap_err()
        };
        assert_eq!(error.kind, ModelErrorKind::Response);
        assert!(error.message.starts_with(&format!("{what} is too long: ")), "{error}");
        assert!(error.message.ends_with("bytes came, and at most 67108864 are read"), "{error}");
    }
}

/// What exceeds the limit of an error body does not count.
#[tokio::test]
async fn words_of_a_refusal_are_read_up_to_a_bound() {
    for (before, kind) in
        [(100, ModelErrorKind::ContextLength), (64 << 10, ModelErrorKind::Request)]
    {
        let words = "x".repeat(before) + "context_length_exceeded";
        let answer = format!("HTTP/1.1 400 No\r\nretry-after: 7\r\n\r\n{words}");
        let base = serve_raw(vec![answer.into_bytes()], false).await;
        let model = ModelConfig::new(Provider::OpenAiCompatible, &base, "m");
        let error = RemoteModel::new(model).unwrap().complete(&question()).await.unwrap_err();
        assert_eq!((error.kind, error.retry_after), (kind, Some(Duration::from_secs(7))));
    }
}
