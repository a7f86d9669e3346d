//! An agent whose histories are random: tool loops with parallel calls, thinking, large results; and a model that makes
//! calls.

use crate::world::load_tool;
use foldback_gateway::RecallBy;
use foldback_testkit::Random;
use foldback_testkit::upstream::{Answer, Said, Seen};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Speaks {
    Messages,
    Chat,
    Responses,
}

impl Speaks {
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Chat => "chat/completions",
            Self::Responses => "responses",
        }
    }
}

/// What was sent, and what the model answered.
#[derive(Clone, Default)]
pub(crate) struct Turn {
    asked: Vec<Value>,
    answered: Vec<Value>,
    calls: Vec<String>,
}

pub(crate) struct Agent {
    pub(crate) speaks: Speaks,
    pub(crate) random: Random,
    pub(crate) thinking: Option<&'static str>,
    recall: RecallBy,
    pub(crate) history: Vec<Turn>,
    /// Words that no other message has. Each begins a text, sometimes a large one.
    pub(crate) words: Vec<String>,
}

/// A model that calls up to three tools at once.
/// If the gateway has declared its own, it calls that as well.
pub(crate) fn calling(seed: u64, thinks: bool) -> impl Fn(&Seen) -> Answer + Send + Sync + 'static {
    let count = AtomicUsize::new(0);
    move |seen| {
        let n = count.fetch_add(1, Ordering::Relaxed);
        let mut random = Random::new(seed * 1_000 + n as u64);
        let mut said = Said::text(&format!("answer {n}: {}", random.word()));
        if thinks {
            said = said.thinking(&format!("What about {}?", random.word()));
        }
        for k in 0..random.below(4) {
            said = said.call(
                &format!("c{n}_{k}"),
                "read",
                json!({ "path": format!("{}.rs", random.word()) }),
            );
        }
        let is_declared =
            String::from_utf8_lossy(&seen.body).contains("\"name\":\"foldback_load\"");
        if is_declared && random.below(3) == 0 {
            let place = random.below(said.calls.len() + 1);
            let words = json!({ "ref": format!("w{} 端口", random.below(n)) });
            said.calls.insert(place, (format!("c{n}_own"), "foldback_load".to_owned(), words));
        }
        Answer::Said(said)
    }
}

impl Agent {
    pub(crate) fn new(speaks: Speaks, recall: RecallBy, seed: u64) -> Self {
        let thinking = match (speaks, seed % 3) {
            (Speaks::Messages, 1) => Some("adaptive"),
            (Speaks::Messages, 2) => Some("enabled"),
            _ => None,
        };
        let (random, history, words) = (Random::new(seed), Vec::new(), Vec::new());
        Self { speaks, random, thinking, recall, history, words }
    }

    /// Goes back to an earlier turn.
    pub(crate) fn rewind(&mut self) {
        let kept = self.history.len() - self.random.below(self.history.len() / 2 + 1);
        self.history.truncate(kept);
        // If a turn must begin with its thinking, no rewind leads into the middle of one.
        let goes_on = |turn: &Turn| self.thinking == Some("enabled") && !turn.calls.is_empty();
        while self.history.last().is_some_and(goes_on) {
            self.history.pop();
        }
    }

    /// Goes back to where the present turn began, as a client does that cannot continue it.
    pub(crate) fn begin_turn_again(&mut self) {
        self.history.pop();
        while self.history.last().is_some_and(|turn| !turn.calls.is_empty()) {
            self.history.pop();
        }
    }

    /// Whether the turn continues, and must begin with its thinking.
    pub(crate) fn must_think(&self) -> bool {
        let before = self.history.len().checked_sub(2).and_then(|n| self.history.get(n));
        self.thinking == Some("enabled") && before.is_some_and(|turn| !turn.calls.is_empty())
    }

    /// A text of some thousand bytes, some of it of another script.
    fn text(&mut self, step: usize, k: usize) -> String {
        let word = format!("w{step}x{k}");
        let size = [200, 2_500, 4_000, 14_000][self.random.below(4)];
        let mut text = format!("{word} 端口 ");
        while text.len() < size {
            text.push_str(&self.random.word());
            text.push(if self.random.below(12) == 0 { '\n' } else { ' ' });
        }
        self.words.push(word);
        text
    }

