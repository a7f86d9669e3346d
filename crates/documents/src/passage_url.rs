//! The place of a passage, as a URL.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// The place of a passage: `notes/lease.md#bytes=120-480`, `tides.pdf#page=3&text=0-480`,
/// `page.html#text=120-480`.
///
/// The path begins at the folder of documents, or at the place from which the readers of its answers follow links
/// ([`with_prefix`](crate::DocumentFolder::with_prefix)); its parts are separated by `/`. The bytes are those from
/// the first number up to, not including, the second, counted from 0: in the file, or in the text of a page of a
/// PDF or of HTML. A PDF viewer opens the page and ignores the rest. What is not allowed in a URL, or would end a
/// Markdown link, is percent-encoded; Chinese and other letters stay as they are.
///
/// ```
/// use foldback_documents::{PassageUrl, Within};
///
/// let path = "租约/lease (1).md".to_owned();
/// let place = PassageUrl { path, within: Within::File, bytes: 120..480 };
/// assert_eq!(place.to_string(), "租约/lease%20%281%29.md#bytes=120-480");
/// assert_eq!(place.to_string().parse(), Ok(place));
/// let place: PassageUrl = "tides.pdf#page=3&text=0-480".parse()?;
/// assert_eq!((place.within, place.bytes), (Within::Page(3), 0..480));
/// # Ok::<(), foldback_documents::PassageUrlError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PassageUrl {
    /// The file's path in the folder.
    pub path: String,
    /// The text in which its bytes are counted.
    pub within: Within,
    /// Its bytes there.
    pub bytes: Range<u64>,
}

/// The text in which the bytes of a passage are counted.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Within {
    /// The file itself.
    #[default]
    File,
    /// The text that a person would read in HTML.
    Text,
    /// The text of this page of a PDF, from 1 on.
    Page(u32),
}

/// A text that is not the URL of a passage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the URL of a passage; expected one like notes/lease.md#bytes=120-480")]
pub struct PassageUrlError(String);

impl fmt::Display for PassageUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#", encoded(&self.path))?;
        match self.within {
            Within::File => f.write_str("bytes")?,
            Within::Text => f.write_str("text")?,
            Within::Page(page) => write!(f, "page={page}&text")?,
        }
        write!(f, "={}-{}", self.bytes.start, self.bytes.end)
    }
}

/// Returns a path as it is written in a URL.
pub(crate) fn encoded(path: &str) -> String {
    let mut url = String::with_capacity(path.len());
    for c in path.chars() {
        if is_plain(c) {
            url.push(c);
            continue;
        }
        let mut buffer = [0; 4];
        for byte in c.encode_utf8(&mut buffer).bytes() {
            url.push_str(&format!("%{byte:02X}"));
        }
    }
    url
}

/// Returns whether a character of a path is written in a URL as it is.
fn is_plain(c: char) -> bool {
    if c.is_ascii() {
        c.is_ascii_alphanumeric() || "-._~/!$'*+,;=@".contains(c)
    } else {
        c.is_alphanumeric()
    }
}

impl FromStr for PassageUrl {
    type Err = PassageUrlError;

    fn from_str(text: &str) -> Result<Self, PassageUrlError> {
        parse(text).ok_or_else(|| PassageUrlError(text.chars().take(120).collect()))
    }
}

fn parse(text: &str) -> Option<PassageUrl> {
    let number = |digits: &str| {
        let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse::<u64>().ok().filter(|_| is_plain)
    };
    let (path, place) = text.split_once('#')?;
    let (within, bytes) = if let Some(bytes) = place.strip_prefix("bytes=") {
        (Within::File, bytes)
    } else if let Some(bytes) = place.strip_prefix("text=") {
        (Within::Text, bytes)
    } else {
        let (page, bytes) = place.strip_prefix("page=")?.split_once("&text=")?;
        (Within::Page(u32::try_from(number(page)?).ok()?), bytes)
    };
    let (start, end) = bytes.split_once('-')?;
    let (start, end) = (number(start)?, number(end)?);
    let mut decoded = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'%' {
            decoded.push(*byte);
            continue;
        }
        let digits = std::str::from_utf8(after.get(..2)?).ok()?;
        decoded.push(u8::from_str_radix(digits, 16).ok()?);
        rest = after.get(2..)?;
    }
    // It must be in the folder, no matter who wrote the URL.
    let path = String::from_utf8(decoded).ok().filter(|path| !path.is_empty())?;
    let is_inside = !path.starts_with('/') && path.split('/').all(|part| part != "..");
    is_inside.then_some(())?;
    (start <= end).then_some(PassageUrl { path, within, bytes: start..end })
}
