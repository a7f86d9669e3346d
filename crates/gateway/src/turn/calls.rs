//! A model's calls, and how they and their answers are written in a request.

use super::edits::{Edits, elements, members};
use super::responses::is_call;
use crate::client_message::is_models;
use crate::conversation::name_of;
use crate::{Api, exact};
use foldback::MemoryTool;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The prefix of our tools' names, which no client's tool has.
const PREFIX: &str = "foldback_";

/// The name under which `load` is declared.
pub(crate) const LOAD: &str = "foldback_load";

/// A call in a model's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) id: String,
    /// Which of the memory's tools it calls; `None` if the tool is the client's.
    pub(super) ours: Option<String>,
    /// As JSON.
    pub(super) arguments: String,
}

/// The members of a request that determine whether our tools can be declared in it.
pub(crate) struct Declaring<'b> {
    /// Members that say that it continues what the provider keeps.
    pub(crate) kept: [Option<&'b RawValue>; 3],
    /// How many answers it wants.
    pub(crate) n: Option<&'b RawValue>,
    /// Whether the provider is to keep the answer.
    pub(crate) store: Option<&'b RawValue>,
    /// Whether what the model said is among its messages.
    pub(crate) has_answers: bool,
}

/// Returns the body with the memory's tools after the client's own, and the names by which the model calls them.
/// `None` for a body that has no tools, wants several answers, or continues what the provider keeps.
pub(super) fn declare(api: Api, body: &str, tools: &[MemoryTool]) -> Option<(String, Vec<String>)> {
    let request = members(body)?;
    let get = |key| request.get(key).copied();
    let input = get("input").filter(|_| api == Api::Responses);
    let input = input.and_then(|input| elements(input.get())).unwrap_or_default();
    let declaring = Declaring {
        kept: ["previous_response_id", "conversation", "background"].map(get),
        n: get("n"),
        store: get("store"),
        has_answers: input.iter().any(|item| is_models(item)),
    };
    let first = || tools_in(input.first()?.get());
    let own = get("tools").filter(|tools| tools.get() != "null").or_else(first)?;
    let taken = elements(own.get()).filter(|tools| !tools.is_empty())?;
    if !declaring.is_possible(api) {
        return None;
    }
    let taken: Vec<String> = taken.into_iter().filter_map(name_of).collect();
    let (mut names, mut added) = (Vec::new(), Vec::new());
    for tool in tools {
        let name = format!("{PREFIX}{}", tool.name);
        if !taken.contains(&name) {
            added.push(definition(api, &name, tool)?.to_string());
            names.push(name);
        }
    }
    let mut edits = Edits::new(body);
    edits.append(own, &added.join(","));
    Some((edits.finish(), names))
}

impl Declaring<'_> {
    /// Returns whether requests can continue from what the client does not see.
    pub(crate) fn is_possible(&self, api: Api) -> bool {
        let is_set = |value: &&RawValue| !matches!(value.get(), "null" | "false");
        // A client that does not send what the model said may continue from the answer's id alone, which covers
        // less than was said.
        let is_sent = api != Api::Responses
            || self.store.is_some_and(|store| store.get() == "false")
            || self.has_answers;
        let is_one = self.n.is_none_or(|n| matches!(n.get(), "1" | "null"));
        is_one && is_sent && !self.kept.iter().flatten().any(is_set)
    }
}

/// Returns the tools that an item of the Responses API declares: some models of Codex get theirs as the first item.
pub(crate) fn tools_in(item: &str) -> Option<&RawValue> {
    let item = members(item)?;
    item.get("type").filter(|kind| kind.get() == "\"additional_tools\"")?;
    item.get("tools").copied()
}

fn definition(api: Api, name: &str, tool: &MemoryTool) -> Option<Value> {
    let parameters: Value = serde_json::from_str(&tool.parameters).ok()?;
    let description = tool.description;
    Some(match api {
        Api::Messages => {
            json!({ "name": name, "description": description, "input_schema": parameters })
        }
        Api::ChatCompletions => {
            let function =
                json!({ "name": name, "description": description, "parameters": parameters });
            json!({ "type": "function", "function": function })
        }
        _ => json!({
            "type": "function", "name": name, "description": description, "parameters": parameters, "strict": false,
        }),
    })
}

