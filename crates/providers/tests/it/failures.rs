//! What is reported when a provider refuses, fails, or is not there.

use crate::wire::{
    KEY, anthropic_events, ask, config, json, model, openai_events, pieces, question, serve,
    streaming,
};
use foldback_llm::{ChatModel, ModelErrorKind, RetryPolicy, Retrying};
use foldback_providers::{ApiKey, ModelConfig, ModelFlags, ModelSources, Provider, RemoteModel};
use std::time::Duration;
use wiremock::ResponseTemplate;

fn refusal(status: u16, body: &str) -> ResponseTemplate {
    ResponseTemplate::new(status).set_body_raw(body.to_owned(), "application/json")
}

/// The kind of each refusal, whole and streamed, with the provider's own words.
#[tokio::test]
async fn refusals_have_a_kind() {
    use ModelErrorKind::{
        Authentication, ContextLength, Quota, RateLimit, Request, Timeout, Unavailable,
    };
    let cases = [
        (
            401,
            r#"{"error":{"message":"Incorrect API key provided: sk-very-secret-123","code":"invalid_api_key"}}"#,
            Authentication,
        ),
        (403, r#"{"error":{"type":"permission_error","message":"No."}}"#, Authentication),
        (402, "pay", Quota),
        (
            429,
            r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#,
            Quota,
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}"#,
            Quota,
        ),
        (
            400,
            r#"{"error":{"message":"Invalid schema","type":"invalid_request_error","code":null}}"#,
            Request,
        ),
        (
            400,
            r#"{"error":{"message":"Too big.","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
            ContextLength,
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
            ContextLength,
        ),
        (
            400,
            r#"{"object":"error","message":"This model's maximum context length is 4096 tokens."}"#,
            ContextLength,
        ),
        (413, r#"{"error":{"type":"request_too_large","message":"Over 32 MB"}}"#, ContextLength),
        (404, r#"{"error":"model 'x' not found"}"#, Request),
        (422, r#"{"detail":"Extra inputs"}"#, Request),
        (302, "", Request),
        (408, "", Timeout),
        (504, "<html>Gateway</html>", Timeout),
        (429, r#"{"error":{"type":"rate_limit_error","message":"慢一点"}}"#, RateLimit),
        (500, "", Unavailable),
        (502, "<html>Bad gateway</html>", Unavailable),
        (503, "null", Unavailable),
        (
            529,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            Unavailable,
        ),
    ];
    for (status, body, kind) in cases {
        let server = serve(refusal(status, body)).await;
        for provider in [Provider::OpenAi, Provider::Anthropic] {
            let whole = ask(&server, provider, &question()).await.unwrap_err();
            assert_eq!(whole.kind, kind, "{status} {body}");
            assert!(whole.message.contains(&status.to_string()), "{whole}");
            assert!(!whole.message.contains(KEY), "{whole}");
            let (chunks, streamed) = pieces(&streaming(&server, provider), &question()).await;
            assert!(chunks.is_empty());
            assert_eq!(streamed.unwrap(), whole);
        }
    }
}

#[tokio::test]
async fn the_providers_words_are_shown_shortly() {
    let long = format!("行 \n {}", "错误🌧".repeat(500));
    for (body, expected) in [
        (r#"{"error":{"message":"慢一点"}}"#, "status 400: 慢一点"),
        (r#"{"error":"plain words"}"#, "status 400: plain words"),
        ("<html>\n <b>no</b>\n</html>", "status 400: <html> <b>no</b> </html>"),
        ("", "status 400"),
        (long.as_str(), "行 错误🌧错误"),
    ] {
        let server = serve(refusal(400, body)).await;
        let error = ask(&server, Provider::OpenAi, &question()).await.unwrap_err();
        assert!(error.message.contains(expected), "{error}");
        assert!(error.message.chars().count() < 400, "{error}");
    }
}

#[tokio::test]
async fn a_wait_that_is_asked_for_is_told() {
    for (header, value, expected) in [
        ("retry-after", "7", Some(Duration::from_secs(7))),
        ("retry-after", "0.5", Some(Duration::from_millis(500))),
        ("retry-after-ms", "250", Some(Duration::from_millis(250))),
        ("retry-after", "-1", None),
        ("retry-after", "NaN", None),
        ("retry-after", "1e400", None),
        ("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT", Some(Duration::from_secs(90))),
        ("retry-after", "Wed, 21 Oct 2015 07:26:00 GMT", Some(Duration::ZERO)),
        ("retry-after", "tomorrow", None),
        ("x-other", "7", None),
    ] {
        let refusal = refusal(429, "{}").insert_header("date", "Wed, 21 Oct 2015 07:26:30 GMT");
        let server = serve(refusal.insert_header(header, value)).await;
        let error = ask(&server, Provider::Anthropic, &question()).await.unwrap_err();
        assert_eq!(
            (error.kind, error.retry_after),
            (ModelErrorKind::RateLimit, expected),
            "{value}"
        );
        let (_, error) = pieces(&streaming(&server, Provider::Anthropic), &question()).await;
        assert_eq!(error.unwrap().retry_after, expected, "{value}");
    }
}

/// A provider that is busy twice and then answers.
#[tokio::test]
async fn a_busy_provider_is_asked_again() {
    use wiremock::matchers::method;
    use wiremock::{Mock, MockServer};
    let server = MockServer::start().await;
    let busy = [
        refusal(429, "{}").insert_header("retry-after-ms", "1"),
        refusal(529, r#"{"error":{"type":"overloaded_error"}}"#),
    ];
    for busy in busy {
        Mock::given(method("POST")).respond_with(busy).up_to_n_times(1).mount(&server).await;
    }
    let answer = json(r#"{"choices":[{"message":{"content":"好"}}]}"#);
    Mock::given(method("POST")).respond_with(answer).mount(&server).await;
    let wait = Duration::from_millis(1);
    let policy = RetryPolicy::default().with_first_wait(wait).with_longest_wait(wait);
    let model = Retrying::new(model(&server, Provider::OpenAi), policy);
    assert_eq!(model.complete(&question()).await.unwrap().message.text(), "好");
    let bodies = crate::wire::bodies(&server).await;
    assert_eq!(bodies.len(), 3);
    assert!(bodies.iter().all(|body| *body == bodies[0]), "the same request each time");
}

/// An error in an answer that began well.
#[tokio::test]
async fn errors_inside_answers_have_a_kind() {
    use ModelErrorKind::{Authentication, ContextLength, Quota, RateLimit, Request, Unavailable};
    for (error, kind) in [
        (r#"{"type":"overloaded_error","message":"Overloaded"}"#, Unavailable),
        (r#"{"type":"api_error","message":"x"}"#, Unavailable),
        (r#"{"type":"rate_limit_error","message":"x"}"#, RateLimit),
        (r#"{"type":"server_error","message":"Error in input stream"}"#, Unavailable),
        (r#"{"code":502,"message":"Upstream failed"}"#, Unavailable),
        (r#"{"code":429,"message":"Slow"}"#, RateLimit),
        (r#"{"type":"server_error","code":"shard_7","message":"x"}"#, Unavailable),
        (r#"{"type":"InternalServerError","code":500,"message":"x"}"#, Unavailable),
        (r#"{"type":"requests","code":"rate_limit_exceeded","message":"x"}"#, RateLimit),
        (r#"{"type":"rate_limit_error","message":"too many tokens, please wait"}"#, RateLimit),
        (r#"{"type":"None","code":"429","message":"x"}"#, RateLimit),
        (r#"{"type":"x","code":"503","message":"x"}"#, Unavailable),
        (r#"{"code":14,"status":"UNAVAILABLE","message":"x"}"#, Unavailable),
        (r#"{"type":"insufficient_quota","code":"429","message":"x"}"#, Quota),
        (r#"{"type":"authentication_error","code":null,"message":"x"}"#, Authentication),
        (r#"{"type":"invalid_request_error","code":"400","message":"x"}"#, Request),
        (r#"{"type":"invalid_request_error","message":"prompt is too long"}"#, ContextLength),
        (r#"{"type":"invalid_request_error","message":"x"}"#, Request),
    ] {
        let body = format!(r#"{{"type":"error","error":{error}}}"#);
        for (provider, first) in [
            (Provider::OpenAi, r#"{"type":"x","choices":[{"delta":{"content":"Hel"}}]}"#),
            (
                Provider::Anthropic,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}"#,
            ),
        ] {
            let whole = ask(&serve(json(&body)).await, provider, &question()).await.unwrap_err();
            assert_eq!(whole.kind, kind, "{error}");
            let frames = match provider {
                Provider::Anthropic => anthropic_events(&[first, &body]),
                _ => openai_events(&[first, &body]),
            };
            let (chunks, streamed) =
                pieces(&streaming(&serve(frames).await, provider), &question()).await;
            assert_eq!(chunks.len(), 1, "what came before stays");
            assert_eq!(streamed.unwrap(), whole, "{error}");
        }
    }
}

#[tokio::test]
async fn slow_providers_are_given_up() {
    let slow = json("{}").set_delay(Duration::from_secs(60));
    let server = serve(slow).await;
    let mut config = config(&server, Provider::OpenAi);
    config.timeouts.answer = Duration::from_millis(20);
    let model = RemoteModel::new(config).unwrap();
    let error = model.complete(&question()).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Timeout);
    assert_eq!(error.message, "no answer came within 0.02 seconds");
    let (_, streamed) = pieces(&model, &question()).await;
    assert_eq!(streamed.unwrap(), error);
}

/// Providers repeat keys; a cut through the middle of one shows no half of it.
#[tokio::test]
async fn a_key_at_the_cut_is_not_shown() {
    for at in 280..300 {
        let body = format!("{}{KEY}", "x".repeat(at));
        let server = serve(refusal(401, &body)).await;
        let error = ask(&server, Provider::OpenAi, &question()).await.unwrap_err();
        assert!(!error.message.contains("sk-"), "{error}");
    }
}

/// A key in an answer, whatever is wrong with that answer.
#[tokio::test]
async fn no_error_of_an_answer_shows_a_key() {
    let whole = [
        format!(r#"{{"error":{{"message":"bad key {KEY}","code":401}}}}"#),
        format!(r#"{{"error":"{KEY}"}}"#),
        format!("<html>{KEY}"),
        format!(r#"{{"x":"{KEY}"}}"#),
        format!(r#"{{"content":"{KEY}"}}"#),
    ];
    let frames = [
        format!(r#"{{"type":"error","error":{{"message":"bad key {KEY}"}}}}"#),
        format!("{KEY} is no JSON"),
    ];
    for provider in [Provider::OpenAi, Provider::OpenAiCompatible, Provider::Anthropic] {
        for body in &whole {
            let error = ask(&serve(json(body)).await, provider, &question()).await.unwrap_err();
            assert!(!format!("{error:?}").contains(KEY), "{error}");
            assert!(error.message.contains("[key]"), "{error}");
        }
        for frame in &frames {
            let first = r#"{"choices":[{"delta":{"content":"a"}}]}"#;
            let events = crate::wire::events(&format!("data: {first}\n\ndata: {frame}\n\n"));
            for server in [serve(openai_events(&[frame])).await, serve(events).await] {
                let (_, error) = pieces(&streaming(&server, provider), &question()).await;
                let error = error.unwrap();
                assert!(!format!("{error:?}").contains(KEY), "{error}");
                assert!(error.message.contains("[key]"), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn absent_providers_are_unavailable() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut config = ModelConfig::new(Provider::OpenAi, &format!("http://{address}/v1"), "m");
    config.api_key = Some(ApiKey::new(KEY));
    let model = RemoteModel::new(config).unwrap();
    let error = model.complete(&question()).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Unavailable);
    assert!(error.message.contains("refused"), "{error}");
    let (_, streamed) = pieces(&model, &question()).await;
    assert_eq!(streamed.unwrap(), error);
}

/// A key is sent only to the address that was given.
#[tokio::test]
async fn redirects_are_not_followed() {
    let other = serve(json("{}")).await;
    let server = serve(refusal(307, "").insert_header("location", other.uri().as_str())).await;
    let error = ask(&server, Provider::Anthropic, &question()).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Request);
    assert!(error.message.contains("redirect"), "{error}");
    assert!(other.received_requests().await.unwrap().is_empty());
}

#[test]
fn addresses_and_keys_are_checked_before_anything_is_sent() {
    let with = |url: &str, key: &str, header: Option<&str>| {
        let mut config = ModelConfig::new(Provider::Anthropic, url, "m");
        config.api_key = Some(ApiKey::new(key));
        config.session_header = header.map(str::to_owned);
        RemoteModel::new(config).map(|_| ()).unwrap_err()
    };
    for (url, key, header, expected) in [
        ("localhost:8000", "k", None, "begins with http:// or https://"),
        ("api.example.org/v1", "k", None, "\"api.example.org/v1\" is not an address"),
        ("", "k", None, "is not an address"),
        ("ftp://x/v1", "k", None, "begins with http"),
        ("http://user:hidden@x/v1", "k", None, "no user and no password"),
        ("http://x/v1?a=hidden", "k", None, "no query"),
        ("http://x/v1#hidden", "k", None, "no query"),
        (
            "https://user:hidden@h:99999/v1",
            "k",
            None,
            "\"https://[...]@h:99999/v1\" is not an address",
        ),
        ("https://user:hid?den@h/v1", "k", None, "\"https://[...]@h/v1\""),
        ("user:hidden@h/v1", "k", None, "\"[...]@h/v1\""),
        ("h/v1?key=hidden", "k", None, "\"h/v1?[...]\" is not an address"),
        ("http://x/v1", "密钥", None, "characters that no header accepts"),
        ("http://x/v1", " \n", None, "the key is empty"),
        ("http://x/v1", "k", Some("a b"), "is not a valid header name"),
    ] {
        let error = with(url, key, header);
        assert_eq!(error.kind, ModelErrorKind::Configuration);
        assert!(error.message.contains(expected), "{error}");
        assert!(!error.message.contains("hidden"), "{error}");
    }
}

#[tokio::test]
async fn addresses_may_be_written_as_people_write_them() {
    for (provider, end, path) in [
        (Provider::OpenAi, "/v1", "/v1/chat/completions"),
        (Provider::OpenAi, "/v1/", "/v1/chat/completions"),
        (Provider::OpenAi, "/v1/chat/completions", "/v1/chat/completions"),
        (Provider::OpenAi, "", "/chat/completions"),
        (Provider::Anthropic, "", "/v1/messages"),
        (Provider::Anthropic, "/v1/", "/v1/messages"),
        (Provider::Anthropic, "/v1/messages", "/v1/messages"),
        (Provider::Anthropic, "/anthropic", "/anthropic/v1/messages"),
    ] {
        let server = serve(json("{}")).await;
        let base_url = format!("{}{end}", server.uri());
        let mut config = config(&server, provider);
        config.base_url = base_url;
        let _ = RemoteModel::new(config).unwrap().complete(&question()).await;
        let requests = server.received_requests().await.unwrap();
        assert_eq!(requests[0].url.path(), path, "{end:?}");
    }
}

#[test]
fn nothing_shows_a_key() {
    let mut config = ModelConfig::new(Provider::OpenAi, "http://127.0.0.1:1/v1", "m");
    config.api_key = Some(ApiKey::new(KEY));
    let model = RemoteModel::new(config.clone()).unwrap();
    for shown in [format!("{config:?}"), format!("{model:?}"), format!("{:#?}", config.api_key)] {
        assert!(!shown.contains("secret") && shown.contains("[key]"), "{shown}");
    }
    let base_url = "https://user:secret@h/v1?key=secret".to_owned();
    config.base_url.clone_from(&base_url);
    let shown = format!("{config:?}");
    assert!(!shown.contains("secret") && shown.contains("https://[...]@h/v1?[...]"), "{shown}");
    config.workers = vec![base_url.clone()];
    let shown = format!("{config:?}");
    assert!(!shown.contains("secret"), "{shown}");
    let sources = ModelSources::default()
        .with_flags(ModelFlags::default().with_base_url(&base_url))
        .with_environment([("OPENAI_API_KEY".to_owned(), "sk-secret".to_owned())].into());
    let shown = format!("{sources:?}");
    assert!(!shown.contains("secret") && shown.contains("OPENAI_API_KEY"), "{shown}");
}
