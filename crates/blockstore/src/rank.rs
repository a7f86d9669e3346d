//! The one function that orders blocks, for whatever proposed them.
//!
//! Words count by BM25 with the todo's own statistics (Robertson and Zaragoza, "The Probabilistic
//! Relevance Framework", 2009; `k1` 1.2, `b` 0.75). Meaning counts by the cosine of the
//! question and the best vector of a block. The two are joined by score:
//!
//! ```text
//! score = 0.3 * bm25 / best bm25 + 0.7 * cosine + exact
//! ```
//!
//! where `exact` is 0, or 1 for a block that holds a name of the question whole (less when it
//! holds one of several): no sum of the other parts comes above that. Equal scores go to the newer
//! block.
//!
//! What is said in a block often answers what is asked in the one before it, so a fifth of the
//! better neighbour's BM25 is added to a block's own. Recall at 1, 5 and 10 on LoCoMo (851
//! questions of categories 1-4, blocks of five messages, the built-in embedder), and on BFCL memory
//! (105 questions, blocks of one message):
//!
//! ```text
//!                                         LoCoMo           BFCL
//! words alone                             .523 .749 .810   .743 .938 .981
//! meaning alone                           .341 .555 .658   .481 .729 .790
//! 0.2 words + 0.8 meaning                 .528 .758 .828   .752 .938 .971
//! 0.3 words + 0.7 meaning                 .539 .759 .827   .771 .948 .971
//! 0.5 words + 0.5 meaning                 .532 .761 .821   .762 .948 .981
//! 0.3, and a fifth of the neighbour       .539 .772 .846   .752 .948 .990
//! 0.3, and two fifths of the neighbour    .538 .785 .846   .733 .957 .981
//! ```

//!
//! What a block's payloads say is cut into passages, which have statistics of their own: a log of a
//! thousand lines is no longer text of its block. The best passage speaks for all of them, and the
//! better of it and the block's own words counts, so that a preview, which stands in both, counts
//! once. The two are made comparable by what the whole question weighs in each:
//!
//! ```text
//! bm25 = max(own, passage * (question's weight in blocks) / (question's weight in passages))
//! ```
//!
//! A name counts once in a passage, however often a log repeats it. Whether it is exact is asked of
//! blocks and of passages apart: what logs are full of may still stand in the words of one block
//! alone. Of two that hold the same names, the one whose own words do goes first when the other's
//! passage holds no more of the question. Payloads that several blocks carry count for one of them.

use std::cmp::Ordering;

/// BM25's saturation of repeated terms.
const K1: f64 = 1.2;
/// BM25's correction for the length of a block.
const B: f64 = 0.75;

/// How much words weigh beside meaning.
pub(crate) const LEXICAL_WEIGHT: f64 = 0.3;

/// How much words weigh beside meaning where the model knows nothing of the question's kind of text.
/// Recall at 1, 5 and 10 on the questions in Chinese, Japanese and Korean of `tests/sets/cjk`, for
/// which the built-in embedder was not made (dev, and dev where one todo holds every talk):
///
/// ```text
/// 0.5  .847 .993 1.000   .820 .953 .993
/// 0.7  .860 .993 1.000   .833 .940 .980
/// 1.0  .847 .980 1.000   .807 .940 .967
/// ```
pub(crate) const UNKNOWN_WEIGHT: f64 = 0.7;

/// How much of the better neighbour's BM25 is added to a block's.
pub(crate) const NEIGHBOUR: f64 = 0.2;

/// Next to a block whose own words hold as much of the question, a passage weighs at most this much of
/// it: with what a neighbour lends ([`NEIGHBOUR`]) that is still less.
pub(crate) const BESIDE_OWN: f64 = 0.8;

/// How much less than the best a passage may be to be told with its block.
const TOLD: f64 = 0.5;

/// What a question's terms are compared with: the blocks of the whole todo, or the passages of
/// their payloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Corpus {
    /// How many texts.
    pub(crate) texts: u64,
    /// How many terms they hold, repeated ones counted.
    pub(crate) terms: u64,
}

impl Corpus {
    /// How much it says that a text holds a term that `df` texts hold.
    pub(crate) fn idf(self, df: u64) -> f64 {
        let (n, df) = (self.texts as f64, df as f64);
        (1.0 + (n - df + 0.5) / (df + 0.5)).max(1.0).ln()
    }

