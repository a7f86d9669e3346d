//! What a client does not know, put back in its place.

use super::begun::{self, Begun};
use super::edits::{Edits, elements, members, string};
use crate::client_message::{Facts, ranges};
use crate::replayed::MARK;
use crate::{Api, exact};
use foldback::{Error, Memory, ParkedName};
use foldback_core::TodoId;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// What replaces one message of the client in requests.
#[derive(Serialize, Deserialize)]
pub(super) struct Parked {
    /// The model's messages, and our answers to them, before the client got an answer.
    messages: Vec<Box<RawValue>>,
    /// The calls of the last of them, if the client answers some.
    answers: Vec<Answered>,
}

/// A call by a model that called our tools and the client's together.
#[derive(Serialize, Deserialize)]
pub(super) struct Answered {
    pub(super) call: String,
    /// Our answer; `None` if the client must give it.
    pub(super) ours: Option<Box<RawValue>>,
}

/// Returns the name under which something is parked for each message of a conversation: its digest, which covers the
/// ids of its calls; for one without calls, also what it answers; and how often that occurred before.
pub(super) fn names(said: &[Facts]) -> Vec<ParkedName> {
    let (mut before, mut counts) = (None, HashMap::new());
    let mut names = Vec::with_capacity(said.len());
    let fresh = blake3::Hasher::new_derive_key("foldback 2026-11-23 parked messages");
    for one in said {
        let mut hasher = fresh.clone();
        hasher.update(one.digest.as_bytes());
        if let Some(before) = before.replace(one.digest).filter(|_| !one.has_calls) {
            hasher.update(before.as_bytes());
        }
        let count: &mut u64 = counts.entry(hasher.finalize()).or_default();
        hasher.update(&count.to_le_bytes());
        *count += 1;
        names.push(*hasher.finalize().as_bytes());
    }
    names
}

/// What replaces a message.
pub(super) enum Stands {
    Parked(Parked),
    /// If the client's message is the beginning of a turn that broke off.
    Begun(Begun),
}

/// What replaces messages, by their places, each with its name.
pub(super) type AtPlaces = BTreeMap<usize, (ParkedName, Stands)>;

/// Returns what is parked for messages of a conversation, by their places and with its names; `None` if that cannot be
/// read.
///
/// # Errors
/// When the store fails.
pub(super) fn parked_for(
    said: &[Facts],
    memory: &Memory,
    todo: &TodoId,
) -> Result<Option<AtPlaces>, Error> {
    if !memory.has_parked(todo)? {
        return Ok(Some(BTreeMap::new()));
    }
    let models = || said.iter().enumerate().filter(|(_, said)| said.is_given).map(|(n, _)| n);
    let read = |names: Vec<ParkedName>, before: usize| {
        let name = |n: usize| names.get(n.wrapping_sub(before)).copied().unwrap_or_default();
        let names: Vec<_> = models().map(name).collect();
        let texts = memory.parked(todo, &names)?;
        Ok::<_, Error>(names.into_iter().zip(texts))
    };
    // A message that is not the whole answer may still be its beginning; the turn is found by what it answers.
    let (own, begun) = (read(names(said), 0)?, read(begun::names(said), 1)?);
    let mut stands = BTreeMap::new();
    for (n, both) in models().zip(own.zip(begun)) {
        let (name, one) = match both {
            ((name, Some(parked)), _) => (name, Parked::from_json(&parked).map(Stands::Parked)),
            (_, (name, Some(begun))) => (name, Begun::from_json(&begun).map(Stands::Begun)),
            _ => continue,
        };
        let Some(one) = one else { return Ok(None) };
        stands.insert(n, (name, one));
    }
    Ok(Some(stands))
}

/// Returns the body with everything that is parked for its messages in place; `None` if it cannot be read. `places`
/// has for each of its messages the place among all that the client sent, or none if the gateway has written it;
/// without `places` the body is the client's own. With the body it returns the places where something was put, and its
/// names.
pub(super) fn put_back(
    api: Api,
    body: &str,
    places: Option<&[Option<usize>]>,
    mut parked: AtPlaces,
) -> Option<(String, Vec<(usize, ParkedName)>)> {
    let request = members(body)?;
    let list =
        elements(request.get(if api == Api::Responses { "input" } else { "messages" })?.get())?;
    let (mut edits, mut changed) = (Edits::new(body), Vec::new());
    for (n, range) in ranges(api, &list).into_iter().enumerate() {
        let Some(place) = places.map_or(Some(n), |places| *places.get(n)?) else { continue };
        let Some((name, stands)) = parked.remove(&place) else { continue };
        let parked = match stands {
            Stands::Parked(parked) => parked,
            Stands::Begun(begun) => match begun.around(api, list.get(range.clone())?) {
                Some(messages) => Parked::new(&messages, Vec::new()),
                None => continue,
            },
        };
        if parked.put_into(api, &mut edits, &list, &range)? {
            changed.push((place, name));
        }
    }
    Some((edits.finish(), changed))
}

