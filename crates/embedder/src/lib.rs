//! Unit vectors for texts: from a table that is part of the program, or from a larger model.
//!
//! A [`StaticEmbedder`] cuts a text into word pieces with [`WordPiece`], and runs of Chinese, Japanese and Korean into
//! the longest units that it knows; it adds up one row of the table for each, and scales the sum to length 1. It needs
//! no download, no file, no native library and no thread, and takes about two microseconds for a short message. The
//! rows were distilled from all-MiniLM-L6-v2 and multilingual-e5-small, into one space, so that a question in Chinese
//! finds what was said in English; `assets/RECIPE.md` here and `assets/RECIPE-CJK.md` in `foldback-cjk-table`
//! describe how, and under which licences.
//!
//! It is *not* a transformer: it ignores the order of words and their context. It knows English, Chinese, Japanese and
//! Korean; of other languages it knows the letters and some common words, so that there the lexical side of a search
//! carries the weight.
//!
//! The crate stores no vectors and searches none; what a text is for is its caller's business.
//!
//! ```
//! use foldback_core::Embedder;
//! use foldback_embedder::StaticEmbedder;
//!
//! let embedder = StaticEmbedder::new();
//! let vectors = embedder.embed(&[
//!     "My flight to Boston leaves at nine.",
//!     "When does the plane to Boston depart?",
//!     "The unit tests of the parser fail.",
//! ])?;
//! let rows: Vec<&[f32]> = vectors.rows().collect();
//! let cosine = |a: usize, b: usize| -> f32 { rows[a].iter().zip(rows[b]).map(|(x, y)| x * y).sum() };
//! assert!(cosine(0, 1) > cosine(0, 2) + 0.2);
//! # Ok::<(), foldback_core::EmbedError>(())
//! ```
//!
//! With the feature `fastembed`, a `ModelEmbedder` runs a sentence-embedding model of the user's
//! own. A [`Choice`] names one or the other, and [`calibrate`] measures what a model's cosines mean.

mod choice;

#[cfg(feature = "fastembed")]
mod model;
mod static_embedder;
mod words_only;

mod calibrated;
mod calibration;
mod cjk;
mod error;
mod own_texts;
mod table;
mod vocabulary;
mod window;
mod word;
mod wordpiece;

pub use calibrated::Calibrated;
pub use calibration::{
    ANSWERS_KEPT, CalibrateError, Calibration, Conversation, Distribution, Question, calibrate,
};
pub use choice::Choice;
pub use error::LoadError;
#[cfg(feature = "fastembed")]
pub use model::{ModelEmbedder, ModelOptions, Pooling};
pub use own_texts::{OwnCalibration, OwnTexts, SCALES_DIFFER, calibrate_on_own_texts, own_texts};
pub use static_embedder::StaticEmbedder;
pub use window::{WINDOW_BYTES, windows};
pub use wordpiece::WordPiece;
pub use words_only::WordsOnly;
