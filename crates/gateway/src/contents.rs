//! The contents of a request: which messages were sent, and which were not.

use crate::TextName;
use foldback::{NoteName, ParkedName};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Which messages a request had, by the numbers under which they are recorded in its todo. Pairs of numbers are a first
/// message and the number after the last. The texts are in the store: those of recorded messages, and what the gateway
/// itself wrote, as notes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Contents {
    /// The client's conversation.
    pub asked: Vec<(u64, u64)>,
    /// What was sent of it, in order; empty if that is everything, as the client sent it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sent: Vec<SentPart>,
    /// The names of the client's own tools, or the types of those without one, as a JSON list in alphabetical order,
    /// which is a note; `None` in a ledger of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<TextName<8>>,
    /// Whether tools of the gateway were declared.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_tools: bool,
    /// Why it was sent whole although something might have been left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<WhyWhole>,
}

/// A part of what was sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SentPart {
    /// Recorded messages, as the client sent them.
    Kept(u64, u64),
    /// Recorded messages without the model's thinking.
    WithoutThoughts(u64, u64),
    /// A shorter form of this message, which is a note.
    Instead(u64, TextName<8>),
    /// A message of the gateway's own, which is a note.
    Added(TextName<8>),
    /// Recorded messages with look-ups around them that the client does not know: a parked text.
    LookedUp(u64, u64, TextName<32>),
}

/// Why a request was sent whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WhyWhole {
    /// The store did not answer in time.
    SlowStore,
    /// The provider refused the shortened request.
    Refused,
    /// The provider refused an earlier one.
    RefusedBefore,
}

/// A request with more runs of messages than this is not described.
const MOST: usize = 256;

/// A part of a request under construction, with messages by their places among the client's.
#[derive(Clone, Debug)]
pub(crate) enum Laid {
    Kept(usize),
    WithoutThoughts(usize),
    /// The recorded parts of a message that are sent, with the JSON of what replaces each, and whether they lose the
    /// model's thinking.
    Parts(usize, Vec<(u64, Option<String>)>, bool),
    Added(String),
}

impl Laid {
    fn place(&self) -> Option<usize> {
        match self {
            Self::Kept(place) | Self::WithoutThoughts(place) | Self::Parts(place, ..) => {
                Some(*place)
            }
            Self::Added(_) => None,
        }
    }
}

impl Contents {
    /// Describes a request. `recorded` has the numbers of each of the client's messages, `laid` what was sent in place
    /// of them, `put_back` the places at which look-ups were put back. `name` keeps a text as a note. Returns `None` if
    /// that takes too many runs.
    pub(crate) fn new(
        recorded: &[Range<u64>],
        laid: Option<&[Laid]>,
        put_back: &[(usize, ParkedName)],
        mut name: impl FnMut(&str) -> NoteName,
    ) -> Option<Self> {
        let mut contents = Self::default();
        for range in recorded {
            push(&mut contents.asked, range.start, range.end);
        }
        let whole: Vec<Laid>;
        let laid = match laid {
            Some(laid) => laid,
            None if put_back.is_empty() => &[],
            None => {
                whole = (0..recorded.len()).map(Laid::Kept).collect();
                &whole
            }
        };
        // Before any text is kept.
        let texts = |part: &Laid| match part {
            Laid::Parts(_, parts, _) => parts.iter().filter(|(_, text)| text.is_some()).count(),
            Laid::Added(_) => 1,
            Laid::Kept(_) | Laid::WithoutThoughts(_) => 0,
        };
        if laid.iter().map(texts).sum::<usize>() > MOST {
            return None;
        }
        for part in laid {
            let looked_up = put_back.iter().find(|(place, _)| part.place() == Some(*place));
            if let Some((place, parked)) = looked_up {
                let Range { start, end } = recorded.get(*place)?.clone();
                contents.sent.push(SentPart::LookedUp(start, end, TextName(*parked)));
                continue;
            }
            match part {
                Laid::Kept(place) => {
                    let range = recorded.get(*place)?;
                    contents.keep(range.start, range.end);
                }
                Laid::WithoutThoughts(place) => {
                    let range = recorded.get(*place)?;
                    contents.keep_without_thoughts(range.start, range.end);
                }
                Laid::Added(text) => contents.sent.push(SentPart::Added(TextName(name(text)))),
                Laid::Parts(_, parts, drops_thoughts) => {
                    for (seq, instead) in parts {
                        match instead.as_deref().map(|json| TextName(name(json))) {
                            Some(short) => contents.sent.push(SentPart::Instead(*seq, short)),
                            None if *drops_thoughts => {
                                contents.keep_without_thoughts(*seq, seq + 1);
                            }
                            None => contents.keep(*seq, seq + 1),
                        }
                    }
                }
            }
        }
        (contents.asked.len() + contents.sent.len() <= MOST).then_some(contents)
    }

