//! What the events of a stream mean for the client.

use super::told::told;
use crate::Api;
use crate::usage::Usage;
use serde_json::Value;
use std::collections::HashMap;

/// What becomes of an event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The client gets it as it is.
    Pass,
    /// The client gets it with other data.
    Changed(String),
    /// The client does not get it.
    Hidden,
    /// It belongs to the end of an answer: the client gets it where nothing more is asked of the model.
    Held,
    /// The client gets the first now; the second belongs to the end.
    Split(Option<String>, String),
}

/// What is known of the answers that make up one turn.
pub(super) struct Heard {
    /// Names of the tools that the client knows nothing of.
    pub(super) tools: Vec<String>,
    /// How many answers came before this one.
    pub(super) earlier: usize,
    /// What those were billed.
    pub(super) billed: Usage,
    /// So many calls of this answer are of our tools.
    pub(super) ours: usize,
    /// So many are of the client's.
    pub(super) theirs: usize,
    /// Where a block, a call or an item of this answer stands in the client's; `None` where it does not.
    pub(super) places: HashMap<u64, Option<u64>>,
    /// So many of them the client has.
    pub(super) shown: u64,
    /// What this answer is billed, as far as it says.
    pub(super) usage: Usage,
    /// Whether nothing more comes of this answer.
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
            usage: Usage::default(),
            is_over: false,
            is_whole: false,
        }
    }

    /// Whether everything that came so far is the client's, as it is.
    pub(super) fn is_untouched(&self) -> bool {
        self.earlier == 0 && self.ours == 0
    }

    /// Whether a tool is one that the client knows nothing of.
    pub(super) fn is_ours(&self, name: &Value) -> bool {
        name.as_str().is_some_and(|name| self.tools.iter().any(|own| own == name))
    }

    /// Whether the model calls our tools alone, so that nothing waits for the client where they are not answered.
    pub(super) fn calls_ours_alone(&self) -> bool {
        self.ours > 0 && self.theirs == 0
    }

    /// Gives the next place in the client's answer to what has this number here, unless it is hidden.
    pub(super) fn place(&mut self, number: u64, is_hidden: bool) {
        let place = (!is_hidden).then_some(self.shown);
        self.shown += u64::from(!is_hidden);
        self.places.insert(number, place);
    }

    /// The next answer begins.
    pub(super) fn go_on(&mut self) {
        self.billed += std::mem::take(&mut self.usage);
        self.earlier += 1;
        (self.ours, self.theirs) = (0, 0);
        (self.is_over, self.is_whole) = (false, false);
        self.places.clear();
    }

    /// Takes what an event says of tokens.
    pub(super) fn count(&mut self, api: Api, event: &Value) {
        self.usage.take(api, event);
    }

    /// An answer's words on its usage, as the client sees them.
    pub(super) fn told(&self, api: Api, words: &str) -> String {
        told(api, words, &self.usage, &self.billed)
    }
}

/// How one API writes its streams.
pub(super) trait Wire: Send {
    /// What becomes of an event.
    fn fate(&mut self, heard: &mut Heard, data: &str) -> Fate;

    /// Data that was held, as it ends the client's answer.
    fn last(&mut self, heard: &Heard, data: &str) -> Option<String>;

    /// The event by which a stream says that it goes no further.
    fn error(&mut self, body: &str) -> String;

    /// What keeps a connection open and says nothing.
    fn ping(&self) -> &'static str;
}
