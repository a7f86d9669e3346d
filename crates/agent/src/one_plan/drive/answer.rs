//! The answer, from the results of the steps.

use super::super::question::Heard;
use super::super::reading::{Reading, is_for, read, written_plan};
use super::super::request::Reason;
use super::{Drive, Finish, heard, longer, stop_of};
use crate::agent::AgentError;
use crate::model_caller::Reply;
use crate::trajectory::{Ending, Purpose, Stop};
use foldback_llm::{ModelErrorKind, StopReason};
use foldback_planner::{Intent, Progress, ReplanReason};

/// How often the model is asked for an answer if it writes none, or an incomplete one.
const ATTEMPTS: u32 = 2;

/// What the model wrote when it was asked for the answer.
enum Written {
    /// The answer.
    Words,
    /// A plan, whose steps run now.
    Steps,
    /// A plan that is not run.
    NoWords,
}

impl Drive<'_> {
    /// Has the answer written, from the results of the steps; `None` if the model plans more steps instead.
    pub(super) async fn answer(&mut self) -> Result<Option<Finish>, AgentError> {
        let mut request = self.requests.answer(&self.state(&self.run.progress(), None));
        let mut cut = None;
        let mut why = "the model wrote no answer".to_owned();
        for attempt in 1.. {
            self.ask(Purpose::ANSWER, Reason::default(), request.clone());
            let was_noted = self.question.as_ref().is_some_and(|question| question.was_noted);
            let heard = heard(&mut self.question);
            let heard = self.task.cancelled.run_until_cancelled(heard).await.flatten();
            self.question = None;
            let Some(Heard::Whole(reply)) = heard else {
                return Ok(Some(Finish::Ended(Stop::Cancelled.into())));
            };
            match (*reply)? {
                Reply::Answer(response) => {
                    let text = response.message.text();
                    let incomplete = response.stop.incomplete();
                    if !text.trim().is_empty() && incomplete.is_none() {
                        match self.written(&text, was_noted)? {
                            Written::Words => {
                                let answer = Some(text.into_owned());
                                let ending = Ending { stop: Stop::Answered, answer };
                                return Ok(Some(Finish::Ended(ending)));
                            }
                            Written::Steps => return Ok(None),
                            Written::NoWords => {
                                "the model wrote a plan in place of the answer"
                                    .clone_into(&mut why);
                                self.requests.in_words(&mut request, &text);
                            }
                        }
                    }
                    if let Some(reason) = incomplete {
                        cut =
                            Some(text.into_owned()).filter(|text| !text.trim().is_empty()).or(cut);
                        reason.clone_into(&mut why);
                    }
                    if response.stop == StopReason::Length {
                        longer(&mut request);
                    }
                }
                Reply::Failed(error) if error.kind == ModelErrorKind::Response => {
                    why = error.message;
                }
                other => {
                    let ending = Ending { stop: stop_of(other), answer: cut };
                    return Ok(Some(Finish::Ended(ending)));
                }
            }
            // A run that is resumed without any answer asks again.
            if attempt >= ATTEMPTS && (cut.is_some() || !was_noted) {
                break;
            }
        }
        Ok(Some(match cut {
            Some(_) => Finish::Ended(Ending { stop: Stop::CutOff, answer: cut }),
            None => Finish::Ended(Stop::ModelFailed { message: why }.into()),
        }))
    }

    /// Determines what the model wrote. The new steps of a plan run as those of a replan, as long as there may be
    /// another.
    fn written(&mut self, text: &str, was_noted: bool) -> Result<Written, AgentError> {
        let catalog = self.agent.executor.catalog();
        match written_plan(text) {
            None => return Ok(Written::Words),
            Some(Intent::Plan(plan)) if !plan.steps.is_empty() => {
                if !is_for(&plan, catalog) {
                    return Ok(Written::Words);
                }
            }
            Some(_) => return Ok(Written::NoWords),
        }
        let progress = self.run.progress();
        let mut reading = read(text, &progress, &self.agent.validator());
        if was_noted {
            reading = self.as_before(reading, &progress);
        }
        match reading {
            Reading::Plan(plan) if !plan.steps.is_empty() => {
                let reason = ReplanReason::Failures { steps: Vec::new() };
                if self.replans.begin(&reason, &Progress::default()).is_none() {
                    return Ok(Written::NoWords);
                }
                self.take_plan(Purpose::REPLAN, text.to_owned(), &plan)?;
                Ok(Written::Steps)
            }
            _ => Ok(Written::NoWords),
        }
    }
}