/// Returns the calls in a model's message that the provider does not answer itself, in order.
pub(super) fn calls(api: Api, message: &Value, tools: &[String]) -> Vec<Call> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let call = |id: &Value, name: &Value, arguments: String| {
        let ours = name.as_str().filter(|name| tools.iter().any(|own| own == name));
        let ours = ours.map(|name| name.strip_prefix(PREFIX).unwrap_or(name).to_owned());
        Call { id: text(id), ours, arguments }
    };
    match api {
        Api::Messages => list(&message["content"])
            .iter()
            .filter(|block| block["type"] == "tool_use")
            .map(|block| call(&block["id"], &block["name"], exact::write(&block["input"])))
            .collect(),
        Api::ChatCompletions => list(&message["tool_calls"])
            .iter()
            .map(|one| {
                let function = &one["function"];
                call(&one["id"], &function["name"], text(&function["arguments"]))
            })
            .collect(),
        _ => list(message)
            .iter()
            .filter(|item| is_call(item))
            .map(|item| call(&item["call_id"], &item["name"], text(&item["arguments"])))
            .collect(),
    }
}

/// Returns a model's message as it is written in the next request: nothing if nothing is left of it.
pub(super) fn sent_back(api: Api, mut message: Value, is_unkept: bool) -> Vec<Value> {
    match api {
        Api::Messages => {
            // A blank text is refused.
            if let Some(blocks) = message["content"].as_array_mut() {
                let is_empty = |block: &Value| {
                    block["type"] == "text"
                        && block["text"].as_str().is_none_or(|text| text.trim().is_empty())
                };
                blocks.retain(|block| !is_empty(block));
            }
            let is_empty = message["content"].as_array().is_none_or(Vec::is_empty);
            (!is_empty).then_some(message).into_iter().collect()
        }
        Api::ChatCompletions => vec![message],
        _ => {
            // If the provider keeps nothing, it recognises thinking by the encrypted part.
            let is_known = |item: &Value| {
                !is_unkept || item["type"] != "reasoning" || item["encrypted_content"].is_string()
            };
            let items = message.as_array_mut().map(std::mem::take).unwrap_or_default();
            items.into_iter().filter(is_known).collect()
        }
    }
}

/// Returns a model's message without calls of our tools that stay unanswered.
pub(super) fn without(api: Api, mut message: Value, calls: &[Call]) -> Value {
    let is_kept = |id: &Value| !calls.iter().any(|call| call.ours.is_some() && *id == call.id);
    match api {
        Api::Messages => {
            if let Some(blocks) = message["content"].as_array_mut() {
                blocks.retain(|block| block["type"] != "tool_use" || is_kept(&block["id"]));
            }
        }
        Api::ChatCompletions => {
            if let Some(list) = message.get_mut("tool_calls").and_then(Value::as_array_mut) {
                list.retain(|call| is_kept(&call["id"]));
                if list.is_empty()
                    && let Some(message) = message.as_object_mut()
                {
                    message.shift_remove("tool_calls");
                }
            }
        }
        _ => {
            if let Some(items) = message.as_array_mut() {
                items.retain(|item| !is_call(item) || is_kept(&item["call_id"]));
            }
        }
    }
    message
}

/// Writes an answer of ours for a request: a block in the Messages API, otherwise a message or an item.
pub(super) fn answered(api: Api, id: &str, text: &str, is_error: bool) -> Value {
    match api {
        Api::Messages => {
            let mut block = json!({ "type": "tool_result", "tool_use_id": id, "content": text });
            if is_error {
                block["is_error"] = json!(true);
            }
            block
        }
        Api::ChatCompletions => json!({ "role": "tool", "tool_call_id": id, "content": text }),
        _ => json!({ "type": "function_call_output", "call_id": id, "output": text }),
    }
}

/// Returns answers of ours, as messages of a request.
pub(super) fn as_messages(api: Api, answers: Vec<Value>) -> Vec<Value> {
    match api {
        Api::Messages => vec![json!({ "role": "user", "content": answers })],
        _ => answers,
    }
}

#[cfg(test)]
mod tests {
    use super::{calls, declare, without};
    use crate::Api;
    use foldback::MemoryTool;
    use serde_json::{Value, json};

    const ALL: [Api; 3] = [Api::Messages, Api::ChatCompletions, Api::Responses];

