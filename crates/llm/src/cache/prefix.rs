//! A prefix cache in miniature.

use super::{CacheUse, MarkLimits, RequestTokens};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_128;

/// How a prefix cache behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheSettings {
    /// The tokens of a block: only whole blocks are kept. Unused if prefixes end at marks.
    pub block: usize,
    /// The greatest number of blocks, or of marked prefixes; `None` for no bound.
    pub capacity: Option<usize>,
    /// A shorter prefix, in tokens, is neither read nor written.
    pub least: usize,
    /// How long an unread entry is kept; `None` until it is evicted.
    pub life: Option<Duration>,
    /// For caches whose prefixes end only at marks: how many content blocks are searched backwards
    /// from a mark, its own among them. `None` if every whole block ends a prefix, marked or not.
    pub reach: Option<usize>,
    /// Whether another choice of tools makes everything after the standing instructions another
    /// prefix.
    pub by_choice: bool,
}

impl CacheSettings {
    /// Models an inference server with this many blocks of 16 tokens, as vLLM keeps them: every
    /// whole block is kept until its room is needed.
    #[must_use]
    pub fn server(capacity: usize) -> Self {
        Self { capacity: Some(capacity), ..Self::default() }
    }

    /// Models Anthropic's cache: a prefix ends at a mark, has `least` tokens or more (1,024 for most
    /// models), is found from a mark within 20 content blocks, and is kept for five minutes after it
    /// was last read. Another `tool_choice` keeps the prefix of tools and standing instructions valid,
    /// and nothing else.
    #[must_use]
    pub fn anthropic(least: usize) -> Self {
        let reach = Some(MarkLimits::ANTHROPIC.reach);
        Self { least, life: Some(FIVE_MINUTES), reach, by_choice: true, ..Self::default() }
    }

    /// Models OpenAI's cache without marks: every prefix of 1,024 tokens and more, in steps of 128,
    /// for the five minutes that it is kept at least.
    #[must_use]
    pub fn openai() -> Self {
        Self { block: 128, least: 1_024, life: Some(FIVE_MINUTES), ..Self::default() }
    }

    /// Sets the tokens of a block.
    #[must_use]
    pub fn with_block(self, block: usize) -> Self {
        Self { block, ..self }
    }

    /// Sets the greatest number of blocks or marked prefixes; `None` for no bound.
    #[must_use]
    pub fn with_capacity(self, capacity: impl Into<Option<usize>>) -> Self {
        Self { capacity: capacity.into(), ..self }
    }

    /// Sets the shortest prefix that is kept, in tokens.
    #[must_use]
    pub fn with_least(self, least: usize) -> Self {
        Self { least, ..self }
    }

    /// Sets how long an unread entry is kept; `None` until it is evicted.
    #[must_use]
    pub fn with_life(self, life: impl Into<Option<Duration>>) -> Self {
        Self { life: life.into(), ..self }
    }

    /// Makes prefixes end at marks, searched for over this many content blocks; `None` if every
    /// block ends a prefix.
    #[must_use]
    pub fn with_reach(self, reach: impl Into<Option<usize>>) -> Self {
        Self { reach: reach.into(), ..self }
    }

    /// Sets whether prefixes depend on the choice of tools.
    #[must_use]
    pub fn with_by_choice(self, by_choice: bool) -> Self {
        Self { by_choice, ..self }
    }
}

const FIVE_MINUTES: Duration = Duration::from_secs(5 * 60);

impl Default for CacheSettings {
    /// Returns blocks of 16 tokens without any bound.
    fn default() -> Self {
        Self { block: 16, capacity: None, least: 0, life: None, reach: None, by_choice: false }
    }
}

/// A prefix cache: it knows which beginnings of requests it has seen.
///
/// A block is identified by the hash of its tokens and of the block before it, so the same tokens
/// after another beginning are another block. The first block depends on the tenant: no tenant
/// reads what another wrote. The least recently used block is evicted first; within one request,
/// the last block.
///
/// ```
/// use foldback_llm::{CacheSettings, PrefixCache};
/// use std::time::Duration;
///
/// let mut cache = PrefixCache::new(CacheSettings::default());
/// let tokens: Vec<u32> = (0..40).collect();
/// let first = cache.call("tenant", &tokens, tokens.len(), Duration::ZERO);
/// assert_eq!((first.read, first.written, first.plain), (0, 32, 8));
/// let longer: Vec<u32> = (0..60).collect();
/// let second = cache.call("tenant", &longer, longer.len(), Duration::ZERO);
/// assert_eq!((second.read, second.written, second.plain), (32, 16, 12));
/// ```
#[derive(Clone, Debug)]
pub struct PrefixCache {
    settings: CacheSettings,
    blocks: HashMap<u128, Block>,
    /// The blocks in the order of their last use.
    order: BTreeMap<u64, u128>,
    /// Counts uses.
    tick: u64,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    tick: u64,
    used: Duration,
}

impl PrefixCache {
    /// Creates an empty cache.
    #[must_use]
    pub fn new(settings: CacheSettings) -> Self {
        Self { settings, blocks: HashMap::new(), order: BTreeMap::new(), tick: 0 }
    }

    /// Returns how many blocks or marked prefixes it holds; some may have expired.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Processes a request. `now` is the time since any fixed moment, and never decreases.
    pub fn request(&mut self, tenant: &str, tokens: &RequestTokens, now: Duration) -> CacheUse {
        match self.settings.reach {
            Some(reach) => self.at_marks(tenant, tokens, reach, now),
            None => self.call(tenant, &tokens.ids, tokens.kept, now),
        }
    }

