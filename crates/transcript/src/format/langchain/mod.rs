//! Messages as LangChain and LangGraph write them: `messages_to_dict`, `dumps` and `model_dump`,
//! as a list, one on each line, or under `messages` of an object.

mod chunk;
mod message;

use self::message::{Entry, Kind};
use super::anthropic_blocks::{begin, members_but};
use super::{Context, Fit, Format, place_of};
use crate::conversion::Conversion;
use crate::object::{Object, array, object};
use crate::record::Record;
use crate::{Conversation, Error};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// What one line says about its file.
pub(crate) fn fit(line: &Object<'_>, _first: bool) -> Fit {
    if message::fits(line) { Fit::Yes } else { Fit::No }
}

/// Reads a file that holds one message on each line.
pub(crate) fn read(records: &[Record], context: Context<'_>) -> Result<Vec<Conversation>, Error> {
    let mut conversion = Conversion::new(Format::LangChain, None);
    let mut entries = Vec::with_capacity(records.len());
    for record in records {
        match Entry::of(&record.text, record.line) {
            Some(entry) => entries.push(entry),
            None => conversion.record("unknown", record.line, &record.text),
        }
    }
    push_all(&mut conversion, entries, context)?;
    Ok(vec![conversion.finish()])
}

/// Whether a list is one of such messages.
pub(super) fn fits_array(items: &[&RawValue]) -> bool {
    items.first().and_then(|first| object(first)).is_some_and(|first| message::fits(&first))
}

/// Whether an object holds such a list.
pub(super) fn fits_body(body: &Object<'_>) -> bool {
    list_of(body).and_then(array).is_some_and(|items| fits_array(&items))
}

/// Reads a list of messages.
pub(super) fn read_array(
    text: &str,
    items: &[&RawValue],
    context: Context<'_>,
) -> Result<Conversation, Error> {
    let mut conversion = Conversion::new(Format::LangChain, None);
    push_all(&mut conversion, entries_of(text, items, context)?, context)?;
    Ok(conversion.finish())
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
    let items = list_of(body).and_then(array).unwrap_or_default();
    push_all(&mut conversion, entries_of(text, &items, context)?, context)?;
    Ok(conversion.finish())
}

fn list_of<'a>(body: &Object<'a>) -> Option<&'a RawValue> {
    body.get("messages").or_else(|| body.object("values")?.get("messages"))
}

fn entries_of(text: &str, items: &[&RawValue], context: Context<'_>) -> Result<Vec<Entry>, Error> {
    let entries = items.iter().enumerate().map(|(index, item)| {
        let line = place_of(item.get(), text, context.place).line;
        Entry::of(item.get(), line).ok_or_else(|| {
            context.shape(
                line,
                format!(
                    "message {index} begins with {}; expected was a LangChain message of a type \
                     such as \"human\", \"ai\" or \"tool\"",
                    begin(item)
                ),
            )
        })
    });
    entries.collect()
}

/// Adds all messages: those that a later one removes are kept beside them, and chunks of one
/// message are put together.
fn push_all(
    conversion: &mut Conversion,
    entries: Vec<Entry>,
    context: Context<'_>,
) -> Result<(), Error> {
    let mut kept: Vec<Vec<Entry>> = Vec::with_capacity(entries.len());
    let mut chunks: BTreeMap<String, usize> = BTreeMap::new();
    for entry in entries {
        match (&entry.kind, &entry.id) {
            (Kind::Remove, id) => {
                let all = id.as_deref() == Some(message::ALL);
                for group in &mut kept {
                    let gone = all || id.is_some() && group.iter().any(|one| one.id == *id);
                    for one in group.drain(..if gone { group.len() } else { 0 }) {
                        conversion.record("removed", one.line, &one.json);
                    }
                }
                chunks.clear();
                conversion.record("remove", entry.line, &entry.json);
            }
            (Kind::Chunk, Some(id)) => match chunks.get(id).and_then(|at| kept.get_mut(*at)) {
                Some(group) => group.push(entry),
                None => {
                    chunks.insert(id.clone(), kept.len());
                    kept.push(vec![entry]);
                }
            },
            _ => kept.push(vec![entry]),
        }
    }
    for group in kept.iter().filter(|group| !group.is_empty()) {
        let line = group.first().map_or(1, |entry| entry.line);
        let draft = message::draft_of(group)
            .map_err(|what| context.shape(line, format!("a LangChain message: {what}")))?;
        conversion.push(draft, context)?;
    }
    Ok(())
}
