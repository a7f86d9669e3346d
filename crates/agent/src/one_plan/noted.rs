//! The model's answers in a run: asked for, written down, and found again when the run is resumed.

use super::request::Reason;
use crate::Run;
use crate::agent::AgentError;
use crate::json_line::compact;
use crate::trajectory::Purpose;
use foldback_core::Message;
use foldback_llm::{ChatResponse, ModelError, ModelErrorKind, StopReason, Usage};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::VecDeque;

/// What a model's answers are noted as.
const KIND: &str = "model";

/// The answers that an earlier run of the same name was given, in order.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    noted: VecDeque<Noted>,
}

/// An answer in a journal.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Noted {
    purpose: Purpose,
    /// Why it was asked for.
    #[serde(default)]
    reason: Reason,
    answer: Told,
}

/// What the model told.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Told {
    Message { message: Box<RawValue>, stop: StopReason, usage: Usage, model: String },
    Unreadable { message: String },
}

impl Answers {
    pub(crate) fn of(run: &Run) -> Self {
        let notes = run.past_notes(KIND).filter_map(|note| serde_json::from_str(note).ok());
        Self { noted: notes.collect() }
    }

    /// The same without those that came before the first of a purpose.
    pub(crate) fn since(mut self, purpose: Purpose) -> Self {
        let first = self.noted.iter().position(|noted| noted.purpose == purpose);
        self.noted.drain(..first.unwrap_or(self.noted.len()));
        self
    }

    /// What the next answer was asked for, and why.
    pub(crate) fn next(&self) -> Option<(Purpose, &Reason)> {
        self.noted.front().map(|noted| (noted.purpose, &noted.reason))
    }

    /// Takes the next answer, where it is one of this purpose.
    pub(crate) fn take(&mut self, purpose: Purpose) -> Option<Result<ChatResponse, ModelError>> {
        let noted = self.noted.pop_front_if(|noted| noted.purpose == purpose)?;
        Some(match noted.answer {
            Told::Message { message, stop, usage, model } => {
                let message = Message::from_json(message.get()).ok()?;
                Ok(ChatResponse { message, usage, stop, model })
            }
            Told::Unreadable { message } => Err(ModelError::new(ModelErrorKind::Response, message)),
        })
    }

    /// Writes an answer down, before anything is done because of it. One that cannot be read is an
    /// answer; any other error is none, and a resumed run asks again.
    pub(crate) fn note(
        run: &mut Run,
        purpose: Purpose,
        reason: &Reason,
        answer: &Result<ChatResponse, ModelError>,
    ) -> Result<(), AgentError> {
        let answer = match answer {
            Ok(ChatResponse { message, usage, stop, model }) => {
                let message = RawValue::from_string(compact(message.json()));
                Told::Message {
                    message: message.unwrap_or_else(|_| RawValue::NULL.to_owned()),
                    stop: stop.clone(),
                    usage: *usage,
                    model: model.clone(),
                }
            }
            Err(error) if error.kind == ModelErrorKind::Response => {
                Told::Unreadable { message: error.message.clone() }
            }
            Err(_) => return Ok(()),
        };
        let noted = Noted { purpose, reason: reason.clone(), answer };
        let body = serde_json::to_string(&noted).unwrap_or_default();
        Ok(run.note(KIND, &body)?)
    }
}