    /// Processes these tokens, of which the first `kept` are to be kept in whole blocks, whatever the
    /// marks. `now` is as for [`request`](Self::request).
    ///
    /// Tokens count as written if the cache keeps them now and did not have them before. Tokens that
    /// it has but that are computed again, or that find no room, count as plain.
    pub fn call(&mut self, tenant: &str, tokens: &[u32], kept: usize, now: Duration) -> CacheUse {
        let kept = kept.min(tokens.len());
        let kept = if kept < self.settings.least { 0 } else { kept };
        let chain = self.chain(tenant, tokens.get(..kept).unwrap_or(tokens));
        let block = self.settings.block.max(1);
        // The last token is always computed: its output begins the answer.
        let readable = tokens.len().saturating_sub(1) / block;
        let known = chain.iter().take_while(|hash| self.is_live(**hash, now)).count();
        let read = known.min(readable) * block;
        let read = if read < self.settings.least { 0 } else { read };
        self.keep(&chain, now);
        let is_kept = |hash: &&u128| self.blocks.contains_key(*hash);
        let written = chain.iter().skip(known).filter(is_kept).count() * block;
        CacheUse::of(tokens.len(), read, written)
    }

    /// Processes a request whose prefixes end at marks.
    fn at_marks(
        &mut self,
        tenant: &str,
        tokens: &RequestTokens,
        reach: usize,
        now: Duration,
    ) -> CacheUse {
        let ends = self.ends(tenant, tokens);
        let marks = tokens.marks.iter().filter_map(|mark| Some((*mark, *ends.get(*mark)?)));
        let marks: Vec<_> = marks.filter(|(_, (end, _))| *end >= self.settings.least).collect();
        // From each mark backwards, beginning with its own position; the longest match counts.
        let found = marks.iter().filter_map(|(mark, _)| {
            let mut left = reach;
            let before = (0..=*mark).rev().take_while(|at| {
                let is_near = left > 0;
                left = left.saturating_sub(tokens.blocks.get(*at).copied().unwrap_or(1));
                is_near
            });
            let kept =
                before.filter_map(|at| ends.get(at)).find(|(_, hash)| self.is_live(*hash, now));
            kept.copied()
        });
        let found = found.max_by_key(|(end, _)| *end);
        let read = found.map_or(0, |(end, _)| end);
        let mut chain: Vec<u128> = marks.iter().map(|(_, (_, hash))| *hash).collect();
        chain.extend(found.map(|(_, hash)| hash));
        self.keep(&chain, now);
        let kept = marks.iter().filter(|(_, (_, hash))| self.blocks.contains_key(hash));
        let last = kept.map(|(_, (end, _))| *end).max().unwrap_or(0);
        CacheUse::of(tokens.ids.len(), read, last.saturating_sub(read))
    }

    /// Returns where each message ends, with the hash of everything before that.
    fn ends(&self, tenant: &str, tokens: &RequestTokens) -> Vec<(usize, u128)> {
        let mut before = xxh3_128(tenant.as_bytes());
        let mut from = 0;
        let mut is_standing = true;
        let mut ends = Vec::with_capacity(tokens.ends.len());
        for end in &tokens.ends {
            let mut bytes = before.to_le_bytes().to_vec();
            let part = tokens.ids.get(from..*end).unwrap_or_default();
            bytes.extend(part.iter().flat_map(|token| token.to_le_bytes()));
            if is_standing && *end > tokens.standing {
                is_standing = false;
                bytes.extend(tokens.choice.bytes().filter(|_| self.settings.by_choice));
            }
            before = xxh3_128(&bytes);
            from = *end;
            ends.push((*end, before));
        }
        ends
    }

    /// Returns the hash of each whole block, each computed over the one before it.
    fn chain(&self, tenant: &str, tokens: &[u32]) -> Vec<u128> {
        let mut before = xxh3_128(tenant.as_bytes());
        let mut bytes = Vec::new();
        let blocks = tokens.chunks_exact(self.settings.block.max(1));
        let hash = |block: &[u32]| {
            bytes.clear();
            bytes.extend(before.to_le_bytes());
            bytes.extend(block.iter().flat_map(|token| token.to_le_bytes()));
            before = xxh3_128(&bytes);
            before
        };
        blocks.map(hash).collect()
    }

    fn is_live(&self, hash: u128, now: Duration) -> bool {
        let live = |block: &Block| {
            self.settings.life.is_none_or(|life| now.saturating_sub(block.used) < life)
        };
        self.blocks.get(&hash).is_some_and(live)
    }

    /// Marks these blocks as used, and evicts what exceeds the capacity.
    fn keep(&mut self, chain: &[u128], now: Duration) {
        // From the end on: a block is worth nothing without those before it, so it must be evicted
        // first.
        for hash in chain.iter().rev() {
            self.tick += 1;
            let block = Block { tick: self.tick, used: now };
            if let Some(before) = self.blocks.insert(*hash, block) {
                self.order.remove(&before.tick);
            }
            self.order.insert(self.tick, *hash);
        }
        // The oldest come first; expired blocks are dropped.
        while let Some((_, hash)) = self.order.first_key_value().map(|(tick, hash)| (*tick, *hash))
            && !self.is_live(hash, now)
        {
            self.order.pop_first();
            self.blocks.remove(&hash);
        }
        while self.settings.capacity.is_some_and(|capacity| self.blocks.len() > capacity) {
            let Some((_, hash)) = self.order.pop_first() else { break };
            self.blocks.remove(&hash);
        }
    }
}
