//! A client that works in turns: it sends back what it got, calls its tools, and checks every event.

use crate::world::World;
use serde_json::{Value, json};

/// The API that a client uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaks {
    Messages,
    Chat,
    Responses,
}

impl Speaks {
    pub(crate) const ALL: [Self; 3] = [Self::Messages, Self::Chat, Self::Responses];
}

pub(crate) struct Client {
    speaks: Speaks,
    stream: bool,
    todo: String,
    sent: Vec<Value>,
    pub(crate) tools: Vec<Value>,
    /// The usage of the last answer: input and output.
    pub(crate) usage: (u64, u64),
}

/// An answer, as a client receives it.
struct Told {
    messages: Vec<Value>,
    calls: Vec<String>,
    usage: (u64, u64),
}

impl Client {
    pub(crate) fn new(speaks: Speaks, stream: bool, todo: &str) -> Self {
        let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
        let tool = match speaks {
            Speaks::Messages => json!({ "name": "read", "input_schema": schema }),
            Speaks::Chat => {
                json!({ "type": "function", "function": { "name": "read", "parameters": schema } })
            }
            Speaks::Responses => {
                json!({ "type": "function", "name": "read", "parameters": schema })
            }
        };
        let (todo, sent) = (todo.to_owned(), Vec::new());
        Self { speaks, stream, todo, sent, tools: vec![tool], usage: (0, 0) }
    }

    /// Says something, and answers every call until there is none.
    pub(crate) async fn turn(&mut self, world: &World, text: &str) {
        self.say(text);
        while self.step(world).await {}
    }

    pub(crate) fn say(&mut self, text: &str) {
        self.sent.push(json!({ "role": "user", "content": text }));
    }

    /// Asks the model and answers its calls; returns whether there were any.
    pub(crate) async fn step(&mut self, world: &World) -> bool {
        assert!(self.sent.len() < 1_000, "the model goes on calling: {}", self.history());
        let (status, answer) = self.send(world, &self.sent).await;
        assert_eq!(status, 200, "{answer}\n{}", self.history());
        let told = match (self.speaks, self.stream) {
            (Speaks::Messages, false) => messages(&serde_json::from_str(&answer).unwrap()),
            (Speaks::Messages, true) => messages(&messages_stream(&answer)),
            (Speaks::Chat, false) => chat(&serde_json::from_str(&answer).unwrap()),
            (Speaks::Chat, true) => chat(&chat_stream(&answer)),
            (Speaks::Responses, false) => responses(&serde_json::from_str(&answer).unwrap()),
            (Speaks::Responses, true) => responses(&responses_stream(&answer)),
        };
        self.usage = told.usage;
        self.sent.extend(told.messages);
        self.sent.extend(self.results(&told.calls));
        !told.calls.is_empty()
    }

    /// Says something, and returns what comes.
    pub(crate) async fn ask(&self, world: &World, text: &str) -> (u16, String) {
        let mut sent = self.sent.clone();
        sent.push(json!({ "role": "user", "content": text }));
        self.send(world, &sent).await
    }

    pub(crate) fn history(&self) -> String {
        json!(self.sent).to_string()
    }

    /// What was said, without the ids of answers and without seals, which belong to one store.
    pub(crate) fn said(&self) -> Vec<Value> {
        let mut said = self.sent.clone();
        for blocks in said.iter_mut().filter_map(|one| one["content"].as_array_mut()) {
            for block in blocks.iter_mut().filter_map(Value::as_object_mut) {
                block.shift_remove("signature");
            }
        }
        if self.speaks == Speaks::Responses {
            for item in said.iter_mut().filter_map(Value::as_object_mut) {
                item.shift_remove("id");
            }
        }
        said
    }

    /// Writes what it got in another form.
    pub(crate) fn change(&mut self, from: &str, to: &str) {
        self.sent = serde_json::from_str(&self.history().replace(from, to)).unwrap();
    }

    /// Keeps this many blocks or items of the last answer, as a client that breaks off does.
    pub(crate) fn keep(&mut self, count: usize) {
        if self.speaks == Speaks::Messages {
            let last = self.sent.last_mut().unwrap();
            last["content"].as_array_mut().unwrap().truncate(count);
        } else {
            let begin = self.sent.iter().rposition(|one| one["role"] == "user").unwrap();
            self.sent.truncate(begin + 1 + count);
        }
    }

    pub(crate) fn forget_thoughts(&mut self) {
        for blocks in self.sent.iter_mut().filter_map(|one| one["content"].as_array_mut()) {
            blocks.retain(|block| block["type"] != "thinking");
        }
    }

