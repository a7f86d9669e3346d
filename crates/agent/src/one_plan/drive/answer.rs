//! The answer, from the results of the steps.

use super::super::question::Heard;
use super::super::request::Reason;
use super::{Drive, Finish, heard, longer, stop_of};
use crate::agent::AgentError;
use crate::model_caller::Reply;
use crate::trajectory::{Ending, Purpose, Stop};
use foldback_llm::{ModelErrorKind, StopReason};

/// How often the model is asked for an answer if it writes none, or an incomplete one.
const ATTEMPTS: u32 = 2;

impl Drive<'_> {
    /// Has the answer written, from the results of the steps.
    pub(super) async fn answer(&mut self) -> Result<Finish, AgentError> {
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
                return Ok(Finish::Ended(Stop::Cancelled.into()));
            };
            match (*reply)? {
                Reply::Answer(response) => {
                    let text = response.message.text();
                    let incomplete = response.stop.incomplete();
                    if !text.trim().is_empty() && incomplete.is_none() {
                        let answer = Some(text.into_owned());
                        return Ok(Finish::Ended(Ending { stop: Stop::Answered, answer }));
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
                    return Ok(Finish::Ended(Ending { stop: stop_of(other), answer: cut }));
                }
            }
            // A run that is resumed without any answer asks again.
            if attempt >= ATTEMPTS && (cut.is_some() || !was_noted) {
                break;
            }
        }
        Ok(match cut {
            Some(_) => Finish::Ended(Ending { stop: Stop::CutOff, answer: cut }),
            None => Finish::Ended(Stop::ModelFailed { message: why }.into()),
        })
    }
}
