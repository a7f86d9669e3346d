//! Sentence-embedding models, run by ONNX Runtime.

#[cfg(feature = "fastembed-download")]
mod download;
mod names;
mod runtime;
mod settings;

pub(crate) use names::named;
pub use settings::{ModelOptions, Pooling};

use crate::{LoadError, StaticEmbedder, window};
use fastembed::{
    InitOptionsUserDefined, QuantizationMode, TextEmbedding, TokenizerFiles,
    UserDefinedEmbeddingModel,
};
use foldback_core::{EmbedError, Embedder, Vectors};
use settings::{Files, Settings};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tokenizers::Tokenizer;

/// A sentence-embedding model in ONNX form, from a folder as it is published: `model.onnx` (or
/// `onnx/model.onnx`), `tokenizer.json`, and beside them `config.json`, `tokenizer_config.json`,
/// `special_tokens_map.json`, `1_Pooling/config.json`, `sentence_bert_config.json` and
/// `config_sentence_transformers.json` if they exist.
///
/// ONNX Runtime 1.24 or newer is searched for when the first model is opened: in `ORT_DYLIB_PATH`,
/// the library folders, and the Python on the path. Texts are embedded one by one on one thread, so
/// that the vector of a text does not depend on the texts beside it.
pub struct ModelEmbedder {
    model: Mutex<TextEmbedding>,
    /// Cuts texts into tokens, all of them and with nothing added.
    tokens: Tokenizer,
    id: String,
    dim: usize,
    question_prefix: String,
    passage_prefix: String,
    /// How many tokens of a text a window holds.
    window_tokens: usize,
}

/// A window holds at most this many tokens, about as much as one of the built-in embedder, whose
/// length was measured: a longer one hides what only a part of it says.
const WINDOW_TOKENS: usize = 128;

/// No token of a usual text is longer than this many bytes on average, so the beginning of a text
/// of this many bytes for each token fills a window.
const BYTES_PER_TOKEN: usize = 12;

/// A model's id contains this many digits of the files' hash.
const HASH_DIGITS: usize = 8;

impl ModelEmbedder {
    /// Opens the model in `folder`.
    ///
    /// # Errors
    /// When ONNX Runtime is missing or too old, or a file of the model is missing or invalid; the
    /// error names it and says what was expected.
    pub fn open(folder: &Path, options: ModelOptions) -> Result<Self, LoadError> {
        let settings = Settings::read(folder, options)?;
        runtime::load()?;
        let wrong = |what: String| LoadError::Folder { folder: folder.to_owned(), what };
        let id = format!("{}-{}", settings.name, settings.hash(HASH_DIGITS));
        let Files { weights, external, tokenizer } = settings.files;
        let mut model = UserDefinedEmbeddingModel::new(
            weights,
            TokenizerFiles {
                tokenizer_file: tokenizer,
                config_file: settings.config.to_string().into_bytes(),
                special_tokens_map_file: settings.special_tokens.to_string().into_bytes(),
                tokenizer_config_file: settings.tokenizer_config.to_string().into_bytes(),
            },
        )
        .with_pooling(match settings.pooling {
            Pooling::Mean => fastembed::Pooling::Mean,
            Pooling::Cls => fastembed::Pooling::Cls,
        })
        .with_quantization(QuantizationMode::None);
        for (name, bytes) in external {
            model = model.with_external_initializer(name, bytes);
        }
        let session = InitOptionsUserDefined::new()
            .with_max_length(settings.max_tokens)
            .with_intra_threads(1);
        let model = TextEmbedding::try_new_from_user_defined(model, session)
            .map_err(|error| wrong(error.to_string()))?;
        let mut tokens = model.tokenizer.clone();
        tokens.with_padding(None);
        tokens.with_truncation(None).map_err(|error| wrong(error.to_string()))?;
        let count = |text: &str, special: bool| {
            let encoding = tokens.encode_fast(text, special);
            encoding.map(|encoding| encoding.len()).map_err(|error| wrong(error.to_string()))
        };
        let taken = count("", true)? + count(&settings.passage_prefix, false)?;
        let window_tokens = settings.max_tokens.saturating_sub(taken).min(WINDOW_TOKENS);
        if window_tokens == 0 {
            let most = settings.max_tokens;
            return Err(wrong(format!("a text of at most {most} tokens leaves no room for words")));
        }
        let mut embedder = Self {
            model: Mutex::new(model),
            tokens,
            id,
            dim: 0,
            question_prefix: settings.question_prefix,
            passage_prefix: settings.passage_prefix,
            window_tokens,
        };
        embedder.dim = embedder.run("dimension")?.len();
        Ok(embedder)
    }

    /// Returns where ONNX Runtime is found on this machine.
    ///
    /// # Errors
    /// When it is not found, or is too old.
    pub fn find_runtime() -> Result<PathBuf, LoadError> {
        runtime::find()
    }

    /// Returns the vector of a text that is already in the model's form.
    fn run(&self, text: &str) -> Result<Vec<f32>, EmbedError> {
        let failed = |message: String| EmbedError { model: self.id.clone(), message };
        let mut model = self.model.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = model.embed([text], Some(1)).map_err(|error| failed(error.to_string()))?;
        let row = rows.into_iter().next().unwrap_or_default();
        if row.is_empty() || row.iter().any(|value| !value.is_finite()) {
            let values = row.len();
            return Err(failed(format!(
                "it returned {values} values, but finite ones were expected"
            )));
        }
        Ok(row)
    }

    fn embed_after(&self, prefix: &str, texts: &[&str]) -> Result<Vectors, EmbedError> {
        let mut values = Vec::with_capacity(texts.len() * self.dim);
        for text in texts {
            if text.trim().is_empty() {
                values.resize(values.len() + self.dim, 0.0);
            } else {
                values.extend(self.run(&format!("{prefix}{text}"))?);
            }
        }
        Vectors::new(self.dim, values).ok_or_else(|| EmbedError {
            model: self.id.clone(),
            message: format!("it returned rows that are not {} values long", self.dim),
        })
    }

    /// Returns how many of the first bytes of a text fit into a window.
    fn bytes_that_fit(&self, text: &str) -> usize {
        let begin = text.floor_char_boundary(self.window_tokens * BYTES_PER_TOKEN);
        let begin = text.get(..begin).unwrap_or(text);
        let Ok(encoding) = self.tokens.encode(begin, false) else {
            return window::bytes_that_fit(text);
        };
        match encoding.get_offsets().get(self.window_tokens.saturating_sub(1)) {
            // A token may be a part of a character.
            Some((_, end)) if *end > 0 => begin.ceil_char_boundary(*end),
            _ => begin.len(),
        }
    }
}

impl Embedder for ModelEmbedder {
    fn model_id(&self) -> &str {
        &self.id
    }

    fn dim(&self) -> usize {
        self.dim
    }

    /// Returns the built-in embedder's scale, until the model's own is measured (see
    /// [`calibrate`](crate::calibrate)).
    fn same_topic(&self) -> f32 {
        StaticEmbedder::SAME_TOPIC
    }

    fn embed(&self, texts: &[&str]) -> Result<Vectors, EmbedError> {
        self.embed_after(&self.passage_prefix, texts)
    }

    fn embed_question(&self, question: &str) -> Result<Vectors, EmbedError> {
        self.embed_after(&self.question_prefix, &[question])
    }

    fn windows<'t>(&self, text: &'t str, limit: usize) -> Vec<&'t str> {
        window::windows_within(text, limit, |rest| self.bytes_that_fit(rest))
    }
}