    /// Asks something: the results of all calls, and often a text.
    pub(crate) fn ask(&mut self, step: usize) {
        let asked = self.next(step);
        self.history.push(Turn { asked, ..Turn::default() });
    }

    fn next(&mut self, step: usize) -> Vec<Value> {
        let calls = self.history.last().map(|turn| turn.calls.clone()).unwrap_or_default();
        let results: Vec<_> =
            calls.iter().enumerate().map(|(k, id)| (id.clone(), self.text(step, k))).collect();
        let words = (results.is_empty() || self.random.below(4) == 0).then(|| self.text(step, 9));
        match self.speaks {
            Speaks::Messages => {
                let result = |(id, text): (String, String)| json!({ "type": "tool_result", "tool_use_id": id, "content": text });
                let text = |text: String| json!({ "type": "text", "text": text });
                let blocks: Vec<_> =
                    results.into_iter().map(result).chain(words.map(text)).collect();
                vec![json!({ "role": "user", "content": blocks })]
            }
            Speaks::Chat => {
                let result = |(id, text): (String, String)| json!({ "role": "tool", "tool_call_id": id, "content": text });
                let text = |text: String| json!({ "role": "user", "content": text });
                results.into_iter().map(result).chain(words.map(text)).collect()
            }
            Speaks::Responses => {
                let result = |(id, text): (String, String)| json!({ "type": "function_call_output", "call_id": id, "output": text });
                let text = |text: String| json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": text }] });
                results.into_iter().map(result).chain(words.map(text)).collect()
            }
        }
    }

    pub(crate) fn body(&self, model: &str) -> Value {
        let turns = self.history.iter().flat_map(|turn| turn.asked.iter().chain(&turn.answered));
        let mut messages: Vec<Value> = turns.cloned().collect();
        let read = json!({ "name": "read", "description": "Reads.", "input_schema": { "type": "object" } });
        let tools =
            if self.recall == RecallBy::Mcp { json!([read, load_tool()]) } else { json!([read]) };
        match self.speaks {
            Speaks::Messages => {
                let last = messages.last_mut().unwrap()["content"].as_array_mut().unwrap();
                last.last_mut().unwrap()["cache_control"] = json!({ "type": "ephemeral" });
                let mut body = json!({ "model": model, "max_tokens": 9, "system": "Be brief. ".repeat(500), "tools": tools, "messages": messages });
                if let Some(thinking) = self.thinking {
                    body["thinking"] = json!({ "type": thinking });
                }
                body
            }
            Speaks::Chat => {
                // Clients of OpenRouter mark the last message, in a block or beside its content.
                let mark = json!({ "type": "ephemeral" });
                let last = messages.last_mut().unwrap();
                match self.history.len() % 2 {
                    0 => last["cache_control"] = mark,
                    _ => {
                        let text = last["content"].take();
                        last["content"] =
                            json!([{ "type": "text", "text": text, "cache_control": mark }]);
                    }
                }
                messages.insert(0, json!({ "role": "system", "content": "Be brief." }));
                json!({ "model": model, "messages": messages, "tools": tools })
            }
            Speaks::Responses => {
                json!({ "model": model, "instructions": "Be brief.", "input": messages, "tools": tools })
            }
        }
    }

    pub(crate) fn hear(&mut self, answer: &Value) {
        let turn = self.history.last_mut().unwrap();
        match self.speaks {
            Speaks::Messages => {
                let blocks = answer["content"].as_array().unwrap();
                turn.answered = vec![json!({ "role": "assistant", "content": blocks })];
                let calls = blocks.iter().filter(|block| block["type"] == "tool_use");
                turn.calls = calls.map(|call| call["id"].as_str().unwrap().to_owned()).collect();
            }
            Speaks::Chat => {
                let message = &answer["choices"][0]["message"];
                turn.answered = vec![message.clone()];
                let calls = message["tool_calls"].as_array().into_iter().flatten();
                turn.calls = calls.map(|call| call["id"].as_str().unwrap().to_owned()).collect();
            }
            Speaks::Responses => {
                turn.answered = answer["output"].as_array().unwrap().clone();
                let calls = turn.answered.iter().filter(|item| item["type"] == "function_call");
                turn.calls =
                    calls.map(|call| call["call_id"].as_str().unwrap().to_owned()).collect();
            }
        }
    }
}
