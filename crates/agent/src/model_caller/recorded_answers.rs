//! The model's answers in a run: recorded, and found again when the run is resumed.

use crate::json_line::compact;
use crate::trajectory::Purpose;
use crate::{JournalError, Record};
use foldback_core::{Message, MessageError};
use foldback_llm::{ChatResponse, ModelError, ModelErrorKind, StopReason, Usage};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, VecDeque};

/// The kind under which a model's answers are noted.
const KIND: &str = "model";

/// The kind under which the tokens of answers are noted that nobody received.
const LOST: &str = "model_lost";

/// The answers that an earlier run of the same name received, in order.
#[derive(Debug, Default)]
pub(super) struct RecordedAnswers {
    noted: VecDeque<KnownAnswer>,
}

/// An answer that was found.
#[derive(Debug)]
struct KnownAnswer {
    purpose: Purpose,
    key: String,
    reason: Option<Box<RawValue>>,
    /// The hash of the request.
    request: Option<String>,
    answer: Result<ChatResponse, ModelError>,
}

/// An answer in a journal.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct AnswerNote {
    purpose: Purpose,
    /// Its name among the answers of a purpose; without one, it is the next of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// Why it was asked for, in the form in which the caller wants to find it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<Box<RawValue>>,
    /// The hash of the request that was answered: the context shows another prompt when the run resumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request: Option<String>,
    answer: RecordedAnswer,
}

/// An answer, and the hash of its request if that was recorded.
type Taken = (Result<ChatResponse, ModelError>, Option<String>);

/// The model's answer or failure.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RecordedAnswer {
    Message {
        message: Box<RawValue>,
        stop: StopReason,
        usage: Usage,
        model: String,
    },
    Unreadable {
        message: String,
        /// The tokens that it took, if they are known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
    },
}

impl RecordedAnswers {
    /// Reads the answers from the records of a run.
    ///
    /// # Errors
    /// When one of them cannot be read: without it the run would take another course.
    pub(super) fn of(run: &str, records: &[Record]) -> Result<Self, JournalError> {
        let mut counts: BTreeMap<Purpose, u32> = BTreeMap::new();
        let bodies = records.iter().filter_map(|record| match record {
            Record::Note { kind, body } if kind == KIND => Some(body),
            _ => None,
        });
        let read = |body: &String| {
            let AnswerNote { purpose, key, reason, request, answer } =
                serde_json::from_str(body).map_err(|error| error.to_string())?;
            let count = counts.entry(purpose.clone()).or_default();
            *count += 1;
            let key = key.unwrap_or_else(|| count.to_string());
            let answer = answer.response().map_err(|error| error.to_string())?;
            Ok(KnownAnswer { purpose, key, reason, request, answer })
        };
        let noted = bodies.map(read).collect::<Result<_, String>>();
        let noted =
            noted.map_err(|why| JournalError::Note { run: run.to_owned(), kind: KIND, why });
        Ok(Self { noted: noted? })
    }

    /// Returns the purpose of the next answer, and why it was asked for.
    pub(super) fn next(&self) -> Option<(Purpose, Option<&RawValue>)> {
        self.noted.front().map(|noted| (noted.purpose.clone(), noted.reason.as_deref()))
    }

    pub(super) fn holds(&self, purpose: &Purpose, key: &str) -> bool {
        self.place(purpose, key).is_some()
    }

    fn place(&self, purpose: &Purpose, key: &str) -> Option<usize> {
        let is_it = |noted: &KnownAnswer| noted.purpose == *purpose && noted.key == key;
        self.noted.iter().position(is_it)
    }

    /// Takes an answer out, with the hash of its request.
    pub(super) fn take(&mut self, purpose: &Purpose, key: &str) -> Option<Taken> {
        let at = self.place(purpose, key)?;
        self.noted.remove(at).map(|noted| (noted.answer, noted.request))
    }
}

impl RecordedAnswer {
    fn response(self) -> Result<Result<ChatResponse, ModelError>, MessageError> {
        Ok(match self {
            Self::Message { message, stop, usage, model } => {
                let message = Message::from_json(message.get())?;
                Ok(ChatResponse { message, usage, stop, model })
            }
            Self::Unreadable { message, usage } => {
                Err(ModelError { usage, ..ModelError::new(ModelErrorKind::Response, message) })
            }
        })
    }
}

/// Returns an answer as it is recorded, with the reason why it was asked for and the hash of its request. An
/// answer that cannot be read is recorded, too; any other error is not, and a resumed run asks again.
pub(super) fn record(
    purpose: Purpose,
    key: &str,
    (reason, request_hash): (Option<Box<RawValue>>, &str),
    answer: &Result<ChatResponse, ModelError>,
) -> Result<Option<Record>, JournalError> {
    let answer = match answer {
        Ok(ChatResponse { message, usage, stop, model }) => RecordedAnswer::Message {
            message: RawValue::from_string(compact(message.json()))?,
            stop: stop.clone(),
            usage: *usage,
            model: model.clone(),
        },
        Err(error) if error.kind == ModelErrorKind::Response => {
            RecordedAnswer::Unreadable { message: error.message.clone(), usage: error.usage }
        }
        Err(_) => return Ok(None),
    };
    let request = Some(request_hash.to_owned());
    let noted = AnswerNote { purpose, key: Some(key.to_owned()), reason, request, answer };
    Ok(Some(Record::Note { kind: KIND.to_owned(), body: serde_json::to_string(&noted)? }))
}