    /// What `tf` occurrences of a term add to a text of `len` terms.
    pub(crate) fn weight(self, idf: f64, tf: u32, len: u32) -> f64 {
        let mean = self.terms as f64 / self.texts.max(1) as f64;
        let (tf, len) = (f64::from(tf), f64::from(len));
        idf * tf * (K1 + 1.0) / (tf + K1 * (1.0 - B + B * len / mean.max(1.0)))
    }
}

/// A term of the question, weighed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct QueryTerm {
    pub(crate) text: String,
    pub(crate) idf: f64,
    /// Its rarity among the passages of payloads.
    pub(crate) passage_idf: f64,
    /// Whether it names one thing.
    pub(crate) name: bool,
    /// Whether a block whose own words hold it is what was asked for.
    pub(crate) exact: bool,
    /// Whether a block with a passage that holds it is what was asked for.
    pub(crate) passage_exact: bool,
}

impl QueryTerm {
    /// How much it adds to a passage of `len` terms that holds it `tf` times.
    pub(crate) fn passage_weight(&self, passages: Corpus, tf: u32, len: u32) -> f64 {
        passages.weight(self.passage_idf, if self.name { tf.min(1) } else { tf }, len)
    }
}

/// Which of a question's terms a block holds, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// In its own words.
    pub(crate) own: u64,
    /// In its best passage.
    pub(crate) told: u64,
}

impl Held {
    pub(crate) fn is_nothing(self) -> bool {
        self.own | self.told == 0
    }
}

/// The question, as ranking sees it. At most 64 terms: which of them a block holds is a set of
/// bits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Question {
    pub(crate) terms: Vec<QueryTerm>,
    /// The weight of all terms of the question, also of those that no block holds.
    pub(crate) idf_sum: f64,
    passage_idf_sum: f64,
    /// How much words weigh beside meaning: 1 when no vectors take part.
    pub(crate) lexical: f64,
    exact_terms: u64,
    passage_exact_terms: u64,
    exact_sum: f64,
}

/// The share of a question's words, by their weight, that stands for "this answers it".
const ANSWERING_SHARE: f32 = 0.35;

/// Where "this answers it" lies on the common scale, on which 0 is unrelated and 1 the same.
const ANSWERING: f32 = 0.72;

/// A share of a question's words on the common scale: linear on each side of
/// [`ANSWERING_SHARE`].
pub(crate) fn relevance_of_words(share: f32) -> f32 {
    let share = share.clamp(0.0, 1.0);
    if share <= ANSWERING_SHARE {
        share / ANSWERING_SHARE * ANSWERING
    } else {
        ANSWERING + (share - ANSWERING_SHARE) / (1.0 - ANSWERING_SHARE) * (1.0 - ANSWERING)
    }
}

/// The greatest number of terms that are searched for.
pub(crate) const MAX_TERMS: usize = 64;

/// A term as it was asked for, before it is weighed.
pub(crate) struct AskedTerm {
    pub(crate) text: String,
    pub(crate) name: bool,
    /// How many blocks hold it in their own words.
    pub(crate) df: u64,
    /// How many passages of payloads hold it.
    pub(crate) passage_df: u64,
}

impl Question {
    /// Weighs the terms, and keeps the rarest of those that some block or passage holds.
    ///
    /// A term is exact in the words of blocks when it is a name that at most a tenth of them (or
    /// three) hold, or a rare word (at most a hundredth, or two) that alone makes up half of what the
    /// question says; and in the passages of payloads when that is so among them.
    pub(crate) fn new(
        asked: Vec<AskedTerm>,
        blocks: Corpus,
        passages: Corpus,
        lexical: f64,
    ) -> Self {
        // A word that no text holds tells no text from another; it counts as the rarest that does.
        let sum = |corpus: Corpus, df: fn(&AskedTerm) -> u64| {
            asked.iter().map(|term| corpus.idf(df(term).max(1))).sum::<f64>()
        };
        let idf_sum = sum(blocks, |term| term.df);
        let passage_idf_sum = sum(passages, |term| term.passage_df);
        let mut terms: Vec<(usize, QueryTerm)> = asked
            .into_iter()
            .enumerate()
            .filter(|(_, term)| term.df > 0 || term.passage_df > 0)
            .map(|(place, AskedTerm { text, name, df, passage_df })| {
                let idf = blocks.idf(df.max(1));
                let passage_idf = passages.idf(passage_df.max(1));
                let is_exact = |corpus: Corpus, df: u64, most_of_all: bool| {
                    let at_most = |share: u64, least: u64| df <= (corpus.texts / share).max(least);
                    df > 0 && ((name && at_most(10, 3)) || (most_of_all && at_most(100, 2)))
                };
                let exact = is_exact(blocks, df, idf * 2.0 >= idf_sum);
                let most = passage_idf * 2.0 >= passage_idf_sum;
                let passage_exact = is_exact(passages, passage_df, most);
                (place, QueryTerm { text, idf, passage_idf, name, exact, passage_exact })
            })
            .collect();
        if terms.len() > MAX_TERMS {
            let is_exact = |term: &QueryTerm| term.exact || term.passage_exact;
            let key = |(place, term): &(usize, QueryTerm)| (!is_exact(term), *place);
            terms.sort_by(|a, b| b.1.idf.total_cmp(&a.1.idf).then_with(|| key(a).cmp(&key(b))));
            terms.sort_by_key(|(_, term)| !is_exact(term));
            terms.truncate(MAX_TERMS);
            terms.sort_by_key(|(place, _)| *place);
        }
        let terms: Vec<QueryTerm> = terms.into_iter().map(|(_, term)| term).collect();
        let bits = |is_in: fn(&QueryTerm) -> bool| {
            let held = terms.iter().enumerate().filter(|(_, term)| is_in(term));
            held.fold(0, |bits, (place, _)| bits | 1 << place)
        };
        let exact_terms = bits(|term| term.exact);
        let passage_exact_terms = bits(|term| term.passage_exact);
        let mut question = Self {
            terms,
            idf_sum,
            passage_idf_sum,
            lexical,
            exact_terms,
            passage_exact_terms,
            exact_sum: 0.0,
        };
        question.exact_sum = question.idf_of(exact_terms | passage_exact_terms);
        question
    }

