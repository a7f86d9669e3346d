//! The built-in embedder.

use foldback_core::{EmbedError, Embedder, Vectors};
use rayon::prelude::*;

use crate::cjk::{self, Part};
use crate::table::{DIM, Sum, cjk_row, row};
use crate::window;
use crate::wordpiece::WordPiece;

/// This many texts are embedded in parallel; fewer are not worth a second thread.
const BESIDE: usize = 32;

/// Embeds texts with the table that is part of the program.
///
/// It is one pointer, free to copy.
#[derive(Clone, Copy, Debug, Default)]
pub struct StaticEmbedder {
    pieces: WordPiece,
}

impl StaticEmbedder {
    /// The id of the table: its width, and the first digits of the BLAKE3 of the files of its rows.
    pub const MODEL_ID: &str = "static-minilm-256-bf79f261-bf4b114f";

    /// The cosine that best separates neighbouring rough blocks of one topic from neighbours across a change of topic.
    ///
    /// Measured as [`calibrate`](crate::calibrate) does, on pairs of runs of 2, 3 and 4 messages of one conversation of
    /// TIAGE, DialSeg711 and composed agent sessions (38,500 pairs; the sets and lengths count alike): the balanced
    /// accuracy is .742 here, the maximum. The median within a topic is .54, across a change .17. It belongs to texts
    /// of that length: longer ones are more alike.
    pub const SAME_TOPIC: f32 = 0.31;

    /// The cosine of a question and a text that answers it: 94 of 100 answers reach it, by their best message, on
    /// LoCoMo (851 questions, units of five messages). The median of answers is .45, of other texts .28. With it, among
    /// the best three blocks, a cut-off at 0.675 on the common scale keeps 99 % of the answers and drops 23 % of what
    /// is found when the question is put to another conversation; one at 0.775 keeps 91 % and drops 75 %.
    pub const ANSWERING: f32 = 0.24;

    /// The same for a question in Chinese, Japanese or Korean, whose rows were trained to tell texts apart: their cosines
    /// are lower. On the talks of `tests/sets/cjk` the median of answers is four fifths of what it was before, when 0.24
    /// belonged to them, too, and so is that of other texts.
    pub const ANSWERING_CJK: f32 = 0.19;

    /// Returns the embedder. The first call in a process takes about a millisecond.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends the vector of `text`, which has length 1 or is all zeros, to `values`.
    pub fn embed_into(&self, text: &str, values: &mut Vec<f32>) {
        if !cjk::is_in(text) {
            return self.add_pieces(text, values);
        }
        let mut sum = Sum::new();
        let text = cjk::normal(text);
        cjk::for_each_part(&text, |part| match part {
            Part::Unit(unit) => sum.add(cjk_row(unit)),
            Part::Other(words) => self.pieces.for_each(words, |id| sum.add(row(id))),
        });
        sum.write_unit(values);
    }

    /// Does the same by word pieces alone, whatever script the text is in.
    fn add_pieces(&self, text: &str, values: &mut Vec<f32>) {
        let mut sum = Sum::new();
        self.pieces.for_each(text, |id| sum.add(row(id)));
        sum.write_unit(values);
    }

    /// Returns whether a word of Latin letters and digits is split into three or more pieces of less than two
    /// characters on average, as "zzzqqq" and "7f3a9c" are: these say nothing of its meaning. In other scripts, pieces
    /// are letters by nature.
    fn is_noise(&self, word: &str) -> bool {
        if !word.chars().all(is_latin) {
            return false;
        }
        let mut pieces = 0;
        self.pieces.for_each(word, |_| pieces += 1);
        pieces > 2 && word.chars().count() < 2 * pieces
    }
}

impl Embedder for StaticEmbedder {
    fn model_id(&self) -> &str {
        Self::MODEL_ID
    }

    fn dim(&self) -> usize {
        DIM
    }

    fn same_topic(&self) -> f32 {
        Self::SAME_TOPIC
    }

    fn answering(&self) -> f32 {
        Self::ANSWERING
    }

    fn answering_to(&self, question: &str) -> f32 {
        if cjk::is_in(question) { Self::ANSWERING_CJK } else { Self::ANSWERING }
    }

