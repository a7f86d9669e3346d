//! Short URLs that stand for sources while models write: fewer tokens, fewer slips in copying.

use crate::{Link, link_safe};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::ops::Range;

/// The short URLs of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShortUrls {
    prefix: String,
}

/// A source that a statement rests on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Source {
    /// The words of a link to it.
    pub label: String,
    /// The URL that stands for it while models write.
    pub short_url: String,
    /// Its own URL, as the search returned it.
    pub url: String,
    /// Its title, as the search returned it.
    pub title: String,
    /// The place in the document of the text that was read, in bytes, if the search knows it.
    pub bytes: Option<Range<u64>>,
}

impl Source {
    /// Returns a link to the short URL.
    pub(crate) fn short_link(&self) -> Link {
        Link { label: self.label.clone(), url: self.short_url.clone() }
    }

    /// Returns a link to the source itself.
    pub(crate) fn link(&self) -> Link {
        Link { label: self.label.clone(), url: link_safe(&self.url) }
    }
}

/// A text with the sources' own URLs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// The text.
    pub text: String,
    /// The sources whose URLs it holds, each once, in the order of their first mention.
    pub used: Vec<Source>,
    /// What looks like a short URL of the run but is not, each once; the text keeps it unchanged.
    pub invented: Vec<String>,
}

impl ShortUrls {
    /// Creates the short URLs of the run with this name, for this request. Their host is derived from both, so
    /// that no document can hold one of them, and it leads nowhere (`.invalid` is reserved for that).
    #[must_use]
    pub fn of_run(run: &str, request: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&(run.len() as u64).to_le_bytes());
        hasher.update(run.as_bytes());
        hasher.update(request.as_bytes());
        let hash = hasher.finalize().to_hex();
        Self::under(&format!("https://s-{}.invalid", hash.get(..6).unwrap_or_default()))
    }

    /// Creates short URLs under a prefix: `https://host/id/1-0`.
    #[must_use]
    pub fn under(prefix: &str) -> Self {
        Self { prefix: format!("{}/id/", prefix.trim_end_matches('/')) }
    }

    /// Returns the short URLs of what a query found, in its order. Equal URLs share the short URL of their first
    /// place.
    ///
    /// ```
    /// use foldback_deep_search::ShortUrls;
    ///
    /// let short = ShortUrls::under("https://host");
    /// let found = ["https://a.com/1", "https://b.com/", "https://a.com/1"];
    /// assert_eq!(
    ///     short.resolve(4, found),
    ///     ["https://host/id/4-0", "https://host/id/4-1", "https://host/id/4-0"],
    /// );
    /// ```
    #[must_use]
    pub fn resolve<'u>(&self, query: u32, urls: impl IntoIterator<Item = &'u str>) -> Vec<String> {
        let mut first: HashMap<&str, usize> = HashMap::new();
        let urls = urls.into_iter().enumerate();
        let places = urls.map(|(at, url)| *first.entry(url).or_insert(at));
        places.map(|place| format!("{}{query}-{place}", self.prefix)).collect()
    }

    /// Replaces short URLs with the sources' own. A short URL is a whole word of a text: `…/id/1-1` is not
    /// restored inside `…/id/1-10`. A short URL that `sources` does not hold stays, and is reported.
    #[must_use]
    pub fn restore(&self, text: &str, sources: &[Source]) -> Restored {
        let known: HashMap<&str, &Source> =
            sources.iter().map(|source| (source.short_url.as_str(), source)).collect();
        let mut restored = Restored::default();
        let mut from = 0;
        for word in self.words(text) {
            let url = text.get(word.clone()).unwrap_or_default();
            let is_glued = text
                .get(..word.start)
                .is_some_and(|before| before.ends_with(|c: char| c.is_ascii_alphanumeric()));
            match known.get(url).filter(|_| !is_glued) {
                Some(source) => {
                    restored.text.push_str(text.get(from..word.start).unwrap_or_default());
                    restored.text.push_str(&link_safe(&source.url));
                    from = word.end;
                    if restored.used.iter().all(|used| used.url != source.url) {
                        restored.used.push((*source).clone());
                    }
                }
                None if !restored.invented.iter().any(|told| told == url) => {
                    restored.invented.push(url.to_owned());
                }
                None => {}
            }
        }
        restored.text.push_str(text.get(from..).unwrap_or_default());
        restored
    }

    /// Replaces whatever begins like a short URL in a text with plain words, and returns it: the author of the
    /// text cannot know a real one.
    pub(crate) fn disarm(&self, text: &str) -> (String, Vec<String>) {
        let mut out = String::with_capacity(text.len());
        let mut invented = Vec::new();
        let mut from = 0;
        for word in self.words(text) {
            out.push_str(text.get(from..word.start).unwrap_or_default());
            out.push_str("(no source)");
            from = word.end;
            invented.push(text.get(word).unwrap_or_default().to_owned());
        }
        out.push_str(text.get(from..).unwrap_or_default());
        (out, invented)
    }

    /// Finds the words that begin like a short URL, up to the last character that a URL may hold, without the
    /// punctuation after it.
    fn words(&self, text: &str) -> Vec<Range<usize>> {
        let mut words = Vec::new();
        let mut from = 0;
        while let Some(found) = text.get(from..).and_then(|rest| rest.find(&self.prefix)) {
            let start = from + found;
            let body = text.get(start..).unwrap_or_default();
            let body = body.split(|c: char| !is_url_char(c)).next().unwrap_or_default();
            let word = body.trim_end_matches(['.', ',', ';', ':', '!', '?', '\'', '*', '_', '~']);
            let end = start + word.len().max(self.prefix.len());
            words.push(start..end);
            from = end;
        }
        words
    }
}

/// Returns whether a URL continues with this character. Brackets end it: a short URL has none.
fn is_url_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-._~:/?#@!$&'*+,;=%".contains(c)
}
