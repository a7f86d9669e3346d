//! The weights of the topic score.
//!
//! They were learnt once, without labels, from synthetic joins of conversations: the average of
//! three logistic regressions (service sessions, open chat, tool use), rounded to 0.2. They are
//! frozen: a build never trains.
//!
//! Four of them stand a step or two of 0.2 beyond what was learnt: who points back, takes up what was
//! said or thanks speaks more against a change of topic, and who asks about the other more for one;
//! and to take up what was said says nothing where the other is asked about behind it. Pk before
//! and behind, and topic cuts in an airline session of one task:
//!
//! ```text
//! open chat .403 .383   joined dialogues .138 .141   joined agent sessions .054 .046   cuts .29 .21
//! ```
//!
//! Open chat and agent sessions gain on both halves of their conversations, joined dialogues lose on one;
//! chats of nine users over ten days lose too (.053 .061). Chinese, Japanese and Korean stay as they
//! were.
//!
//! A greeting counts as it was learnt. Alone, that would cut between an assistant's greeting and the
//! user's "hi"; the chunker never cuts before the third message.

/// The score before any feature is looked at.
pub(crate) const BIAS: f32 = -2.8;

/// The features, in the order of [`WEIGHTS`].
pub(crate) const NAMES: [&str; 21] = [
    "cohesion 1|1",
    "cohesion 2|2",
    "cohesion 4|4",
    "novelty",
    "persistence",
    "chains",
    "asked before",
    "closed before",
    "closes",
    "thanks",
    "acknowledges",
    "refers back",
    "requests",
    "asks you",
    "greets",
    "greeted before",
    "user speaks",
    "user spoke before",
    "few words",
    "user after a close",
    "user requests",
];

/// What one of each feature adds to the score of a cut.
pub(crate) const WEIGHTS: [f32; NAMES.len()] = [
    -3.8, -4.4, -3.6, 1.2, 0.6, -0.6, -1.6, 0.4, -0.6, -0.8, -1.0, -0.6, 0.2, 1.0, 3.6, -2.0, 1.4,
    0.4, -1.0, 0.4, 0.8,
];