impl Parked {
    pub(super) fn new(messages: &[Value], answers: Vec<Answered>) -> Self {
        let raw = |message: &Value| RawValue::from_string(exact::write(message)).ok();
        Self { messages: messages.iter().filter_map(raw).collect(), answers }
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    pub(super) fn from_json(json: &str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }

    /// Puts it in the place of these elements; returns whether the client has answered its calls, without which it
    /// cannot be there.
    fn put_into(
        &self,
        api: Api,
        edits: &mut Edits<'_>,
        list: &[&RawValue],
        range: &Range<usize>,
    ) -> Option<bool> {
        let own = list.get(range.clone())?;
        let (first, mut last) = (own.first()?, own.last()?);
        let behind = list.get(range.end..)?;
        let mut messages = self.as_client_sends(api, own);
        match api {
            Api::Messages if !self.answers.is_empty() => {
                // Without the client's own answers the request would be invalid.
                let Some(content) = behind.first().and_then(|next| content_of_user(next)) else {
                    return Some(false);
                };
                edits.replace(content.get(), self.with_answers_of(content)?);
            }
            _ if self.answers.is_empty() => {}
            _ => {
                let answers = behind.iter().take_while(|one| answered_call(one).is_some());
                let answers: Vec<_> = answers.collect();
                messages.extend(self.in_order(&answers, answered_call));
                last = answers.last().copied().unwrap_or(last);
            }
        }
        edits.replace_all(first.get(), last.get(), messages.join(","));
        Some(true)
    }

    /// Returns the messages, with the cache mark if the client has set it and without thinking if the client drops
    /// it.
    fn as_client_sends(&self, api: Api, own: &[&RawValue]) -> Vec<String> {
        let read = |raw: &RawValue| exact::read(raw.get()).unwrap_or_default();
        let own: Vec<Value> = own.iter().map(|raw| read(raw)).collect();
        let mut messages: Vec<Value> = self.messages.iter().map(|raw| read(raw)).collect();
        let mut mark = None;
        if api == Api::Messages {
            let blocks = || own.iter().flat_map(|one| one["content"].as_array()).flatten();
            mark = blocks().find_map(|block| block.get(MARK)).cloned();
            if !blocks().any(is_thought) {
                for blocks in messages.iter_mut().filter_map(|one| one["content"].as_array_mut()) {
                    blocks.retain(|block| !is_thought(block));
                }
                messages.retain(|one| one["content"].as_array().is_none_or(|all| !all.is_empty()));
            }
        } else if api == Api::Responses && !own.iter().any(is_thought) {
            messages.retain(|item| !is_thought(item));
        }
        let last = messages.last_mut().and_then(Value::as_object_mut);
        if api == Api::ChatCompletions {
            last.into_iter().for_each(|last| mark_chat(last, &own));
        } else if let (Some(mark), Some(Value::Array(blocks))) =
            (mark, last.and_then(|last| last.get_mut("content")))
        {
            let marked = blocks.iter_mut().rfind(|block| !is_thought(block));
            let marked = marked.and_then(Value::as_object_mut);
            marked.into_iter().for_each(|block| drop(block.insert(MARK.to_owned(), mark.clone())));
        }
        messages.iter().map(exact::write).collect()
    }

    /// Returns the content of the client's answers, as blocks, with ours among them.
    fn with_answers_of(&self, content: &RawValue) -> Option<String> {
        let text = format!("[{{\"type\":\"text\",\"text\":{}}}]", content.get());
        let text = if content.get().starts_with('"') { text.as_str() } else { content.get() };
        let blocks = elements(text)?;
        let results: Vec<_> = blocks.iter().collect();
        let own =
            |block: &RawValue| members(block.get())?.get("tool_use_id").and_then(|id| string(id));
        let mut parts = self.in_order(&results, own);
        // A mark at the end of the client's answers marks the end of all.
        let own_last = blocks.last().map(|block| block.get())?;
        let mark = members(own_last)?.get("cache_control").map(|mark| mark.get());
        if let Some(mark) = mark.filter(|_| parts.last().is_some_and(|last| last != own_last)) {
            let mark = exact::read(mark)?;
            let end = parts.len().saturating_sub(1);
            for (n, part) in parts.iter_mut().enumerate() {
                if n == end || part == own_last {
                    let Some(Value::Object(mut block)) = exact::read(part) else { return None };
                    block.shift_remove("cache_control");
                    block.extend((n == end).then(|| ("cache_control".to_owned(), mark.clone())));
                    *part = exact::write(&Value::Object(block));
                }
            }
        }
        Some(format!("[{}]", parts.join(",")))
    }

    /// Returns the client's answers and ours in the order of the calls, followed by everything else.
    fn in_order(
        &self,
        parts: &[&&RawValue],
        call_of: impl Fn(&RawValue) -> Option<String>,
    ) -> Vec<String> {
        let mut parts: Vec<_> =
            parts.iter().map(|part| Some((call_of(part), part.get()))).collect();
        let mut ordered = Vec::with_capacity(parts.len() + self.answers.len());
        for answered in &self.answers {
            match &answered.ours {
                Some(ours) => ordered.push(ours.get().to_owned()),
                None => {
                    let is_its = |part: &Option<(Option<String>, &str)>| {
                        part.as_ref().is_some_and(|(id, _)| id.as_ref() == Some(&answered.call))
                    };
                    let place = parts.iter().position(is_its);
                    let part = place.and_then(|place| parts.get_mut(place)?.take());
                    ordered.extend(part.map(|(_, part)| part.to_owned()));
                }
            }
        }
        ordered.extend(parts.into_iter().flatten().map(|(_, part)| part.to_owned()));
        ordered
    }
}

/// Sets the cache mark in a message of chat-completions where the client's own has it: beside the content, or in a block,
/// which a text becomes for it. A message without text gets none.
fn mark_chat(message: &mut Map<String, Value>, own: &[Value]) {
    if let Some(mark) = own.iter().find_map(|one| one.get(MARK)) {
        message.insert(MARK.to_owned(), mark.clone());
    }
    let blocks = own.iter().filter_map(|one| one["content"].as_array()).flatten();
    let mark = blocks.filter_map(|block| block.get(MARK)).next_back();
    let content = message.get("content").and_then(Value::as_str);
    if let (Some(mark), Some(text)) = (mark, content.filter(|text| !text.trim().is_empty())) {
        let block = json!([{ "type": "text", "text": text, MARK: mark }]);
        message.insert("content".to_owned(), block);
    }
}

/// Returns whether a block or an item is a model's thinking.
pub(super) fn is_thought(part: &Value) -> bool {
    matches!(part["type"].as_str(), Some("thinking" | "redacted_thinking" | "reasoning"))
}

/// Returns the content of a user message.
fn content_of_user(message: &RawValue) -> Option<&RawValue> {
    let message = members(message.get())?;
    message.get("role").filter(|role| role.get() == "\"user\"")?;
    message.get("content").copied()
}

/// Returns the id of the call that a message or an item answers.
fn answered_call(part: &RawValue) -> Option<String> {
    let part = members(part.get())?;
    let kind = part.get("type").and_then(|kind| string(kind));
    if kind.is_some_and(|kind| kind.ends_with("_call_output")) {
        return string(part.get("call_id")?);
    }
    part.get("role").filter(|role| role.get() == "\"tool\"")?;
    string(part.get("tool_call_id")?)
}

#[cfg(test)]
mod tests {
    use super::Parked;
    use crate::Api;
    use serde_json::json;

