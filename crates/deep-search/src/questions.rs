//! The ways in which a node asks its model: for text, for an object of a shape, for citations of a text.

use crate::DeepSearch;
use crate::afterwards::{CitationList, locate};
use crate::nodes::{Nodes, Trouble};
use crate::requests::Prompt;
use crate::structured::Shape;
use foldback_agent::{Purpose, Reply, Stop};
use foldback_core::Message;
use foldback_llm::{ChatModel, ChatRequest, RetryPolicy, Sampling, StopReason};
use futures::future::BoxFuture;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::time::{Instant, sleep_until};

/// Stretches of a text and the numbers of their sources.
pub(crate) type Cited = Vec<(Range<usize>, Vec<usize>)>;

impl Nodes<'_> {
    /// Asks which words of a draft rest on which source. A pass that fails cites nothing and is noted; the
    /// draft is kept.
    pub(crate) async fn second_pass(
        &self,
        purpose: Purpose,
        key: &str,
        prompt: Prompt,
        draft: &str,
    ) -> Result<(Cited, Vec<String>), Trouble> {
        match self.structured::<CitationList>(purpose, key, prompt).await {
            Ok(list) => {
                let located = locate(draft, &list);
                Ok((located.stretches, located.missing))
            }
            Err(Trouble::Failed(why)) => {
                let log = self.run.log();
                log.note(format_args!("no citations were added to the draft: {why}"));
                Ok((Cited::new(), Vec::new()))
            }
            Err(trouble) => Err(trouble),
        }
    }

    /// Asks for an object of a shape; if the answer does not have that shape, asks once more and says what is
    /// wrong with it.
    pub(crate) async fn structured<S: Shape>(
        &self,
        purpose: Purpose,
        key: &str,
        prompt: Prompt,
    ) -> Result<S, Trouble> {
        let mut messages = first_messages(&prompt);
        let (answer, _) = self.ask(purpose.clone(), key, messages.clone()).await?;
        let error = match S::read(&answer) {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        if !answer.trim().is_empty() {
            messages.push(Arc::new(Message::assistant(&answer)));
        }
        let told = format!("{error}. Answer with that object and nothing else.");
        messages.push(Arc::new(Message::user(&told)));
        let (answer, _) = self.ask(purpose, &format!("{key}-repair"), messages).await?;
        S::read(&answer).map_err(|error| Trouble::Failed(error.to_string()))
    }

    /// Asks for what the search cannot do without, while nothing else is asked. If the answer that the journal holds is
    /// of no use, the model is asked once more, under the next key: otherwise a resumed search would end as before
    /// without a request. A model that was asked now has had its turn, whether it answered or failed.
    pub(crate) async fn insist<'n, T>(
        &'n self,
        key: &str,
        ask: impl Fn(String) -> BoxFuture<'n, Result<T, Trouble>> + Send,
    ) -> Result<T, Trouble> {
        let (mut named, mut number) = (key.to_owned(), 1);
        loop {
            let asked = ask(named).await;
            let is_known = self.is_known.load(Ordering::Relaxed);
            if !is_known || !matches!(asked, Err(Trouble::Failed(_))) {
                return asked;
            }
            number += 1;
            named = format!("{key}-{number}");
        }
    }

    /// Asks for text, and reports whether it is cut off.
    pub(crate) async fn words(
        &self,
        purpose: Purpose,
        key: &str,
        prompt: Prompt,
    ) -> Result<(String, bool), Trouble> {
        let (text, stop) = self.ask(purpose, key, first_messages(&prompt)).await?;
        if text.trim().is_empty() {
            return Err(Trouble::Failed("the model answered nothing".to_owned()));
        }
        Ok((text.trim().to_owned(), stop.incomplete().is_some()))
    }

    async fn ask(
        &self,
        purpose: Purpose,
        key: &str,
        messages: Vec<Arc<Message>>,
    ) -> Result<(String, StopReason), Trouble> {
        let (model, temperature) = self.model(&purpose);
        let request = ChatRequest::new(messages)
            .with_sampling(Sampling::default().with_temperature(temperature))
            .with_session(self.run.todo().to_string());
        let mut failures = 0;
        loop {
            self.is_known.store(self.run.has_answer(&purpose, key), Ordering::Relaxed);
            let (purpose, request) = (purpose.clone(), request.clone());
            let asked = self.run.ask_model(model, purpose, key, request).await?;
            match asked {
                Reply::Answer(answer) => {
                    return Ok((answer.message.text().into_owned(), answer.stop));
                }
                Reply::Cancelled => return Err(Trouble::Over(Stop::Cancelled)),
                Reply::Exhausted(resource) => {
                    return Err(Trouble::Over(Stop::Exhausted { resource }));
                }
                Reply::Failed(error) => {
                    if !error.kind.is_transient() || failures >= self.deep.settings.retries {
                        return Err(Trouble::Failed(error.message));
                    }
                    let wait =
                        RetryPolicy::default().wait(failures, Some(self.run.todo().as_str()));
                    let wait = wait.max(error.retry_after.unwrap_or_default());
                    if wait > RetryPolicy::default().total_wait {
                        return Err(Trouble::Failed(error.message));
                    }
                    // A run that is cancelled meanwhile, or has no time left, notices it at the next request.
                    let cancelled = &self.run.task().cancelled;
                    let wait = match self.run.task().spend.deadline() {
                        Some(deadline) => deadline.min(Instant::now() + wait),
                        None => Instant::now() + wait,
                    };
                    let _ = cancelled.run_until_cancelled(sleep_until(wait)).await;
                    failures += 1;
                }
            }
        }
    }

    fn model(&self, purpose: &Purpose) -> (&dyn ChatModel, Option<f64>) {
        let (deep, temperatures) = (self.deep, &self.deep.settings.temperatures);
        let (model, temperature) = if *purpose == DeepSearch::RESEARCH {
            (&deep.query_model, temperatures.research)
        } else if *purpose == DeepSearch::REFLECTION {
            (&deep.reflection_model, temperatures.reflection)
        } else if *purpose == Purpose::ANSWER {
            (&deep.answer_model, temperatures.answer)
        } else {
            (&deep.query_model, temperatures.queries)
        };
        (model.as_deref().unwrap_or(self.run.agent().model()), temperature)
    }
}

fn first_messages(prompt: &Prompt) -> Vec<Arc<Message>> {
    vec![Arc::new(Message::system(&prompt.system)), Arc::new(Message::user(&prompt.user))]
}
