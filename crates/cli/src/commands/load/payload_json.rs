//! A payload or a part of it, as JSON.

use data_encoding::BASE64;
use foldback_backend_store::{Meta, Position};
use foldback_core::PayloadRef;
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct PayloadJson {
    kind: &'static str,
    r#ref: String,
    bytes: u64,
    first_line: u64,
    last_line: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    next: Option<String>,
}

impl PayloadJson {
    pub(super) fn new(
        name: &PayloadRef,
        meta: &Meta,
        bytes: Vec<u8>,
        (first, last): (u64, u64),
        next: Option<Position>,
    ) -> Self {
        let (text, base64) = text_or_base64(bytes);
        Self {
            kind: "payload",
            r#ref: name.to_string(),
            bytes: meta.bytes,
            first_line: first,
            last_line: last,
            text,
            base64,
            next: next.map(|next| next.to_string()),
        }
    }
}

/// Bytes as JSON can represent them.
fn text_or_base64(bytes: Vec<u8>) -> (Option<String>, Option<String>) {
    match String::from_utf8(bytes) {
        Ok(text) => (Some(text), None),
        Err(error) => (None, Some(BASE64.encode(error.as_bytes()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_are_base64() {
        assert_eq!(text_or_base64("中".into()), (Some("中".to_owned()), None));
        assert_eq!(text_or_base64(vec![0xff, 0x00]), (None, Some("/wA=".to_owned())));
    }
}
