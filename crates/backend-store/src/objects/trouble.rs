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
        _ => match http_error(error) {
            Some(HttpErrorKind::Connect) => {
                (ErrorKind::NotConnected, "the object store is out of reach")
            }
            Some(HttpErrorKind::Timeout) => {
                (ErrorKind::NotConnected, "the object store did not answer in time")
            }
            _ => (ErrorKind::Other, "the object store failed"),
        },
    };
    Error::new(kind, format!("{what} ({})", printable(&error.to_string())))
}

/// Whether the connection failed so late that the object store may have done what it was asked.
pub(super) fn is_uncertain(error: &StoreError) -> bool {
    http_error(error)
        .is_some_and(|kind| !matches!(kind, HttpErrorKind::Connect | HttpErrorKind::Request))
}

/// Whether the object store knows no condition for a put.
pub(super) fn knows_no_condition(error: &StoreError) -> bool {
    match error {
        // What the settings in the environment say.
        StoreError::NotImplemented { .. } | StoreError::NotSupported { .. } => true,
        // What a server answers to a header that it does not know; its status is in the text alone.
        StoreError::Generic { .. } => error.to_string().contains("status code: 501 "),
        _ => false,
    }
}

/// Returns how the connection failed, if it did.
fn http_error(error: &StoreError) -> Option<HttpErrorKind> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<HttpError>() {
            return Some(error.kind());
        }
        cause = error.source();
    }
    None
}

/// What may be shown of an error: not the queries of addresses, which may be signed, nor the body of an answer, which may
/// repeat a token or a key. Of the body the service's code is kept. Lines are joined.
fn printable(text: &str) -> String {
    let (before, body) = text.split_at(text.find(['<', '{']).unwrap_or(text.len()));
    let words = before.split_whitespace().map(|word| match word.split_once('?') {
        Some((address, _)) if address.contains("://") => address,
        _ => word,
    });
    let mut shown = words.collect::<Vec<_>>().join(" ").trim_end_matches(':').to_owned();
    let code = body.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>"));
    if let Some((code, _)) = code.filter(|(code, _)| code.bytes().all(|b| b.is_ascii_alphabetic()))
    {
        shown.push_str(": ");
        shown.push_str(code);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bs9_no_signature_is_printed() {
        let text = "Error performing PUT https://account.blob.core.windows.net/c/x?sig=SECRET&sv=1\n in 3s";
        assert_eq!(
            printable(text),
            "Error performing PUT https://account.blob.core.windows.net/c/x in 3s"
        );
        assert_eq!(printable("why? because"), "why? because");
    }

    #[test]
    fn bs9_no_answer_is_repeated() {
        let expired = "Server returned non-2xx status code: 400 Bad Request: <?xml version=\"1.0\"?>\n<Error>\
            <Code>ExpiredToken</Code><Token-0>SECRET</Token-0></Error>";
        assert_eq!(
            printable(expired),
            "Server returned non-2xx status code: 400 Bad Request: ExpiredToken"
        );
        for body in
            ["{\"error\": \"SECRET\"}", "<Error><Code>SECRET 1</Code></Error>", "<html>SECRET"]
        {
            assert_eq!(printable(&format!("403 Forbidden: {body}")), "403 Forbidden");
        }
    }
}