/// Returns the record of the tokens of an answer that nobody received.
pub(super) fn lost(usage: Usage) -> Result<Record, JournalError> {
    Ok(Record::Note { kind: LOST.to_owned(), body: serde_json::to_string(&usage)? })
}

/// Returns the tokens of all such answers.
pub(super) fn all_lost(records: &[Record]) -> Usage {
    let mut all = Usage::default();
    for record in records {
        if let Record::Note { kind, body } = record
            && kind == LOST
            && let Ok(usage) = serde_json::from_str(body)
        {
            all += usage;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUERIES: Purpose = Purpose::named("queries");
    const RESEARCH: Purpose = Purpose::named("research");

    fn noted(purpose: Purpose, key: &str, text: &str) -> Record {
        let (message, model) = (Message::assistant(text), "m".to_owned());
        let (usage, stop) = (Usage { input: 7, ..Usage::default() }, StopReason::End);
        record(purpose, key, (None, "hash"), &Ok(ChatResponse { message, usage, stop, model }))
            .unwrap()
            .unwrap()
    }

    fn text(answer: Option<Taken>) -> Option<String> {
        Some(answer?.0.unwrap().message.text().into_owned())
    }

    /// R12: answers are found by purpose and key, in whatever order they were recorded, and once each.
    #[test]
    fn r12_answers_are_found_by_their_key() {
        let records = [
            noted(RESEARCH, "query-2", "二"),
            noted(RESEARCH, "query-1", "一"),
            noted(Purpose::REACT, "1", "react"),
        ];
        let mut answers = RecordedAnswers::of("run", &records).unwrap();
        assert!(answers.holds(&RESEARCH, "query-1"));
        assert!(!answers.holds(&QUERIES, "query-1"));
        let (answer, request) = answers.take(&RESEARCH, "query-1").unwrap();
        assert_eq!(
            (text(Some((answer, None))).as_deref(), request.as_deref()),
            (Some("一"), Some("hash"))
        );
        assert_eq!(text(answers.take(&RESEARCH, "query-1")), None);
        assert_eq!(answers.next().unwrap().0, RESEARCH);
        assert_eq!(text(answers.take(&RESEARCH, "query-2")).as_deref(), Some("二"));
        assert_eq!(text(answers.take(&Purpose::REACT, "1")).as_deref(), Some("react"));
    }

    /// R12: answers of journals that have no keys are the first, the second and so on of their purpose.
    #[test]
    fn r12_answers_without_a_key_are_counted() {
        let old = |purpose: &str, text: &str| Record::Note {
            kind: KIND.to_owned(),
            body: format!(
                r#"{{"purpose":"{purpose}","reason":{{"anchor":3}},"answer":{{"message":{{"message":{},"stop":"end","usage":{{"input":1,"output":1,"cached_read":0,"cached_write":0}},"model":"m"}}}}}}"#,
                Message::assistant(text).json()
            ),
        };
        let records = [old("planner", "plan"), old("react", "一"), old("react", "二")];
        let mut answers = RecordedAnswers::of("run", &records).unwrap();
        let (purpose, reason) = answers.next().unwrap();
        assert_eq!((purpose, reason.unwrap().get()), (Purpose::PLANNER, r#"{"anchor":3}"#));
        assert_eq!(text(answers.take(&Purpose::REACT, "2")).as_deref(), Some("二"));
        assert_eq!(text(answers.take(&Purpose::REACT, "1")).as_deref(), Some("一"));
        assert_eq!(text(answers.take(&Purpose::REACT, "3")), None);
    }

    /// R12: an unreadable answer is recorded; a failure to reach the model is not.
    #[test]
    fn r12_only_answers_are_noted() {
        let failed = |kind| Err(ModelError::new(kind, "why"));
        let unreadable =
            record(Purpose::REACT, "1", (None, "hash"), &failed(ModelErrorKind::Response));
        let mut answers = RecordedAnswers::of("run", &[unreadable.unwrap().unwrap()]).unwrap();
        let error = answers.take(&Purpose::REACT, "1").unwrap().0.unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (ModelErrorKind::Response, "why"));
        let down =
            record(Purpose::REACT, "1", (None, "hash"), &failed(ModelErrorKind::Unavailable));
        assert_eq!(down.unwrap(), None);
        // Earlier journals do not hold what it took.
        let body = r#"{"purpose":"react","answer":{"unreadable":{"message":"why"}}}"#.to_owned();
        let old = [Record::Note { kind: KIND.to_owned(), body }];
        let (answer, _) =
            RecordedAnswers::of("run", &old).unwrap().take(&Purpose::REACT, "1").unwrap();
        assert_eq!(answer.unwrap_err().usage, None);
    }

    /// R12: an answer that cannot be read is an error that says where; it is not asked for again.
    #[test]
    fn r12_an_answer_that_cannot_be_read_is_an_error() {
        let of = |body: &str| Record::Note { kind: KIND.to_owned(), body: body.to_owned() };
        let whole = noted(Purpose::REACT, "1", "一");
        let Record::Note { body, .. } = &whole else { panic!("{whole:?}") };
        let without_role = body.replace(r#""role":"assistant""#, r#""rolle":"assistant""#);
        for bad in [r#"{"purpose":"react"}"#, without_role.as_str(), "半"] {
            let error =
                RecordedAnswers::of("run", &[whole.clone(), of(bad)]).unwrap_err().to_string();
            assert!(error.starts_with("the model note of run \"run\" cannot be read: "), "{error}");
        }
    }
}
