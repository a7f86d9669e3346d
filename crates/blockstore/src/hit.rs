//! The results of a search.

use crate::Finder;
use foldback_core::{Block, BlockId, PayloadRef, SeqNo};
use std::fmt;
use std::ops::Range;

/// A block that answers a question, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The block's header and range; its body is read by
    /// [`BlockStore::messages`](crate::BlockStore::messages).
    pub block: Block,
    /// The order of hits, except for those in [another script](Explanation::another_script):
    /// `w * bm25 / best bm25 + (1 - w) * cosine`, and more for neighbours, for its time and, up to 2, for exact hits.
    /// Comparable within one answer only.
    pub score: f32,
    /// BM25 of the question's terms, with the todo's own statistics: of the block's own words or of its best passage,
    /// whichever is greater.
    pub bm25: f32,
    /// The cosine of the question and the block's best vector; 0 when there is none to compare.
    pub cosine: f32,
    /// Whether the block holds a name that was asked for (an id, a path, an identifier, an error code), or a rare word
    /// that makes up most of the question.
    pub exact: bool,
    /// How much the block has to do with the question, from 0 to 1, where 0.72 means "this answers it". It is the
    /// greater of two values: what the cosine says, on the embedder's calibrated scale, which allows for a question
    /// being less like its answer than two parts of one topic; and the share of the question's terms that the block
    /// holds, weighted by their rarity.
    pub relevance: f32,
    /// The message with the block's best vector.
    pub best_seq: Option<SeqNo>,
    /// The places of the question's words in the block's payloads, the best first, at most three.
    pub passages: Vec<PassageHit>,
    /// How the score was computed.
    pub explanation: Explanation,
}

/// A part of a payload's text that answers a question.
#[derive(Clone, Debug, PartialEq)]
pub struct PassageHit {
    /// The payload, by the name that loads it inside its own todo.
    pub payload: PayloadRef,
    /// The first line of the part, counted from 1.
    pub first_line: u64,
    /// Its last line. Equal to the first for a part of a long line.
    pub last_line: u64,
    /// How many bytes of the first line precede the part: 0 unless that line is a long one.
    pub skip: u64,
    /// Its bytes in the payload.
    pub bytes: Range<u64>,
    /// BM25 of the question's terms, on the scale of [`Hit::bm25`].
    pub score: f32,
    /// Other blocks that carry the payload, the newest first, at most three.
    pub also_in: Vec<BlockId>,
}

/// The payload and the lines, in the form that loads them: `store://3-k4qd, lines 120-161`; a part that begins inside a
/// long line is `lines 7+4096-7`, after 4,096 bytes of line 7.
impl fmt::Display for PassageHit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { payload, first_line, last_line, skip, .. } = self;
        match skip {
            0 if first_line == last_line => write!(f, "{payload}, line {first_line}"),
            0 => write!(f, "{payload}, lines {first_line}-{last_line}"),
            skip => write!(f, "{payload}, lines {first_line}+{skip}-{last_line}"),
        }
    }
}

/// The least that a term which all texts hold still counts.
const LEAST: f32 = 0.01;

impl Hit {
    /// Finds the terms by which the block's own words were found.
    #[must_use]
    pub fn finder(&self) -> Finder {
        let terms = self.explanation.terms.iter();
        Finder::new(terms.map(|share| (share.term.as_str(), share.idf.max(LEAST))))
    }

    /// Finds the terms by which its passages were found.
    #[must_use]
    pub fn passage_finder(&self) -> Finder {
        let terms = self.explanation.passage_terms.iter();
        Finder::new(terms.map(|(term, idf)| (term.as_str(), idf.max(LEAST))))
    }
}

/// How a score was computed. Displayed, it is one line.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The question's terms that the block's own words hold, in the question's order.
    pub terms: Vec<TermShare>,
    /// What the best passage of the block's payloads adds to the BM25 of its own words.
    pub passage: f32,
    /// The question's terms that the passages reported with the hit hold, in the question's order, and the rarity of
    /// each among the todo's passages.
    pub passage_terms: Vec<(String, f32)>,
    /// What the better of the adjacent blocks added to the score.
    pub neighbours: f32,
    /// What was added because work with tools has just seen the block.
    pub recent: f32,
    /// What was added because the block's time is on days that the question names, or near them.
    pub dated: f32,
    /// The best BM25 of all blocks that could be answered.
    pub best_bm25: f32,
    /// The weight of words relative to meaning.
    pub lexical_weight: f32,
    /// What exact hits added to the score.
    pub bonus: f32,
    /// Whether the block is in another script than the question, so that its place may be one reserved for such blocks
    /// rather than that of its score.
    pub another_script: bool,
    /// The role that vectors played.
    pub vectors: VectorSide,
}

/// What one term adds to a block's BM25.
#[derive(Clone, Debug, PartialEq)]
pub struct TermShare {
    /// The term as it is indexed: a stem, a whole token, a pair of characters.
    pub term: String,
    /// The rarity of the term in the todo.
    pub idf: f32,
    /// How often the block holds it.
    pub tf: u32,
    /// What it adds.
    pub bm25: f32,
    /// Whether it counts as an exact hit.
    pub exact: bool,
}

/// The role of vectors in a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VectorSide {
    /// They took part.
    Used,
    /// The question came without a vector.
    NotAsked,
    /// The question's vector is all zeros or not a unit vector: its model knows nothing of it.
    Blank,
    /// The todo holds no vectors.
    NoneStored,
    /// The todo's vectors are of another model, so they were not compared.
    OtherModel {
        /// The model of the question's vector.
        asked: String,
        /// A model whose vectors the todo holds.
        stored: String,
    },
}

impl fmt::Display for Hit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = &self.explanation;
        let Explanation { terms, best_bm25, lexical_weight: w, vectors, .. } = told;
        write!(f, "score {:.3} = {w:.2} x bm25 {:.2}/{best_bm25:.2}", self.score, self.bm25)?;
        match vectors {
            VectorSide::Used => write!(f, " + {:.2} x cosine {:.3}", 1.0 - w, self.cosine)?,
            VectorSide::NotAsked => f.write_str(" (the question has no vector)")?,
            VectorSide::Blank => f.write_str(" (the question's vector is blank)")?,
            VectorSide::NoneStored => f.write_str(" (no vectors are stored)")?,
            VectorSide::OtherModel { asked, stored } => {
                write!(f, " (vectors are of {stored}, not of {asked})")?;
            }
        }
        let more = [
            ("neighbours", told.neighbours),
            ("recent", told.recent),
            ("dated", told.dated),
            ("exact", told.bonus),
        ];
        for (name, added) in more.into_iter().filter(|(_, added)| *added > 0.0) {
            write!(f, " + {name} {added:.2}")?;
        }
        write!(f, "; relevance {:.2}", self.relevance)?;
        if told.another_script {
            f.write_str("; in another script")?;
        }
        for (i, term) in terms.iter().enumerate() {
            let before = if i == 0 { "; " } else { ", " };
            let mark = if term.exact { "!" } else { "" };
            write!(f, "{before}{}{mark} {}x{:.2}={:.2}", term.term, term.tf, term.idf, term.bm25)?;
        }
        if told.passage > 0.0 {
            write!(f, "; payload {:.2}", told.passage)?;
        }
        for (i, (term, idf)) in told.passage_terms.iter().enumerate() {
            write!(f, "{}{term} {idf:.2}", if i == 0 { "; in payloads " } else { ", " })?;
        }
        for passage in &self.passages {
            write!(f, "; {passage} {:.2}", passage.score)?;
        }
        Ok(())
    }
}
