//! Summaries that a model writes, for third-party policies that use summaries.

use foldback_baselines::Counters;
use foldback_baselines::stm_ltm::{Compression, Compressor, Note, NoteKind, Written};
use foldback_core::{ContextError, Message, SideCall};
use foldback_llm::{ChatModel, ChatRequest, ChatResponse, ModelError, TokenPrices};
use std::fmt;
use std::sync::{Arc, mpsc};
use tokio::runtime::Handle;

/// The model's instructions.
const INSTRUCTIONS: &str = include_str!("summary.md");

/// A model that writes the summaries of a context policy, alongside the loop. If it fails, the policy's rule writes
/// them, and the caller is given the reason.
#[derive(Clone)]
pub struct SummaryModel {
    model: Arc<dyn ChatModel>,
    prices: Option<TokenPrices>,
    runtime: Handle,
    /// The origin of what it writes.
    by: String,
    failed: Arc<Failed>,
}

/// Receives the reason why a summary was not written.
type Failed = dyn Fn(&str) + Send + Sync;

impl SummaryModel {
    /// Asks `model` on a runtime that keeps running while a job of the policy waits: one of several threads, or one
    /// that is driven elsewhere.
    #[must_use]
    pub fn new(model: Arc<dyn ChatModel>, runtime: Handle) -> Self {
        let by = format!("written by {}", model.name());
        Self { model, prices: None, runtime, by, failed: Arc::new(|_| ()) }
    }

    /// Returns the same model, at these prices.
    #[must_use]
    pub fn with_prices(self, prices: Option<TokenPrices>) -> Self {
        Self { prices, ..self }
    }

    /// Returns the same model, which passes the reason to `failed` when a summary is not written.
    #[must_use]
    pub fn telling(self, failed: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { failed: Arc::new(failed), ..self }
    }

    /// Returns the model's answer. The job that asks runs on a thread of its own, which may wait.
    fn ask(&self, request: ChatRequest) -> Result<ChatResponse, ModelError> {
        let (answer, answered) = mpsc::channel();
        let model = Arc::clone(&self.model);
        self.runtime.spawn(async move {
            // The receiver may be gone.
            drop(answer.send(model.complete(&request).await));
        });
        let gone = |_| {
            let kind = foldback_llm::ModelErrorKind::Unavailable;
            ModelError::new(kind, "the run ended before the summary was written")
        };
        answered.recv().map_err(gone)?
    }
}

impl Compressor for SummaryModel {
    fn name(&self) -> &str {
        &self.by
    }

    fn compress(
        &self,
        task: &Compression<'_>,
        _counters: &Counters,
    ) -> Result<Written, ContextError> {
        let failed = |why: &str| {
            (self.failed)(why);
            ContextError { message: format!("no summary was written: {why}"), source: None }
        };
        let bound = format!("At most {} tokens.", task.max_tokens);
        let instructions = format!("{}\n\n{bound}", INSTRUCTIONS.trim_end());
        let asked = [Message::system(&instructions), Message::user(&task.text())];
        let answer = self.ask(ChatRequest::new(asked)).map_err(|error| failed(&error.message))?;
        let text = answer.message.text().trim().to_owned();
        if text.is_empty() {
            return Err(failed("the model's summary is empty"));
        }
        let tokens = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let call = SideCall {
            purpose: "summary",
            input_tokens: tokens(answer.usage.input),
            output_tokens: tokens(answer.usage.output),
            cost: self.prices.map(|prices| prices.cost(&answer.usage)),
        };
        let note = Note { kind: NoteKind::Summary, of: None, text };
        Ok(Written { notes: vec![note], call: Some(call) })
    }
}

impl fmt::Debug for SummaryModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SummaryModel").field(&self.by).finish()
    }
}
