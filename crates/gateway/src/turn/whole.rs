//! A turn whose answers are not streamed.

use super::calls::calls;
use super::chat::BETWEEN;
use super::edits::{Edits, elements, members, string};
use super::rounds::{Next, Rounds};
use super::told::told;
use super::{Ask, as_it_is, responded, unreadable, without_form};
use crate::body::unpacked;
use crate::model_answer::message_of;
use crate::usage::Usage;
use crate::{Api, exact};
use axum::body::Body;
use axum::http::Response;
use serde_json::Value;

/// Plays a turn whose answers are not streamed.
pub(super) async fn play(
    ask: Ask,
    api: Api,
    mut rounds: Rounds,
    mut answer: reqwest::Response,
) -> Result<Response<Body>, reqwest::Error> {
    let mut turn = Turn {
        api,
        tools: rounds.tools().to_vec(),
        answers: Vec::new(),
        earlier: Usage::default(),
    };
    loop {
        if !answer.status().is_success() {
            return Ok(as_it_is(answer));
        }
        let (status, came) = (answer.status(), answer.headers().clone());
        let bytes = answer.bytes().await?;
        let Some(text) = unpacked(&came, &bytes) else { return Ok(unreadable(api)) };
        let headers = without_form(&came);
        let text = match String::from_utf8(text.into_owned()) {
            Ok(text) => text,
            Err(error) => {
                return Ok(responded(status, headers, Body::from(error.into_bytes())));
            }
        };
        let usage = Usage::of(api, &text).unwrap_or_default();
        rounds.bill(&usage);
        let is_whole = turn.is_whole(&text);
        turn.answers.push(text.clone());
        let decided = tokio::task::spawn_blocking(move || {
            let next = rounds.after(&text, is_whole);
            (rounds, next)
        });
        // An internal error; the client still gets its answer.
        let Ok((back, next)) = decided.await else {
            return Ok(responded(status, headers, Body::from(turn.told(&usage))));
        };
        rounds = back;
        match next {
            Next::Ask(body) => {
                turn.earlier += usage;
                answer = ask(body).await?;
            }
            Next::End(parked) => {
                let told = turn.told(&usage);
                if let Some(parked) = parked {
                    let told = told.clone();
                    // If it fails, the log says so.
                    let _ = tokio::task::spawn_blocking(move || rounds.park(&parked, &told)).await;
                }
                return Ok(responded(status, headers, Body::from(told)));
            }
        }
    }
}

/// The answers of a turn.
struct Turn {
    api: Api,
    tools: Vec<String>,
    answers: Vec<String>,
    /// What all but the last were billed.
    earlier: Usage,
}

impl Turn {
    /// Returns whether an answer ended because the model was done.
    fn is_whole(&self, answer: &str) -> bool {
        let read: Value = serde_json::from_str(answer).unwrap_or_default();
        match self.api {
            Api::Messages => read["stop_reason"] == "tool_use",
            Api::ChatCompletions => !matches!(
                read["choices"][0]["finish_reason"].as_str(),
                Some("length" | "content_filter" | "error")
            ),
            _ => read["status"].as_str().is_none_or(|status| status == "completed"),
        }
    }

    /// Returns all of them as one.
    fn told(&self, usage: &Usage) -> String {
        let Some(last) = self.answers.last() else { return String::new() };
        self.one_of(last, usage).unwrap_or_else(|| last.clone())
    }

    fn one_of(&self, last: &str, usage: &Usage) -> Option<String> {
        let is_done = self.calls_ours_alone(last);
        let answer = members(last)?;
        let mut edits = Edits::new(last);
        match self.api {
            Api::ChatCompletions => {
                let choice = members(elements(answer.get("choices")?.get())?.first()?.get())?;
                let message = choice.get("message")?;
                edits.replace(message.get(), self.message(message.get())?);
                let stop = choice.get("finish_reason");
                if let Some(stop) = stop.filter(|stop| is_done && stop.get() == "\"tool_calls\"") {
                    edits.replace(stop.get(), "\"stop\"".to_owned());
                }
            }
            _ => {
                let key = if self.api == Api::Messages { "content" } else { "output" };
                let mut parts = Vec::new();
                for answer in &self.answers {
                    let read = members(answer)?;
                    for part in elements(read.get(key)?.get())? {
                        if !self.is_ours(part.get()) {
                            parts.push(part.get().to_owned());
                        }
                    }
                }
                edits.replace(answer.get(key)?.get(), format!("[{}]", parts.join(",")));
                let stop = answer.get("stop_reason");
                if let Some(stop) = stop.filter(|stop| is_done && stop.get() == "\"tool_use\"") {
                    edits.replace(stop.get(), "\"end_turn\"".to_owned());
                }
            }
        }
        if let Some(words) = answer.get("usage").filter(|_| self.answers.len() > 1) {
            edits.replace(words.get(), told(self.api, words.get(), usage, &self.earlier));
        }
        Some(edits.finish())
    }

    /// Returns whether the model calls only our tools, so that the client has nothing to wait for if they are not
    /// answered.
    fn calls_ours_alone(&self, answer: &str) -> bool {
        let message = message_of(self.api, answer);
        let message = message.and_then(|message| serde_json::from_str(message.get()).ok());
        let calls = calls(self.api, &message.unwrap_or_default(), &self.tools);
        !calls.is_empty() && calls.iter().all(|call| call.ours.is_some())
    }

    /// Returns whether a block or an item is a call of one of our tools.
    fn is_ours(&self, part: &str) -> bool {
        let part: Value = serde_json::from_str(part).unwrap_or_default();
        let message = match self.api {
            Api::Messages => serde_json::json!({ "content": [part] }),
            _ => serde_json::json!([part]),
        };
        calls(self.api, &message, &self.tools).iter().any(|call| call.ours.is_some())
    }

    /// Returns the message of chat-completions: the text of all answers, and the client's calls of the last.
    fn message(&self, last: &str) -> Option<String> {
        let mut words = Vec::new();
        for answer in &self.answers {
            let answer = members(answer)?;
            let choice = members(elements(answer.get("choices")?.get())?.first()?.get())?;
            let message = members(choice.get("message")?.get())?;
            let text = message.get("content").and_then(|content| string(content));
            words.extend(text.filter(|text| !text.is_empty()));
        }
        let message = members(last)?;
        let mut edits = Edits::new(last);
        if self.answers.len() > 1 && !words.is_empty() {
            edits.set(&message, "content", &Value::from(words.join(BETWEEN)).to_string());
        }
        if let Some(list) = message.get("tool_calls") {
            let read = exact::read(list.get())?;
            let is_ours =
                |call: &Value| self.tools.iter().any(|own| call["function"]["name"] == **own);
            let kept = read.as_array()?.iter().filter(|call| !is_ours(call));
            let kept: Vec<String> = kept.map(exact::write).collect();
            if kept.len() < read.as_array()?.len() {
                let kept = if kept.is_empty() {
                    "null".to_owned()
                } else {
                    format!("[{}]", kept.join(","))
                };
                edits.replace(list.get(), kept);
            }
        }
        Some(edits.finish())
    }
}
