//! How deep a search goes.

use foldback_agent::SettingError;
use serde::{Deserialize, Serialize};

/// How deep a search goes, and how it cites.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct DeepSearchSettings {
    /// How many queries the first round has at most.
    pub number_of_initial_queries: u32,
    /// How many rounds of research there are at most.
    pub max_research_loops: u32,
    /// How many queries a later round has at most.
    pub max_follow_up_queries: u32,
    /// How many queries are worked on at once.
    pub max_parallel: usize,
    /// How many passages a query brings at most.
    pub passages: usize,
    /// How many tokens of a passage a model reads at most.
    pub passage_tokens: usize,
    /// How many tokens of a query's summary are kept at most.
    pub summary_tokens: usize,
    /// How often a model is asked again after a failure that passes.
    pub retries: u32,
    /// How citations come into a text.
    pub citing: Citing,
    /// The heading of the list of sources behind the answer; without one there is no list.
    pub sources_heading: Option<String>,
    /// The day, as models are told; without one they are told nothing.
    pub today: Option<String>,
    /// How answers are drawn.
    pub temperatures: Temperatures,
}

impl Default for DeepSearchSettings {
    /// Three queries, two rounds, five passages a query, citations while writing.
    fn default() -> Self {
        Self {
            number_of_initial_queries: 3,
            max_research_loops: 2,
            max_follow_up_queries: 5,
            max_parallel: 8,
            passages: 5,
            passage_tokens: 1_000,
            summary_tokens: 1_000,
            retries: 2,
            citing: Citing::default(),
            sources_heading: Some("Sources".to_owned()),
            today: None,
            temperatures: Temperatures::default(),
        }
    }
}

/// How citations come into a text that a model writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Citing {
    /// The model marks what it writes as it writes it: `[citation:1]` in the summary of a search, and in
    /// the answer the links of the summaries.
    #[default]
    WhileWriting,
    /// The model writes a draft, and is asked in a second pass which words of it rest on which source.
    /// Links are set behind those words; of the draft itself no byte changes.
    Afterwards,
}

/// How answers are drawn, by what they are for: 0 for the likeliest. What is not set is the provider's
/// choice.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Temperatures {
    /// Queries.
    pub queries: Option<f64>,
    /// Summaries of searches.
    pub research: Option<f64>,
    /// What is missing.
    pub reflection: Option<f64>,
    /// The answer.
    pub answer: Option<f64>,
}

impl Default for Temperatures {
    /// 1 where ideas are asked for, 0 where facts are.
    fn default() -> Self {
        let (ideas, facts) = (Some(1.0), Some(0.0));
        Self { queries: ideas, research: facts, reflection: ideas, answer: facts }
    }
}

impl Temperatures {
    /// The same, with queries drawn in this way.
    #[must_use]
    pub fn with_queries(self, queries: impl Into<Option<f64>>) -> Self {
        Self { queries: queries.into(), ..self }
    }

    /// The same, with summaries of searches drawn in this way.
    #[must_use]
    pub fn with_research(self, research: impl Into<Option<f64>>) -> Self {
        Self { research: research.into(), ..self }
    }

    /// The same, with what is missing drawn in this way.
    #[must_use]
    pub fn with_reflection(self, reflection: impl Into<Option<f64>>) -> Self {
        Self { reflection: reflection.into(), ..self }
    }

    /// The same, with the answer drawn in this way.
    #[must_use]
    pub fn with_answer(self, answer: impl Into<Option<f64>>) -> Self {
        Self { answer: answer.into(), ..self }
    }
}

/// How much a question is worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// One query, one round.
    Low,
    /// Three queries, three rounds.
    #[default]
    Medium,
    /// Five queries, ten rounds.
    High,
}

impl Effort {
    /// Every effort, the least first.
    pub const ALL: [Self; 3] = [Self::Low, Self::Medium, Self::High];

    /// The name: `low`, `medium`, `high`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// The effort of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effort| effort.name() == name)
    }

    /// How many queries the first round has, and how many rounds there are.
    #[must_use]
    pub fn queries_and_loops(self) -> (u32, u32) {
        match self {
            Self::Low => (1, 1),
            Self::Medium => (3, 3),
            Self::High => (5, 10),
        }
    }
}

impl DeepSearchSettings {
    /// The same, with at most this many queries in the first round.
    #[must_use]
    pub fn with_number_of_initial_queries(self, number_of_initial_queries: u32) -> Self {
        Self { number_of_initial_queries, ..self }
    }

