//! The figures of a policy: on one conversation, or on many together.

use crate::Usage;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// What became of the values that calls needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FactCounts {
    /// All of them.
    pub facts: u64,
    /// The prompt of the call held it.
    pub visible: u64,
    /// One search, or one look at what it told of, brought it.
    pub recalled: u64,
    /// Reading everything that the tools list brings it.
    pub reachable: u64,
    /// Nothing brings it.
    pub lost: u64,
    /// How many would have been visible or recalled, had each search put the right place first, and
    /// shown of it the 2,000 tokens that matter: all but those that nothing brings, or that are longer.
    pub ceiling: u64,
}

/// What became of a value that a call needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    /// The prompt of the call held it.
    Visible,
    /// One search, or one look at what it told of, brought it.
    Recalled,
    /// Reading everything that the tools list brings it.
    Reachable,
    /// Nothing brings it.
    Lost,
}

impl Fate {
    /// The name as it is reported.
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
    /// Counts a fact; `in_a_look` where one look at the right place brings it.
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

    /// Those that are not among `some` of them.
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

    /// Of what the prompts did not show, the share that was recalled, from 0 to 1; `None` where they
    /// showed everything.
    #[must_use]
    pub fn brought(&self) -> Option<f64> {
        let hidden = self.facts - self.visible;
        (hidden > 0).then(|| self.recalled as f64 / hidden as f64)
    }

    /// The share that was visible or recalled, from 0 to 1; 1 where nothing was needed.
    #[must_use]
    pub fn had(&self) -> f64 {
        self.share(self.visible + self.recalled)
    }

    /// The share of some of the facts, from 0 to 1; 1 where there are none.
    #[must_use]
    pub fn share(&self, some: u64) -> f64 {
        if self.facts == 0 { 1.0 } else { some as f64 / self.facts as f64 }
    }
}

/// Results that a policy showed in fewer tokens than their words take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ShortenedResults {
    /// How many.
    pub results: u64,
    /// By so many tokens fewer the prompts are, all calls together.
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
    /// How many, all calls together.
    pub blocks: u64,
    /// Those that held a value which the call needed, and which its prompt did not show.
    pub needed: u64,
    /// Such values.
    pub facts: u64,
}

impl Pointers {
    fn add(&mut self, other: Self) {
        self.blocks += other.blocks;
        self.needed += other.needed;
        self.facts += other.facts;
    }
}

/// What a policy sent, and what it kept at hand.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Everything that was sent: the calls of the conversation, those that a policy made for its own
    /// ends, and one more for each recall (two where the search alone did not do).
    #[serde(flatten)]
    pub usage: Usage,
    /// The share of the input tokens that a cache served, from 0 to 1.
    pub hit_rate: f64,
    /// Input tokens for each token that the model wrote in the recording; `None` where it wrote
    /// nothing.
    pub in_out_ratio: Option<f64>,
    /// How many prompts did not begin with the whole stable part of the one before.
    pub prefix_moves: u64,
    /// All facts.
    #[serde(flatten)]
    pub facts: FactCounts,
    /// Those of them that stood in large parts alone.
    pub payload: FactCounts,
    /// Those of them that only the model's own words held: it may write them again without looking.
    pub own: FactCounts,
    /// How many arguments were searched for.
    pub recalls: u64,
    /// How often the search alone did not do, and a place that it told of was looked at.
    pub looks: u64,
    /// How many facts such a look brought.
    pub recalled_by_look: u64,
    /// Of what was sent, the recalls of arguments of which only the model's own words held anything.
    pub recalls_of_own: Usage,
    /// How often the policy asked a model for its own ends, for a summary say.
    pub side_calls: u64,
    /// The tokens that the model wrote there. They are no part of what was sent.
    pub side_output_tokens: u64,
    /// The tokens that the model wrote in the recording.
    pub output_tokens: u64,
    /// What was sent without the recalls.
    pub without_recalls: Usage,
    /// Results whose JSON was shown in fewer tokens.
    pub compact_json: ShortenedResults,
    /// Results of which something stood in view already, and was named in its place.
    pub repetitions: ShortenedResults,
    /// Blocks that were named before the model asked.
    pub pointers: Pointers,
}

impl Figures {
    /// Adds those of another conversation.
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

    /// Finds what follows from the rest, and rounds it.
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

/// To four places.
pub(crate) fn rounded(share: f64) -> f64 {
    (share * 10_000.0).round() / 10_000.0
}

/// Something for each policy, in their order; as JSON an object with their names as keys.
#[derive(Clone, Debug, PartialEq)]
pub struct ByPolicy<T>(Vec<(&'static str, T)>);

impl<T> ByPolicy<T> {
    pub(crate) fn new(each: Vec<(&'static str, T)>) -> Self {
        Self(each)
    }

    /// That of the policy of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&T> {
        self.0.iter().find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    /// The policies' names, each with its own.
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
