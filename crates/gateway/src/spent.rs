//! What a request cost, and what it would have cost whole.

use crate::conversation::Conversation;
use crate::ledger::{Bill, Entry};
use crate::usage::Usage;
use crate::{Api, Tokens};
use foldback_core::Timestamp;

/// Providers round what they read from their caches by at most so many tokens.
const ROUNDING: u64 = 128;

/// Where a provider says nothing of tokens, so many bytes are one.
const BYTES_PER_TOKEN: u64 = 4;

/// A request that was answered.
pub(crate) struct Spent {
    /// When it was asked.
    pub(crate) at: Timestamp,
    /// How many bytes were sent.
    pub(crate) sent: u64,
    /// How many bytes the client's own body has.
    pub(crate) whole: u64,
    /// `None` where the provider said nothing of it.
    pub(crate) usage: Option<Usage>,
}

/// What a provider would hold of a conversation that was always sent whole, after a request.
pub(crate) struct Held {
    at: Timestamp,
    /// What was asked; `None` where that was before this gateway began.
    request: Option<Request>,
}

/// What is known of a request that came before.
struct Request {
    model: String,
    messages: Vec<blake3::Hash>,
    /// How many tokens the provider would hold of it.
    whole: u64,
    /// How many it holds of what was sent.
    sent: u64,
    /// Whether something has been left out of this conversation.
    is_folded: bool,
}

impl Held {
    /// What is held of a conversation that somebody else has recorded, last at this time.
    pub(crate) fn since(at: Timestamp) -> Self {
        Self { at, request: None }
    }
}

impl Spent {
    /// The ledger's entry. What would be held of the conversation is noted.
    pub(crate) fn entry(
        &self,
        conversation: &Conversation,
        session: String,
        held: &mut Option<Held>,
    ) -> Entry {
        let caching = conversation.cache;
        let guess = Tokens { plain: self.sent / BYTES_PER_TOKEN, ..Tokens::default() };
        let sent = self.usage.map_or(guess, |usage| usage.input);
        let whole = self.would_have_taken(sent, conversation, held);
        let bill =
            |bytes, tokens: Tokens| Bill { bytes, tokens, cost: tokens.cost(caching.prices) };
        Entry {
            at: self.at,
            client: conversation.sender.client.clone(),
            session,
            model: conversation.terms.model.clone(),
            class: conversation.class.name().to_owned(),
            sent: bill(self.sent, sent),
            whole: bill(self.whole, whole),
            output: self.usage.map_or(0, |usage| usage.output),
            is_estimate: self.usage.is_none(),
        }
    }

    /// What the provider would have counted if the conversation had always been sent whole. Until something is left
    /// out that is what it did count.
    fn would_have_taken(
        &self,
        sent: Tokens,
        conversation: &Conversation,
        held: &mut Option<Held>,
    ) -> Tokens {
        let scaled = |bytes: u64| {
            (sent.total() as f64 * bytes as f64 / self.sent.max(1) as f64).round() as u64
        };
        let is_cached =
            conversation.terms.is_marked && scaled(self.whole) >= conversation.cache.least;
        if self.usage.is_none() || !is_cached {
            return match self.sent < self.whole {
                true => Tokens { plain: scaled(self.whole), ..Tokens::default() },
                false => sent,
            };
        }
        let asked = conversation.asked();
        let before = held.take();
        let (common, goes_on) = match &before {
            None => (0, false),
            Some(Held { request: Some(request), .. }) => {
                let pairs = asked.iter().zip(&request.messages);
                let common = pairs.take_while(|(message, known)| message.digest == **known).count();
                (common, common == request.messages.len())
            }
            // What was asked then stands in front of the model's last answer.
            Some(Held { request: None, .. }) => {
                (asked.iter().rposition(|message| message.is_models).unwrap_or(0), false)
            }
        };
        let last = before.as_ref().and_then(|held| held.request.as_ref());
        let is_folded =
            self.sent < self.whole || goes_on && last.is_some_and(|request| request.is_folded);
        let new = asked.iter().skip(common).map(|message| message.json.len() as u64).sum::<u64>();
        let whole = if is_folded {
            let (known, new) = match last.filter(|_| goes_on) {
                // What is new was counted by the provider, which had all else.
                Some(last) if last.sent > 0 && sent.read + ROUNDING >= last.sent => {
                    (last.whole, sent.total().saturating_sub(last.sent))
                }
                Some(last) => (last.whole, scaled(new)),
                None => (scaled(self.whole.saturating_sub(new)), scaled(new)),
            };
            let total = if self.sent < self.whole { known + new } else { sent.total() };
            let is_warm = before.as_ref().is_some_and(|held| self.finds(held, conversation));
            split(total, if is_warm { known.min(total) } else { 0 }, sent, conversation.api)
        } else {
            sent
        };
        let cached = |tokens: Tokens| match conversation.api {
            Api::Messages => tokens.read + tokens.written,
            _ => tokens.total(),
        };
        let request = Request {
            model: conversation.terms.model.clone(),
            messages: asked.iter().map(|message| message.digest).collect(),
            whole: cached(whole),
            sent: cached(sent),
            is_folded,
        };
        *held = Some(Held { at: self.at, request: Some(request) });
        whole
    }

    /// Whether the provider would still hold what it held.
    fn finds(&self, held: &Held, conversation: &Conversation) -> bool {
        let age = self.at.0.saturating_sub(held.at.0);
        let same = |request: &Request| request.model == conversation.terms.model;
        u128::try_from(age).unwrap_or_default() < conversation.cache.life.as_millis()
            && held.request.as_ref().is_none_or(same)
    }
}

/// So many tokens, of which so many are read. What is not is written, but for what stands behind the last mark;
/// OpenAI's older models do not count what they write.
fn split(total: u64, read: u64, sent: Tokens, api: Api) -> Tokens {
    let rest = total - read;
    let plain = if api != Api::Messages && sent.written == 0 { rest } else { sent.plain.min(rest) };
    Tokens { read, written: rest - plain, plain }
}
