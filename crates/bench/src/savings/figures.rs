//! The figures of a policy: on one conversation, or on many together.

use crate::Usage;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// The fates of the values that calls needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FactCounts {
    /// All facts.
    pub facts: u64,
    /// The prompt of the call contained it.
    pub visible: u64,
    /// One search, or one look at what the search named, found it.
    pub recalled: u64,
    /// Reading everything that the tools list finds it.
    pub reachable: u64,
    /// Nothing finds it.
    pub lost: u64,
    /// How many would have been visible or recalled if each search had ranked the right place first and
    /// shown the 2,000 tokens of it that matter: all but those that nothing finds, or that are longer.
    pub ceiling: u64,
}

/// The fate of a value that a call needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    /// The prompt of the call contained it.
    Visible,
    /// One search, or one look at what the search named, found it.
    Recalled,
    /// Reading everything that the tools list finds it.
    Reachable,
    /// Nothing finds it.
    Lost,
}

impl Fate {
    /// Returns the name as it is reported.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Visible => "visible",
            Self::Recalled => "recalled",
            Self::Reachable => "reachable",
            Self::Lost => "lost",
        }
    }
}

impl FactCounts {
    /// Counts a fact; `in_a_look` if one look at the right place finds it.
    pub(crate) fn count(&mut self, fate: Fate, in_a_look: bool) {
        self.facts += 1;
        self.ceiling += u64::from(in_a_look);
        *match fate {
            Fate::Visible => &mut self.visible,
            Fate::Recalled => &mut self.recalled,
            Fate::Reachable => &mut self.reachable,
            Fate::Lost => &mut self.lost,
        } += 1;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.facts += other.facts;
        self.visible += other.visible;
        self.recalled += other.recalled;
        self.reachable += other.reachable;
        self.lost += other.lost;
        self.ceiling += other.ceiling;
    }

    /// Returns the counts without `some` of them.
    pub(crate) fn without(&self, some: &Self) -> Self {
        Self {
            facts: self.facts - some.facts,
            visible: self.visible - some.visible,
            recalled: self.recalled - some.recalled,
            reachable: self.reachable - some.reachable,
            lost: self.lost - some.lost,
            ceiling: self.ceiling - some.ceiling,
        }
    }

    /// Returns the share that was recalled of what the prompts did not show, from 0 to 1; `None` if
    /// they showed everything.
    #[must_use]
    pub fn brought(&self) -> Option<f64> {
        let hidden = self.facts - self.visible;
        (hidden > 0).then(|| self.recalled as f64 / hidden as f64)
    }

    /// Returns the share that was visible or recalled, from 0 to 1; 1 if nothing was needed.
    #[must_use]
    pub fn had(&self) -> f64 {
        self.share(self.visible + self.recalled)
    }

    /// Returns the share of some of the facts, from 0 to 1; 1 if there are none.
    #[must_use]
    pub fn share(&self, some: u64) -> f64 {
        if self.facts == 0 { 1.0 } else { some as f64 / self.facts as f64 }
    }
}

/// Results that a policy showed in fewer tokens than their full text takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ShortenedResults {
    /// Their number.
    pub results: u64,
    /// The tokens saved in the prompts, all calls together.
    pub tokens: u64,
}

impl ShortenedResults {
    fn add(&mut self, other: Self) {
        self.results += other.results;
        self.tokens += other.tokens;
    }
}

/// Earlier blocks that the ends of prompts named before the model asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pointers {
    /// Their number, all calls together.
    pub blocks: u64,
    /// Those that contained a value which the call needed and its prompt did not show.
    pub needed: u64,
    /// The number of such values.
    pub facts: u64,
}

impl Pointers {
    fn add(&mut self, other: Self) {
        self.blocks += other.blocks;
        self.needed += other.needed;
        self.facts += other.facts;
    }
}

