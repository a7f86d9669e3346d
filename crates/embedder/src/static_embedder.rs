//! The built-in embedder.

use foldback_core::{EmbedError, Embedder, Vectors};

use crate::table::{DIM, Sum};
use crate::window;
use crate::wordpiece::WordPiece;

/// Embeds texts with the table that is part of the program.
///
/// It is one pointer, free to copy.
#[derive(Clone, Copy, Debug, Default)]
pub struct StaticEmbedder {
    pieces: WordPiece,
}

impl StaticEmbedder {
    /// Names the table: its width and the first digits of its file's BLAKE3.
    pub const MODEL_ID: &str = "static-minilm-256-bf79f261";

    /// The cosine that best parts neighbouring rough blocks of one topic from neighbours across a
    /// change of topic.
    ///
    /// Measured as [`calibrate`](crate::calibrate) does, on pairs of runs of 2, 3 and 4 messages of
    /// one conversation of TIAGE, DialSeg711 and composed agent
    /// sessions (38,500 pairs; the sets and lengths count alike): the balanced accuracy is .742
    /// here, the best there is. The median within a topic is .54, across a change .17. It belongs
    /// to texts of that length: longer ones are more alike.
    pub const SAME_TOPIC: f32 = 0.31;

    /// The cosine of a question and a text that answers it: 94 of 100 answers reach it, by their
    /// best message, on LoCoMo (851 questions, units of five messages). The median of answers is
    /// .45, of other texts .28. With it, a cut-off at 0.675 on the common scale keeps 99 % of the
    /// answers that stand among the best three.
    pub const ANSWERING: f32 = 0.24;

    /// The embedder. The first call in a process takes about a millisecond.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends the vector of `text`, which has length 1 or is all zeros, to `values`.
    pub fn embed_into(&self, text: &str, values: &mut Vec<f32>) {
        let mut sum = Sum::new();
        self.pieces.for_each(text, |id| sum.add(id));
        sum.write_unit(values);
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

    fn embed(&self, texts: &[&str]) -> Result<Vectors, EmbedError> {
        let mut values = Vec::with_capacity(texts.len() * DIM);
        for text in texts {
            self.embed_into(text, &mut values);
        }
        Vectors::new(DIM, values).ok_or_else(|| EmbedError {
            model: Self::MODEL_ID.to_owned(),
            message: format!("rows of {DIM} values were expected for {} texts", texts.len()),
        })
    }

    /// The share of the letters that are Latin: the table was made from English.
    fn knows(&self, text: &str) -> f32 {
        let (mut letters, mut known) = (0_u32, 0_u32);
        for letter in text.chars().filter(|c| c.is_alphabetic()) {
            letters += 1;
            known += u32::from(is_latin(letter));
        }
        if letters == 0 { 1.0 } else { known as f32 / letters as f32 }
    }

    fn windows<'t>(&self, text: &'t str, limit: usize) -> Vec<&'t str> {
        window::windows_within(text, limit, window::bytes_that_fit)
    }
}

/// Whether a letter is of the Latin script: the blocks of Unicode up to Latin Extended-B, Latin
/// Extended Additional and the full-width forms.
fn is_latin(letter: char) -> bool {
    matches!(letter, '\0'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' | '\u{ff21}'..='\u{ff5a}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_knows_latin_letters() {
        let knows = |text| StaticEmbedder::new().knows(text);
        for text in ["", "8443?", "Which port does it use?", "Où est le café d'Ørsted?"] {
            assert_eq!(knows(text), 1.0, "{text}");
        }
        for text in ["订单什么时候送达？", "ポートは何番ですか", "포트는 몇 번입니까", "Где порт?"]
        {
            assert_eq!(knows(text), 0.0, "{text}");
        }
        assert_eq!(knows("port端口"), 4.0 / 6.0);
    }
}
