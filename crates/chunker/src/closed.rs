//! A closed block, and the reason.

use crate::score::Score;
use foldback_core::{CloseReason, SeqRange};
use std::fmt;

/// A run of messages that is closed for good.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Closed {
    /// The messages.
    pub range: SeqRange,
    /// Why the block closed.
    pub reason: CloseReason,
    /// Whether the block is one unit that is larger than a block may be.
    pub oversize: bool,
    /// The basis of the decision.
    pub evidence: Evidence,
}

/// The basis of the decision to close a block. It displays as a sentence.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Evidence {
    /// The score of a change of topic after the block.
    Topic(Score),
    /// The silence after the block, in milliseconds.
    Gap(i64),
    /// The work went to another todo, or to another branch of the conversation.
    Switch,
    /// A tool loop or an exchange is complete, and what follows is a rough block of its own. The
    /// similarity to it, if it is known: on the embedder's own scale, or lexical.
    Complete(Option<f32>),
    /// The tail has no room for more.
    Full,
    /// One unit that is larger than a block may be.
    Oversize,
    /// The conversation ended.
    End,
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Topic(score) => {
                write!(f, "the topic changes (score {:.1}:", score.total())?;
                let mut terms: Vec<_> = score.terms().collect();
                terms.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
                for (name, term) in terms.iter().take(5) {
                    write!(f, " {name} {term:+.1}")?;
                }
                f.write_str(")")
            }
            Self::Gap(ms) => write!(f, "nothing was said for {} minutes", ms / 60_000),
            Self::Switch => f.write_str("the work goes elsewhere"),
            Self::Complete(Some(similarity)) => {
                write!(f, "an exchange is complete (similarity to the next {similarity:.2})")
            }
            Self::Complete(None) => f.write_str("an exchange is complete"),
            Self::Full => f.write_str("the block is full"),
            Self::Oversize => f.write_str("one call with its results is larger than a block"),
            Self::End => f.write_str("the conversation ends"),
        }
    }
}
