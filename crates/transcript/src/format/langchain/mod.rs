//! Reads messages as LangChain and LangGraph write them: `messages_to_dict`, `dumps` and
//! `model_dump`, as a list, one on each line, or under `messages` of an object.

mod chunk;
mod message;

use self::message::{Entry, Kind};
use super::anthropic_blocks::{begin, members_but};
use super::lines::Lines;
use super::{Context, Fit, Format};
use crate::conversion::Conversion;
use crate::object::Object;
use crate::record::Record;
use crate::{Conversation, Error};
use serde_json::value::RawValue;
use std::collections::HashMap;

/// Returns what one line says about its file.
pub(crate) fn fit(line: &Object<'_>, _first: bool) -> Fit {
    if message::fits(line) { Fit::Yes } else { Fit::No }
}

/// Reads a file that holds one message on each line. Messages that cannot be read are `damage`.
pub(crate) fn read(
    records: &[Record],
    context: Context<'_>,
    damage: &mut Vec<Error>,
) -> Result<Vec<Conversion>, Error> {
    let mut conversion = Conversion::new(Format::LangChain, None);
    let mut entries = Vec::with_capacity(records.len());
    for record in records {
        match Entry::of(&record.text, record.line) {
            Some(entry) => entries.push(entry),
            None => conversion.record("unknown", record.line, &record.text),
        }
    }
    push_all(&mut conversion, entries, context, damage);
    Ok(vec![conversion])
}

/// Returns whether a list consists of such messages.
pub(super) fn fits_array(items: &[&RawValue]) -> bool {
    items.first().and_then(|first| Object::of(first)).is_some_and(|first| message::fits(&first))
}

/// Returns whether an object holds such a list.
pub(super) fn fits_body(body: &Object<'_>) -> bool {
    list_of(body).and_then(Object::array_of).is_some_and(|items| fits_array(&items))
}

/// Reads a list of messages.
pub(super) fn read_array(
    text: &str,
    items: &[&RawValue],
    context: Context<'_>,
) -> Result<Conversation, Error> {
    let conversion = Conversion::new(Format::LangChain, None);
    finish(conversion, entries_of(text, items, context)?, context)
}

/// Reads an object that holds a list of messages.
pub(super) fn read_body(
    text: &str,
    body: &Object<'_>,
    context: Context<'_>,
) -> Result<Conversation, Error> {
    let id = body
        .text("id")
        .or_else(|| body.text("thread_id"))
        .or_else(|| body.object("config")?.object("configurable")?.text("thread_id"));
    let mut conversion = Conversion::new(Format::LangChain, id.map(|id| id.into_owned()));
    conversion.fact("body", &members_but(body, &["id", "messages", "values"]));
    if let Some(values) = body.object("values") {
        conversion.fact("values", &members_but(&values, &["messages"]));
    }
    let items = list_of(body).and_then(Object::array_of).unwrap_or_default();
    finish(conversion, entries_of(text, &items, context)?, context)
}

/// Returns the conversation with these messages. In a text that is one JSON value, one unreadable
/// message is an error of the whole text.
fn finish(
    mut conversion: Conversion,
    entries: Vec<Entry>,
    context: Context<'_>,
) -> Result<Conversation, Error> {
    let mut damage = Vec::new();
    push_all(&mut conversion, entries, context, &mut damage);
    match damage.into_iter().next() {
        Some(error) => Err(error),
        None => Ok(conversion.finish()),
    }
}

fn list_of<'a>(body: &Object<'a>) -> Option<&'a RawValue> {
    body.get("messages").or_else(|| body.object("values")?.get("messages"))
}

fn entries_of(text: &str, items: &[&RawValue], context: Context<'_>) -> Result<Vec<Entry>, Error> {
    let mut lines = Lines::new(text, context.place.line);
    let entries = items.iter().enumerate().map(|(index, item)| {
        let line = lines.of(item.get());
        Entry::of(item.get(), line).ok_or_else(|| {
            context.shape(
                line,
                format!(
                    "message {index} begins with {}; expected a LangChain message of a type \
                     such as \"human\", \"ai\" or \"tool\"",
                    begin(item)
                ),
            )
        })
    });
    entries.collect()
}

/// Adds all messages: those that a later one removes are kept apart from them, and chunks of one
/// message are joined.
fn push_all(
    conversion: &mut Conversion,
    entries: Vec<Entry>,
    context: Context<'_>,
    damage: &mut Vec<Error>,
) {
    let mut kept: Vec<Vec<Entry>> = Vec::with_capacity(entries.len());
    // Which groups hold an id, or none, and which one its chunks continue.
    let mut of_id: HashMap<String, Vec<usize>> = HashMap::new();
    let mut nameless: Vec<usize> = Vec::new();
    let mut chunks: HashMap<String, usize> = HashMap::new();
    for entry in entries {
        if entry.kind == Kind::Remove {
            let gone: Vec<usize> = match entry.id.as_deref() {
                Some(message::ALL) => {
                    let mut all: Vec<_> = of_id.drain().flat_map(|(_, groups)| groups).collect();
                    all.append(&mut nameless);
                    all.sort_unstable();
                    all
                }
                Some(id) => of_id.remove(id).unwrap_or_default(),
                None => Vec::new(),
            };
            for at in gone {
                for one in kept.get_mut(at).map(std::mem::take).unwrap_or_default() {
                    conversion.record("removed", one.line, &one.json);
                }
            }
            chunks.clear();
            conversion.record("remove", entry.line, &entry.json);
            continue;
        }
        let is_chunk = entry.kind == Kind::Chunk;
        let begun = entry.id.as_ref().filter(|_| is_chunk).and_then(|id| chunks.get(id));
        if let Some(group) = begun.and_then(|at| kept.get_mut(*at)) {
            group.push(entry);
            continue;
        }
        match &entry.id {
            Some(id) => {
                of_id.entry(id.clone()).or_default().push(kept.len());
                if is_chunk {
                    chunks.insert(id.clone(), kept.len());
                }
            }
            None => nameless.push(kept.len()),
        }
        kept.push(vec![entry]);
    }
    let last = kept.iter().rev().find_map(|group| group.first());
    let open = last.filter(|entry| entry.kind == Kind::Chunk).map(|entry| entry.line);
    conversion.unfinished_response(open);
    for group in kept.into_iter().filter(|group| !group.is_empty()) {
        let line = group.first().map_or(1, |entry| entry.line);
        let pushed = message::draft_of(&group)
            .map_err(|what| context.shape(line, format!("a LangChain message: {what}")))
            .and_then(|draft| conversion.push(draft, context));
        damage.extend(pushed.err());
    }
}
