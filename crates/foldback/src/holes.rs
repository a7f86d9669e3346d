//! Converts a message to its stored form: large parts leave holes in the exact text, and what fills
//! the holes goes to the payload store.

use crate::offload::OffloadPolicy;
use foldback_core::{
    Content, Escape, Message, Offload, Part, Piece, Role, Site, Source, StoredMessage,
    TokenCounter, argument_text, escape_into,
};
use foldback_disclosure::Fragment;
use serde::Deserialize;
use serde_json::value::RawValue;

/// A part of a message that goes to the payload store.
pub(crate) struct Large {
    site: Site,
    /// The text of the part, which is stored.
    pub(crate) text: String,
    /// Its place in the message's JSON; `None` if its writer's escapes follow no known habit, in
    /// which case the part stays in the record as well.
    hole: Option<Span>,
}

struct Span {
    start: usize,
    end: usize,
    layers: Vec<Escape>,
}

/// Returns the parts of `message` that are over the policy's threshold, in the order of its text.
/// `tool` is the tool whose result the message is.
pub(crate) fn large_parts(
    message: &Message,
    tool: Option<&str>,
    policy: &OffloadPolicy,
    tokens: &dyn TokenCounter,
) -> Vec<Large> {
    let mut large = Vec::new();
    let over = |tool: &str, text: &str| policy.is_over(tool, text, tokens);
    for (key, value) in message.fields() {
        match key.as_ref() {
            "content" if *message.role() == Role::Tool => {
                let tool = tool.unwrap_or_default();
                content_parts(message, value, &|text| over(tool, text), &mut large);
            }
            "tool_calls" => argument_parts(message, value, &over, &mut large),
            _ => {}
        }
    }
    large
}

/// Builds the stored form of `message`, with `offloads` (one for each of `large`) in place of its
/// large parts. Filled again it is the message's text byte for byte: that is checked here.
pub(crate) fn store_with_holes(
    message: &Message,
    large: Vec<Large>,
    offloads: Vec<Offload>,
    recorded_at: i64,
) -> StoredMessage {
    let json = message.json();
    let mut holes: Vec<(Span, Source, usize)> = Vec::new();
    let mut texts = Vec::new();
    for (part, offload) in large.into_iter().zip(&offloads) {
        if let Some(span) = part.hole {
            holes.push((span, Source::Payload(offload.n), texts.len()));
        }
        texts.push((offload.n, part.text));
    }
    holes.sort_by_key(|(span, _, _)| span.start);
    let mut pieces = Vec::new();
    let mut at = 0;
    for (span, source, _) in holes {
        // Two parts of one message never overlap; one that would is left in the text.
        let Some(before) = json.get(at..span.start) else { continue };
        pieces.push(Piece::Text(before.to_owned()));
        pieces.push(Piece::Hole { source, range: None, layers: span.layers });
        at = span.end;
    }
    pieces.push(Piece::Text(json.get(at..).unwrap_or_default().to_owned()));
    let mut stored = StoredMessage { pieces, offloads, recall: false, recorded_at };
    let filled = stored.json(|source, _| {
        let text = texts.iter().find(|(n, _)| source == Source::Payload(*n));
        text.map(|(_, text)| text.clone()).ok_or(())
    });
    if filled.as_deref() != Ok(json) {
        stored.pieces = vec![Piece::Text(json.to_owned())];
    }
    stored
}

/// Builds the stored form of a memory tool's answer: what it quotes is kept as references. `None`
/// if the message does not contain exactly what the tool answered. `is_only_copy` is whether its todo has what it
/// shows nowhere else: then it is found and loaded as any other message.
pub(crate) fn store_recall(
    message: &Message,
    answer: &str,
    fragments: &[Fragment],
    is_only_copy: bool,
    recorded_at: i64,
) -> Option<StoredMessage> {
    let fields = message.fields();
    let (_, value) = fields.iter().find(|(key, _)| key == "content")?;
    let value = match message.content() {
        Content::Text(text) if text == answer => value,
        Content::Parts(parts) if matches!(&parts[..], [Part::Text(text)] if text == answer) => {
            let parts: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
            text_of_part(parts.first()?)?
        }
        _ => return None,
    };
    let (start, inside) = inside_literal(message.json(), value)?;
    let escape = Escape::detect(answer, inside)?;
    let json = message.json();
    let mut pieces = Vec::new();
    let mut open = json.get(..start)?.to_owned();
    for fragment in fragments {
        match fragment {
            Fragment::Literal(text) => escape_into(text, escape, &mut open),
            Fragment::Quote { source, range } => {
                pieces.push(Piece::Text(std::mem::take(&mut open)));
                pieces.push(Piece::Hole {
                    source: *source,
                    range: Some((range.start, range.end)),
                    layers: vec![escape],
                });
            }
        }
    }
    open.push_str(json.get(start + inside.len()..)?);
    pieces.push(Piece::Text(open));
    Some(StoredMessage { pieces, offloads: Vec::new(), recall: !is_only_copy, recorded_at })
}

