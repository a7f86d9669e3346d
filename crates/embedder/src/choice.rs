//! Which embedder is meant, in words that a person or a store can keep.

use crate::{LoadError, StaticEmbedder, WordsOnly};
use foldback_core::Embedder;
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Which embedder is meant: `builtin`, `none`, or the folder or name of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The table that is part of the program.
    #[default]
    BuiltIn,
    /// None: words alone.
    WordsOnly,
    /// A model: the folder that its files are in, or its name.
    Model(String),
}

const BUILT_IN: &str = "builtin";

impl Choice {
    /// Makes the embedder that is meant.
    ///
    /// # Errors
    /// When it is a model that cannot be loaded; the error says what is missing and where it was
    /// looked for.
    pub fn load(&self) -> Result<Arc<dyn Embedder>, LoadError> {
        match self {
            Self::BuiltIn => Ok(Arc::new(StaticEmbedder::new())),
            Self::WordsOnly => Ok(Arc::new(WordsOnly)),
            Self::Model(model) => load_model(model),
        }
    }
}

#[cfg(feature = "fastembed")]
fn load_model(model: &str) -> Result<Arc<dyn Embedder>, LoadError> {
    let folder = std::path::Path::new(model);
    let (folder, options) = if folder.is_dir() {
        (folder.to_owned(), crate::ModelOptions::default())
    } else {
        crate::model::named(model)?
    };
    Ok(Arc::new(crate::ModelEmbedder::open(&folder, options)?))
}

#[cfg(not(feature = "fastembed"))]
fn load_model(model: &str) -> Result<Arc<dyn Embedder>, LoadError> {
    Err(LoadError::NotBuilt { model: model.to_owned(), feature: "fastembed" })
}

impl FromStr for Choice {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            BUILT_IN => Self::BuiltIn,
            WordsOnly::MODEL_ID => Self::WordsOnly,
            model => Self::Model(model.to_owned()),
        })
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BuiltIn => BUILT_IN,
            Self::WordsOnly => WordsOnly::MODEL_ID,
            Self::Model(model) => model,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_comes_back_from_its_words() {
        for text in ["builtin", "none", "/models/模型", "BGESmallZHV15"] {
            assert_eq!(text.parse::<Choice>().unwrap().to_string(), text);
        }
        assert_eq!("builtin".parse(), Ok(Choice::BuiltIn));
        assert_eq!("none".parse(), Ok(Choice::WordsOnly));
    }

    #[test]
    fn no_model_gives_no_vectors() {
        let none = Choice::WordsOnly.load().unwrap();
        assert!(none.embed(&["words", "文字"]).unwrap().is_empty());
        assert_eq!(none.embed_question("words?").unwrap().row(0), None);
        assert!(none.windows("words", 8).is_empty());
    }

    #[test]
    fn a_model_that_is_not_there_is_named() {
        let error = Choice::Model("no/such/folder".to_owned()).load().err().unwrap();
        assert!(error.to_string().contains("no/such/folder"), "{error}");
    }
}
