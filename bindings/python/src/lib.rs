//! The extension module behind the Python package `foldback`.
//!
//! It speaks JSON texts and numbers; the package's Python code gives it its public face. Every call that works
//! on a store releases the interpreter's lock, and a panic becomes a `FoldbackError` of the kind `internal`.

mod argument;
mod conversation_tree;
mod error;
mod memory;
mod message_format;
mod opener;
mod prompt;
mod session;

use pyo3::prelude::*;

#[pymodule]
fn _foldback(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let error = module.py().get_type::<error::FoldbackError>();
    // Of an error that a program makes itself.
    error.setattr("kind", "internal")?;
    module.add("FoldbackError", error)?;
    module.add_class::<memory::Memory>()?;
    module.add_class::<session::Session>()?;
    module.add_class::<prompt::Prompt>()?;
    module.add_class::<prompt::Answer>()
}
