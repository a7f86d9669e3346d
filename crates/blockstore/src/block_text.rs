//! The searched text of a block, derived from its records alone.

use crate::analysis::Analyzer;
use crate::payload_texts::PayloadText;
use foldback_core::{Block, Message, Offload, PayloadKind, Source, StoredMessage, ToolCallId};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Hands the terms of a block to `sink`: its keywords, and of each message its text, the names of the tools that it
/// calls and their arguments. Parts that are stored outside count with their previews, so a block can be indexed again
/// without reading a payload. Answers of memory tools do not count if their text is elsewhere in the todo, and neither do
/// the arguments of their calls: recalled text is found in its original place, and not where somebody searched for it.
pub(crate) fn block_terms(
    block: &Block,
    messages: &[StoredMessage],
    analyzer: &mut Analyzer,
    mut sink: impl FnMut(&str),
) {
    for keyword in &block.header.keywords {
        analyzer.terms(keyword, &mut sink);
    }
    let messages: Vec<SearchedMessage<'_>> = messages.iter().map(SearchedMessage::read).collect();
    let recalls = recalls(&messages);
    for (at, searched) in
        messages.iter().enumerate().filter(|(_, searched)| !searched.stored.recall)
    {
        let is_recall = |call: usize| recalls.contains(&(at, call));
        message_terms(searched, is_recall, analyzer, &mut sink);
    }
}

/// A message of a block, as far as it can be read.
struct SearchedMessage<'a> {
    stored: &'a StoredMessage,
    json: String,
    message: Option<Message>,
}

impl<'a> SearchedMessage<'a> {
    fn read(stored: &'a StoredMessage) -> Self {
        let json = light_json(stored);
        let message = Message::from_json(&json).ok();
        Self { stored, json, message }
    }
}

