//! Arguments whose mistakes are named by a `FoldbackError`, and not by an exception of the binding's.

use crate::error::{Failure, raise};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes};

/// A whole number that is not negative.
pub(crate) struct Whole<T>(pub(crate) T);

/// The bytes of a key.
pub(crate) struct KeyBytes(pub(crate) [u8; 32]);

impl<'a, 'py, T: FromPyObject<'a, 'py>> FromPyObject<'a, 'py> for Whole<T> {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        given.extract().map(Self).map_err(|_| {
            let most = u64::MAX;
            let what = format!("expected a whole number from 0 to {most}, and not {:?}", &*given);
            raise(given.py(), &Failure::invalid(what))
        })
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for KeyBytes {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        // Nothing of a key is repeated.
        let got = match given.cast::<PyBytes>() {
            Ok(bytes) => match bytes.as_bytes().try_into() {
                Ok(key) => return Ok(Self(key)),
                Err(_) => format!("{} bytes", bytes.as_bytes().len()),
            },
            Err(_) => match given.cast::<PyByteArray>() {
                Ok(bytes) => match bytes.to_vec().try_into() {
                    Ok(key) => return Ok(Self(key)),
                    Err(bytes) => format!("{} bytes", bytes.len()),
                },
                Err(_) => given.get_type().name()?.to_string(),
            },
        };
        let what = format!("the key is 32 bytes, and not {got}");
        Err(raise(given.py(), &Failure::invalid(what)))
    }
}
