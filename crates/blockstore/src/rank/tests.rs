//! Tests of the order of blocks.

use super::question::MAX_TERMS;
use super::*;
use crate::Ranking;
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
    Question::new(asked.collect(), CORPUS, NO_PASSAGES, LEXICAL_WEIGHT, Ranking::Fused)
}

fn candidate(n: u32, bm25: f64, held: u64, cosine: f32) -> Candidate {
    let held = Held { own: held, told: 0 };
    Candidate { n, bm25, passage: 0.0, held, cosine: Some(cosine), another_script: false }
}

fn order(question: &Question, candidates: &[Candidate]) -> Vec<u32> {
    let best = candidates.iter().map(|c| c.bm25).fold(0.0, f64::max);
    let beside = Beside::default();
    let mut ranked: Vec<Ranked> = candidates
        .iter()
        .map(|candidate| {
            let base = base(candidate.bm25, candidate.cosine, question, best);
            let score = score(base, beside, 0.0, candidate.held, question);
            Ranked { candidate: *candidate, score }
        })
        .collect();
    super::order(&mut ranked);
    ranked.iter().map(|ranked| ranked.candidate.n).collect()
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
fn tl7_neither_neighbours_nor_dates_nor_age_come_above_an_exact_hit() {
    let question = question(&[("e0502", true, 1), ("error", false, 400)]);
    let all = Beside { neighbour: 1.0, dated: 1.0, recent: 1.0 };
    let (leader, none) = (1.0 + NEIGHBOUR, Beside::default());
    let other = score(1.0, all, leader, Held { own: 0b10, told: 0 }, &question);
    let exact = score(0.0, none, leader, Held { own: 0b01, told: 0 }, &question);
    assert!(exact.sum() > other.sum(), "{exact:?} {other:?}");
}

#[test]
fn a_page_full_of_names_asks_for_none_of_them_above_all() {
    let names: Vec<String> = (0..16).map(|i| format!("e05{i:02}")).collect();
    let bonus = |count: usize| {
        let terms: Vec<(&str, bool, u64)> =
            names.iter().take(count).map(|name| (name.as_str(), true, 1)).collect();
        question(&terms).bonus(Held { own: (1 << count) - 1, told: 0 })
    };
    assert_eq!((bonus(1), bonus(4)), (EXACT, EXACT));
    assert_eq!((bonus(8), bonus(16)), (EXACT / 2.0, EXACT / 4.0));
}

#[test]
fn age_brings_a_block_nearer_to_the_best_and_never_before_it() {
    let question = question(&[("error", false, 400)]);
    let of = |base: f64, recent: f64| {
        let beside = Beside { recent, ..Beside::default() };
        score(base, beside, 0.9, Held::default(), &question).sum()
    };
    assert!(of(0.5, 0.7) > of(0.6, 0.0) && of(0.5, 0.7) < of(0.9, 0.0));
    assert_eq!(of(0.9, 0.7), of(0.9, 0.0));
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
    let asked = [("deploy", 3, 200), ("e-4417", 0, 1)].map(|(text, df, passage_df)| AskedTerm {
        text: text.to_owned(),
        name: text.contains('-'),
        df,
        passage_df,
    });
    let question = Question::new(asked.into(), CORPUS, passages, LEXICAL_WEIGHT, Ranking::Fused);
    let coverage = |own, told| question.coverage(Held { own, told });
    let (own, told) = (coverage(0b01, 0), coverage(0, 0b10));
    assert!(own > 0.0 && told > 0.5 && coverage(0b01, 0b10) > own.max(told));
    assert_eq!(coverage(0b11, 0b11), 1.0);
    // What only a payload names is an exact hit, and its rarity counts among passages.
    assert!(question.exact(Held { own: 0, told: 0b10 }) > 0.0);
    let score = |place, bm25, held| PassageScore { place, payload: 1, bm25, held };
    assert!(question.passage_order(&score(9, 1.0, 0b10), &score(1, 5.0, 0b01)).is_lt());
    assert!(question.passage_order(&score(1, 5.0, 0b01), &score(2, 5.0, 0b01)).is_lt());
    assert!(question.is_told(&score(1, 2.0, 0b01), 3.0, 4.0));
    assert!(!question.is_told(&score(1, 2.0, 0b01), 5.0, 2.0));
    assert!(question.passage_scale() > 1.0);
}

/// BS7: a term of which logs are full is still exact in the words of a block, and the other way
/// round.
#[test]
fn bs7_a_name_is_exact_among_blocks_and_among_passages_apart() {
    let passages = Corpus { texts: 400, terms: 80_000 };
    let question = |df, passage_df| {
        let (text, name) = ("order-8812".to_owned(), true);
        let asked = vec![AskedTerm { text, name, df, passage_df }];
        Question::new(asked, CORPUS, passages, LEXICAL_WEIGHT, Ranking::Fused)
    };
    let exact = |df, passage_df| {
        let of = |own, told| question(df, passage_df).exact(Held { own, told });
        (of(1, 0), of(0, 1))
    };
    assert_eq!(exact(1, 300), (1.0, 0.0));
    assert_eq!(exact(900, 1), (0.0, 1.0));
    assert_eq!(exact(1, 2), (1.0, 1.0));
    assert_eq!(exact(0, 2).1, 1.0);
    // A repetition in a log counts once.
    let term = &question(1, 2).terms[0];
    assert_eq!(term.passage_weight(passages, 40, 200), term.passage_weight(passages, 1, 200));
}

proptest! {
    #[test]
    fn law8_the_order_does_not_depend_on_who_proposed_what_first(
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
        // A term that no block holds still counts as part of the question.
        prop_assert!(coverage < 1.0);
    }
}