/// Returns the calls that answers of memory tools belong to: the message that makes one, and which of its calls it is.
/// Ids may be reused, so an answer belongs to the newest call of its id. An unanswered call of such a tool counts as
/// well: a search in the meantime would otherwise find the question.
fn recalls(messages: &[SearchedMessage<'_>]) -> BTreeSet<(usize, usize)> {
    let mut newest: BTreeMap<&ToolCallId, (usize, usize)> = BTreeMap::new();
    let mut recalls = BTreeSet::new();
    for (at, searched) in messages.iter().enumerate() {
        let Some(message) = &searched.message else { continue };
        for (index, call) in message.tool_calls().iter().enumerate() {
            newest.insert(&call.id, (at, index));
            if is_memory_tool(&call.name) {
                recalls.insert((at, index));
            }
        }
        if let Some(call) = message.tool_call_id().and_then(|id| newest.get(id)) {
            match searched.stored.recall {
                true => recalls.insert(*call),
                false => recalls.remove(call),
            };
        }
    }
    recalls
}

/// Returns whether a tool belongs to the memory by its name, which a client may prefix with that of its server.
fn is_memory_tool(name: &str) -> bool {
    ["search_block", "load"].iter().any(|tool| {
        name.strip_suffix(tool).is_some_and(|server| server.is_empty() || server.ends_with('_'))
    })
}

/// Returns the payloads of a block whose texts are searched, in the order of its messages, each once. What a memory
/// tool recalled is searched in its original place.
pub(crate) fn payload_texts(messages: &[StoredMessage]) -> Vec<PayloadText> {
    let mut payloads: Vec<PayloadText> = Vec::new();
    let kept = messages.iter().filter(|stored| !stored.recall);
    for offload in kept.flat_map(|stored| &stored.offloads) {
        let is_known = payloads.iter().any(|known| known.n == offload.n);
        if !is_known && offload.kind != PayloadKind::Binary {
            let Offload { n, bytes, check, .. } = *offload;
            payloads.push(PayloadText { n, bytes, check });
        }
    }
    payloads
}

fn message_terms(
    searched: &SearchedMessage<'_>,
    is_recall: impl Fn(usize) -> bool,
    analyzer: &mut Analyzer,
    mut sink: impl FnMut(&str),
) {
    let Some(message) = &searched.message else {
        // A text that is no longer a message is still worth finding.
        analyzer.terms(&searched.json, &mut sink);
        return;
    };
    if let Some(name) = message.name() {
        analyzer.terms(name, &mut sink);
    }
    for text in message.content().texts() {
        analyzer.terms(text, &mut sink);
    }
    for (index, call) in message.tool_calls().iter().enumerate() {
        analyzer.terms(&call.name, &mut sink);
        if is_recall(index) {
            continue;
        }
        match serde_json::from_str::<Value>(&call.arguments) {
            Ok(value) => value_terms(&value, analyzer, &mut sink),
            Err(_) => analyzer.terms(&call.arguments, &mut sink),
        }
    }
}

/// Returns the message's JSON with previews in place of the parts that are stored outside.
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
    use foldback_core::{
        BlockHeader, BlockType, Check, CloseReason, Escape, Offload, PayloadKind, Piece, SeqNo,
        SeqRange, Site,
    };

    fn terms(messages: &[StoredMessage]) -> Vec<String> {
        let mut out = Vec::new();
        let header = BlockHeader {
            block_id: "b_t_001".parse().unwrap(),
            todo_id: "t".parse().unwrap(),
            block_type: BlockType::ToolCall,
            keywords: Vec::new(),
            core_semantic: String::new(),
            create_time: String::new(),
            data_ids: Vec::new(),
        };
        let range = SeqRange::new(SeqNo(0), SeqNo(messages.len() as u64 - 1)).unwrap();
        let block = Block { header, range, close_reason: CloseReason::Topic };
        block_terms(&block, messages, &mut Analyzer::new(), |term| out.push(term.to_owned()));
        out
    }

    fn stored(pieces: Vec<Piece>, offloads: Vec<Offload>) -> StoredMessage {
        StoredMessage { pieces, offloads, recall: false, recorded_at: 0 }
    }

    #[test]
    fn calls_are_searched_by_name_and_argument() {
        let json = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function",
            "function":{"name":"read_file","arguments":"{\"path\":\"a/b.txt\",\"note\":\"one\\ntwo\"}"}}]}"#;
        let terms = terms(&[stored(vec![Piece::Text(json.to_owned())], Vec::new())]);
        for term in ["read_file", "path", "a/b.txt", "b.txt", "one", "two"] {
            assert!(terms.iter().any(|t| t == term), "{term} in {terms:?}");
        }
        assert!(!terms.iter().any(|t| t.contains("ntwo")), "{terms:?}");
    }

    #[test]
    fn lv9_what_the_memory_was_asked_is_not_found() {
        let calls = |calls: &str| {
            let json =
                format!(r#"{{"role":"assistant","content":"我看看","tool_calls":[{calls}]}}"#);
            stored(vec![Piece::Text(json)], Vec::new())
        };
        let asked = r#"{"id":"call_0","type":"function","function":{"name":"search_block","arguments":"{\"query\":\"纠正 holm\"}"}}"#;
        let read = r#"{"id":"call_1","type":"function","function":{"name":"read","arguments":"{\"path\":\"tide.csv\"}"}}"#;
        let quote = Source::Message(SeqNo(0), Site::Content);
        let hole =
            Piece::Hole { source: quote, range: Some((0, 9)), layers: vec![Escape::Minimal] };
        let pieces = vec![
            Piece::Text(r#"{"role":"tool","tool_call_id":"call_0","content":""#.to_owned()),
            hole,
            Piece::Text(r#""}"#.to_owned()),
        ];
        let answer = StoredMessage { recall: true, ..stored(pieces, Vec::new()) };
        // Some providers restart the count of calls in each turn.
        let again = read.replace("call_1", "call_0").replace("tide.csv", "潮汐.csv");
        let messages = [calls(&again), calls(&format!("{asked},{read}")), answer, calls(&again)];
        let terms = terms(&messages);
        for searched in ["search_block", "tide.csv"] {
            assert!(terms.iter().any(|term| term == searched), "{searched} in {terms:?}");
        }
        assert_eq!(terms.iter().filter(|term| *term == "潮汐").count(), 2, "{terms:?}");
        for asked in ["query", "holm", "纠正"] {
            assert!(!terms.iter().any(|term| term == asked), "{asked} in {terms:?}");
        }
    }

    #[test]
    fn lv9_what_the_memory_is_being_asked_is_not_found() {
        let asked = |name: &str| {
            let json = format!(
                r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"c","type":"function","function":{{"name":"{name}","arguments":"{{\"query\":\"holm\"}}"}}}}]}}"#
            );
            stored(vec![Piece::Text(json)], Vec::new())
        };
        let other = r#"{"role":"tool","tool_call_id":"c","content":"none"}"#.to_owned();
        let other = stored(vec![Piece::Text(other)], Vec::new());
        let finds = |messages: &[StoredMessage]| terms(messages).iter().any(|term| term == "holm");
        for name in ["search_block", "mcp__foldback__search_block", "foldback_load"] {
            assert!(!finds(&[asked(name)]), "{name}");
            assert!(finds(&[asked(name), other.clone()]), "{name}: another tool answered");
        }
        for name in ["upload", "web_search"] {
            assert!(finds(&[asked(name)]), "{name}");
        }
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
        let terms = terms(&[stored(pieces, vec![offload])]);
        assert_eq!(terms, ["the", "zebra", "ran"]);
    }
}
