//! The weights of the topic score.
//!
//! They were learnt once, without labels, from synthetic joins of conversations: the average of
//! three logistic regressions (service sessions, open chat, tool use), rounded to 0.2. They are
//! frozen: a build never trains.
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
    -3.8, -4.4, -3.6, 1.2, 0.6, -0.6, -1.6, 0.4, -0.6, -0.4, -0.8, -0.4, 0.2, 0.8, 3.6, -2.0, 1.4,
    0.4, -1.0, 0.4, 0.8,
];
