//! What is odd about a conversation.

use foldback_core::{Message, Pairing, PairingTracker, Timestamp};
use std::collections::HashSet;
use std::fmt;

/// Something odd in a conversation. It was read and is kept as it is; the sentence of a finding
/// says what a view of the conversation does about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The message, counted from 0; `None` for the conversation as a whole.
    pub at: Option<usize>,
    /// What is odd.
    pub kind: FindingKind,
}

/// What is odd about a message, or about a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FindingKind {
    /// There is no message.
    NoMessage,
    /// A call has the id of an earlier call.
    DuplicateCall {
        /// The id.
        id: String,
    },
    /// A call has no result before the conversation goes on, or ends.
    UnansweredCall {
        /// The id.
        id: String,
    },
    /// A result answers no call that is open.
    OrphanResult {
        /// The id that it names, if it names one.
        id: Option<String>,
    },
    /// A message says nothing and calls nothing.
    Empty,
    /// A message carries an earlier time than one before it.
    TimeRunsBack {
        /// The latest time before it.
        after: Timestamp,
        /// Its own time.
        at: Timestamp,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(at) = self.at {
            write!(f, "message {at}: ")?;
        }
        self.kind.fmt(f)
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMessage => {
                f.write_str("the conversation has no message; nothing is recorded or shown")
            }
            Self::DuplicateCall { id } => write!(
                f,
                "the call {id:?} has the id of an earlier call; each result goes to the call \
                 directly before it, and views give the call an id of its own"
            ),
            Self::UnansweredCall { id } => write!(
                f,
                "the call {id:?} is never answered; views answer it with a note that there is no \
                 result"
            ),
            Self::OrphanResult { id: Some(id) } => write!(
                f,
                "this is the result of the call {id:?}, which is not open here; views show it as \
                 a user's text that says so"
            ),
            Self::OrphanResult { id: None } => f.write_str(
                "this tool message names no call; views show it as a user's text that says so",
            ),
            Self::Empty => f.write_str("the message is empty; views leave it out"),
            Self::TimeRunsBack { after, at } => write!(
                f,
                "its time {at} lies before {after}, which an earlier message carries; the order \
                 stays that of the file"
            ),
        }
    }
}

pub(crate) fn check(messages: &[Message]) -> Vec<Finding> {
    let mut found = Vec::new();
    if messages.is_empty() {
        return vec![Finding { at: None, kind: FindingKind::NoMessage }];
    }
    let mut tracker = PairingTracker::default();
    let mut seen = HashSet::new();
    let mut caller = None;
    let mut latest: Option<Timestamp> = None;
    for (at, message) in messages.iter().enumerate() {
        let mut find = |kind| found.push(Finding { at: Some(at), kind });
        match tracker.observe(message) {
            Pairing::Orphan => find(FindingKind::OrphanResult {
                id: message.tool_call_id().map(|id| id.as_str().to_owned()),
            }),
            Pairing::Answers => {}
            Pairing::Free { abandoned } | Pairing::Calls { abandoned } => {
                found.extend(abandoned.iter().map(|id| unanswered(caller, id.as_str())));
            }
        }
        let mut find = |kind| found.push(Finding { at: Some(at), kind });
        if !message.tool_calls().is_empty() {
            caller = Some(at);
        }
        for call in message.tool_calls() {
            if !seen.insert(call.id.as_str()) {
                find(FindingKind::DuplicateCall { id: call.id.as_str().to_owned() });
            }
        }
        let may_be_silent = !message.tool_calls().is_empty() || message.tool_call_id().is_some();
        if message.content().is_blank() && !may_be_silent {
            find(FindingKind::Empty);
        }
        if let Some(time) = message.timestamp() {
            if let Some(after) = latest.filter(|latest| time < *latest) {
                find(FindingKind::TimeRunsBack { after, at: time });
            }
            latest = latest.max(Some(time));
        }
    }
    found.extend(tracker.open().iter().map(|id| unanswered(caller, id.as_str())));
    found.sort_by_key(|finding| finding.at);
    found
}

fn unanswered(caller: Option<usize>, id: &str) -> Finding {
    Finding { at: caller, kind: FindingKind::UnansweredCall { id: id.to_owned() } }
}
