//! The cost of prompts: tokens as o200k counts them, and how many of them a provider's cache serves.

use crate::{Counts, Usage};
use foldback_core::{Message, Prices, Prompt, Timestamp, ToolDefinition};
use std::sync::Arc;
use std::time::Duration;

/// The run length, in tokens, that a prefix cache keeps whole.
const CACHE_BLOCK: u64 = 16;
/// A prefix of fewer tokens is not cached.
const CACHE_LEAST: u64 = 1_024;

/// A meter of one conversation's prompts, as a provider with a prefix cache bills them.
///
/// The cache holds the stable part of the previous prompt (all but its volatile suffix). What the next
/// prompt has in common with the beginning of that is read, in whole runs of 16 tokens and only from
/// 1,024 on; the rest of the new stable part is written if it reaches that size; everything else is
/// plain. The cache never expires, unless it is given a [life](Self::with_cache_life).
///
/// Writing costs more than not caching at all, and pays only if later prompts begin the same. So a
/// conversation is billed at the cheaper of two ways, as the payer would choose: every prompt with the
/// cache, or every prompt without.
#[derive(Default)]
pub struct Meter {
    prices: Prices,
    /// The tokens of the agent's own tools, which every prompt declares before everything else.
    own_tools: u64,
    usage: Usage,
    /// The number of prompts so far.
    prompts: u64,
    /// The usage of further calls from the same prompts.
    asides: Usage,
    moves: u64,
    /// The tokens of the last prompt: its stable part, and its volatile suffix.
    last: (u64, u64),
    /// The tools of the previous prompt.
    tools: Vec<ToolDefinition>,
    /// Their tokens.
    tools_tokens: u64,
    /// How long the cache keeps what is not read, if not for ever.
    life: Option<Duration>,
    /// The time now, and that of the previous prompt, if known.
    now: Option<Timestamp>,
    called: Option<Timestamp>,
    /// The stable part of the previous prompt, each message with its tokens.
    before: Vec<(Arc<Message>, u64)>,
    begun: bool,
}

impl Meter {
    /// Returns a meter with these prices.
    #[must_use]
    pub fn new(prices: Prices) -> Self {
        Self { prices, ..Self::default() }
    }

    /// Returns a meter in which every prompt also declares the agent's own tools, with this many
    /// tokens.
    #[must_use]
    pub fn with_own_tools(self, tokens: u64) -> Self {
        Self { own_tools: tokens, ..self }
    }

    /// Returns a meter with a cache that loses a prefix once it was not read for this long; `None` if it never does.
    #[must_use]
    pub fn with_cache_life(self, life: Option<Duration>) -> Self {
        Self { life, ..self }
    }

    /// Sets the time of the next call.
    pub fn wait_until(&mut self, at: Timestamp) {
        self.now = Some(at);
    }

    /// Returns whether the cache has lost the previous prompt.
    fn has_lost(&self) -> bool {
        let silence = self.now.zip(self.called).map(|(now, called)| now.since(called));
        self.life.zip(silence).is_some_and(|(life, silence)| silence >= life)
    }