fn content_parts(
    message: &Message,
    value: &RawValue,
    over: &dyn Fn(&str) -> bool,
    large: &mut Vec<Large>,
) {
    let json = message.json();
    match message.content() {
        Content::Text(text) if over(text) => {
            let hole = literal_span(json, value, text);
            large.push(Large { site: Site::Content, text: text.clone(), hole });
        }
        Content::Parts(parts) => {
            let raw: Vec<&RawValue> = serde_json::from_str(value.get()).unwrap_or_default();
            for (index, (part, raw)) in (0..).zip(parts.iter().zip(raw)) {
                let Part::Text(text) = part else { continue };
                if !over(text) {
                    continue;
                }
                let hole = text_of_part(raw).and_then(|raw| literal_span(json, raw, text));
                large.push(Large { site: Site::Part(index), text: text.clone(), hole });
            }
        }
        Content::Empty | Content::Text(_) => {}
    }
}

/// Returns the literal of a text part: the part itself, or the value of its key `text`.
fn text_of_part(part: &RawValue) -> Option<&RawValue> {
    #[derive(Deserialize)]
    struct TextPart<'a> {
        #[serde(borrow)]
        text: &'a RawValue,
    }
    if part.get().starts_with('"') {
        return Some(part);
    }
    serde_json::from_str::<TextPart<'_>>(part.get()).ok().map(|part| part.text)
}

fn argument_parts(
    message: &Message,
    value: &RawValue,
    over: &dyn Fn(&str, &str) -> bool,
    large: &mut Vec<Large>,
) {
    #[derive(Deserialize)]
    struct Call<'a> {
        #[serde(borrow)]
        function: Function<'a>,
    }
    #[derive(Deserialize)]
    struct Function<'a> {
        #[serde(borrow)]
        arguments: &'a RawValue,
    }
    let json = message.json();
    let raw: Vec<&RawValue> = serde_json::from_str(value.get()).unwrap_or_default();
    for (index, call) in (0..).zip(message.tool_calls()) {
        if !over(&call.name, &call.arguments) {
            continue;
        }
        let literal = raw
            .get(index as usize)
            .and_then(|raw| serde_json::from_str::<Call<'_>>(raw.get()).ok())
            .map(|call| call.function.arguments);
        let outer = literal.and_then(|literal| literal_span(json, literal, &call.arguments));
        let Some(members) = call.members() else {
            let site = Site::Arguments(index);
            large.push(Large { site, text: call.arguments.clone(), hole: outer });
            continue;
        };
        // How far the escaped arguments were walked: each byte is escaped once.
        let (mut walked, mut escaped) = (0, 0);
        for (key, (_, value)) in (0..).zip(&members) {
            let text = argument_text(value);
            if !over(&call.name, &text) {
                continue;
            }
            let hole = outer.as_ref().and_then(|outer| {
                let (escape, inner) = (*outer.layers.first()?, inner_layers(value, &text)?);
                // The quotes of an inner string stay outside the hole.
                let quote = usize::from(value.get().starts_with('"'));
                let at = offset_in(&call.arguments, value.get())? + quote;
                let inside = value.get().get(quote..value.get().len() - quote)?;
                escaped += escaped_len(call.arguments.get(walked..at)?, escape);
                let start = outer.start + escaped;
                escaped += escaped_len(inside, escape);
                walked = at + inside.len();
                let end = outer.start + escaped;
                let layers = inner.into_iter().chain([escape]).collect();
                Some(Span { start, end, layers })
            });
            let site = Site::Argument(index, key);
            large.push(Large { site, text: text.into_owned(), hole });
        }
    }
}

/// Returns how the value of an argument is written inside the arguments: a string with its escapes,
/// any other value as it is.
fn inner_layers(value: &RawValue, text: &str) -> Option<Option<Escape>> {
    match value.get().strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(inside) => Escape::detect(text, inside).map(Some),
        None => Some(None),
    }
}

fn escaped_len(text: &str, escape: Escape) -> usize {
    let mut escaped = String::with_capacity(text.len() + text.len() / 8);
    escape_into(text, escape, &mut escaped);
    escaped.len()
}