    fn embed(&self, texts: &[&str]) -> Result<Vectors, EmbedError> {
        let rows = |texts: &[&str]| {
            let mut values = Vec::with_capacity(texts.len() * DIM);
            texts.iter().for_each(|text| self.embed_into(text, &mut values));
            values
        };
        let values = match texts.len() {
            0..BESIDE => rows(texts),
            _ => texts.par_chunks(BESIDE / 2).flat_map_iter(rows).collect(),
        };
        vectors(texts.len(), values)
    }

    /// Words of a question that the table does not know are left out: their noise would find anything with some of the
    /// same pieces. Matching words are found all the same, as words.
    fn embed_question(&self, question: &str) -> Result<Vectors, EmbedError> {
        let is_in_word = |c: char| c.is_alphanumeric();
        let words = question.split_inclusive(|c| !is_in_word(c));
        let known: String = words
            .filter(|word| !self.is_noise(word.trim_end_matches(|c| !is_in_word(c))))
            .collect();
        self.embed(&[&known])
    }

    /// By word pieces alone: [`SAME_TOPIC`](Self::SAME_TOPIC) belongs to these, and texts in Chinese, Japanese or
    /// Korean are cut best where only the letters that they share make them alike. With the vectors of
    /// [`embed`](Embedder::embed), blocks of up to eight messages have a Pk of .135 in place of .119 on the held-out
    /// talks of `tests/sets/cjk`.
    fn embed_for_topics(&self, texts: &[&str]) -> Option<Vectors> {
        if !texts.iter().any(|text| cjk::is_in(text)) {
            return None;
        }
        let mut values = Vec::with_capacity(texts.len() * DIM);
        texts.iter().for_each(|text| self.add_pieces(text, &mut values));
        vectors(texts.len(), values).ok()
    }

    /// Returns the share of the letters that are Latin, Chinese, Japanese or Korean.
    fn knows(&self, text: &str) -> f32 {
        let (mut letters, mut known) = (0_u32, 0_u32);
        for letter in text.chars().filter(|c| c.is_alphabetic()) {
            letters += 1;
            known += u32::from(is_latin(letter) || cjk::is_letter_in_some_form(letter));
        }
        if letters == 0 { 1.0 } else { known as f32 / letters as f32 }
    }

    fn windows<'t>(&self, text: &'t str, limit: usize) -> Vec<&'t str> {
        window::windows_within(text, limit, window::bytes_that_fit)
    }
}

fn vectors(texts: usize, values: Vec<f32>) -> Result<Vectors, EmbedError> {
    Vectors::new(DIM, values).ok_or_else(|| EmbedError {
        model: StaticEmbedder::MODEL_ID.to_owned(),
        message: format!("expected rows of {DIM} values for {texts} texts"),
    })
}

/// Returns whether a letter is of the Latin script: the blocks of Unicode up to Latin Extended-B, Latin Extended
/// Additional and the full-width forms.
fn is_latin(letter: char) -> bool {
    matches!(letter, '\0'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' | '\u{ff21}'..='\u{ff5a}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TL7: words that would be noise are left out of a question.
    #[test]
    fn tl7_a_question_is_embedded_without_words_of_letters() {
        let embedder = StaticEmbedder::new();
        let of = |question: &str| embedder.embed_question(question).unwrap();
        let text = |text: &str| embedder.embed(&[text]).unwrap();
        let nothing = Vectors::new(DIM, vec![0.0; DIM]).unwrap();
        for question in ["zzzqqq", "xqzvkj wqjx!", "7f3a9c2d", ""] {
            assert_eq!(of(question), nothing, "{question}");
        }
        assert_eq!(of("the port of zzzqqq"), text("the port of "));
        for known in [
            "Why does the scheduler retry?",
            "I recieve no confirmatoin of lease_seconds in src/net.rs",
            "café Ørsted naïve",
            "订单什么时候送达？",
            "포트는 몇 번입니까",
            "Где порт?",
        ] {
            assert_eq!(of(known), text(known), "{known}");
        }
    }

    #[test]
    fn it_knows_latin_letters_and_those_of_east_asia() {
        let knows = |text| StaticEmbedder::new().knows(text);
        for text in ["", "8443?", "Which port does it use?", "Où est le café d'Ørsted?"] {
            assert_eq!(knows(text), 1.0, "{text}");
        }
        for text in ["订单什么时候送达？", "ポートは何番ですか", "포트는 몇 번입니까", "ﾎﾟｰﾄ"]
        {
            assert_eq!(knows(text), 1.0, "{text}");
        }
        assert_eq!(knows("Где порт?"), 0.0);
        assert_eq!(knows("port порт"), 0.5);
    }
}
