//! What a request cost, and what it would have cost whole.

use crate::client_message::ClientMessage;
use crate::conversation::Conversation;
use crate::ledger::{Bill, Entry, Recalls};
use crate::usage::Usage;
use crate::{Api, Tokens};
use foldback_core::Timestamp;

/// Providers round what they read from their caches by at most this many tokens.
const ROUNDING: u64 = 128;

/// If a provider reports no tokens, this many bytes count as one.
const BYTES_PER_TOKEN: u64 = 4;

/// For how many branches of a conversation it is known what the provider would hold.
const MOST_BRANCHES: usize = 8;

/// A provider that caches reports it at the latest for this many requests of which it should have the beginning.
const MOST_SILENT: u32 = 3;

/// A request that was answered.
pub(crate) struct Spent {
    /// When it was asked.
    pub(crate) at: Timestamp,
    /// How many bytes were sent.
    pub(crate) sent: u64,
    /// How many bytes the client's own body has.
    pub(crate) whole: u64,
    /// What it was billed, and what each later request within its turn was billed.
    pub(crate) usage: Vec<Usage>,
}

/// What a provider would hold of a conversation that was always sent whole.
#[derive(Default)]
pub(crate) struct Held {
    /// When something was last recorded before this gateway began.
    before: Option<Timestamp>,
    /// The last request of each branch, the newest last.
    requests: Vec<Request>,
    /// Whether the provider has ever reported that it has read something from its cache, or written into it.
    has_reported: bool,
    /// For how many requests it has not, although it had their beginning a short time before.
    silent: u32,
}

/// What is known of an earlier request.
struct Request {
    at: Timestamp,
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
    /// Creates the state for a conversation that another process has recorded, last at this time.
    pub(crate) fn since(at: Timestamp) -> Self {
        Self { before: Some(at), ..Self::default() }
    }

    /// Returns whether the provider caches nothing of this conversation, as far as it reports that.
    pub(crate) fn is_uncached(&self) -> bool {
        !self.has_reported && self.silent >= MOST_SILENT
    }

    /// Finds the earlier request that shares most messages with this one from the beginning, and
    /// how many; of several, the newest.
    fn nearest(&self, asked: &[ClientMessage]) -> Option<(usize, usize)> {
        let common = |request: &Request| {
            let pairs = asked.iter().zip(&request.messages);
            pairs.take_while(|(message, known)| message.digest == **known).count()
        };
        let common = self.requests.iter().map(common).enumerate();
        common.filter(|(_, common)| *common > 0).max_by_key(|(n, common)| (*common, *n))
    }
}

impl Spent {
    /// Returns the ledger's entry, and records what would be held of the conversation.
    pub(crate) fn entry(
        &self,
        conversation: &Conversation,
        session: String,
        held: &mut Held,
    ) -> Entry {
        let prices = conversation.cache.prices;
        let guess = Tokens { plain: self.sent / BYTES_PER_TOKEN, ..Tokens::default() };
        let (first, later) = (self.told(), self.usage.get(1..).unwrap_or_default());
        let sent = first.map_or(guess, |usage| usage.input);
        let whole = self.would_have_taken(sent, conversation, held);
        let bill = |bytes, tokens: Tokens| Bill { bytes, tokens, cost: tokens.cost(prices) };
        let mut looked_up = Usage::default();
        later.iter().for_each(|usage| looked_up += *usage);
        Entry {
            at: self.at,
            client: conversation.sender.client.clone(),
            session,
            model: conversation.terms.model.clone(),
            class: conversation.class.name().to_owned(),
            sent: bill(self.sent, sent),
            whole: bill(self.whole, whole),
            output: first.map_or(0, |usage| usage.output),
            recalls: Recalls {
                requests: later.len() as u64,
                tokens: looked_up.input,
                output: looked_up.output,
                cost: looked_up.input.cost(prices),
            },
            is_estimate: first.is_none(),
            counted: None,
            contents: None,
        }
    }

    /// Returns what it was billed; `None` if the provider did not report it.
    fn told(&self) -> Option<Usage> {
        self.usage.first().copied().filter(|usage| usage.input.total() > 0)
    }