    /// The share of the question's terms, by their weight, that a block holds: those of its own
    /// words, and those of its best passage.
    pub(crate) fn coverage(&self, held: Held) -> f64 {
        let Held { own, told: passage } = held;
        if self.idf_sum <= 0.0 {
            return 0.0;
        }
        if passage == 0 {
            return (self.idf_of(own) / self.idf_sum).min(1.0);
        }
        let shares = self.terms.iter().enumerate().map(|(place, term)| {
            let own = if own >> place & 1 == 1 { term.idf / self.idf_sum } else { 0.0 };
            let is_told = passage >> place & 1 == 1;
            let told = if is_told { term.passage_idf / self.passage_idf_sum } else { 0.0 };
            f64::max(own, told)
        });
        shares.sum::<f64>().min(1.0)
    }

    /// What a passage's BM25 is on the scale of the blocks'.
    pub(crate) fn passage_scale(&self) -> f64 {
        if self.passage_idf_sum <= 0.0 { 0.0 } else { self.idf_sum / self.passage_idf_sum }
    }

    /// Whether a passage is told with its block, whose own BM25 is `own` and whose best passage's is
    /// `best`, both on the scale of blocks.
    pub(crate) fn is_told(&self, passage: &PassageScore, own: f64, best: f64) -> bool {
        self.exact_told(passage) > 0.0 || passage.bm25 >= TOLD * f64::max(own, best)
    }

    /// The order of a block's passages, the best first: what holds an exact term goes before
    /// everything else, as it does among blocks, and of equals that of the newest payload.
    pub(crate) fn passage_order(&self, a: &PassageScore, b: &PassageScore) -> Ordering {
        let exact = self.exact_told(b).total_cmp(&self.exact_told(a));
        let by_words = exact.then_with(|| b.bm25.total_cmp(&a.bm25));
        by_words.then_with(|| b.payload.cmp(&a.payload)).then_with(|| a.place.cmp(&b.place))
    }

    /// How much a block's words weigh beside its meaning.
    pub(crate) fn lexical_weight(&self, candidate: &Candidate) -> f64 {
        if candidate.cosine.is_some() { self.lexical } else { 1.0 }
    }

    /// The share of the question's exact terms that a block with these terms holds.
    pub(crate) fn exact(&self, held: Held) -> f64 {
        let held = held.own & self.exact_terms | held.told & self.passage_exact_terms;
        if held == 0 { 0.0 } else { self.idf_of(held) / self.exact_sum }
    }

    /// The same of a passage.
    fn exact_told(&self, passage: &PassageScore) -> f64 {
        self.exact(Held { own: 0, told: passage.held })
    }

    fn idf_of(&self, mut held: u64) -> f64 {
        let mut sum = 0.0;
        while held != 0 {
            let place = held.trailing_zeros();
            sum += self.terms.get(place as usize).map_or(0.0, |term| term.idf);
            held &= held - 1;
        }
        sum
    }
}

