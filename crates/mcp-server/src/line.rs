//! What a line of a client says, or why it cannot be read.

use rmcp::model::{ClientJsonRpcMessage, ErrorData, RequestId, ServerJsonRpcMessage};
use serde_json::Value;

/// How many bytes of a line are searched for the id of its request, at its beginning and at its end.
pub(crate) const EDGE: usize = 512;

/// A byte order mark, which JSON may begin with.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// What a line, or an element of a batch, is.
#[derive(Debug)]
pub(crate) enum Read {
    /// A message.
    Message(Box<ClientJsonRpcMessage>),
    /// It cannot be read, and this is the answer to it.
    Refused(Box<ServerJsonRpcMessage>),
    /// It cannot be read, and nobody waits for an answer to it.
    Unasked,
}

/// Reads a line: a message, or a batch of them.
pub(crate) fn read(line: &mut [u8]) -> Vec<Read> {
    let skipped = if line.starts_with(MARK) { MARK.len() } else { 0 };
    let Some(line) = line.get_mut(skipped..).filter(|line| !line.trim_ascii().is_empty()) else {
        return Vec::new();
    };
    if let Ok(message) = serde_json::from_slice(line) {
        return vec![Read::Message(Box::new(message))];
    }
    replace_lone_surrogates(line);
    match serde_json::from_slice(line) {
        Ok(Value::Array(batch)) if !batch.is_empty() => batch.into_iter().map(message).collect(),
        Ok(value) => vec![message(value)],
        Err(error) => {
            let what = format!("the message is not JSON in UTF-8: {error}");
            let mut braces = Braces::default();
            braces.read(line);
            vec![refused(line, line, &braces, ErrorData::parse_error(what, None))]
        }
    }
}

/// Reads a value as a message.
fn message(value: Value) -> Read {
    let id = value.get("id").cloned();
    let has = |key| value.get(key).is_some();
    let is_unasked = if has("method") { id.is_none() } else { has("result") || has("error") };
    match serde_json::from_value(value) {
        Ok(message) => Read::Message(Box::new(message)),
        Err(_) if is_unasked => Read::Unasked,
        Err(_) => {
            let why = ErrorData::invalid_request("the message is not a request", None);
            let id = id.and_then(|id| serde_json::from_value(id).ok());
            Read::Refused(Box::new(ServerJsonRpcMessage::error(why, id)))
        }
    }
}

/// The braces of a line, outside its texts.
#[derive(Default)]
pub(crate) struct Braces {
    open: i64,
    in_text: bool,
    is_escaped: bool,
}

impl Braces {
    /// Counts those of the next part of the line.
    pub(crate) fn read(&mut self, part: &[u8]) {
        for byte in part {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = self.in_text,
                b'"' => self.in_text = !self.in_text,
                b'{' if !self.in_text => self.open += 1,
                b'}' if !self.in_text => self.open -= 1,
                _ => {}
            }
        }
    }

    /// Returns whether each that was opened was closed: the line was not cut off.
    fn fit(&self) -> bool {
        self.open == 0 && !self.in_text
    }
}

/// Refuses a line that begins and ends in this way, under the id of its request if that can be read.
pub(crate) fn refused(head: &[u8], tail: &[u8], braces: &Braces, why: ErrorData) -> Read {
    let head = String::from_utf8_lossy(head.get(..EDGE).unwrap_or(head));
    let tail = tail.get(tail.len().saturating_sub(EDGE)..).unwrap_or(tail);
    // The end of a line that was cut off may be that of an object in it.
    let tail = if braces.fit() { tail } else { &[] };
    let id = id(&head, &String::from_utf8_lossy(tail));
    Read::Refused(Box::new(ServerJsonRpcMessage::error(why, id)))
}

/// Finds the id of a request before its parameters or at its end.
fn id(head: &str, tail: &str) -> Option<RequestId> {
    if !head.contains("\"method\"") {
        return None;
    }
    let after = |text: &str| {
        let (_, value) = text.rsplit_once("\"id\"")?;
        Some(value.trim_start().strip_prefix(':')?.to_owned())
    };
    let first = head
        .split_once("\"params\"")
        .and_then(|(before, _)| after(before))
        .and_then(|value| serde_json::Deserializer::from_str(&value).into_iter().next()?.ok());
    first.or_else(|| serde_json::from_str(after(tail)?.trim_end().strip_suffix('}')?).ok())
}

/// Replaces escapes of half a character, which JavaScript writes for a text that was cut inside an emoji, by U+FFFD.
fn replace_lone_surrogates(json: &mut [u8]) {
    let unit = |json: &[u8], at: usize| {
        let digits = json.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let mut at = 0;
    while let Some(found) =
        json.get(at..).and_then(|rest| rest.iter().position(|byte| *byte == b'\\'))
    {
        at += found;
        at += match (unit(json, at), unit(json, at + 6)) {
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => 12,
            (Some(0xd800..0xe000), _) => {
                if let Some(escape) = json.get_mut(at..at + 6) {
                    escape.copy_from_slice(b"\\ufffd");
                }
                6
            }
            _ => 2,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(json: &str) -> String {
        let mut json = json.as_bytes().to_vec();
        replace_lone_surrogates(&mut json);
        String::from_utf8(json).unwrap()
    }

    #[test]
    fn rc1_half_characters_are_replaced_and_nothing_else_is() {
        for (json, expected) in [
            (r#""a \ud800 杭""#, r#""a \ufffd 杭""#),
            (r#""\uDC00\ud83d\ude00\uD83D""#, r#""\ufffd\ud83d\ude00\ufffd""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\\ud800 \"\u00e9\n""#, r#""\\ud800 \"\u00e9\n""#),
            (r"\ud8", r"\ud8"),
        ] {
            assert_eq!(replaced(json), expected);
        }
    }

    #[test]
    fn rc1_the_id_of_a_request_is_found_before_its_parameters_or_at_the_end() {
        let found = |head, tail| id(head, tail).map(|id| id.to_string());
        let call = r#"{"method": "tools/call", "params": {"id": 3, "#;
        assert_eq!(
            found(r#"{"id": 12, "method": "tools/call", "params": {"id": 3"#, "}}"),
            Some("12".to_owned())
        );
        assert_eq!(
            found(call, r#"杭\"id\":1"}}, "jsonrpc": "2.0", "id": "a"}"#),
            Some("a".to_owned())
        );
        for tail in [r#""id": 4}}"#, r#"\"id\": 4}"}"#, "", r#""id": 1.5}"#] {
            assert_eq!(found(call, tail), None, "{tail}");
        }
        assert_eq!(found(r#"{"result": {"params": 0"#, r#"}, "id": 4}"#), None, "a response");
    }

    #[test]
    fn rc1_the_id_of_an_object_in_a_line_that_was_cut_off_is_not_its_own() {
        for (line, id) in [
            (r#"{"method":"x","params":{"id":3}"#, None),
            (r#"{"method":"x","params":{"a":"杭 } \" {","id":3}"#, None),
            (r#"{"method":"x","params":{"a":"}}","id":3"#, None),
            (r#"{"id":7,"method":"x","params":{"id":3}"#, Some("7")),
            (r#"{"method":"x","params":{"a":"{ \x \" 杭","id":3},"id":7}"#, Some("7")),
        ] {
            let read = read(&mut line.as_bytes().to_vec()).remove(0);
            let Read::Refused(answer) = read else { panic!("{line}: {read:?}") };
            let ServerJsonRpcMessage::Error(answer) = *answer else { panic!("{line}") };
            assert_eq!(answer.id.map(|id| id.to_string()).as_deref(), id, "{line}");
        }
    }
}