    /// Returns the usage of the calls so far, including [those apart](Self::apart) but not
    /// [asides](Self::aside).
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.billed(self.usage)
    }

    /// Bills a part of what was metered in the way that is cheaper for all of it.
    #[must_use]
    pub fn billed(&self, some: Usage) -> Usage {
        let mut all = self.usage;
        all.add(&self.asides);
        match all.without_cache(self.prices).cost_units < all.cost_units {
            true => some.without_cache(self.prices),
            false => some,
        }
    }

    /// Returns the number of prompts: calls of the agent itself.
    #[must_use]
    pub fn prompts(&self) -> u64 {
        self.prompts
    }

    /// Returns the usage of the asides so far.
    #[must_use]
    pub fn asides(&self) -> Usage {
        self.billed(self.asides)
    }

    /// Returns how many prompts did not begin with the whole stable part of the previous one.
    #[must_use]
    pub fn moves(&self) -> u64 {
        self.moves
    }

    /// Returns the tokens of a prompt and of the tools that it declares.
    pub fn size(counts: &mut Counts, prompt: &Prompt) -> u64 {
        let messages: u64 = prompt.messages.iter().map(|message| counts.shared(message)).sum();
        counts.tools(&prompt.tools) + messages
    }

    /// Meters the prompt of a call, and returns its tokens.
    pub fn call(&mut self, counts: &mut Counts, prompt: &Prompt) -> u64 {
        let stable_len = prompt.messages.len().saturating_sub(prompt.volatile);
        let same_tools = self.begun && self.tools == prompt.tools;
        if !same_tools {
            self.tools_tokens = counts.tools(&prompt.tools);
        }
        let tools = self.own_tools + self.tools_tokens;
        let goes_on = match same_tools {
            true => prompt.messages.iter().zip(&self.before).take_while(is_same).count(),
            false => 0,
        };
        self.moves += u64::from(self.begun && (goes_on < self.before.len() || !same_tools));
        // A message of which only the beginning is unchanged is served up to the first difference.
        let partly = match (same_tools, prompt.messages.get(goes_on), self.before.get(goes_on)) {
            (true, Some(new), Some((old, _))) if goes_on < stable_len => common(counts, new, old),
            _ => 0,
        };
        self.before.truncate(goes_on.min(stable_len));
        let same = self.before.iter().map(|(_, tokens)| tokens).sum::<u64>();
        let shared = if same_tools { tools + same + partly } else { self.own_tools };
        let (mut stable, mut suffix) = (tools + same, 0);
        for (at, message) in prompt.messages.iter().enumerate().skip(self.before.len()) {
            let tokens = counts.shared(message);
            if at >= stable_len {
                suffix += tokens;
            } else {
                stable += tokens;
                self.before.push((Arc::clone(message), tokens));
            }
        }
        let shared = if self.begun && !self.has_lost() { shared } else { 0 };
        self.called = self.now;
        let kept = cacheable(stable);
        let cached = cacheable(shared).min(kept);
        self.usage.call(self.prices, cached, kept - cached, stable - kept + suffix);
        self.last = (stable, suffix);
        self.prompts += 1;
        if !same_tools {
            self.tools.clone_from(&prompt.tools);
        }
        self.begun = true;
        stable + suffix
    }

    /// Meters a further call from the last prompt, with `added` tokens after its stable part: what a
    /// model asked a tool, and the answer. The next prompt does not contain it. Returns the usage of
    /// this call with the cache; see [`billed`](Self::billed).
    pub fn aside(&mut self, added: u64) -> Usage {
        let (stable, suffix) = self.last;
        let kept = cacheable(stable + added);
        let cached = cacheable(stable);
        let mut usage = Usage::default();
        usage.call(self.prices, cached, kept - cached, stable + added - kept + suffix);
        self.asides.add(&usage);
        usage
    }

    /// Meters a call to another model, or to the same one with nothing in common: this many tokens,
    /// none of them cached.
    pub fn apart(&mut self, tokens: u64) {
        let peak = self.usage.peak_tokens;
        self.usage.call(self.prices, 0, 0, tokens);
        // The peak shows how large a window the agent's own model needs.
        self.usage.peak_tokens = peak;
    }
}

/// Returns how much of a prefix a cache keeps.
fn cacheable(tokens: u64) -> u64 {
    if tokens < CACHE_LEAST { 0 } else { tokens / CACHE_BLOCK * CACHE_BLOCK }
}

fn is_same((message, (before, _)): &(&Arc<Message>, &(Arc<Message>, u64))) -> bool {
    Arc::ptr_eq(message, before) || *message == before
}

