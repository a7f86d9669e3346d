//! Joins the parts of one message as LangChain does.

use crate::draft::{list_of, push_member};
use crate::object::Object;
use crate::record::object_of;
use serde_json::value::RawValue;

/// An object whose members are being joined.
type Members = Vec<(String, String)>;

/// Returns the message that its parts make, as JSON: texts are joined, and so are blocks and calls
/// of the same `index`. For any other member, the last non-empty value counts.
pub(super) fn merge<'a>(chunks: impl Iterator<Item = &'a str>) -> String {
    let mut members: Members = Vec::new();
    let mut blocks: Vec<Members> = Vec::new();
    let mut calls: Vec<Members> = Vec::new();
    let mut text: Option<String> = None;
    for chunk in chunks.filter_map(object_of) {
        for (key, value) in &chunk.0 {
            match key.as_ref() {
                "content" if value.get().starts_with('"') => {
                    join(text.get_or_insert_with(|| "\"\"".to_owned()), value.get());
                }
                "content" => add_all(&mut blocks, value),
                "tool_call_chunks" => add_all(&mut calls, value),
                // They repeat the chunks of calls, as far as those could be read.
                "tool_calls" | "invalid_tool_calls" if chunk.has("tool_call_chunks") => {}
                key => {
                    let known = members.iter_mut().find(|(known, _)| known == key);
                    let is_nothing = matches!(value.get(), "null" | "{}" | "[]");
                    match known {
                        Some(known) if !is_nothing => value.get().clone_into(&mut known.1),
                        Some(_) => {}
                        None => members.push((key.to_owned(), value.get().to_owned())),
                    }
                }
            }
        }
    }
    let mut out = String::new();
    for (key, value) in &members {
        push_member(key, value, &mut out);
    }
    if let Some(text) = text.as_ref().filter(|text| !blocks.is_empty() && *text != "\"\"") {
        let (kind, text) = (("type".to_owned(), "\"text\"".to_owned()), text.clone());
        blocks.insert(0, vec![kind, ("text".to_owned(), text)]);
    }
    let content =
        if blocks.is_empty() { text.unwrap_or_else(|| "null".into()) } else { list(&blocks) };
    push_member("content", &content, &mut out);
    if !calls.is_empty() {
        push_member("tool_calls", &list(&calls), &mut out);
    }
    format!("{{{}}}", out.strip_prefix(',').unwrap_or_default())
}

/// Adds each object of a list to the one of the same `index`.
fn add_all(all: &mut Vec<Members>, value: &RawValue) {
    for item in Object::array_of(value).unwrap_or_default() {
        let Some(block) = object_of(item.get()) else {
            if item.get().starts_with('"') {
                let kind = ("type".to_owned(), "\"text\"".to_owned());
                all.push(vec![kind, ("text".to_owned(), item.get().to_owned())]);
            }
            continue;
        };
        let index = block.get("index").map(RawValue::get).filter(|index| *index != "null");
        // Usually the last one continues.
        let same = all.iter_mut().rev().find(|known| {
            index.is_some() && known.iter().any(|(k, v)| k == "index" && Some(v.as_str()) == index)
        });
        match same {
            Some(known) => add(known, &block),
            None => {
                all.push(
                    block.0.iter().map(|(k, v)| (k.to_string(), v.get().to_owned())).collect(),
                );
            }
        }
    }
}

/// Adds a part of a block: texts are joined, except those that name something.
fn add(known: &mut Members, block: &Object<'_>) {
    for (key, value) in &block.0 {
        match known.iter_mut().find(|(known, _)| known == key) {
            None => known.push((key.to_string(), value.get().to_owned())),
            Some((_, held)) if held == "null" => value.get().clone_into(held),
            Some((key, held))
                if held.starts_with('"')
                    && value.get().starts_with('"')
                    && !matches!(key.as_str(), "type" | "id" | "name" | "index") =>
            {
                join(held, value.get());
            }
            Some(_) => {}
        }
    }
}

/// Continues a JSON string. A character that was cut between the two is whole again.
fn join(held: &mut String, more: &str) {
    held.pop();
    held.push_str(more.strip_prefix('"').unwrap_or(more));
}

fn list(objects: &[Members]) -> String {
    let objects: Vec<String> = objects
        .iter()
        .map(|members| {
            let mut out = String::new();
            for (key, value) in members {
                push_member(key, value, &mut out);
            }
            format!("{{{}}}", out.strip_prefix(',').unwrap_or_default())
        })
        .collect();
    list_of(&objects)
}
