//! The signals for and against a change of topic: one table.
//!
//! A row of [`SIGNALS`] is what is looked for, and what it adds to the score of a cut. A row with a [`Cue`] is found
//! once, when a message arrives, in its text, and is kept with the message as a bit of [`Cues`]. The other rows are
//! measured when the score is computed. The score, the names in its explanation and the bits that are stored all come
//! from this table, so that a new cue is one row of it: see `docs/adding-a-cue.md` in the repository.
//!
//! # Where the weights come from
//!
//! They were learnt once, without labels, from synthetic joins of conversations: the average of three logistic
//! regressions (service sessions .4, open chat .4, tool use .2), rounded to 0.2. They are frozen: a build never trains,
//! and the trainer is not part of the repository. A weight that is added or changed is chosen by `foldback bench
//! segmentation` on conversations that name their boundaries.
//!
//! Four of them are a step or two of 0.2 beyond what was learnt: pointing back, taking up what was said and thanks
//! speak more against a change of topic, and asking about the other speaker more for one; and taking up what was said
//! has no weight if the other is asked about after it. Pk before and after, and topic cuts in an airline session
//! of one task, all with blocks of up to eight messages:
//!
//! ```text
//! open chat .403 .383   joined dialogues .138 .141   joined agent sessions .054 .046   cuts .29 .21
//! ```
//!
//! Open chat and agent sessions gain on both halves of their conversations, joined dialogues lose on one; chats of nine
//! users over ten days lose too (.053 .061). Chinese, Japanese and Korean are unchanged.
//!
//! A greeting counts as it was learnt. By itself, that would cut between an assistant's greeting and the user's "hi";
//! the chunker never cuts before the third message.

use crate::cjk_cues as cjk;
use crate::cues::Cues;
use crate::english_cues as english;
use crate::reading::Reading;
use crate::score::Gap;
use crate::window::Speaker;

/// The score before any signal is added.
pub(crate) const BIAS: f32 = -2.8;

/// The signals, in the order in which their terms are summed up: a float's last bit depends on it.
pub(crate) static SIGNALS: &[Signal] = &[
    measured(&[
        of("cohesion 1|1", -3.8, |gap| gap.words.cohesion[0]),
        of("cohesion 2|2", -4.4, |gap| gap.words.cohesion[1]),
        of("cohesion 4|4", -3.6, |gap| gap.words.cohesion[2]),
        of("novelty", 1.2, |gap| gap.words.novelty),
        of("persistence", 0.6, |gap| gap.words.persistence),
        of("chains", -0.6, |gap| gap.words.chains),
    ]),
    cue(
        Cues::ASKS,
        "asks",
        |text, _| text.has_question_mark() || text.ends_cjk(cjk::ASKS) || text.is_elliptic_cjk(),
        &[before("asked before", -1.6)],
    ),
    cue(
        Cues::CLOSES,
        "closes",
        |text, _| {
            text.tail_says(&english::CLOSES)
                || text.tail_says_cjk(cjk::CLOSES)
                || text.ends_cjk(cjk::IS_DONE)
        },
        &[before("closed before", 0.4), here(-0.6)],
    ),
    cue(
        Cues::THANKS,
        "thanks",
        |text, _| text.tail_says(&english::THANKS) || text.tail_says_cjk(cjk::THANKS),
        &[here(-0.8)],
    ),
    cue(
        Cues::ACKNOWLEDGES,
        "acknowledges",
        |text, _| {
            let is_cjk = text.begins_cjk(cjk::ACKNOWLEDGES) || text.is_elliptic_cjk();
            text.begins(&english::ACKNOWLEDGES) || (is_cjk && !text.turns_cjk())
        },
        // A speaker who takes up what was said and then asks about the other is done with it.
        &[of("acknowledges", -1.0, |gap| {
            is(gap.here.cues.has(Cues::ACKNOWLEDGES) && !gap.here.cues.has(Cues::ASKS_YOU))
        })],
    ),
    cue(
        Cues::REFERS_BACK,
        "refers back",
        |text, _| {
            let is_cjk = text.head_says_cjk(cjk::REFERS_BACK) || text.is_elliptic_cjk();
            text.head_says(&english::REFERS_BACK) || (is_cjk && !text.turns_cjk())
        },
        &[here(-0.6)],
    ),
    cue(
        Cues::REQUESTS,
        "requests",
        |text, _| text.head_says(&english::REQUESTS) || text.head_says_cjk(cjk::REQUESTS),
        &[here(0.2)],
    ),
    cue(
        Cues::ASKS_YOU,
        "asks you",
        |text, _| text.tail_says(&english::ASKS_YOU) || text.tail_says_cjk(cjk::ASKS_YOU),
        &[here(1.0)],
    ),
    cue(
        Cues::GREETS,
        "greets",
        // A speaker who turns to another subject explicitly starts afresh, as a greeting does.
        |text, _| {
            text.begins(&english::GREETS)
                || text.head_says(&english::OFFERS_HELP)
                || text.begins_cjk(cjk::GREETS)
                || text.turns_cjk()
        },
        &[here(3.6), before("greeted before", -2.0)],
    ),
    measured(&[
        of("user speaks", 1.4, |gap| is(gap.here.speaker == Speaker::User)),
        of("user spoke before", 0.4, |gap| is(gap.before.speaker == Speaker::User)),
    ]),
    cue(Cues::FEW_WORDS, "few words", |text, _| text.words_of_head() <= 4, &[here(-1.0)]),
    cue(
        Cues::COURTESY,
        "courtesy",
        |text, found| {
            found.has(Cues::THANKS)
                && !found.has(Cues::ASKS | Cues::REQUESTS)
                && text.content_of_tail() <= 5
        },
        // It has no weight: nothing is ever cut before it.
        &[],
    ),
    measured(&[
        of("user after a close", 0.4, |gap| {
            is(gap.here.speaker == Speaker::User && gap.before.cues.has(Cues::CLOSES))
        }),
        of("user requests", 0.8, |gap| {
            is(gap.here.speaker == Speaker::User && gap.here.cues.has(Cues::REQUESTS))
        }),
    ]),
];

