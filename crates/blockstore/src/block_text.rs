//! What of a block is searched, derived from its records alone.

use crate::analysis::Analyzer;
use crate::payload_texts::PayloadText;
use foldback_core::{Block, Message, PayloadKind, Source, StoredMessage};
use serde_json::Value;

/// Hands the terms of a block to `sink`: of its keywords, and of each message what it says, the
/// names of the tools it calls and what it passes to them. Parts that are stored outside count
/// with their previews, and answers of memory tools not at all, so a block can be indexed again
/// without reading a payload, and what was recalled is not found a second time.
pub(crate) fn block_terms<'a>(
    block: &Block,
    messages: impl IntoIterator<Item = &'a StoredMessage>,
    analyzer: &mut Analyzer,
    mut sink: impl FnMut(&str),
) {
    for keyword in &block.header.keywords {
        analyzer.terms(keyword, &mut sink);
    }
    for stored in messages {
        if !stored.recall {
            message_terms(stored, analyzer, &mut sink);
        }
    }
}

/// The payloads of a block whose texts are searched, in the order of its messages, each once. What
/// a memory tool brought back is searched where it stands.
pub(crate) fn payload_texts(messages: &[StoredMessage]) -> Vec<PayloadText> {
    let mut payloads: Vec<PayloadText> = Vec::new();
    let told = messages.iter().filter(|stored| !stored.recall);
    for offload in told.flat_map(|stored| &stored.offloads) {
        let is_known = payloads.iter().any(|known| known.n == offload.n);
        if !is_known && offload.kind != PayloadKind::Binary {
            payloads.push(PayloadText { n: offload.n, bytes: offload.bytes });
        }
    }
    payloads
}

fn message_terms(stored: &StoredMessage, analyzer: &mut Analyzer, mut sink: impl FnMut(&str)) {
    let json = light_json(stored);
    let Ok(message) = Message::from_json(&json) else {
        // A text that is no message any more is still worth finding.
        analyzer.terms(&json, &mut sink);
        return;
    };
    if let Some(name) = message.name() {
        analyzer.terms(name, &mut sink);
    }
    for text in message.content().texts() {
        analyzer.terms(text, &mut sink);
    }
    for call in message.tool_calls() {
        analyzer.terms(&call.name, &mut sink);
        match serde_json::from_str::<Value>(&call.arguments) {
            Ok(value) => value_terms(&value, analyzer, &mut sink),
            Err(_) => analyzer.terms(&call.arguments, &mut sink),
        }
    }
}

/// The message's JSON with previews in place of what is stored outside.
pub(crate) fn light_json(stored: &StoredMessage) -> String {
    let filled = stored.json(|source, _| {
        let preview = match source {
            Source::Payload(n) => stored.offloads.iter().find(|o| o.n == n).map(|o| &o.preview),
            // Only answers of memory tools quote other messages, and they are not searched.
            Source::Message(..) => None,
        };
        Ok::<_, std::convert::Infallible>(preview.cloned().unwrap_or_default())
    });
    match filled {
        Ok(json) => json,
        Err(never) => match never {},
    }
}

/// The keys and the values of arguments. The parser bounds the depth at 128.
fn value_terms(value: &Value, analyzer: &mut Analyzer, sink: &mut impl FnMut(&str)) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => analyzer.terms(&number.to_string(), sink),
        Value::String(text) => analyzer.terms(text, sink),
        Value::Array(values) => values.iter().for_each(|v| value_terms(v, analyzer, sink)),
        Value::Object(members) => {
            for (key, value) in members {
                analyzer.terms(key, sink);
                value_terms(value, analyzer, sink);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_core::{Check, Escape, Offload, PayloadKind, Piece, Site};

    fn terms(stored: &StoredMessage) -> Vec<String> {
        let mut out = Vec::new();
        message_terms(stored, &mut Analyzer::new(), |term| out.push(term.to_owned()));
        out
    }

    fn stored(pieces: Vec<Piece>, offloads: Vec<Offload>) -> StoredMessage {
        StoredMessage { pieces, offloads, recall: false, recorded_at: 0 }
    }

    #[test]
    fn calls_are_searched_by_name_and_argument() {
        let json = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function",
            "function":{"name":"read_file","arguments":"{\"path\":\"a/b.txt\",\"note\":\"one\\ntwo\"}"}}]}"#;
        let terms = terms(&stored(vec![Piece::Text(json.to_owned())], Vec::new()));
        for term in ["read_file", "path", "a/b.txt", "b.txt", "one", "two"] {
            assert!(terms.iter().any(|t| t == term), "{term} in {terms:?}");
        }
        assert!(!terms.iter().any(|t| t.contains("ntwo")), "{terms:?}");
    }

    #[test]
    fn a_part_that_is_stored_outside_counts_with_its_preview() {
        let offload = Offload {
            site: Site::Content,
            n: 3,
            check: Check::of(b"x"),
            kind: PayloadKind::Log,
            bytes: 9_000,
            lines: 90,
            tokens: 2_000,
            preview: "the \"zebra\" ran\n".to_owned(),
        };
        let pieces = vec![
            Piece::Text(r#"{"role":"tool","tool_call_id":"c","content":""#.to_owned()),
            Piece::Hole { source: Source::Payload(3), range: None, layers: vec![Escape::Minimal] },
            Piece::Text(r#""}"#.to_owned()),
        ];
        let terms = terms(&stored(pieces, vec![offload]));
        assert_eq!(terms, ["the", "zebra", "ran"]);
    }
}
