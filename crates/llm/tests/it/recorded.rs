//! Recorded conversations, billed as a provider with a prefix cache would.

use foldback_core::{Estimate, Message, Prices, Role, check_request, message_tokens};
use foldback_llm::{
    CacheSettings, CacheUse, ChatRequest, MarkLimits, PrefixCache, RequestTokens, place_cache_marks,
};
use foldback_testkit::{data, skip_without_data};
use std::sync::Arc;
use std::time::Duration;

/// The tokens of the tools that the conversations were held with, which the recordings lack: the
/// airline's fourteen have about this many.
const TOOLS: usize = 2_500;

/// The requests of a conversation: one before each answer of the model.
fn requests(messages: &[Message]) -> impl Iterator<Item = ChatRequest> {
    let shared: Vec<Arc<Message>> = messages.iter().cloned().map(Arc::new).collect();
    let answers = messages.iter().enumerate().filter(|(_, m)| *m.role() == Role::Assistant);
    let ends: Vec<usize> = answers.map(|(at, _)| at).filter(|at| *at > 0).collect();
    ends.into_iter().map(move |end| ChatRequest::new(shared[..end].to_vec()))
}

/// The cost of all requests of a conversation, each ten seconds after the one before. With a clock,
/// the first token of each is another one.
fn billed(requests: impl Iterator<Item = ChatRequest>, has_clock: bool) -> CacheUse {
    let mut cache = PrefixCache::new(CacheSettings::anthropic(1_024));
    let mut sum = CacheUse::default();
    for (turn, request) in (0_u32..).zip(requests) {
        let request = place_cache_marks(request, MarkLimits::ANTHROPIC);
        let mut tokens = RequestTokens::of(&request, &Estimate).behind(TOOLS);
        if has_clock {
            tokens.ids[0] = u32::MAX - turn;
        }
        let now = Duration::from_secs(10) * turn;
        sum += cache.request("tau", &tokens, now);
    }
    sum
}

/// MC1, MC3, MC5: the airline conversations, only appended to and with a mark that moves along at their
/// tail, are at least 4.5 times cheaper than uncached. With a clock in front they are more expensive.
#[test]
fn mc5_appending_with_a_rolling_mark_is_four_and_a_half_times_cheaper() {
    skip_without_data!();
    let prices = Prices::default();
    let (mut appended, mut clocked) = (CacheUse::default(), CacheUse::default());
    let (mut conversations, mut output) = (0, 0);
    for (name, conversation) in data::conversations(&["agent"]) {
        if name != "agent/tau_bench_airline.jsonl.zst" {
            continue;
        }
        conversations += 1;
        let messages = &conversation.messages;
        appended += billed(requests(messages), false);
        clocked += billed(requests(messages), true);
        let answers = messages.iter().filter(|message| *message.role() == Role::Assistant);
        output += answers.map(|m| message_tokens(&Estimate, m) as u64).sum::<u64>();
    }
    assert!(conversations > 50, "{conversations}");
    let cheaper = appended.uncached_cost(prices) / appended.cost(prices);
    let dearer = clocked.cost(prices) / clocked.uncached_cost(prices);
    eprintln!(
        "{conversations} conversations, {} input tokens, in:out {:.1}; appended: {:.1} % read, \
         {cheaper:.2} times cheaper than uncached; with a clock in front: {dearer:.3} of uncached",
        appended.tokens(),
        appended.tokens() as f64 / output as f64,
        100.0 * appended.hit_rate(),
    );
    assert!(cheaper >= 4.5, "{cheaper}");
    assert!(dearer > 1.2, "{dearer}");
}

/// MC3: on every recorded conversation with tools, marks keep to the provider's limits, and requests stay
/// valid.
#[test]
fn mc3_marks_keep_recorded_conversations_valid() {
    skip_without_data!();
    let (mut conversations, mut requests_made) = (0, 0);
    for (_, conversation) in data::conversations(&["agent"]) {
        let valid = check_request(&conversation.messages).is_empty();
        for request in requests(&conversation.messages) {
            let marked = place_cache_marks(request, MarkLimits::ANTHROPIC);
            assert!(marked.cache_marks.len() <= 4);
            assert!(!valid || check_request(marked.messages.iter().map(Arc::as_ref)).is_empty());
            requests_made += 1;
        }
        conversations += 1;
    }
    eprintln!("{conversations} conversations, {requests_made} requests");
    assert!(conversations > 100 && requests_made > 1_000);
}