    /// The same, with at most this many rounds of research.
    #[must_use]
    pub fn with_max_research_loops(self, max_research_loops: u32) -> Self {
        Self { max_research_loops, ..self }
    }

    /// The same, with at most this many queries in a later round.
    #[must_use]
    pub fn with_max_follow_up_queries(self, max_follow_up_queries: u32) -> Self {
        Self { max_follow_up_queries, ..self }
    }

    /// The same, with this many queries worked on at once.
    #[must_use]
    pub fn with_max_parallel(self, max_parallel: usize) -> Self {
        Self { max_parallel, ..self }
    }

    /// The same, with at most this many passages a query.
    #[must_use]
    pub fn with_passages(self, passages: usize) -> Self {
        Self { passages, ..self }
    }

    /// The same, with at most this many tokens of a passage.
    #[must_use]
    pub fn with_passage_tokens(self, passage_tokens: usize) -> Self {
        Self { passage_tokens, ..self }
    }

    /// The same, with at most this many tokens of a query's summary.
    #[must_use]
    pub fn with_summary_tokens(self, summary_tokens: usize) -> Self {
        Self { summary_tokens, ..self }
    }

    /// The same, with this many more tries after a failure that passes.
    #[must_use]
    pub fn with_retries(self, retries: u32) -> Self {
        Self { retries, ..self }
    }

    /// The same, with citations that come into a text in this way.
    #[must_use]
    pub fn with_citing(self, citing: Citing) -> Self {
        Self { citing, ..self }
    }

    /// The same, with this heading over the list of sources, or without a list.
    #[must_use]
    pub fn with_sources_heading(self, sources_heading: impl Into<Option<String>>) -> Self {
        Self { sources_heading: sources_heading.into(), ..self }
    }

    /// The same, with this day in the requests, or with none.
    #[must_use]
    pub fn with_today(self, today: impl Into<Option<String>>) -> Self {
        Self { today: today.into(), ..self }
    }

    /// The same, with answers drawn in this way.
    #[must_use]
    pub fn with_temperatures(self, temperatures: Temperatures) -> Self {
        Self { temperatures, ..self }
    }

    /// The same with as many queries and rounds as an effort has.
    #[must_use]
    pub fn with_effort(self, effort: Effort) -> Self {
        let (number_of_initial_queries, max_research_loops) = effort.queries_and_loops();
        Self { number_of_initial_queries, max_research_loops, ..self }
    }

    /// The same with what `given` has for `NUMBER_OF_INITIAL_QUERIES` and `MAX_RESEARCH_LOOPS`: the
    /// environment, say, under names of the caller's choice.
    ///
    /// # Errors
    /// When one of them is no number from 1 on.
    pub fn overridden(
        self,
        given: impl Fn(&'static str) -> Option<String>,
    ) -> Result<Self, SettingError> {
        let number = |name, own| {
            let Some(value) = given(name) else { return Ok(own) };
            let number = value.trim().parse().ok().filter(|number: &u32| *number > 0);
            number.ok_or_else(|| SettingError::new(name, value, SettingError::FROM_ONE))
        };
        Ok(Self {
            number_of_initial_queries: number(
                "NUMBER_OF_INITIAL_QUERIES",
                self.number_of_initial_queries,
            )?,
            max_research_loops: number("MAX_RESEARCH_LOOPS", self.max_research_loops)?,
            ..self
        })
    }

    /// Refuses settings by which nothing could be found, read or said.
    ///
    /// # Errors
    /// When a number leaves nothing, a temperature is none, or words are blank or do not stay on a line.
    pub fn check(&self) -> Result<(), SettingError> {
        for (name, number) in [
            ("number_of_initial_queries", u64::from(self.number_of_initial_queries)),
            ("max_research_loops", u64::from(self.max_research_loops)),
            ("max_follow_up_queries", u64::from(self.max_follow_up_queries)),
            ("max_parallel", self.max_parallel as u64),
            ("passages", self.passages as u64),
            ("passage_tokens", self.passage_tokens as u64),
            ("summary_tokens", self.summary_tokens as u64),
        ] {
            SettingError::check_positive(name, number)?;
        }
        let Temperatures { queries, research, reflection, answer } = self.temperatures;
        for (name, temperature) in [
            ("temperatures.queries", queries),
            ("temperatures.research", research),
            ("temperatures.reflection", reflection),
            ("temperatures.answer", answer),
        ] {
            SettingError::check_temperature(name, temperature)?;
        }
        SettingError::check_line("sources_heading", self.sources_heading.as_deref())?;
        SettingError::check_line("today", self.today.as_deref())
    }
}
