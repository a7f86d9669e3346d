//! `foldback bench recall`, asking a server.

use crate::provider::{Provider, Turn};
use crate::shell::{Ran, Shell};
use serde_json::{Value, json};

fn recall(provider: &Provider, more: &[&str]) -> Ran {
    let url = provider.url();
    let given = ["bench", "recall", "--model", "m", "--base-url", &url, "--needles", "2"];
    Shell::new().run_bare(&[&given[..], &["--max-tokens", "800"], more].concat())
}

/// Reads its whole request.
fn reader(request: &Value) -> Turn {
    let messages = request["messages"].as_array().unwrap();
    let said = messages.iter().map(|message| message["content"].as_str().unwrap_or_default());
    Provider::text(&said.collect::<Vec<_>>().join("\n"))
}

#[test]
fn its_json_has_the_keys_that_scripts_read() {
    let provider = Provider::answering(reader);
    let ran = recall(&provider, &["--json", "--contexts", "full,foldback", "--min-tokens", "400"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let found = ran.json();
    assert_eq!((&found["model"], &found["needles"]), (&json!("m"), &json!(2)));
    assert_eq!(found["tokens"], json!([400, 800]));
    let contexts = found["contexts"].as_array().unwrap();
    let names: Vec<_> = contexts.iter().map(|row| row["context"].as_str().unwrap()).collect();
    assert_eq!(names, ["full", "foldback", "foldback, no hints"]);
    let full = &contexts[0];
    assert_eq!((&full["right"], &full["unanswered"]), (&json!(2), &json!(0)), "{full}");
    assert_eq!((&full["right_english"], &full["right_chinese"]), (&json!(1), &json!(1)));
    assert_eq!((&full["calls"], &full["recalls"]), (&json!(2), &json!(0)), "{full}");
    for key in ["input_tokens", "output_tokens", "took_s_p50"] {
        assert!(full[key].is_number(), "{key}: {full}");
    }
    let asked = provider.requests();
    assert_eq!(asked.len(), 6);
    let bounded = |body: &Value| body["temperature"] == 0.0 && body["max_tokens"] == 256;
    assert!(asked.iter().all(bounded), "{:?}", asked[0]);
}

#[test]
fn a_server_that_fails_is_counted_by_its_words() {
    let provider = Provider::answering(|_| Provider::refusal(400, "no room for 千字"));
    let ran = recall(&provider, &["--json", "--contexts", "full", "--min-tokens", "400"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let full = &ran.json()["contexts"][0];
    assert_eq!((&full["right"], &full["unanswered"]), (&json!(0), &json!(2)), "{full}");
    let reasons: Vec<_> = full["reasons"].as_object().unwrap().iter().collect();
    assert_eq!(reasons.len(), 1, "{full}");
    assert!(reasons[0].0.contains("no room for 千字") && *reasons[0].1 == 2, "{full}");
}

#[test]
fn lengths_in_the_wrong_order_are_refused() {
    let provider = Provider::new(Vec::new());
    let ran = recall(&provider, &["--min-tokens", "900"]);
    let wanted = "--min-tokens is 900, but it must not exceed --max-tokens, which is 800";
    assert_eq!((ran.code, ran.text()), (2, ""), "{ran:?}");
    assert!(ran.stderr.contains(wanted), "{ran:?}");
    assert!(provider.requests().is_empty());
}