    /// Returns what the provider would have counted if the conversation had always been sent whole. Until something
    /// is left out, that is what it did count.
    fn would_have_taken(
        &self,
        sent: Tokens,
        conversation: &Conversation,
        held: &mut Held,
    ) -> Tokens {
        let scaled = |bytes: u64| {
            (sent.total() as f64 * bytes as f64 / self.sent.max(1) as f64).round() as u64
        };
        held.has_reported |=
            self.usage.iter().any(|usage| usage.input.read + usage.input.written > 0);
        let is_cached = conversation.terms.is_marked
            && scaled(self.whole) >= conversation.cache.least
            && !held.is_uncached();
        if self.told().is_none() || !is_cached {
            return match self.sent < self.whole {
                true => Tokens { plain: scaled(self.whole), ..Tokens::default() },
                false => sent,
            };
        }
        let asked = conversation.asked();
        let nearest = held.nearest(asked);
        let last = nearest.and_then(|(n, _)| held.requests.get(n));
        let common = match (nearest, held.before) {
            (Some((_, common)), _) => common,
            // What was asked then precedes the model's last answer.
            (None, Some(_)) => asked.iter().rposition(|message| message.is_models).unwrap_or(0),
            (None, None) => 0,
        };
        let goes_on = last.filter(|last| last.messages.len() == common);
        // If something has been left out of a conversation, the provider holds less of its other branches, too.
        let is_folded = self.sent < self.whole || last.is_some_and(|last| last.is_folded);
        let new = asked.iter().skip(common).map(|message| message.json.len() as u64).sum::<u64>();
        let whole = if is_folded {
            let (known, new) = match goes_on {
                // The provider counted what is new, and had everything else.
                Some(last) if last.sent > 0 && sent.read + ROUNDING >= last.sent => {
                    (last.whole, sent.total().saturating_sub(last.sent))
                }
                Some(last) => (last.whole, scaled(new)),
                None => (scaled(self.whole.saturating_sub(new)), scaled(new)),
            };
            let total = if self.sent < self.whole { known + new } else { sent.total() };
            let is_warm = match last {
                Some(last) => {
                    last.model == conversation.terms.model && self.finds(last.at, conversation)
                }
                None => held.before.is_some_and(|at| self.finds(at, conversation)),
            };
            split(total, if is_warm { known.min(total) } else { 0 }, sent, conversation.api)
        } else {
            let should_read = goes_on.is_some_and(|last| {
                last.model == conversation.terms.model
                    && self.finds(last.at, conversation)
                    && scaled(self.whole.saturating_sub(new)) >= conversation.cache.least
            });
            held.silent += u32::from(should_read && !held.has_reported);
            sent
        };
        let cached = |tokens: Tokens| match conversation.api {
            Api::Messages => tokens.read + tokens.written,
            _ => tokens.total(),
        };
        // What was looked up is part of later requests, and counts on both sides.
        let after = self.usage.last().map_or(sent, |usage| usage.input);
        let request = Request {
            at: self.at,
            model: conversation.terms.model.clone(),
            messages: asked.iter().map(|message| message.digest).collect(),
            whole: cached(whole) + cached(after).saturating_sub(cached(sent)),
            sent: cached(after),
            is_folded,
        };
        let replaced = nearest.filter(|_| goes_on.is_some()).map(|(n, _)| n);
        let replaced = replaced.or((held.requests.len() >= MOST_BRANCHES).then_some(0));
        replaced.map(|n| held.requests.remove(n));
        held.requests.push(request);
        held.before = None;
        whole
    }

    /// Returns whether the provider would still hold at this time what it was sent.
    fn finds(&self, at: Timestamp, conversation: &Conversation) -> bool {
        self.at.since(at) < conversation.cache.life
    }
}

/// Splits this many tokens, of which `read` are read. The rest is written, except what follows the last mark;
/// OpenAI's older models do not count what they write.
fn split(total: u64, read: u64, sent: Tokens, api: Api) -> Tokens {
    let rest = total - read;
    let plain = if api != Api::Messages && sent.written == 0 { rest } else { sent.plain.min(rest) };
    Tokens { read, written: rest - plain, plain }
}
