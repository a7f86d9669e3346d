//! The choice of an embedder, in words that a person or a store can keep.

use crate::{LoadError, StaticEmbedder, WordsOnly};
use foldback_core::Embedder;
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The choice of an embedder: `builtin`, `none`, the folder or name of a model, or `custom:` and
/// the model id of an embedder that only the program that made the store has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The table that is part of the program.
    #[default]
    BuiltIn,
    /// None: words alone.
    WordsOnly,
    /// A model: the folder that holds its files, or its name.
    Model(String),
    /// A program's own, which it passes whenever it opens the store; this is its model id.
    Custom(String),
}

const BUILT_IN: &str = "builtin";
const CUSTOM: &str = "custom:";

impl Choice {
    /// Loads the chosen embedder.
    ///
    /// # Errors
    /// When it is a model that cannot be loaded; the error says what is missing and where it was
    /// searched for.
    pub fn load(&self) -> Result<Arc<dyn Embedder>, LoadError> {
        match self {
            Self::BuiltIn => Ok(Arc::new(StaticEmbedder::new())),
            Self::WordsOnly => Ok(Arc::new(WordsOnly)),
            Self::Model(model) => load_model(model),
            Self::Custom(model) => Err(LoadError::Custom { model: model.clone() }),
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
    let model = model.to_owned();
    Err(match std::path::Path::new(&model).is_dir() {
        true => LoadError::NotBuilt { model, feature: "fastembed" },
        false => LoadError::NoModel { model, known: Vec::new() },
    })
}

impl FromStr for Choice {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            BUILT_IN => Self::BuiltIn,
            WordsOnly::MODEL_ID => Self::WordsOnly,
            text => match text.strip_prefix(CUSTOM) {
                Some(model) => Self::Custom(model.to_owned()),
                None => Self::Model(text.to_owned()),
            },
        })
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str(BUILT_IN),
            Self::WordsOnly => f.write_str(WordsOnly::MODEL_ID),
            Self::Model(model) => f.write_str(model),
            Self::Custom(model) => write!(f, "{CUSTOM}{model}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_comes_back_from_its_words() {
        for text in ["builtin", "none", "/models/模型", "BGESmallZHV15", "custom:own-3"] {
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
        let text = error.to_string();
        for part in ["no/such/folder", "builtin, none", "model.onnx"] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[cfg(not(feature = "fastembed"))]
    #[test]
    fn a_folder_that_this_build_cannot_run_tells_which_build_can() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().display().to_string();
        let text = Choice::Model(folder.clone()).load().err().unwrap().to_string();
        let command = "cargo install --path crates/cli --features fastembed";
        assert!(text.contains(&folder) && text.contains(command), "{text}");
    }

    #[test]
    fn a_programs_own_embedder_is_that_programs_to_bring() {
        let text = Choice::Custom("own-3".to_owned()).load().err().unwrap().to_string();
        assert!(text.contains("own-3") && text.contains("program"), "{text}");
    }
}
