//! What the events of a stream mean for the client.

use super::failed::Failed;
use super::told::told;
use crate::Api;
use crate::model_answer::CallNumbers;
use crate::usage::Usage;
use serde_json::Value;
use std::collections::HashMap;

/// What happens to an event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The client gets it unchanged.
    Pass,
    /// The client gets it with other data.
    Changed(String),
    /// The client does not get it.
    Hidden,
    /// It belongs to the end of an answer: the client gets it if the model is not asked again.
    Held,
    /// The client gets the first now; the second belongs to the end.
    Split(Option<String>, String),
}

/// What is known of the answers that make up one turn.
pub(super) struct Heard {
    /// Names of the tools that the client does not know.
    pub(super) tools: Vec<String>,
    /// How many answers came before this one.
    pub(super) earlier: usize,
    /// What those were billed.
    pub(super) billed: Usage,
    /// How many calls of this answer are of our tools.
    pub(super) ours: usize,
    /// How many are of the client's.
    pub(super) theirs: usize,
    /// The place of a block, a call or an item of this answer in the client's; `None` if it has none.
    pub(super) places: HashMap<u64, Option<u64>>,
    /// How many of them the client has received.
    pub(super) shown: u64,
    /// The numbers of the calls of this answer, if its API sends them in pieces.
    pub(super) calls: CallNumbers,
    /// What this answer is billed, as far as it reports it.
    pub(super) usage: Usage,
    /// Whether this answer has ended.
    pub(super) is_over: bool,
    /// Whether it ended because the model was done.
    pub(super) is_whole: bool,
}

impl Heard {
    pub(super) fn new(tools: Vec<String>) -> Self {
        Self {
            tools,
            earlier: 0,
            billed: Usage::default(),
            ours: 0,
            theirs: 0,
            places: HashMap::new(),
            shown: 0,
            calls: CallNumbers::default(),
            usage: Usage::default(),
            is_over: false,
            is_whole: false,
        }
    }

    /// Returns whether everything that came so far goes to the client unchanged.
    pub(super) fn is_untouched(&self) -> bool {
        self.earlier == 0 && self.ours == 0
    }

    /// Returns whether a tool is one that the client does not know.
    pub(super) fn is_ours(&self, name: &Value) -> bool {
        name.as_str().is_some_and(|name| self.tools.iter().any(|own| own == name))
    }

    /// Returns whether the model calls only our tools, so that the client has nothing to wait for if they are not
    /// answered.
    pub(super) fn calls_ours_alone(&self) -> bool {
        self.ours > 0 && self.theirs == 0
    }

    /// Assigns the next place in the client's answer to the part with this number, unless it is hidden.
    pub(super) fn place(&mut self, number: u64, is_hidden: bool) {
        let place = (!is_hidden).then_some(self.shown);
        self.shown += u64::from(!is_hidden);
        self.places.insert(number, place);
    }

    /// Begins the next answer.
    pub(super) fn go_on(&mut self) {
        self.billed += std::mem::take(&mut self.usage);
        self.earlier += 1;
        (self.ours, self.theirs) = (0, 0);
        (self.is_over, self.is_whole) = (false, false);
        self.places.clear();
        self.calls.clear();
    }

    /// Reads the token counts of an event.
    pub(super) fn count(&mut self, api: Api, event: &Value) {
        self.usage.take(api, event);
    }

    /// Returns an answer's usage as the client sees it.
    pub(super) fn told(&self, api: Api, words: &str) -> String {
        told(api, words, &self.usage, &self.billed)
    }
}

/// How one API writes its streams.
pub(super) trait Wire: Send {
    /// Decides what happens to an event.
    fn fate(&mut self, heard: &mut Heard, data: &str) -> Fate;

    /// Returns data that was held, as it ends the client's answer.
    fn last(&mut self, heard: &Heard, data: &str) -> Option<String>;

    /// Returns the event by which a stream reports that it cannot continue.
    fn error(&mut self, failed: &Failed) -> String;

    /// Returns what keeps a connection open without content.
    fn ping(&self) -> &'static str;
}
