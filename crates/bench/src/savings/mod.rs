//! What a model is sent under each policy, and how much of what was needed later was still available.
//!
//! A recorded conversation is fed through each policy message by message; the model is asked at the
//! places that [`Calls`](crate::Calls) gives. Each prompt is counted with o200k, tools included, and
//! metered as [`Meter`](crate::Meter) describes: as if the cache never forgot, and for each
//! conversation and policy with the cache or without, whichever is cheaper. Tools count as the
//! chat-completions API takes them, those of the recording by the same rule. A policy's background work
//! comes back one message late, and the model calls that it makes for its own purposes are counted with
//! all that they read, nothing of it cached.
//!
//! **Facts.** A string or number of four characters or more in the arguments of a recorded call that
//! occurs in an earlier message is something that the model had to know: a fact. It is
//! - *visible* if the prompt of that call contains it;
//! - *recalled* if one search finds it, or one look at the first place that the search named but did
//!   not show in full; of each, up to 2,000 tokens are read. The search consists of the beginning of
//!   the latest user text, the tool's name and the argument's, never of the value: if the value occurs
//!   in them, it is removed;
//! - *reachable* if reading everything that the policy's tools list finds it;
//! - *lost* otherwise.
//!
//! Facts that occurred only in large parts, which the memory stores outside the conversation, and facts
//! that only the model's own words contained (a command that it repeats) are also counted separately.
//!
//! The ceiling is what a search would find that always ranked the right block, part or file first and
//! showed the 2,000 tokens of it that matter.
//!
//! Each search costs a further model call, with the same prompt, the call and its answer; a subsequent
//! look costs one more. They count whether they find anything or not, once for each argument. What was
//! recalled is not part of the prompts that follow, which are those of the recording. The simulated
//! agent asks exactly when something is missing, and knows for which argument; a model may fail to ask,
//! or ask in vain. So the recalled share is an upper bound on recall, but its cost is not an upper
//! bound on cost.

mod budget;
mod facts;
mod question;
mod reach;
mod run;
mod values;

mod by_length;
mod compare;
mod figures;
mod group;
mod page;
mod sheets;
mod targets;

pub use compare::{Comparison, Length, Spread};
pub use figures::{ByPolicy, FactCounts, Fate, Figures, Pointers, ShortenedResults};
pub use group::Group;
pub(crate) use sheets::percent;
pub use targets::{Target, Worst};

use crate::{BenchError, Case, Kind};
use foldback::Options;
use foldback_core::{Budget, Prices};
use foldback_policies::{Policy, Summaries};
use rayon::prelude::*;
use run::Subject;
use serde::Serialize;
use std::time::Duration;

/// The highest price allowed, so that every sum is a number; only the ratios of prices matter.
pub const PRICE_MOST: f64 = 1e9;

/// What is measured, and at which prices.
#[derive(Clone)]
pub struct Config {
    /// The prices of input tokens.
    pub prices: Prices,
    /// How long the provider's cache keeps what is not read; `None` for ever.
    pub cache_life: Option<Duration>,
    /// The time between two calls in conversations whose messages carry no times; `None` for none.
    pub gap: Option<Duration>,
    /// The number of tokens of tools that the recordings do not mention, declared before every prompt
    /// of every policy.
    pub agent_tools: u64,
    /// The policies, in the order of the report.
    pub policies: Vec<Policy>,
    /// How the memory cuts, offloads, finds and shows. The policy determines when blocks fold.
    pub options: Options,
    /// The maximum size of a prompt, tools included. Policies that cannot make theirs smaller are
    /// counted with what they would send.
    pub budget: Budget,
    /// How other policies write summaries.
    pub summaries: Summaries,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            prices: Prices::default(),
            cache_life: None,
            gap: None,
            agent_tools: 0,
            policies: Policy::all(),
            options: Options::default(),
            budget: Budget::default(),
            summaries: Summaries::default(),
        }
    }
}

/// The results.
#[derive(Clone, Debug, Serialize)]
pub struct Savings {
    /// Each conversation, in the order of the input.
    pub conversations: Vec<Measured>,
    /// The sums over all conversations.
    pub policies: ByPolicy<Figures>,
    /// The sums over the conversations of a group; those without a conversation are left out.
    pub kinds: Vec<OfKind>,
    /// The memory's savings against each rival, by kind and length.
    pub comparisons: Vec<Comparison>,
    /// The memory's targets, and what it reaches.
    pub targets: Vec<Target>,
    /// The conversation in which folding by cost was dearest compared with keeping everything.
    pub worst: Option<Worst>,
    /// The tokens of every prompt of the longest conversations of each group.
    pub curves: Vec<Curve>,
    /// The facts that a policy neither showed nor recalled.
    #[serde(skip)]
    pub misses: Vec<Miss>,
}

/// One conversation under each policy.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Its name.
    pub id: String,
    /// The file from which it came.
    pub file: String,
    /// Its kind.
    pub kind: Kind,
    /// The group in which it is summed up.
    pub group: Group,
    /// Its messages.
    pub messages: u64,
    /// Its tokens.
    pub tokens: u64,
    /// The figures.
    pub policies: ByPolicy<Figures>,
}

/// All conversations of a group.
#[derive(Clone, Debug, Serialize)]
pub struct OfKind {
    /// The group.
    pub kind: Group,
    /// The number of conversations.
    pub conversations: u64,
    /// The sums.
    pub policies: ByPolicy<Figures>,
}