/// Returns the hole that `text` leaves in place of the string `value` in `json`.
fn literal_span(json: &str, value: &RawValue, text: &str) -> Option<Span> {
    let (start, inside) = inside_literal(json, value)?;
    let escape = Escape::detect(text, inside)?;
    Some(Span { start, end: start + inside.len(), layers: vec![escape] })
}

/// Returns where the inside of the string `value` begins in `json`, and the inside.
fn inside_literal<'j>(json: &str, value: &'j RawValue) -> Option<(usize, &'j str)> {
    let inside = value.get().strip_prefix('"')?.strip_suffix('"')?;
    Some((offset_in(json, inside)?, inside))
}

/// Returns where `part`, which was borrowed from `whole`, begins in it.
fn offset_in(whole: &str, part: &str) -> Option<usize> {
    let at = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    (whole.get(at..at + part.len()) == Some(part)).then_some(at)
}

impl Large {
    /// Returns the place of the part.
    pub(crate) fn site(&self) -> Site {
        self.site
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_core::{Check, Estimate, PayloadKind};

    /// Builds the stored form of a message whose large parts are numbered from 1.
    fn stored(json: &str) -> (StoredMessage, Vec<String>) {
        let message = Message::from_json(json).unwrap();
        let policy = OffloadPolicy::default();
        let large = large_parts(&message, Some("read"), &policy, &Estimate);
        let texts: Vec<String> = large.iter().map(|part| part.text.clone()).collect();
        let offloads = (1..)
            .zip(&large)
            .map(|(n, part)| Offload {
                site: part.site(),
                n,
                check: Check::of(part.text.as_bytes()),
                kind: PayloadKind::Text,
                bytes: part.text.len() as u64,
                lines: 1,
                tokens: 600,
                preview: String::new(),
            })
            .collect();
        (store_with_holes(&message, large, offloads, 0), texts)
    }

    fn literal_bytes(stored: &StoredMessage) -> usize {
        let texts = stored.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.len(),
            Piece::Hole { .. } => 0,
        });
        texts.sum()
    }

    /// The message comes back byte for byte, and its record holds none of its large parts.
    #[track_caller]
    fn check(json: &str, parts: usize) {
        let (stored, texts) = stored(json);
        assert_eq!(texts.len(), parts);
        let filled = stored.json(|source, _| match source {
            Source::Payload(n) => Ok(texts[n as usize - 1].clone()),
            Source::Message(..) => Err(()),
        });
        assert_eq!(filled.as_deref(), Ok(json));
        assert!(literal_bytes(&stored) < 400, "{} bytes are stored twice", literal_bytes(&stored));
    }

    #[test]
    fn bs1_large_parts_leave_holes_whatever_the_writers_escapes() {
        let text = "Zeile \"ä\"\t中文 👍 <a href='/x'>\n".repeat(200);
        for escape in Escape::ALL {
            let mut once = String::new();
            escape_into(&text, escape, &mut once);
            check(&format!(r#"{{"role":"tool","tool_call_id":"c","content":"{once}"}}"#), 1);
            let part = format!(r#"{{"type":"text","text":"{once}"}}"#);
            check(
                &format!(r#"{{"role":"tool","tool_call_id":"c","content":[{part}, {part}]}}"#),
                2,
            );
            for outer in Escape::ALL {
                let arguments = format!(
                    r#"{{"path": "a/ü", "text": "{once}", "rows": [{}1]}}"#,
                    "1, ".repeat(2_000)
                );
                let mut twice = String::new();
                escape_into(&arguments, outer, &mut twice);
                let call = format!(
                    r#"{{"id":"c","type":"function","function":{{"name":"write","arguments":"{twice}"}}}}"#
                );
                check(
                    &format!(r#"{{"role":"assistant","content":null,"tool_calls":[{call}]}}"#),
                    2,
                );
            }
        }
    }

    #[test]
    fn bs1_arguments_that_are_no_object_leave_one_hole() {
        let arguments = "not json ".repeat(500);
        let call = format!(
            r#"{{"id":"c","type":"function","function":{{"name":"write","arguments":"{arguments}"}}}}"#
        );
        check(&format!(r#"{{"role":"assistant","content":"","tool_calls":[{call}]}}"#), 1);
    }

    #[test]
    fn escapes_of_no_known_habit_stay_in_the_record() {
        let text = "\\u0041 word ".repeat(600);
        let json = format!(r#"{{"role":"tool","tool_call_id":"c","content":"{text}"}}"#);
        let (stored, texts) = stored(&json);
        assert_eq!(texts.len(), 1);
        assert_eq!(stored.whole(), Some(json.as_str()));
        assert_eq!(stored.offloads.len(), 1);
    }
}
