//! Questions made up from passages: words of the passage behind the opening of a question.

use foldback_embedder::WordPiece;

use crate::random::Random;

/// How questions about a conversation begin.
const OPENERS: [&str; 25] = [
    "what did",
    "what does",
    "what is",
    "what was",
    "what are",
    "what kind of",
    "when did",
    "when is",
    "when was",
    "where did",
    "where is",
    "where has",
    "who did",
    "who is",
    "who was",
    "why did",
    "why does",
    "how did",
    "how does",
    "how many",
    "how long",
    "how much",
    "which",
    "did",
    "has",
];

/// Words that a question does not ask about.
const STOP_WORDS: &str = "the a an and or but if then so as of at by for with about into to from in \
    on off up down out over under again here there all any both each few more most other some such \
    no nor not only own same than too very can will just don should now i me my we our you your he \
    him his she her it its they them their what which who whom this that these those am is are was \
    were be been being have has had do does did would could may might must shall ll ve re s t d m \
    oh um uh yeah yes okay ok well like really know think get got going go thing things one also";

/// From this id on a piece is more than one character.
pub(crate) const FIRST_WORD: u16 = 1996;

/// The share of the questions that have "the" behind the opening.
const WITH_ARTICLE: f64 = 0.3;

/// Makes questions.
pub(crate) struct Questions {
    openers: Vec<Vec<u16>>,
    stop_words: Vec<u16>,
    article: Vec<u16>,
    mark: Vec<u16>,
}

impl Questions {
    pub(crate) fn new() -> Self {
        let pieces = WordPiece::new();
        let mut stop_words = pieces.ids(STOP_WORDS);
        stop_words.sort_unstable();
        Self {
            openers: OPENERS.iter().map(|opener| pieces.ids(opener)).collect(),
            stop_words,
            article: pieces.ids("the"),
            mark: pieces.ids("?"),
        }
    }

    /// The pieces of a question about the passage `ids`, in no order; `None` when it has fewer than
    /// three words to ask about.
    pub(crate) fn about(&self, ids: &[u16], random: &mut Random) -> Option<Vec<u16>> {
        let telling = |id: &u16| *id >= FIRST_WORD && self.stop_words.binary_search(id).is_err();
        let words: Vec<u16> = ids.iter().copied().filter(telling).collect();
        let wanted = asked_words(words.len(), random)?;
        let mut question = self.openers[random.below(self.openers.len())].clone();
        if random.share() < WITH_ARTICLE {
            question.extend(&self.article);
        }
        question.extend(random.sample(words, wanted));
        question.extend(&self.mark);
        Some(question)
    }
}

/// How many of `words` telling words of a passage a question has; `None` when there are fewer than
/// three.
pub(crate) fn asked_words(words: usize, random: &mut Random) -> Option<usize> {
    if words < 3 {
        return None;
    }
    let wanted = (0.2 + 0.4 * random.share()) * words as f64;
    Some((wanted.round() as usize).clamp(2, 7))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_has_words_of_its_passage() {
        let pieces = WordPiece::new();
        let passage = pieces.ids("The nightly export stopped because the disk is full.");
        let (questions, mut random) = (Questions::new(), Random::new(5));
        for _ in 0..50 {
            let question = questions.about(&passage, &mut random).unwrap();
            let telling = pieces.ids("nightly export stopped because disk full");
            let told = question.iter().filter(|id| telling.contains(id)).count();
            assert!((2..=7).contains(&told), "{question:?}");
            assert_eq!(question.last(), pieces.ids("?").last());
        }
        assert_eq!(questions.about(&pieces.ids("Yes, it is."), &mut random), None);
    }
}