/// What is known of a block before it is ranked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Candidate {
    /// The block's number.
    pub(crate) n: u32,
    pub(crate) bm25: f64,
    /// What its best passage adds to that of its own words.
    pub(crate) passage: f64,
    /// Which of the question's terms it holds.
    pub(crate) held: Held,
    /// The cosine of its best vector, where it has one of the question's model.
    pub(crate) cosine: Option<f32>,
}

/// What a passage of a payload has of the question.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PassageScore {
    /// The passage's place among all of the todo.
    pub(crate) place: u32,
    /// Its payload's number.
    pub(crate) payload: u64,
    /// On the scale of blocks.
    pub(crate) bm25: f64,
    /// Which of the question's terms it holds, as bits.
    pub(crate) held: u64,
}

/// A block and its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ranked {
    pub(crate) candidate: Candidate,
    pub(crate) score: f64,
}

/// The score of a block. `best` is the best BM25 of all blocks that may be answered. A block without
/// a vector to compare stands by its words alone, not as one that means something else.
pub(crate) fn score(candidate: &Candidate, question: &Question, best: f64) -> f64 {
    let words = if best > 0.0 { candidate.bm25 / best } else { 0.0 };
    let lexical = question.lexical_weight(candidate);
    let meaning = f64::from(candidate.cosine.unwrap_or(0.0).clamp(0.0, 1.0));
    lexical * words + (1.0 - lexical) * meaning + question.exact(candidate.held)
}