/// Returns the tokens of the common beginning of two messages of one role.
fn common(counts: &mut Counts, new: &Message, old: &Message) -> u64 {
    let (new_text, old_text) = (new.text(), old.text());
    if new.role() != old.role() || new_text.is_empty() {
        return 0;
    }
    let same = new_text.chars().zip(old_text.chars()).take_while(|(a, b)| a == b);
    let bytes: usize = same.map(|(c, _)| c.len_utf8()).sum();
    new_text.get(..bytes).map_or(0, |text| counts.text(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a text of `n` words: a token each, plus the frame of the message.
    fn message(word: &str, n: usize) -> Arc<Message> {
        Arc::new(Message::user(&format!(" {word}").repeat(n)))
    }

    fn prompt(messages: &[Arc<Message>], volatile: usize) -> Prompt {
        Prompt { messages: messages.to_vec(), volatile, ..Prompt::default() }
    }

    #[test]
    fn what_a_prompt_shares_with_the_one_before_is_served_in_whole_runs() {
        let mut counts = Counts::default();
        let mut meter = Meter::default();
        let (one, two) = (message("one", 2_000), message("two", 500));
        let todo = message("todo", 50);
        let size = |counts: &mut Counts, message: &Message| counts.message(message);
        let (a, b, c) =
            (size(&mut counts, &one), size(&mut counts, &two), size(&mut counts, &todo));
        meter.call(&mut counts, &prompt(&[one.clone(), todo.clone()], 1));
        let first = a / 16 * 16;
        let cost = 1.25 * first as f64 + (a - first + c) as f64;
        assert_eq!(meter.usage().cached_tokens, 0);
        // So far it would have been cheaper not to write.
        assert!((meter.usage().cost_units - (a + c) as f64).abs() < 1e-6, "{:?}", meter.usage());
        meter.call(&mut counts, &prompt(&[one, two.clone(), todo], 1));
        let second = (a + b) / 16 * 16;
        let more = 0.1 * first as f64 + 1.25 * (second - first) as f64;
        let cost = cost + more + (a + b - second + c) as f64;
        assert_eq!((meter.usage().cached_tokens, meter.moves()), (first, 0));
        assert!((meter.usage().cost_units - cost).abs() < 1e-6, "{:?}", meter.usage());
        assert_eq!(meter.usage().peak_tokens, a + b + c);
        // With another message at the front, nothing is served.
        meter.call(&mut counts, &prompt(&[message("fold", 2_000), two], 0));
        assert_eq!((meter.usage().cached_tokens, meter.moves()), (first, 1));
    }

    #[test]
    fn who_writes_what_never_comes_again_is_billed_without_a_cache() {
        let mut counts = Counts::default();
        let mut meter = Meter::default();
        let words = ["one", "two", "three", "four"];
        for word in words {
            meter.call(&mut counts, &prompt(&[message(word, 2_000)], 0));
            // Asides read what the prompt before them wrote, so the cache pays.
            assert!(meter.aside(2_000).cached_tokens > 0);
        }
        let all = meter.usage().cost_units + meter.asides().cost_units;
        let with = 4.0 * (1.25 * 2_000.0 + 0.1 * 2_000.0 + 1.25 * 2_000.0);
        assert!((all - with).abs() < 200.0, "{all}, {with}");
        assert!(meter.usage().cost_units > meter.usage().input_tokens as f64);
        let mut alone = Meter::default();
        let each = words.map(|word| alone.call(&mut counts, &prompt(&[message(word, 2_000)], 0)));
        let usage = alone.usage();
        assert!((usage.cost_units - each.iter().sum::<u64>() as f64).abs() < 1e-6, "{usage:?}");
        assert_eq!((usage.calls, usage.cached_tokens, alone.moves()), (4, 0, 3));
    }

    #[test]
    fn a_cache_loses_what_was_not_read_for_its_life() {
        let mut counts = Counts::default();
        let said: Vec<_> = ["one", "two", "three"].map(|word| message(word, 2_000)).into();
        let mut cached = |life: Option<u64>, seconds: [i64; 3]| {
            let mut meter = Meter::default().with_cache_life(life.map(Duration::from_secs));
            for (n, at) in (1..).zip(seconds) {
                meter.wait_until(Timestamp(at * 1_000));
                meter.call(&mut counts, &prompt(&said[..n], 0));
            }
            (meter.usage().cached_tokens, meter.moves())
        };
        assert_eq!(cached(Some(300), [0, 299, 598]).0, 6_000, "each call reads and renews it");
        assert_eq!(cached(Some(300), [0, 300, 599]).0, 4_000, "the second call finds nothing");
        assert_eq!(cached(Some(300), [0, 300, 600]), (0, 0), "what is lost has not moved");
        assert_eq!(cached(None, [0, 300, 9_000]).0, 6_000, "it is kept for ever");
    }

    #[test]
    fn a_prefix_that_is_too_short_is_neither_read_nor_written() {
        let mut counts = Counts::default();
        let mut meter = Meter::default();
        let small = message("one", 500);
        let tokens = meter.call(&mut counts, &prompt(std::slice::from_ref(&small), 0));
        let again = meter.call(&mut counts, &prompt(&[small], 0));
        assert_eq!((tokens, meter.usage().cached_tokens), (again, 0));
        assert!((meter.usage().cost_units - (tokens + again) as f64).abs() < 1e-6);
    }

    #[test]
    fn a_message_that_grew_is_served_as_far_as_it_is_the_same() {
        let mut counts = Counts::default();
        let mut meter = Meter::default();
        meter.call(&mut counts, &prompt(&[message("one", 2_000)], 0));
        let grown = format!("{} two two", " one".repeat(2_000));
        meter.call(&mut counts, &prompt(&[Arc::new(Message::user(&grown))], 0));
        assert_eq!((meter.usage().cached_tokens, meter.moves()), (2_000, 1));
    }

    #[test]
    fn other_tools_leave_nothing_to_be_served() {
        let mut counts = Counts::default();
        let mut meter = Meter::default();
        let long = message("one", 2_000);
        meter.call(&mut counts, &prompt(std::slice::from_ref(&long), 0));
        let tool = ToolDefinition {
            name: "load".to_owned(),
            description: "Loads.".to_owned(),
            parameters: "{}".to_owned(),
        };
        let with = Prompt { tools: vec![tool], ..prompt(&[long], 0) };
        meter.call(&mut counts, &with);
        assert_eq!((meter.usage().cached_tokens, meter.moves()), (0, 1));
        meter.call(&mut counts, &with);
        assert!(meter.usage().cached_tokens > 1_900 && meter.moves() == 1);
    }

    #[test]
    fn a_call_aside_reads_its_prompt_from_the_cache() {
        let mut counts = Counts::default();
        let mut meter = Meter::default();
        let (one, todo) = (message("one", 2_000), message("todo", 50));
        let (a, c) = (counts.message(&one), counts.message(&todo));
        meter.call(&mut counts, &prompt(&[one.clone(), todo.clone()], 1));
        let before = meter.usage().input_tokens;
        let aside = meter.aside(300);
        let (read, kept) = (a / 16 * 16, (a + 300) / 16 * 16);
        let cost = 0.1 * read as f64 + 1.25 * (kept - read) as f64 + (a + 300 - kept + c) as f64;
        assert_eq!(meter.asides().input_tokens, a + 300 + c);
        assert_eq!((meter.asides().calls, aside.cached_tokens), (1, read));
        assert!((aside.cost_units - cost).abs() < 1e-6, "{aside:?}");
        // Later prompts do not contain it.
        let after = meter.usage().input_tokens;
        assert_eq!((after, meter.moves(), meter.prompts()), (before, 0, 1));
        meter.call(&mut counts, &prompt(&[one, todo], 1));
        assert_eq!((meter.usage().cached_tokens, meter.moves(), meter.prompts()), (read, 0, 2));
    }

    #[test]
    fn a_call_apart_is_plain_and_no_part_of_the_peak() {
        let mut counts = Counts::default();
        let mut meter = Meter::default();
        let tokens = meter.call(&mut counts, &prompt(&[message("one", 2_000)], 0));
        let before = meter.usage();
        meter.apart(9_000);
        let after = meter.usage();
        assert_eq!((after.calls, after.input_tokens), (2, tokens + 9_000));
        assert_eq!((after.peak_tokens, meter.prompts()), (tokens, 1));
        assert!((after.cost_units - before.cost_units - 9_000.0).abs() < 1e-6);
    }

    #[test]
    fn the_agents_own_tools_stand_in_front_of_every_prompt() {
        let mut counts = Counts::default();
        let mut meter = Meter::default().with_own_tools(1_600);
        let small = message("one", 100);
        let tokens = meter.call(&mut counts, &prompt(std::slice::from_ref(&small), 0));
        assert_eq!(tokens, 1_600 + counts.message(&small));
        // If only what follows them changes, they are still served.
        meter.call(&mut counts, &prompt(&[message("two", 100)], 0));
        assert_eq!(meter.usage().cached_tokens, 1_600);
    }

    #[test]
    fn a_shorter_prompt_is_a_move() {
        let mut counts = Counts::default();
        let mut meter = Meter::default();
        let (one, two) = (message("one", 3), message("two", 3));
        meter.call(&mut counts, &prompt(&[one.clone(), two.clone()], 0));
        meter.call(&mut counts, &prompt(std::slice::from_ref(&one), 0));
        meter.call(&mut counts, &prompt(&[one, two], 0));
        assert_eq!(meter.moves(), 1);
    }
}
