//! The settings of a search.

use foldback_agent::SettingError;
use serde::{Deserialize, Serialize};

/// The settings of a search: how deep it goes, and how it cites.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct DeepSearchSettings {
    /// The most queries of the first round.
    pub number_of_initial_queries: u32,
    /// The most rounds of research.
    pub max_research_loops: u32,
    /// The most queries of a later round.
    pub max_follow_up_queries: u32,
    /// The most queries that are worked on at once.
    pub max_parallel: usize,
    /// The most passages of a query.
    pub passages: usize,
    /// The most tokens of a passage that a model reads.
    pub passage_tokens: usize,
    /// The most tokens of a query's summary that are kept.
    pub summary_tokens: usize,
    /// How often a request is retried after a passing failure.
    pub retries: u32,
    /// How citations are added to a text.
    pub citing: Citing,
    /// The heading of the list of sources after the answer; without one there is no list.
    pub sources_heading: Option<String>,
    /// The date, as it is given to models; without one, none is given.
    pub today: Option<String>,
    /// How answers are sampled.
    pub temperatures: Temperatures,
}

impl Default for DeepSearchSettings {
    /// Three queries, two rounds, five passages per query, citations while writing.
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

/// How citations are added to a text that a model writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Citing {
    /// The model sets marks as it writes: `[citation:1]` in the summary of a search, and in the answer the
    /// links of the summaries.
    #[default]
    WhileWriting,
    /// The model writes a draft, and is asked in a second pass which words of it rest on which source. Links
    /// are set after those words; no byte of the draft itself changes.
    Afterwards,
}

/// The temperatures by the purpose of a request; 0 gives the likeliest answer. Those that are not set are
/// left to the provider.
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
    /// 1 for requests for ideas, 0 for requests for facts.
    fn default() -> Self {
        let (ideas, facts) = (Some(1.0), Some(0.0));
        Self { queries: ideas, research: facts, reflection: ideas, answer: facts }
    }
}

impl Temperatures {
    /// Sets the temperature for queries.
    #[must_use]
    pub fn with_queries(self, queries: impl Into<Option<f64>>) -> Self {
        Self { queries: queries.into(), ..self }
    }

    /// Sets the temperature for summaries of searches.
    #[must_use]
    pub fn with_research(self, research: impl Into<Option<f64>>) -> Self {
        Self { research: research.into(), ..self }
    }

    /// Sets the temperature for the judgement of what is missing.
    #[must_use]
    pub fn with_reflection(self, reflection: impl Into<Option<f64>>) -> Self {
        Self { reflection: reflection.into(), ..self }
    }

    /// Sets the temperature for the answer.
    #[must_use]
    pub fn with_answer(self, answer: impl Into<Option<f64>>) -> Self {
        Self { answer: answer.into(), ..self }
    }
}

/// How much effort a question is worth.
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

    /// Returns the name: `low`, `medium`, `high`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// Returns the effort with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effort| effort.name() == name)
    }

    /// Returns the number of queries of the first round, and the number of rounds.
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
    /// Sets the most queries of the first round.
    #[must_use]
    pub fn with_number_of_initial_queries(self, number_of_initial_queries: u32) -> Self {
        Self { number_of_initial_queries, ..self }
    }

    /// Sets the most rounds of research.
    #[must_use]
    pub fn with_max_research_loops(self, max_research_loops: u32) -> Self {
        Self { max_research_loops, ..self }
    }

    /// Sets the most queries of a later round.
    #[must_use]
    pub fn with_max_follow_up_queries(self, max_follow_up_queries: u32) -> Self {
        Self { max_follow_up_queries, ..self }
    }

    /// Sets the most queries that are worked on at once.
    #[must_use]
    pub fn with_max_parallel(self, max_parallel: usize) -> Self {
        Self { max_parallel, ..self }
    }

    /// Sets the most passages of a query.
    #[must_use]
    pub fn with_passages(self, passages: usize) -> Self {
        Self { passages, ..self }
    }

    /// Sets the most tokens of a passage that a model reads.
    #[must_use]
    pub fn with_passage_tokens(self, passage_tokens: usize) -> Self {
        Self { passage_tokens, ..self }
    }

    /// Sets the most tokens of a query's summary that are kept.
    #[must_use]
    pub fn with_summary_tokens(self, summary_tokens: usize) -> Self {
        Self { summary_tokens, ..self }
    }

    /// Sets how often a request is retried after a passing failure.
    #[must_use]
    pub fn with_retries(self, retries: u32) -> Self {
        Self { retries, ..self }
    }

    /// Sets how citations are added to a text.
    #[must_use]
    pub fn with_citing(self, citing: Citing) -> Self {
        Self { citing, ..self }
    }

    /// Sets the heading of the list of sources, or leaves the list out.
    #[must_use]
    pub fn with_sources_heading(self, sources_heading: impl Into<Option<String>>) -> Self {
        Self { sources_heading: sources_heading.into(), ..self }
    }

    /// Sets the date that requests give, or gives none.
    #[must_use]
    pub fn with_today(self, today: impl Into<Option<String>>) -> Self {
        Self { today: today.into(), ..self }
    }

    /// Sets the temperatures.
    #[must_use]
    pub fn with_temperatures(self, temperatures: Temperatures) -> Self {
        Self { temperatures, ..self }
    }

    /// Sets the queries and rounds to those of an effort.
    #[must_use]
    pub fn with_effort(self, effort: Effort) -> Self {
        let (number_of_initial_queries, max_research_loops) = effort.queries_and_loops();
        Self { number_of_initial_queries, max_research_loops, ..self }
    }

    /// Overrides settings with what `given` returns for `NUMBER_OF_INITIAL_QUERIES` and `MAX_RESEARCH_LOOPS`,
    /// such as values from the environment under names of the caller's choice.
    ///
    /// # Errors
    /// When one of them is not a number of at least 1.
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

    /// Refuses settings by which nothing could be found, read or answered.
    ///
    /// # Errors
    /// When a number is 0, a temperature is out of range, or a text is blank or longer than one line.
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
