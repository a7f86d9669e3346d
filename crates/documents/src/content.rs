//! The content of a document, and its text in pieces that have addresses.

use crate::passage_url::Within;
use crate::{SkipReason, pdf};
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// How long the parsing of an HTML page may take.
const HTML_TIME: Duration = Duration::from_secs(10);

/// The content of a document.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// Text, as it is in the file.
    Text {
        text: String,
        is_markdown: bool,
    },
    Html(Vec<u8>),
    Pdf(Vec<u8>),
}

/// A stretch of a document's text.
#[derive(Debug)]
pub(crate) struct Piece<'c> {
    pub(crate) within: Within,
    pub(crate) text: Cow<'c, str>,
    /// Whether its headings begin with `#`.
    pub(crate) is_markdown: bool,
}

impl Content {
    /// Returns the bytes of the file.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Text { text, .. } => text.as_bytes(),
            Self::Html(bytes) | Self::Pdf(bytes) => bytes,
        }
    }

    /// Returns the text: for plain text the file itself, for HTML what a person would read, for a PDF its pages.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn pieces(&self) -> Result<Vec<Piece<'_>>, SkipReason> {
        match self {
            Self::Text { text, is_markdown } => {
                let (within, text) = (Within::File, Cow::Borrowed(text.as_str()));
                Ok(vec![Piece { within, text, is_markdown: *is_markdown }])
            }
            Self::Html(bytes) => {
                let (html, had_errors) = foldback_html::decoded(bytes, None);
                if had_errors {
                    return Err(SkipReason::NoUtf8);
                }
                let text = foldback_html::text(&html, Instant::now() + HTML_TIME);
                let text = text.map_err(|_| SkipReason::Damaged)?;
                if text.trim().is_empty() {
                    return Err(SkipReason::NoText);
                }
                let (within, text) = (Within::Text, Cow::Owned(text));
                Ok(vec![Piece { within, text, is_markdown: true }])
            }
            Self::Pdf(bytes) => {
                let pages = pdf::pages(bytes.clone())?.into_iter().zip(1..);
                let piece = |(text, n)| Piece {
                    within: Within::Page(n),
                    text: Cow::Owned(text),
                    is_markdown: false,
                };
                Ok(pages.map(piece).collect())
            }
        }
    }
}