/// What a policy sent, and what it kept available.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Everything that was sent: the calls of the conversation, those that a policy made for its own
    /// purposes, and one more for each recall (two if the search alone was not enough).
    #[serde(flatten)]
    pub usage: Usage,
    /// The share of the input tokens that a cache served, from 0 to 1.
    pub hit_rate: f64,
    /// Input tokens for each token that the model wrote in the recording; `None` if it wrote nothing.
    pub in_out_ratio: Option<f64>,
    /// How many prompts did not begin with the whole stable part of the previous one.
    pub prefix_moves: u64,
    /// All facts.
    #[serde(flatten)]
    pub facts: FactCounts,
    /// The facts that occurred only in large parts.
    pub payload: FactCounts,
    /// The facts that only the model's own words contained: it may write them again without looking.
    pub own: FactCounts,
    /// The number of arguments that were searched for.
    pub recalls: u64,
    /// How often the search alone was not enough, and a place that it named was looked at.
    pub looks: u64,
    /// The number of facts that such a look found.
    pub recalled_by_look: u64,
    /// The part of what was sent to recall arguments whose facts only the model's own words contained.
    pub recalls_of_own: Usage,
    /// How often the policy called a model for its own purposes, such as a summary.
    pub side_calls: u64,
    /// The tokens that the model wrote in these calls. They are not part of what was sent.
    pub side_output_tokens: u64,
    /// The tokens that the model wrote in the recording.
    pub output_tokens: u64,
    /// What was sent, without the recalls.
    pub without_recalls: Usage,
    /// Results whose JSON was shown in fewer tokens.
    pub compact_json: ShortenedResults,
    /// Results of which a part was already in view and was replaced by its name.
    pub repetitions: ShortenedResults,
    /// Blocks that were named before the model asked.
    pub pointers: Pointers,
}

impl Figures {
    /// Adds the figures of another conversation.
    pub(crate) fn add(&mut self, other: &Self) {
        self.usage.add(&other.usage);
        self.prefix_moves += other.prefix_moves;
        self.facts.add(&other.facts);
        self.payload.add(&other.payload);
        self.own.add(&other.own);
        self.recalls += other.recalls;
        self.looks += other.looks;
        self.recalled_by_look += other.recalled_by_look;
        self.recalls_of_own.add(&other.recalls_of_own);
        self.side_calls += other.side_calls;
        self.side_output_tokens += other.side_output_tokens;
        self.output_tokens += other.output_tokens;
        self.without_recalls.add(&other.without_recalls);
        self.compact_json.add(other.compact_json);
        self.repetitions.add(other.repetitions);
        self.pointers.add(other.pointers);
    }

    /// Derives the remaining figures, and rounds them.
    pub(crate) fn settled(mut self) -> Self {
        self.usage = self.usage.rounded();
        self.without_recalls = self.without_recalls.rounded();
        self.recalls_of_own = self.recalls_of_own.rounded();
        self.hit_rate = rounded(self.usage.hit_rate());
        self.in_out_ratio = (self.output_tokens > 0)
            .then(|| rounded(self.usage.input_tokens as f64 / self.output_tokens as f64));
        self
    }
}

/// Rounds to four places.
pub(crate) fn rounded(share: f64) -> f64 {
    (share * 10_000.0).round() / 10_000.0
}

/// A value for each policy, in order; as JSON, an object with the policies' names as keys.
#[derive(Clone, Debug, PartialEq)]
pub struct ByPolicy<T>(Vec<(&'static str, T)>);

impl<T> ByPolicy<T> {
    pub(crate) fn new(each: Vec<(&'static str, T)>) -> Self {
        Self(each)
    }

    /// Returns the value of the policy with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&T> {
        self.0.iter().find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    /// Returns the policies' names, each with its value.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &T)> {
        self.0.iter().map(|(name, value)| (*name, value))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (&'static str, &mut T)> {
        self.0.iter_mut().map(|(name, value)| (*name, value))
    }
}

impl<T: Serialize> Serialize for ByPolicy<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}
