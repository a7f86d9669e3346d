//! Why a model cannot be used.

use foldback_core::EmbedError;
use std::path::PathBuf;

/// Why an embedding model cannot be used. Each error says what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The program was built without what the model needs.
    #[error(
        "this build cannot run {model}; in a checkout of the project, `cargo install \
         --path crates/cli --features {feature}` builds one that can"
    )]
    NotBuilt {
        /// The model.
        model: String,
        /// The feature that was left out.
        feature: &'static str,
    },
    /// ONNX Runtime is nowhere to be found.
    #[error(
        "ONNX Runtime 1.{needed} or newer is needed to run a model, but was not found in {}; get it \
         with `pip install onnxruntime` or from the system's packages, and name the library file \
         (libonnxruntime.so, .dylib or onnxruntime.dll) in ORT_DYLIB_PATH if it is installed \
         elsewhere", list(.looked)
    )]
    NoRuntime {
        /// The minor version that is needed.
        needed: u32,
        /// The folders that were searched.
        looked: Vec<PathBuf>,
    },
    /// ONNX Runtime is too old.
    #[error(
        "ONNX Runtime 1.{needed} or newer is needed to run a model, but {path} is 1.{found}; get a \
         newer one with `pip install -U onnxruntime`, and name its library file in ORT_DYLIB_PATH"
    )]
    RuntimeTooOld {
        /// The library.
        path: PathBuf,
        /// Its minor version.
        found: u32,
        /// The minor version that is needed.
        needed: u32,
    },
    /// A file that should be ONNX Runtime is something else.
    #[error("{path} cannot be used as ONNX Runtime: {what}")]
    Runtime {
        /// The library.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A model is neither a folder nor known by name.
    #[error(
        "there is no folder {model:?}, and no model of that name is known; expected \
         builtin, none, or a folder with model.onnx and tokenizer.json{}", names(.known)
    )]
    NoModel {
        /// The requested model.
        model: String,
        /// The known names.
        known: Vec<String>,
    },
    /// A file of the model is missing or invalid.
    #[error("the model in {folder} cannot be used: {what}")]
    Folder {
        /// The model's folder.
        folder: PathBuf,
        /// What is wrong, with the file's name.
        what: String,
    },
    /// The files of a model could not be fetched.
    #[error("{url} could not be fetched: {what}")]
    Fetch {
        /// The file's address.
        url: String,
        /// What went wrong.
        what: String,
    },
    /// The embedder belongs to a program.
    #[error(
        "the embedder {model} is a program's own, so only that program can load it; `foldback \
         embedder use` chooses another, and --embedder none searches by words alone"
    )]
    Custom {
        /// Its model id.
        model: String,
    },
    /// The record of the store's embedder cannot be read.
    #[error(
        "the record of the store's embedder cannot be read: {what}; `foldback embedder use` \
         rewrites it"
    )]
    Unknown {
        /// What is wrong.
        what: String,
    },
    /// A model differs from the one that the store used.
    #[error(
        "{model} is now {found}, but was {expected}; `foldback embedder use` accepts the new one"
    )]
    Changed {
        /// The model.
        model: String,
        /// The id that it had.
        expected: String,
        /// The id that it has.
        found: String,
    },
    /// The model was loaded but does not run.
    #[error(transparent)]
    Run(#[from] EmbedError),
}

fn names(known: &[String]) -> String {
    match known {
        [] => {
            "; a build with the feature fastembed-download also accepts models by name".to_owned()
        }
        known => format!(", or one of these names: {}", known.join(", ")),
    }
}

fn list(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    paths.join(", ")
}
