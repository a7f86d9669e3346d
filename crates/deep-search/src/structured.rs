//! Answers of a model in a fixed shape.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

/// The queries of a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchQueryList {
    /// The queries.
    pub query: Vec<String>,
    /// Why they were chosen; empty if the model does not say.
    #[serde(default, deserialize_with = "or_empty")]
    pub rationale: String,
}

/// A judgement of what is still missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reflection {
    /// Whether the question can be answered from what there is.
    pub is_sufficient: bool,
    /// What is missing.
    #[serde(deserialize_with = "or_empty")]
    pub knowledge_gap: String,
    /// The queries that may find it.
    #[serde(deserialize_with = "or_empty")]
    pub follow_up_queries: Vec<String>,
}

/// Reads a value; `null` is read as an empty one.
fn or_empty<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// The error for an answer that does not have the shape that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer is not a {shape}: {why}; expected one JSON object like {example}")]
pub struct ShapeError {
    /// The name of the shape.
    pub shape: &'static str,
    /// What is wrong.
    pub why: String,
    /// An object of the shape.
    pub example: &'static str,
}

/// A shape that a model is asked for.
pub(crate) trait Shape: DeserializeOwned {
    const NAME: &'static str;
    const EXAMPLE: &'static str;

    /// Checks what the types do not express.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// Reads an answer: the last JSON object of the shape in it, after the model's thoughts, whatever text
    /// surrounds it.
    fn read(answer: &str) -> Result<Self, ShapeError> {
        let error = |why| ShapeError { shape: Self::NAME, why, example: Self::EXAMPLE };
        let mut rest = answer.rsplit_once("</think>").map_or(answer, |(_, said)| said);
        let (mut last, mut first_error) = (None, None);
        for _ in 0..MAX_TRIES {
            let Some(object) = rest.find('{').and_then(|at| rest.get(at..)) else { break };
            let mut values = serde_json::Deserializer::from_str(object).into_iter::<Self>();
            let read = match values.next() {
                Some(Ok(value)) => {
                    last = Some(value);
                    values.byte_offset()
                }
                Some(Err(e)) => {
                    first_error = first_error.or(Some(e));
                    1
                }
                None => 1,
            };
            rest = object.get(read..).unwrap_or_default();
        }
        match (last, first_error) {
            (Some(value), _) => value.check().map(|()| value).map_err(error),
            (None, Some(e)) => Err(error(e.to_string())),
            (None, None) => Err(error("it contains no JSON object".to_owned())),
        }
    }
}

/// The most braces of an answer that are tried as the beginning of the object.
const MAX_TRIES: usize = 64;

impl Shape for SearchQueryList {
    const NAME: &'static str = "SearchQueryList";
    const EXAMPLE: &'static str =
        r#"{"rationale": "why", "query": ["first query", "second query"]}"#;

    fn check(&self) -> Result<(), String> {
        let has_one = self.query.iter().any(|query| !query.trim().is_empty());
        has_one.then_some(()).ok_or_else(|| "`query` contains no query".to_owned())
    }
}

impl Shape for Reflection {
    const NAME: &'static str = "Reflection";
    const EXAMPLE: &'static str = r#"{"is_sufficient": false, "knowledge_gap": "what is missing", "follow_up_queries": ["a query"]}"#;
}

impl SearchQueryList {
    /// Reads a model's answer.
    ///
    /// # Errors
    /// When it holds no such object, or the object has no query.
    pub fn parse(answer: &str) -> Result<Self, ShapeError> {
        Self::read(answer)
    }
}

impl Reflection {
    /// Reads a model's answer.
    ///
    /// # Errors
    /// When it holds no such object.
    pub fn parse(answer: &str) -> Result<Self, ShapeError> {
        Self::read(answer)
    }
}