/// A row of the table.
pub(crate) struct Signal {
    /// `None` for a signal that is measured when the score is computed.
    cue: Option<Cue>,
    terms: &'static [Term],
}

/// Something that a message says, or does not say.
pub(crate) struct Cue {
    /// Its bit in [`Cues`], and so in the stored state: it never changes.
    pub(crate) bit: u32,
    /// Its name in the explanation of a cut.
    pub(crate) name: &'static str,
    /// Whether a message says it. The cues of the rows above are already known.
    pub(crate) is_found: fn(&Reading<'_>, Cues) -> bool,
}

/// The contribution of a signal to the score of a cut before a message.
pub(crate) struct Term {
    /// Its name in the explanation of a cut; `None` if that is the name of the row's cue.
    name: Option<&'static str>,
    /// The contribution of a value of one.
    weight: f32,
    value: Value,
}

enum Value {
    /// 1 if the message before which the cut would be has the row's cue.
    Here,
    /// 1 if the message before it has the cue.
    Before,
    Of(fn(&Gap<'_>) -> f32),
}

const fn cue(
    bit: u32,
    name: &'static str,
    is_found: fn(&Reading<'_>, Cues) -> bool,
    terms: &'static [Term],
) -> Signal {
    Signal { cue: Some(Cue { bit, name, is_found }), terms }
}

const fn measured(terms: &'static [Term]) -> Signal {
    Signal { cue: None, terms }
}

const fn here(weight: f32) -> Term {
    Term { name: None, weight, value: Value::Here }
}

const fn before(name: &'static str, weight: f32) -> Term {
    Term { name: Some(name), weight, value: Value::Before }
}

const fn of(name: &'static str, weight: f32, value: fn(&Gap<'_>) -> f32) -> Term {
    Term { name: Some(name), weight, value: Value::Of(value) }
}

fn is(condition: bool) -> f32 {
    f32::from(u8::from(condition))
}

/// Returns the cues, in the order of the table.
pub(crate) fn cues() -> impl Iterator<Item = &'static Cue> {
    SIGNALS.iter().filter_map(|signal| signal.cue.as_ref())
}

/// Returns the terms, in the order of the table.
pub(crate) fn terms() -> impl Iterator<Item = (&'static Signal, &'static Term)> {
    SIGNALS.iter().flat_map(|signal| signal.terms.iter().map(move |term| (signal, term)))
}

impl Signal {
    /// Returns the name of `term`, one of this signal's, in the explanation of a cut.
    pub(crate) fn name_of(&self, term: &Term) -> &'static str {
        term.name.or(self.cue.as_ref().map(|cue| cue.name)).unwrap_or_default()
    }

    /// Returns what `term`, one of this signal's, adds to the score.
    pub(crate) fn adds(&self, term: &Term, gap: &Gap<'_>) -> f32 {
        let has = |cues: Cues| is(self.cue.as_ref().is_some_and(|cue| cues.has(cue.bit)));
        let value = match term.value {
            Value::Here => has(gap.here.cues),
            Value::Before => has(gap.before.cues),
            Value::Of(value) => value(gap),
        };
        value * term.weight
    }
}

/// How many terms there are.
pub(crate) const TERMS: usize = {
    let (mut at, mut sum) = (0, 0);
    while at < SIGNALS.len() {
        sum += SIGNALS[at].terms.len();
        at += 1;
    }
    sum
};

// Each cue has one bit of its own, and none of those that count words.
const _: () = {
    let (mut at, mut taken) = (0, Cues::CONTENT);
    while at < SIGNALS.len() {
        if let Some(cue) = &SIGNALS[at].cue {
            assert!(cue.bit.is_power_of_two() && taken & cue.bit == 0, "the bit is taken");
            taken |= cue.bit;
        }
        at += 1;
    }
};