/// The sizes of a conversation's prompts, without recalls and without the calls that a policy made for
/// its own purposes.
#[derive(Clone, Debug, Serialize)]
pub struct Curve {
    /// The conversation.
    pub id: String,
    /// Its group.
    pub kind: Group,
    /// Its tokens.
    pub tokens: u64,
    /// The tokens of each prompt, in order.
    pub policies: ByPolicy<Vec<u64>>,
}

/// A fact that was neither visible nor recalled.
#[derive(Clone, Debug, Serialize)]
pub struct Miss {
    /// The conversation.
    pub id: String,
    /// The policy.
    pub policy: &'static str,
    /// The index of the message that needed it.
    pub at: u64,
    /// The tool that was called.
    pub tool: String,
    /// The argument.
    pub argument: String,
    /// The value.
    pub value: String,
    /// Whether it occurred only in large parts.
    pub in_payload: bool,
    /// Whether only the model's own words contained it.
    pub is_own: bool,
    /// Whether one look at the right place would have found it.
    pub in_a_look: bool,
    /// Its fate.
    pub fate: Fate,
    /// The search.
    pub asked: String,
}

/// The number of conversations per group whose curves are kept.
const CURVES: usize = 12;

/// Measures conversations under each policy. `done` is called for each finished conversation with the
/// number of its messages.
///
/// # Errors
/// When a price is not a number from 0 to [`PRICE_MOST`], an ordinary token is free, or a policy cannot
/// keep a message or answer a call.
pub fn measure(
    cases: &[Case],
    config: &Config,
    done: &(dyn Fn(u64) + Sync),
) -> Result<Savings, BenchError> {
    let Prices { read, write, plain } = config.prices;
    if !config.prices.is_sound() || [read, write, plain].iter().any(|price| *price > PRICE_MOST) {
        return Err(BenchError::Input(format!(
            "the prices are {read}, {write} and {plain}; they have to be numbers from 0 to \
             {PRICE_MOST}, and an ordinary token has to cost something"
        )));
    }
    let measured: Vec<One> = cases
        .par_iter()
        .with_max_len(1)
        .map(|case| {
            let one = One::measure(case, config)?;
            done(case.conversation.messages.len() as u64);
            Ok(one)
        })
        .collect::<Result<_, BenchError>>()?;
    let mut savings = Savings {
        conversations: Vec::with_capacity(measured.len()),
        policies: sums(config, []),
        kinds: Vec::new(),
        comparisons: Vec::new(),
        targets: Vec::new(),
        worst: None,
        curves: Vec::new(),
        misses: Vec::new(),
    };
    let mut curves = Vec::with_capacity(measured.len());
    for one in measured {
        curves.push(one.curve);
        savings.misses.extend(one.misses);
        savings.conversations.push(one.measured);
    }
    // A stable sort.
    curves.sort_by_key(|curve| std::cmp::Reverse(curve.tokens));
    for kind in Group::ALL {
        let of_kind = curves.iter().filter(|curve| curve.kind == kind);
        savings.curves.extend(of_kind.take(CURVES).cloned());
    }
    savings.policies = sums(config, &savings.conversations);
    for kind in Group::ALL {
        let of_kind = || savings.conversations.iter().filter(|one| one.group == kind);
        let conversations = of_kind().count() as u64;
        if conversations > 0 {
            let policies = sums(config, of_kind());
            savings.kinds.push(OfKind { kind, conversations, policies });
        }
    }
    savings.comparisons = compare::comparisons(config, &savings.conversations);
    savings.targets = targets::targets(&savings.conversations);
    savings.worst = targets::worst(&savings.conversations);
    Ok(savings)
}

fn sums<'a>(
    config: &Config,
    conversations: impl IntoIterator<Item = &'a Measured>,
) -> ByPolicy<Figures> {
    let zeros = config.policies.iter().map(|policy| (policy.name(), Figures::default()));
    let mut sums = ByPolicy::new(zeros.collect());
    for measured in conversations {
        for ((_, sum), (_, figures)) in sums.iter_mut().zip(measured.policies.iter()) {
            sum.add(figures);
        }
    }
    for (_, sum) in sums.iter_mut() {
        *sum = std::mem::take(sum).settled();
    }
    sums
}

/// Measures one conversation, keeping its details only if there is room.
struct One {
    measured: Measured,
    curve: Curve,
    misses: Vec<Miss>,
}

impl One {
    fn measure(case: &Case, config: &Config) -> Result<Self, BenchError> {
        let mut subject = Subject::new(case, config)?;
        let (tokens, _) = subject.tokens();
        let (mut figures, mut curves, mut misses) = (Vec::new(), Vec::new(), Vec::new());
        for policy in &config.policies {
            let outcome = subject.run(*policy)?;
            figures.push((policy.name(), outcome.figures));
            curves.push((policy.name(), outcome.curve));
            misses.extend(outcome.misses);
        }
        Ok(Self {
            measured: Measured {
                id: case.id.clone(),
                file: case.file.clone(),
                kind: case.kind,
                group: Group::of(case),
                messages: case.conversation.messages.len() as u64,
                tokens,
                policies: ByPolicy::new(figures),
            },
            curve: Curve {
                id: case.id.clone(),
                kind: Group::of(case),
                tokens,
                policies: ByPolicy::new(curves),
            },
            misses,
        })
    }
}
