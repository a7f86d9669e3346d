//! Compares messages without the lines of the log that they were read from.

use foldback_core::Message;
use std::borrow::Cow;

/// Returns a message's JSON without the lines of the log that it was read from: in a copy of the
/// log, which may begin with other lines, it is the same message.
#[must_use]
pub fn without_lines(message: &Message) -> Cow<'_, str> {
    let json = message.json();
    // In a string, the quotes would be escaped.
    let Some(at) = json.rfind(SOURCE) else { return Cow::Borrowed(json) };
    let (said, source) = json.split_at(at);
    let mut out = String::with_capacity(json.len());
    out.push_str(said);
    for (i, part) in source.split(LINE).enumerate() {
        out.push_str(if i == 0 {
            part
        } else {
            part.trim_start_matches(|c: char| c.is_ascii_digit())
        });
    }
    Cow::Owned(out)
}

/// The beginning of what a converted message says about its source.
const SOURCE: &str = "\"source\":{\"format\":\"";

/// The text before the number of a line there.
const LINE: &str = "\"line\":";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(one: &str, other: &str, same: bool) {
        let [one, other] = [one, other].map(|json| Message::from_json(json).unwrap());
        assert_eq!(without_lines(&one) == without_lines(&other), same);
    }

    #[test]
    fn a_copy_of_a_message_stands_on_another_line() {
        let of = |text: &str, line: u32, id: &str| {
            format!(
                "{{\"role\":\"user\",\"content\":\"{text}\",\"source\":{{\"format\":\"codex_log\",\
                 \"line\":{line},\"items\":[{{\"line\":{line},\"id\":\"{id}\"}}]}}}}"
            )
        };
        check(&of("第1", 2, "a"), &of("第1", 30, "a"), true);
        check(&of("第1", 2, "a"), &of("第2", 2, "a"), false);
        check(&of("第1", 2, "a"), &of("第1", 2, "b"), false);
        // Text that looks like a source is not one.
        let said = |n: u32| format!("\\\"source\\\":{{\\\"format\\\":\\\"x\\\",\\\"line\\\":{n}}}");
        check(&of(&said(1), 1, ""), &of(&said(2), 1, ""), false);
        let plain = |n: u32| format!("{{\"role\":\"user\",\"content\":\"x\",\"line\":{n}}}");
        check(&plain(1), &plain(2), false);
    }
}