    /// Returns what was added, if nothing else in the body has changed.
    fn added(api: Api, body: &str) -> Option<(String, Vec<String>)> {
        let (declared, names) = declare(api, body, &MemoryTool::all())?;
        let same = body.bytes().zip(declared.bytes()).take_while(|(a, b)| a == b).count();
        let (before, behind) = body.split_at(same);
        let added = declared.strip_prefix(before)?.strip_suffix(behind)?.to_owned();
        Some((added, names))
    }

    /// GW9: our tools follow the client's, and no other byte changes.
    #[test]
    fn gw9_tools_are_declared_behind_the_clients() {
        let own = r#"{"name" : "read", "x":1.50}"#;
        for (api, body) in [
            (Api::Messages, format!("{{ \"tools\" :[{own} ] ,\"messages\": [ ]}}")),
            (Api::ChatCompletions, format!("{{\"n\": 1,\"tools\":[{own}]\n}}")),
            (Api::Responses, format!("{{\"store\": false,\"tools\":[{own}],\"input\":\"港\"}}")),
            (
                Api::Responses,
                format!(
                    "{{\"store\":false,\"input\":[{{\"type\":\"additional_tools\",\"tools\":[{own}]}}]}}"
                ),
            ),
        ] {
            let (added, names) = added(api, &body).unwrap();
            assert_eq!(names.len(), MemoryTool::all().len(), "{added}");
            let tools: Value = serde_json::from_str(&format!("[0{added}]")).unwrap();
            let name =
                |tool: &Value| tool.pointer("/function/name").unwrap_or(&tool["name"]).clone();
            let declared: Vec<_> = tools.as_array().unwrap()[1..].iter().map(name).collect();
            assert_eq!(json!(declared), json!(names));
        }
    }

    /// A name that the client's tool has stays the client's.
    #[test]
    fn gw9_a_name_that_is_taken_is_not_ours() {
        let body = r#"{"tools":[{"name":"foldback_load"}]}"#;
        let (_, names) = added(Api::Messages, body).unwrap();
        assert!(!names.contains(&"foldback_load".to_owned()) && !names.is_empty());
        let message = json!({ "content": [{ "type": "tool_use", "id": "a", "name": "foldback_load", "input": {} }] });
        assert_eq!(calls(Api::Messages, &message, &names)[0].ours, None);
    }

    /// A request that cannot continue from what it does not see gets no tools.
    #[test]
    fn gw9_nothing_is_declared_where_it_could_not_be_put_back() {
        let tools = r#""tools":[{"name":"read"}]"#;
        for body in [
            "{}".to_owned(),
            "[]".to_owned(),
            r#"{"tools":[]}"#.to_owned(),
            format!("{{{tools},\"n\":2}}"),
            format!("{{{tools},\"previous_response_id\":\"r\",\"store\":false}}"),
            format!("{{{tools},\"conversation\":\"c\",\"store\":false}}"),
        ] {
            for api in ALL {
                assert_eq!(added(api, &body), None, "{api:?}: {body}");
            }
        }
        let fresh = format!("{{{tools},\"input\":[{{\"role\":\"user\",\"content\":\"a\"}}]}}");
        assert_eq!(added(Api::Responses, &fresh), None);
        assert!(added(Api::Responses, &fresh.replace("user", "assistant")).is_some());
    }

    #[test]
    fn calls_of_ours_are_told_from_the_clients() {
        let tools = ["foldback_load".to_owned()];
        let call = |name: &str| json!({ "type": "function", "id": name, "function": { "name": name, "arguments": "{}" } });
        let message =
            json!({ "role": "assistant", "content": null, "tool_calls": [call("foldback_load")] });
        let ours = calls(Api::ChatCompletions, &message, &tools);
        assert_eq!(ours[0].ours.as_deref(), Some("load"));
        let left = without(Api::ChatCompletions, message, &ours);
        assert_eq!(left, json!({ "role": "assistant", "content": null }));
        // A message without calls gets no member for them: some servers refuse one that is null.
        let words = json!({ "role": "assistant", "content": "港" });
        assert_eq!(
            without(Api::ChatCompletions, words.clone(), &[]).to_string(),
            words.to_string()
        );
        assert_eq!(without(Api::ChatCompletions, json!("港"), &[]), json!("港"));
    }
}
