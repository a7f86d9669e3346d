//! Citations for a finished text, placed by quotes of its own words, so that the text does not change.

use crate::structured::Shape;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The answer of a second pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CitationList {
    /// The citations, in the order of the draft.
    pub citations: Vec<QuotedCitation>,
}

/// Words of a draft, and the sources that support them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotedCitation {
    /// The words, exactly as in the draft.
    pub quote: String,
    /// The numbers of the sources; the first is 1.
    pub sources: Vec<usize>,
}

impl Shape for CitationList {
    const NAME: &'static str = "CitationList";
    const EXAMPLE: &'static str =
        r#"{"citations": [{"quote": "words of the draft.", "sources": [1]}]}"#;
}

/// The stretches of a draft that a second pass cites.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Located {
    /// Stretches, in bytes of the draft, with the numbers of the sources that they rest on.
    pub stretches: Vec<(Range<usize>, Vec<usize>)>,
    /// Quotes that are not in the draft.
    pub missing: Vec<String>,
}

/// The most quotes of a second pass that are looked for.
const MAX_QUOTES: usize = 500;

/// Finds the quotes of a second pass in the draft: each after the one before, otherwise at its first
/// occurrence. Only the first 500 quotes are looked for.
#[must_use]
pub fn locate(draft: &str, list: &CitationList) -> Located {
    let mut located = Located::default();
    let mut from = 0;
    for QuotedCitation { quote, sources } in list.citations.iter().take(MAX_QUOTES) {
        let quote = quote.trim();
        let behind = draft.get(from..).and_then(|rest| rest.find(quote)).map(|at| from + at);
        match behind.or_else(|| draft.find(quote)).filter(|_| !quote.is_empty()) {
            Some(start) => {
                let stretch = start..start + quote.len();
                from = stretch.end;
                located.stretches.push((stretch, sources.clone()));
            }
            None => located.missing.push(quote.to_owned()),
        }
    }
    let further = list.citations.len().saturating_sub(MAX_QUOTES);
    if further > 0 {
        located.missing.push(format!("{further} further quotes"));
    }
    located
}
