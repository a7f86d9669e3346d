//! Errors as Python sees them, and work outside the interpreter's lock.

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

create_exception!(
    foldback,
    FoldbackError,
    PyException,
    "What went wrong, as a sentence.

Its ``kind`` says of which kind it is, by what a caller can do about it:

- ``not_found``: there is no such store, conversation, message, block or stored part.
- ``already_exists``: the conversation or folder holds something else already.
- ``conflict``: another writer came first, and nothing was written.
- ``locked``: another process holds the store; nothing was changed.
- ``read_only``: the store is open read-only, or cannot be written.
- ``full``: the disk is full; nothing was changed.
- ``corrupt``: stored data are damaged; everything else stays readable.
- ``lost``: writes that were acknowledged are gone; the store takes no more until that is accepted.
- ``unknown``: a server went away during a write, and it is unknown whether the write is stored.
- ``source_changed``: the source of an import has changed since.
- ``unsupported``: another engine or format made the store, or this build cannot do what was asked.
- ``key``: the key is missing, is another one, or was given for a store that is not encrypted.
- ``invalid_input``: an argument, a setting or a text makes no sense.
- ``not_permitted``: what was asked for belongs to another conversation.
- ``quota``: a conversation or the store has reached its limit.
- ``embedder``: the embedder failed.
- ``io``: the file system refused.
- ``internal``: something that should be impossible, or an error that the program made itself."
);

/// What went wrong, and of which kind it is.
pub(crate) struct Failure {
    kind: String,
    message: String,
}

impl Failure {
    /// An argument that makes no sense.
    pub(crate) fn invalid(message: impl Display) -> Self {
        Self { kind: "invalid_input".to_owned(), message: message.to_string() }
    }

    /// Something that should be impossible.
    pub(crate) fn internal(message: impl Display) -> Self {
        Self { kind: "internal".to_owned(), message: message.to_string() }
    }
}

impl From<foldback::Error> for Failure {
    fn from(error: foldback::Error) -> Self {
        Self { kind: snake_case(&format!("{:?}", error.kind())), message: error.sentence() }
    }
}

/// Runs `work` without the interpreter's lock.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Failure> + Send,
) -> PyResult<T> {
    let done = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
    let done = done.unwrap_or_else(|panic| Err(Failure::internal(panic_text(panic.as_ref()))));
    done.map_err(|failure| raise(py, &failure))
}

/// Drops a value without the interpreter's lock: the end of a store waits for its threads.
pub(crate) fn drop_detached<T: Send>(value: T) {
    // Where the interpreter is gone, the value is dropped all the same.
    Python::try_attach(|py| py.detach(move || drop(value)));
}

/// The exception for a failure.
pub(crate) fn raise(py: Python<'_>, failure: &Failure) -> PyErr {
    let error = FoldbackError::new_err(failure.message.clone());
    match error.value(py).setattr("kind", &failure.kind) {
        Ok(()) => error,
        Err(error) => error,
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("foldback has a bug: {}", text.unwrap_or("it panicked"))
}

/// `NotFound` as `not_found`.
fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}