    /// GW5: numbers in a call keep their digits, as parked and as sent again.
    #[test]
    fn gw5_a_replaced_message_keeps_its_digits() {
        let call = r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"读","input":{"id":123456789012345678901234567890,"at":0.10}}]}"#;
        let message = crate::exact::read(call).unwrap();
        let parked = Parked::new(&[message], Vec::new());
        let parked = Parked::from_json(&parked.to_json()).unwrap();
        let own = serde_json::value::RawValue::from_string(call.to_owned()).unwrap();
        assert_eq!(parked.as_client_sends(Api::Messages, &[&own]), [call]);
    }

    /// GW5: a mark that the client has set in its message of chat-completions is in what replaces it, at its end.
    #[test]
    fn gw5_a_replaced_message_of_chat_completions_has_the_clients_mark() {
        let looked_up = json!({ "role": "tool", "tool_call_id": "o", "content": "八" });
        let last = json!({ "role": "assistant", "content": "港口" });
        let parked = Parked::new(&[looked_up.clone(), last.clone()], Vec::new());
        let sent = |own: &serde_json::Value| {
            let own = serde_json::value::RawValue::from_string(own.to_string()).unwrap();
            format!("[{}]", parked.as_client_sends(Api::ChatCompletions, &[&own]).join(","))
        };
        assert_eq!(sent(&last), json!([looked_up, last]).to_string());
        let mark = json!({ "type": "ephemeral" });
        let beside = json!({ "role": "assistant", "content": "港口", "cache_control": mark });
        assert_eq!(sent(&beside), json!([looked_up, beside]).to_string());
        let block = json!([{ "type": "text", "text": "港口", "cache_control": mark }]);
        let inside = json!({ "role": "assistant", "content": block });
        assert_eq!(sent(&inside), json!([looked_up, inside]).to_string());
    }
}
