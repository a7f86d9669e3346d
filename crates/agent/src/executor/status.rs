//! Recognises an answer that reports a failure.

use foldback_tool::Data;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Returns whether an answer says `status=fail`: a JSON object whose `status` is the word `fail`, or a text
/// that begins with `status=fail`. Case does not matter; `failed` and `failure` are different words.
pub(super) fn says_fail(data: &Data) -> bool {
    let text = data.structured.as_deref().unwrap_or(&data.text).trim_start();
    if text.starts_with('{') {
        // Most answers are settled without being parsed.
        return text.contains("\"status\"") && object_says_fail(text);
    }
    let Some(after) = strip_word(text, "status=").and_then(|rest| strip_word(rest, "fail")) else {
        return false;
    };
    !after.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_')
}

fn object_says_fail(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Answer<'a> {
        #[serde(borrow)]
        status: Option<&'a RawValue>,
    }
    let status = serde_json::from_str::<Answer<'_>>(text).ok().and_then(|answer| answer.status);
    let word = status.and_then(|status| serde_json::from_str::<String>(status.get()).ok());
    word.is_some_and(|word| word.trim().eq_ignore_ascii_case("fail"))
}

fn strip_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let head = text.get(..word.len())?;
    head.eq_ignore_ascii_case(word).then(|| &text[word.len()..])
}

#[cfg(test)]
mod tests {
    use super::says_fail;
    use foldback_tool::Data;

    /// OP11: `status=fail` is recognised as JSON and as text, and nothing that only looks like it.
    #[test]
    fn op11_status_fail_is_recognised() {
        let text = |text: &str| Data { text: text.to_owned(), structured: None };
        for yes in [
            r#"{"status":"fail"}"#,
            r#"  {"a": {"status": "ok"}, "status": "FAIL", "原因": "断网"}"#,
            r#"{"status":"\u0066ail"}"#,
            "status=fail",
            "Status=Fail: 断网",
            "status=fail，断网",
            "status=fail断网",
        ] {
            assert!(says_fail(&text(yes)), "{yes}");
        }
        for no in [
            r#"{"status":"ok"}"#,
            r#"{"status":"failed over to another host"}"#,
            r#"{"status":null}"#,
            r#"{"status":{"fail":1}}"#,
            r#"{"inner":{"status":"fail"}}"#,
            r#"[{"status":"fail"}]"#,
            r#"{"status":"fail""#,
            "the page says status=fail somewhere",
            "status=failover",
            "status=失败",
            "状态=fail",
            "",
        ] {
            assert!(!says_fail(&text(no)), "{no}");
        }
        let both = Data {
            text: "all well".to_owned(),
            structured: Some(r#"{"status":"fail"}"#.to_owned()),
        };
        assert!(says_fail(&both), "the structured form decides");
    }
}
