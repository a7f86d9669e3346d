//! Reads only the new part of requests.

use crate::Api;
use crate::body::unpacked;
use crate::client_message::{ClientMessage, Digests};
use crate::conversation::Conversation;
use crate::exchange::Asked;
use std::collections::VecDeque;
use std::sync::Arc;

/// How many bodies are kept in memory, and how many bytes of them.
const MOST: (usize, usize) = (64, 64 << 20);

/// A shorter body, in bytes, is read as quickly as it is compared.
const SHORTEST: usize = 16 << 10;

/// How many bytes are compared at once.
const STEP: usize = 4 << 10;

/// Reads requests. Each request of a conversation begins like the one before it: the common beginning of two bodies
/// is not read again.
pub(crate) struct Reader {
    secret: [u8; 32],
    digests: Digests,
    /// The bodies that were read recently, the latest last.
    lately: VecDeque<Seen>,
}

/// A body that was read.
struct Seen {
    api: Api,
    body: Arc<String>,
    messages: Vec<ClientMessage>,
}

impl Reader {
    pub(crate) fn new(secret: [u8; 32]) -> Self {
        Self { secret, digests: Digests::default(), lately: VecDeque::new() }
    }

    /// Sets whether the store redacts.
    pub(crate) fn redacting(mut self, redacts: bool) -> Self {
        self.digests.redacts = redacts;
        self
    }

    /// Reads a request.
    ///
    /// # Errors
    /// When it has no known shape: a sentence without its full stop.
    pub(crate) fn read(&mut self, asked: &Asked) -> Result<Conversation, String> {
        let came = asked.came();
        let bytes = unpacked(&asked.headers, &came);
        let bytes = &*bytes.ok_or("its body has an unknown encoding, or cannot be unpacked")?;
        let alike = self.alike(asked.api, bytes);
        let seen = alike.and_then(|(n, common)| Some((self.lately.get(n)?, common)));
        let (body, known) = match seen {
            Some((seen, common)) => seen.begun(bytes, common),
            None => (str::from_utf8(bytes).ok().map(str::to_owned).map(Arc::new), Vec::new()),
        };
        let body = body.ok_or("its body is not UTF-8")?;
        let digests = &mut self.digests;
        let mut read = Conversation::read(asked, &body, &known, &self.secret, digests);
        if read.is_err() && !known.is_empty() {
            // The error is to name the place in the body.
            read = Conversation::read(asked, &body, &[], &self.secret, digests);
        }
        let read = read?;
        // If a conversation continues, its latest body is enough; a body that only begins alike is kept.
        let before = alike.map(|(n, _)| n);
        let goes_on = |seen: &&Seen| 2 * known.len() > seen.messages.len();
        if let Some(n) = before.filter(|n| self.lately.get(*n).as_ref().is_some_and(goes_on)) {
            self.lately.remove(n);
        }
        self.keep(asked.api, &read);
        Ok(read)
    }

    /// Adds a model's answer to a request.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(crate) fn hear(&mut self, read: &mut Conversation, answer: &str) -> Result<(), String> {
        read.hear(answer, &mut self.digests)
    }

    /// Finds the recent body that shares most with this one, and how much that is.
    fn alike(&self, api: Api, bytes: &[u8]) -> Option<(usize, usize)> {
        let of_api = self.lately.iter().enumerate().filter(|(_, seen)| seen.api == api);
        let common = of_api.map(|(n, seen)| (n, common(seen.body.as_bytes(), bytes)));
        common.max_by_key(|(_, common)| *common)
    }

    fn keep(&mut self, api: Api, read: &Conversation) {
        if read.body.len() < SHORTEST || read.messages.is_empty() {
            return;
        }
        let (body, messages) = (Arc::clone(&read.body), read.messages.clone());
        self.lately.push_back(Seen { api, body, messages });
        let bytes =
            |lately: &VecDeque<Seen>| lately.iter().map(|seen| seen.body.len()).sum::<usize>();
        while self.lately.len() > MOST.0 || bytes(&self.lately) > MOST.1 {
            self.lately.pop_front();
        }
    }
}

impl Seen {
    /// Returns a body whose first `common` bytes are the same, as text, and the known ones among its messages. `None`
    /// if it is not text.
    fn begun(&self, bytes: &[u8], common: usize) -> (Option<Arc<String>>, Vec<ClientMessage>) {
        let same = self.body.floor_char_boundary(common);
        let (same, new) = (self.body.get(..same), bytes.get(same..));
        let new = new.and_then(|new| str::from_utf8(new).ok());
        let body = same.zip(new).map(|(same, new)| Arc::new([same, new].concat()));
        let Some(body) = body else { return (None, Vec::new()) };
        // What follows a message determines where it ends and whether others belong to it.
        let known = self.messages.iter().take_while(|message| message.place.end < common);
        let known = known.map(|message| message.moved(&self.body, &body)).collect();
        (Some(body), known)
    }
}

/// Returns how many bytes two texts share at the beginning.
fn common(a: &[u8], b: &[u8]) -> usize {
    let steps = a.chunks(STEP).zip(b.chunks(STEP));
    let same = STEP * steps.take_while(|(a, b)| a == b).count();
    let rest = a.iter().skip(same).zip(b.iter().skip(same));
    same.min(a.len()).min(b.len()) + rest.take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests;
