//! `ask_person`: the model asks the person that it works for.

use crate::own_tool::{read, spec};
use foldback_core::TodoId;
use foldback_tool::{CallContext, Effect, Tool, ToolError, ToolOutput, ToolSpec};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::Deserialize;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// Somebody who can be asked while an agent works: at a terminal, in a chat, or in a test.
pub trait Person: Send + Sync {
    /// Asks, and waits for the answer; `None` when there will be none. The future is dropped when nobody is
    /// waiting for the answer any more.
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Option<String>>;
}

/// A question to a person, written by a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The todo of the agent that asks, if an agent does.
    pub todo: Option<TodoId>,
    /// The question.
    pub text: String,
    /// Answers to choose from; a different one may still be given.
    pub options: Vec<String>,
}

const DESCRIPTION: &str = "Asks the person you work for, and waits for the answer. Use it where the request can be understood in \
     ways that lead to different work, or where a decision is theirs; not for what you can find out yourself.";

const PARAMETERS: &str = r#"{
    "type": "object",
    "required": ["question"],
    "additionalProperties": false,
    "properties": {
        "question": {"type": "string", "minLength": 1},
        "options": {"type": "array", "items": {"type": "string"}, "description": "Answers to choose from, if there are few."}
    }
}"#;

#[derive(Deserialize)]
struct Arguments {
    question: String,
    #[serde(default)]
    options: Vec<String>,
}

/// The tool by which a model asks a person. If there is no person, or no answer comes in time, the call fails
/// and says so. One question is asked at a time, whichever agents ask.
pub struct AskPerson {
    spec: ToolSpec,
    person: Option<Arc<dyn Person>>,
    timeout: Duration,
    /// Held by the call that asks.
    turn: Arc<Mutex<()>>,
}

impl AskPerson {
    /// The default time to wait for an answer: ten minutes.
    pub const TIMEOUT: Duration = Duration::from_secs(600);

    /// Creates a tool that asks this person, and waits as long as [`TIMEOUT`](Self::TIMEOUT).
    #[must_use]
    pub fn new(person: Arc<dyn Person>) -> Self {
        Self { person: Some(person), ..Self::nobody() }
    }

    /// Creates a tool that says that there is nobody to ask.
    #[must_use]
    pub fn nobody() -> Self {
        // A question may be asked again, but not early.
        let spec = spec("ask_person", DESCRIPTION, PARAMETERS).with_effect(Effect::Idempotent);
        Self { spec, person: None, timeout: Self::TIMEOUT, turn: Arc::default() }
    }

    /// Takes turns with others that ask the same person and hold this lock meanwhile. The time for an answer
    /// begins with the turn: nobody can answer what they have not been asked.
    #[must_use]
    pub fn with_turn(self, turn: Arc<Mutex<()>>) -> Self {
        Self { turn, ..self }
    }

    /// Sets the time to wait for an answer.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    async fn ask(&self, arguments: &str, call: &CallContext) -> Result<ToolOutput, ToolError> {
        let Arguments { question, options } = read(arguments)?;
        let Some(person) = &self.person else {
            let message = "there is nobody to ask; decide by what you know, and say in your answer what you \
                           assumed";
            return Err(ToolError::permanent(message));
        };
        let todo = call.context.as_ref().map(|context| context.todo().clone());
        let question = Question { todo, text: question, options };
        let asked = async {
            let _turn = self.turn.lock().await;
            tokio::time::timeout(self.timeout, person.ask(&question)).await
        };
        let Some(answer) = call.cancelled.run_until_cancelled(asked).await else {
            return Err(ToolError::permanent("the question was withdrawn"));
        };
        match answer {
            Ok(Some(answer)) => Ok(ToolOutput::text(answer)),
            Ok(None) => Err(ToolError::permanent(
                "the person gave no answer; decide by what you know, and say in your answer what you \
                 assumed",
            )),
            Err(_) => Err(ToolError::permanent(format!(
                "the person did not answer within {:?}; decide by what you know, and say in your answer \
                 what you assumed",
                self.timeout
            ))),
        }
    }
}

impl Tool for AskPerson {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// Returns an unlimited time: others may be asking.
    fn timeout(&self, _arguments: &str) -> Option<Duration> {
        Some(Duration::MAX)
    }

    fn call<'a>(
        &'a self,
        arguments: &'a str,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.ask(arguments, context).boxed()
    }
}

impl fmt::Debug for AskPerson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = &mut f.debug_struct("AskPerson");
        text.field("person", &self.person.is_some()).field("timeout", &self.timeout);
        text.finish_non_exhaustive()
    }
}