    fn keep_without_thoughts(&mut self, start: u64, end: u64) {
        match self.sent.last_mut() {
            Some(SentPart::WithoutThoughts(_, last)) if *last == start => *last = end,
            _ => self.sent.push(SentPart::WithoutThoughts(start, end)),
        }
    }

    fn keep(&mut self, start: u64, end: u64) {
        match self.sent.last_mut() {
            Some(SentPart::Kept(_, last)) if *last == start => *last = end,
            _ => self.sent.push(SentPart::Kept(start, end)),
        }
    }
}

/// Adds a run of messages, joined with the one before it if it continues that.
fn push(runs: &mut Vec<(u64, u64)>, start: u64, end: u64) {
    match runs.last_mut() {
        Some((_, last)) if *last == start => *last = end,
        _ => runs.push((start, end)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(count: u64) -> Vec<Range<u64>> {
        (0..count).map(|n| 2 * n..2 * n + 2).collect()
    }

    #[test]
    fn gw20_runs_are_joined_and_too_many_are_not_described() {
        let name = |text: &str| [text.len() as u8; 8];
        let kept = |places: &[usize]| places.iter().copied().map(Laid::Kept).collect::<Vec<_>>();
        let contents = Contents::new(&recorded(9), None, &[], name).unwrap();
        assert_eq!((contents.asked, contents.sent), (vec![(0, 18)], vec![]));
        let mut laid = kept(&[0, 1]);
        laid.push(Laid::Added("[memory]".to_owned()));
        laid.push(Laid::Parts(5, vec![(10, None), (11, Some("[stored]".to_owned()))], true));
        laid.extend([Laid::WithoutThoughts(6), Laid::WithoutThoughts(7), Laid::Kept(8)]);
        let contents = Contents::new(&recorded(9), Some(&laid), &[(8, [7; 32])], name).unwrap();
        let expected = [
            SentPart::Kept(0, 4),
            SentPart::Added(TextName([8; 8])),
            SentPart::WithoutThoughts(10, 11),
            SentPart::Instead(11, TextName([8; 8])),
            SentPart::WithoutThoughts(12, 16),
            SentPart::LookedUp(16, 18, TextName([7; 32])),
        ];
        assert_eq!(contents.sent, expected);
        // Look-ups are put back also where nothing is left out.
        let contents = Contents::new(&recorded(3), None, &[(1, [7; 32])], name).unwrap();
        let looked_up = SentPart::LookedUp(2, 4, TextName([7; 32]));
        assert_eq!(contents.sent, [SentPart::Kept(0, 2), looked_up, SentPart::Kept(4, 6)]);
        // Too many short forms are not described either, and none of them is kept.
        let short = |n| Laid::Parts(n, vec![(2 * n as u64, Some("[stored]".to_owned()))], false);
        let many: Vec<_> = (0..=MOST).map(short).collect();
        let refuse = |text: &str| -> NoteName { panic!("{text} was kept") };
        assert_eq!(Contents::new(&recorded(1_000), Some(&many), &[], refuse), None);
        for (runs, is_described) in [(MOST - 1, true), (MOST, false)] {
            let apart = kept(&(0..runs).map(|n| 2 * n).collect::<Vec<_>>());
            let contents = Contents::new(&recorded(1_000), Some(&apart), &[], name);
            assert_eq!(contents.is_some(), is_described, "{runs}");
        }
    }
}
