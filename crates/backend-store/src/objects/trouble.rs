//! What an object store answered instead of what was asked.

use object_store::Error as StoreError;
use object_store::client::{HttpError, HttpErrorKind};
use std::error::Error as _;
use std::io::{Error, ErrorKind};

/// Turns the error of an object store into one of the system, whose kind says what the caller can do about it.
pub(super) fn trouble(error: &StoreError) -> Error {
    let (kind, what) = match error {
        StoreError::NotFound { .. } => (ErrorKind::NotFound, "there is no such object or bucket"),
        StoreError::AlreadyExists { .. } | StoreError::Precondition { .. } => {
            (ErrorKind::AlreadyExists, "there is another object")
        }
        StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. } => (
            ErrorKind::PermissionDenied,
            "the object store does not permit it with the credentials from the environment",
        ),
        StoreError::NotSupported { .. } | StoreError::NotImplemented { .. } => {
            (ErrorKind::Unsupported, "the object store cannot do that")
        }
        _ if is_unreached(error) => (ErrorKind::NotConnected, "the object store is out of reach"),
        _ => (ErrorKind::Other, "the object store did not do it"),
    };
    Error::new(kind, format!("{what} ({})", without_queries(&error.to_string())))
}

/// Whether no connection could be made.
fn is_unreached(error: &StoreError) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<HttpError>() {
            return error.kind() == HttpErrorKind::Connect;
        }
        cause = error.source();
    }
    false
}

/// Leaves the queries of addresses out, which may be signed, and joins lines.
fn without_queries(text: &str) -> String {
    let words = text.split_whitespace().map(|word| match word.split_once('?') {
        Some((address, _)) if address.contains("://") => address,
        _ => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bs9_no_signature_is_printed() {
        let text = "Error performing PUT https://account.blob.core.windows.net/c/x?sig=SECRET&sv=1\n in 3s";
        assert_eq!(
            without_queries(text),
            "Error performing PUT https://account.blob.core.windows.net/c/x in 3s"
        );
        assert_eq!(without_queries("why? because"), "why? because");
    }
}