    async fn send(&self, world: &World, sent: &[Value]) -> (u16, String) {
        let mut sent = sent.to_vec();
        let mut body = json!({ "model": "m", "stream": self.stream });
        if !self.tools.is_empty() {
            body["tools"] = json!(self.tools);
        }
        let path = match self.speaks {
            Speaks::Messages => {
                // The mark moves with every request, and a text in a string becomes a block for it.
                let content = &mut sent.last_mut().unwrap()["content"];
                if content.is_string() {
                    *content = json!([{ "type": "text", "text": content }]);
                }
                let last = content.as_array_mut().and_then(|blocks| blocks.last_mut()).unwrap();
                last["cache_control"] = json!({ "type": "ephemeral" });
                body["max_tokens"] = json!(100);
                body["messages"] = json!(sent);
                "messages"
            }
            Speaks::Chat => {
                body["stream_options"] = json!({ "include_usage": true });
                body["messages"] = json!(sent);
                "chat/completions"
            }
            Speaks::Responses => {
                body["store"] = json!(false);
                body["include"] = json!(["reasoning.encrypted_content"]);
                body["input"] = json!(sent);
                "responses"
            }
        };
        let request = world.client.post(format!("{}/v1/{path}", world.url));
        let request = request.header("anthropic-version", "2023-06-01");
        let request = request.header("x-foldback-todo", &self.todo).body(body.to_string());
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    fn results(&self, calls: &[String]) -> Vec<Value> {
        let result = |id: &String| match self.speaks {
            Speaks::Messages => {
                json!({ "type": "tool_result", "tool_use_id": id, "content": "read 港" })
            }
            Speaks::Chat => json!({ "role": "tool", "tool_call_id": id, "content": "read 港" }),
            Speaks::Responses => {
                json!({ "type": "function_call_output", "call_id": id, "output": "read 港" })
            }
        };
        let results: Vec<_> = calls.iter().map(result).collect();
        match self.speaks {
            Speaks::Messages if !calls.is_empty() => {
                vec![json!({ "role": "user", "content": results })]
            }
            _ => results,
        }
    }
}

fn ids(list: &Value, kind: &str, key: &str) -> Vec<String> {
    let all = list.as_array().into_iter().flatten().filter(|one| one["type"] == kind);
    all.map(|one| one[key].as_str().unwrap().to_owned()).collect()
}

fn messages(answer: &Value) -> Told {
    let usage = &answer["usage"];
    let calls = ids(&answer["content"], "tool_use", "id");
    let stop = if calls.is_empty() { "end_turn" } else { "tool_use" };
    assert_eq!(answer["stop_reason"], stop, "{answer}");
    let usage = (usage["input_tokens"].as_u64().unwrap(), usage["output_tokens"].as_u64().unwrap());
    let messages = vec![json!({ "role": "assistant", "content": answer["content"] })];
    Told { messages, calls, usage }
}

fn chat(answer: &Value) -> Told {
    let (usage, choice) = (&answer["usage"], &answer["choices"][0]);
    let calls = ids(&choice["message"]["tool_calls"], "function", "id");
    let stop = if calls.is_empty() { "stop" } else { "tool_calls" };
    assert_eq!(choice["finish_reason"], stop, "{answer}");
    // As clients do, with what they know.
    let mut message = json!({ "role": "assistant", "content": choice["message"]["content"] });
    if !calls.is_empty() {
        message["tool_calls"] = choice["message"]["tool_calls"].clone();
    }
    let usage =
        (usage["prompt_tokens"].as_u64().unwrap(), usage["completion_tokens"].as_u64().unwrap());
    Told { messages: vec![message], calls, usage }
}

fn responses(answer: &Value) -> Told {
    assert_eq!(answer["status"], "completed", "{answer}");
    let usage = &answer["usage"];
    let mut messages = answer["output"].as_array().unwrap().clone();
    for item in messages.iter_mut().filter_map(Value::as_object_mut) {
        item.shift_remove("status");
    }
    let calls = ids(&answer["output"], "function_call", "call_id");
    let usage = (usage["input_tokens"].as_u64().unwrap(), usage["output_tokens"].as_u64().unwrap());
    Told { messages, calls, usage }
}

fn events(stream: &str) -> Vec<Value> {
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// The message in a stream of Messages, if it is one as the provider would send it.
fn messages_stream(stream: &str) -> Value {
    let (mut message, mut blocks, mut is_open) = (Value::Null, Vec::<Value>::new(), false);
    let mut ends = Vec::new();
    for event in events(stream) {
        let index = event["index"].as_u64().and_then(|index| usize::try_from(index).ok());
        match event["type"].as_str().unwrap() {
            "message_start" => {
                assert!(message.is_null(), "{stream}");
                message = event["message"].clone();
            }
            "content_block_start" => {
                assert_eq!((index, is_open), (Some(blocks.len()), false), "{stream}");
                is_open = true;
                let mut block = event["content_block"].clone();
                if block["type"] == "tool_use" {
                    block["input"] = json!("");
                }
                blocks.push(block);
            }
            "content_block_delta" => {
                assert_eq!(index.map(|index| index + 1), Some(blocks.len()), "{stream}");
                for (key, piece) in event["delta"].as_object().unwrap() {
                    let key = if key == "partial_json" { "input" } else { key };
                    let into = &mut blocks.last_mut().unwrap()[key];
                    if key != "type" {
                        *into = json!(into.as_str().unwrap().to_owned() + piece.as_str().unwrap());
                    }
                }
            }
            "content_block_stop" => is_open = false,
            "message_delta" => {
                for (key, value) in event["usage"].as_object().unwrap() {
                    message["usage"][key] = value.clone();
                }
                message["stop_reason"] = event["delta"]["stop_reason"].clone();
                ends.push("delta");
            }
            "message_stop" => ends.push("stop"),
            other => assert_eq!(other, "ping", "{stream}"),
        }
    }
    assert_eq!((ends, is_open), (vec!["delta", "stop"], false), "{stream}");
    for block in blocks.iter_mut().filter(|block| block["type"] == "tool_use") {
        block["input"] = serde_json::from_str(block["input"].as_str().unwrap()).unwrap();
    }
    message["content"] = json!(blocks);
    message
}

/// The message in a stream of chat-completions, if it is one as the provider would send it.
fn chat_stream(stream: &str) -> Value {
    assert_eq!(stream.matches("data: [DONE]").count(), 1, "{stream}");
    let (mut text, mut calls, mut ends) = (String::new(), Vec::<Value>::new(), Vec::new());
    let (mut usage, mut roles) = (Value::Null, 0);
    for chunk in events(stream) {
        if chunk["usage"].is_object() {
            assert!(usage.is_null(), "{stream}");
            usage = chunk["usage"].clone();
        }
        let Some(choice) = chunk["choices"].as_array().unwrap().first() else { continue };
        assert!(ends.is_empty(), "{stream}");
        ends.extend(choice["finish_reason"].as_str().map(str::to_owned));
        let delta = &choice["delta"];
        roles += usize::from(delta["role"].is_string());
        text += delta["content"].as_str().unwrap_or_default();
        for piece in delta["tool_calls"].as_array().into_iter().flatten() {
            let index = usize::try_from(piece["index"].as_u64().unwrap()).unwrap();
            if piece["id"].is_string() {
                assert_eq!(index, calls.len(), "{stream}");
                let mut call = piece.clone();
                call.as_object_mut().unwrap().shift_remove("index");
                calls.push(call);
            } else {
                let into = &mut calls[index]["function"]["arguments"];
                let more = piece["function"]["arguments"].as_str().unwrap();
                *into = json!(into.as_str().unwrap().to_owned() + more);
            }
        }
    }
    assert_eq!((ends.len(), roles), (1, 1), "{stream}");
    let message = json!({ "content": text, "tool_calls": calls });
    json!({ "choices": [{ "message": message, "finish_reason": ends[0] }], "usage": usage })
}

/// The response of a stream, if it is one as the provider would send it.
fn responses_stream(stream: &str) -> Value {
    let mut done = Vec::new();
    let events = events(stream);
    for (n, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], json!(n), "{stream}");
        let place = json!(done.len());
        match event["type"].as_str().unwrap() {
            "response.created" => assert_eq!(n, 0, "{stream}"),
            "response.completed" => assert_eq!(n + 1, events.len(), "{stream}"),
            "response.output_item.done" => {
                assert_eq!(event["output_index"], place, "{stream}");
                done.push(event["item"].clone());
            }
            _ => assert_eq!(event["output_index"], place, "{stream}"),
        }
    }
    let response = events.last().unwrap()["response"].clone();
    assert_eq!(response["id"], events[0]["response"]["id"], "{stream}");
    assert_eq!(response["output"], json!(done), "{stream}");
    response
}