/// Orders blocks, the best first.
pub(crate) fn rank(candidates: &[Candidate], question: &Question, best: f64) -> Vec<Ranked> {
    let mut ranked: Vec<_> = candidates
        .iter()
        .map(|candidate| Ranked { candidate: *candidate, score: score(candidate, question, best) })
        .collect();
    ranked.sort_by(|a, b| {
        b.score.total_cmp(&a.score).then_with(|| b.candidate.n.cmp(&a.candidate.n))
    });
    ranked
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CORPUS: Corpus = Corpus { texts: 1_000, terms: 100_000 };
    const NO_PASSAGES: Corpus = Corpus { texts: 0, terms: 0 };

    fn question(terms: &[(&str, bool, u64)]) -> Question {
        let asked = terms.iter().map(|(text, name, df)| AskedTerm {
            text: (*text).to_owned(),
            name: *name,
            df: *df,
            passage_df: 0,
        });
        Question::new(asked.collect(), CORPUS, NO_PASSAGES, LEXICAL_WEIGHT)
    }

    fn candidate(n: u32, bm25: f64, held: u64, cosine: f32) -> Candidate {
        let held = Held { own: held, told: 0 };
        Candidate { n, bm25, passage: 0.0, held, cosine: Some(cosine) }
    }

    fn order(question: &Question, candidates: &[Candidate]) -> Vec<u32> {
        let best = candidates.iter().map(|c| c.bm25).fold(0.0, f64::max);
        rank(candidates, question, best).iter().map(|ranked| ranked.candidate.n).collect()
    }

    /// The worked example of the formula: N 1,000, mean length 100, df 10, tf 2, length 50.
    #[test]
    fn bm25_is_the_formula_of_the_book() {
        let idf = CORPUS.idf(10);
        assert!((idf - (1.0f64 + 990.5 / 10.5).ln()).abs() < 1e-12);
        let expected = idf * 2.0 * 2.2 / (2.0 + 1.2 * (0.25 + 0.75 * 0.5));
        assert!((CORPUS.weight(idf, 2, 50) - expected).abs() < 1e-12);
        assert!(CORPUS.idf(1_000) > 0.0 && CORPUS.idf(0) > CORPUS.idf(1));
    }

    #[test]
    fn tl7_no_sum_of_other_parts_comes_above_an_exact_hit() {
        let question = question(&[("e0502", true, 1), ("error", false, 400)]);
        let exact = candidate(1, 0.1, 0b01, 0.0);
        let other = candidate(2, 9.0, 0b10, 1.0);
        assert_eq!(order(&question, &[other, exact]), [1, 2]);
        // A name that is everywhere distinguishes nothing.
        let question = self::question(&[("main.rs", true, 900), ("error", false, 400)]);
        assert_eq!(order(&question, &[other, exact]), [2, 1]);
    }

    #[test]
    fn a_rare_word_is_exact_only_when_it_is_most_of_the_question() {
        let rare = question(&[("zebrafish", false, 1)]);
        assert_eq!(rare.exact(Held { own: 1, told: 0 }), 1.0);
        let among = question(&[("zebrafish", false, 2), ("tank", false, 9), ("four", false, 30)]);
        assert_eq!(among.exact(Held { own: 0b111, told: 0b111 }), 0.0);
    }

    #[test]
    fn s12_the_rarest_terms_of_a_long_question_are_kept_in_its_order() {
        let names: Vec<String> = (0..200).map(|i| format!("t{i}")).collect();
        let terms: Vec<(&str, bool, u64)> =
            names.iter().zip(0..).map(|(t, i)| (t.as_str(), i == 199, 1 + i)).collect();
        let kept = question(&terms).terms;
        let kept: Vec<&str> = kept.iter().map(|term| term.text.as_str()).collect();
        let expected: Vec<&str> = names.iter().take(MAX_TERMS).map(String::as_str).collect();
        assert_eq!(kept, expected);
    }

    /// BS7: a question of two words, one in a block's own words and one in its payload.
    #[test]
    fn bs7_own_words_and_the_best_passage_cover_a_question_together() {
        let passages = Corpus { texts: 400, terms: 80_000 };
        let asked = [("deploy", 3, 200), ("e-4417", 0, 1)].map(|(text, df, passage_df)| {
            AskedTerm { text: text.to_owned(), name: text.contains('-'), df, passage_df }
        });
        let question = Question::new(asked.into(), CORPUS, passages, LEXICAL_WEIGHT);
        let coverage = |own, told| question.coverage(Held { own, told });
        let (own, told) = (coverage(0b01, 0), coverage(0, 0b10));
        assert!(own > 0.0 && told > 0.5 && coverage(0b01, 0b10) > own.max(told));
        assert_eq!(coverage(0b11, 0b11), 1.0);
        // What a payload alone names is an exact hit, and its rarity counts among passages.
        assert!(question.exact(Held { own: 0, told: 0b10 }) > 0.0);
        let score = |place, bm25, held| PassageScore { place, payload: 1, bm25, held };
        assert!(question.passage_order(&score(9, 1.0, 0b10), &score(1, 5.0, 0b01)).is_lt());
        assert!(question.passage_order(&score(1, 5.0, 0b01), &score(2, 5.0, 0b01)).is_lt());
        assert!(question.is_told(&score(1, 2.0, 0b01), 3.0, 4.0));
        assert!(!question.is_told(&score(1, 2.0, 0b01), 5.0, 2.0));
        assert!(question.passage_scale() > 1.0);
    }

    /// BS7: what logs are full of is still exact in the words of a block, and the other way round.
    #[test]
    fn bs7_a_name_is_exact_among_blocks_and_among_passages_apart() {
        let passages = Corpus { texts: 400, terms: 80_000 };
        let question = |df, passage_df| {
            let (text, name) = ("order-8812".to_owned(), true);
            let asked = vec![AskedTerm { text, name, df, passage_df }];
            Question::new(asked, CORPUS, passages, LEXICAL_WEIGHT)
        };
        let exact = |df, passage_df| {
            let of = |own, told| question(df, passage_df).exact(Held { own, told });
            (of(1, 0), of(0, 1))
        };
        assert_eq!(exact(1, 300), (1.0, 0.0));
        assert_eq!(exact(900, 1), (0.0, 1.0));
        assert_eq!(exact(1, 2), (1.0, 1.0));
        assert_eq!(exact(0, 2).1, 1.0);
        // A log says it once, however often it repeats it.
        let term = &question(1, 2).terms[0];
        assert_eq!(term.passage_weight(passages, 40, 200), term.passage_weight(passages, 1, 200));
    }

    proptest! {
        #[test]
        fn c8_the_order_does_not_depend_on_who_proposed_what_first(
            parts in prop::collection::vec((0.0f64..20.0, 0u64..8, -1.0f32..1.0), 1..20),
            turn in 0usize..20,
        ) {
            let question = question(&[("a_b", true, 3), ("b", false, 20), ("c", false, 300)]);
            let candidates: Vec<Candidate> = (1..)
                .zip(parts)
                .map(|(n, (bm25, held, cosine))| candidate(n, bm25, held, cosine))
                .collect();
            let mut turned = candidates.clone();
            turned.rotate_left(turn % candidates.len());
            turned.reverse();
            prop_assert_eq!(order(&question, &candidates), order(&question, &turned));
        }

        #[test]
        fn coverage_is_a_share(held in any::<u64>()) {
            let question = question(&[("a", false, 3), ("b", false, 20), ("gone", false, 0)]);
            let coverage = question.coverage(Held { own: held, told: 0 });
            prop_assert!((0.0..=1.0).contains(&coverage));
            // A term that no block holds still counts as asked for.
            prop_assert!(coverage < 1.0);
        }
    }
}
