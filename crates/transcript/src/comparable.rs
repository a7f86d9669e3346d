//! Compares messages by what they say.

use crate::object::push_string;
use crate::scan::scan;
use foldback_core::decode_literal;
use std::borrow::Cow;

/// A text that is nested deeper is compared as it is written.
const DEEPEST: usize = 512;

/// Returns a message's JSON in the form in which it is compared: two messages have the same form if they say the same.
/// White space, the order of keys and the escapes of characters make no difference, and neither do the lines of the log
/// that a message was read from: in a copy of the log, which may begin with other lines, it is the same message.
///
/// ```
/// use foldback_transcript::comparable;
///
/// let one = comparable(r#"{"role": "user", "content": "\u4f60好"}"#);
/// assert_eq!(one, comparable(r#"{"content":"你好","role":"user"}"#));
/// assert_ne!(one, comparable(r#"{"content":"你 好","role":"user"}"#));
/// ```
#[must_use]
pub fn comparable(json: &str) -> Cow<'_, str> {
    if scan(json.as_bytes()).depth > DEEPEST {
        return Cow::Borrowed(json);
    }
    let (mut reader, mut out) = (Reader { rest: json }, String::with_capacity(json.len()));
    match reader.value(Part::Message, &mut out) {
        Some(()) if reader.next().is_none() => Cow::Owned(out),
        _ => Cow::Borrowed(json),
    }
}

/// The part of a message that a value is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// It is the message itself.
    Message,
    /// What a converted message says about its source.
    Source,
    Other,
}

/// Reads JSON, and gives up at anything that is not JSON.
struct Reader<'j> {
    rest: &'j str,
}

impl<'j> Reader<'j> {
    /// Returns the next byte that is not white space, without passing it.
    fn next(&mut self) -> Option<u8> {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
        self.rest.bytes().next()
    }

    /// Passes a byte if it is the next one.
    fn pass(&mut self, byte: u8) -> bool {
        let is_next = self.next() == Some(byte);
        if is_next {
            self.rest = self.rest.get(1..).unwrap_or_default();
        }
        is_next
    }

    fn value(&mut self, part: Part, out: &mut String) -> Option<()> {
        match self.next()? {
            b'{' => self.object(part, out),
            b'[' => self.array(part, out),
            b'"' => {
                push_string(&self.string()?, out);
                Some(())
            }
            _ => {
                let end = self.rest.find(|c: char| ",]}: \t\n\r".contains(c));
                let (scalar, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
                self.rest = rest;
                out.push_str(scalar);
                (!scalar.is_empty()).then_some(())
            }
        }
    }

    fn array(&mut self, part: Part, out: &mut String) -> Option<()> {
        self.pass(b'[');
        out.push('[');
        let mut is_first = true;
        while !self.pass(b']') {
            if !std::mem::take(&mut is_first) {
                self.pass(b',').then_some(())?;
                out.push(',');
            }
            self.value(part, out)?;
        }
        out.push(']');
        Some(())
    }

    /// Writes the keys in order, each once: of a repeated key, the last value counts.
    fn object(&mut self, part: Part, out: &mut String) -> Option<()> {
        self.pass(b'{');
        let mut members: Vec<(Cow<'j, str>, String)> = Vec::new();
        while !self.pass(b'}') {
            if !members.is_empty() {
                self.pass(b',').then_some(())?;
            }
            self.next().filter(|next| *next == b'"')?;
            let key = self.string()?;
            self.pass(b':').then_some(())?;
            let inside = match part {
                Part::Message if key == "source" && self.is_converted() => Part::Source,
                Part::Source => Part::Source,
                Part::Message | Part::Other => Part::Other,
            };
            let mut value = String::new();
            self.value(inside, &mut value)?;
            if part == Part::Source && key == "line" && value.bytes().all(|b| b.is_ascii_digit()) {
                value.clear();
            }
            members.push((key, value));
        }
        members.sort_by(|(one, _), (other, _)| one.cmp(other));
        out.push('{');
        for (at, (key, value)) in members.iter().enumerate() {
            if members.get(at + 1).is_some_and(|(next, _)| next == key) {
                continue;
            }
            if !out.ends_with('{') {
                out.push(',');
            }
            push_string(key, out);
            out.push(':');
            out.push_str(value);
        }
        out.push('}');
        Some(())
    }

    /// Reads a string, without its escapes.
    fn string(&mut self) -> Option<Cow<'j, str>> {
        let inside = self.rest.strip_prefix('"')?;
        let mut is_escaped = false;
        let end = inside.bytes().position(|byte| {
            let ends = byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            ends
        })?;
        let (literal, rest) = inside.split_at(end);
        self.rest = rest.get(1..)?;
        Some(decode_literal(literal))
    }

    /// Returns whether the next value is what a converted message says about its source.
    fn is_converted(&mut self) -> bool {
        let mut ahead = Reader { rest: self.rest };
        ahead.pass(b'{')
            && ahead.next() == Some(b'"')
            && ahead.string().is_some_and(|key| key == "format")
            && ahead.pass(b':')
            && ahead.next() == Some(b'"')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(one: &str, other: &str, same: bool) {
        for json in [one, other] {
            serde_json::from_str::<serde_json::Value>(json).unwrap();
        }
        assert_eq!(comparable(one) == comparable(other), same, "{one} {other}");
    }

    #[test]
    fn the_writing_of_a_value_makes_no_difference() {
        let one = r#"{"role":"user","content":[{"type":"text","text":"第一\n\"{,}\""}],"n":[1.50,-2e3,null,true]}"#;
        check(one, &one.replace("\":", "\" : ").replace(",\"", ",\n\t\""), true);
        check(one, &one.replace("第一", "\\u7b2c\\u4e00"), true);
        let turned = r#"{"n":[1.50,-2e3,null,true],"content":[{"text":"第一\n\"{,}\"","type":"text"}],"role":"user"}"#;
        check(one, turned, true);
        for (from, to) in
            [("第一", "第二"), ("1.50", "1.51"), ("null", "\"null\""), ("{,}", "{, }")]
        {
            check(one, &one.replace(from, to), false);
        }
        check("[1,2]", "[2,1]", false);
        check("[{},[]]", "[ { } , [ ] ]", true);
        check(r#"{"a":1,"a":2}"#, r#"{"a":2}"#, true);
        check(r#"{"a":{}}"#, r#"{"a":{},"b":1}"#, false);
        // Keys are compared as texts, and text that is not JSON is compared as it is.
        check(r#"{"\u0061":1}"#, r#"{"a":1}"#, true);
        for broken in ["", "{", "{\"a\"", "[1,", "\"x", "{a:1}", "[1 2]", "{} {}"] {
            assert_eq!(comparable(broken), broken);
        }
        let deep = format!("{} {}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(comparable(&deep), deep);
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
        check(&of("第1", 2, "a"), &of("第1", 30, "a").replace("\":", "\": "), true);
        check(&of("第1", 2, "a"), &of("第2", 2, "a"), false);
        check(&of("第1", 2, "a"), &of("第1", 2, "b"), false);
        // Text that looks like a source is not one.
        let said = |n: u32| format!("\\\"source\\\":{{\\\"format\\\":\\\"x\\\",\\\"line\\\":{n}}}");
        check(&of(&said(1), 1, ""), &of(&said(2), 1, ""), false);
        let plain = |n: u32| format!("{{\"role\":\"user\",\"content\":\"x\",\"line\":{n}}}");
        check(&plain(1), &plain(2), false);
    }
}
