//! Why a model cannot be used.

use foldback_core::EmbedError;
use std::path::PathBuf;

/// Why an embedding model cannot be used. Each says what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The program was built without what the model needs.
    #[error(
        "this build has no part that runs {model}; in a checkout of the project, `cargo install \
         --path crates/cli --features {feature}` makes one that has"
    )]
    NotBuilt {
        /// The model.
        model: String,
        /// The feature that was left out.
        feature: &'static str,
    },
    /// ONNX Runtime is nowhere to be found.
    #[error(
        "ONNX Runtime 1.{needed} or newer is needed to run a model, and was not found in {}; get it \
         with `pip install onnxruntime` or from the system's packages, and name the library file \
         (libonnxruntime.so, .dylib or onnxruntime.dll) in ORT_DYLIB_PATH where it is found nowhere \
         else", list(.looked)
    )]
    NoRuntime {
        /// The minor version that is needed.
        needed: u32,
        /// Where it was looked for.
        looked: Vec<PathBuf>,
    },
    /// ONNX Runtime is too old.
    #[error(
        "ONNX Runtime 1.{needed} or newer is needed to run a model, and {path} is 1.{found}; get a \
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
        "there is no folder {model:?}, and no model of that name is known; expected was one of \
         builtin, none, a folder with model.onnx and tokenizer.json{}", names(.known)
    )]
    NoModel {
        /// What was asked for.
        model: String,
        /// The names that are known.
        known: Vec<String>,
    },
    /// A file of the model's is missing or makes no sense.
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
    /// An embedder is a program's own.
    #[error(
        "the embedder {model} is a program's own, and only that program can load it; `foldback \
         embedder use` takes another, and --embedder none searches by words"
    )]
    Custom {
        /// Its model id.
        model: String,
    },
    /// What says which embedder is meant cannot be read.
    #[error(
        "which embedder is the store's own cannot be read: {what}; `foldback embedder use` says it \
         anew"
    )]
    Unknown {
        /// What is wrong.
        what: String,
    },
    /// A model is another one than it was.
    #[error(
        "{model} is now {found}, and was {expected}; `foldback embedder use` takes the new one"
    )]
    Changed {
        /// The model.
        model: String,
        /// The id that it had.
        expected: String,
        /// The id that it has.
        found: String,
    },
    /// The model was loaded and does not run.
    #[error(transparent)]
    Run(#[from] EmbedError),
}

fn names(known: &[String]) -> String {
    match known {
        [] => ", or with a build that runs models by name (feature fastembed-download) such a name"
            .to_owned(),
        known => format!(", or one of these names: {}", known.join(", ")),
    }
}

fn list(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    paths.join(", ")
}
