//! Laws that hold for every conversation, stated once and checked everywhere.

use foldback_chunker::{Chunker, ChunkerConfig, Closed, Event, Input};
use foldback_core::{Message, Pairing, PairingTracker};

/// The number of each message's unit, determined without the chunker: an assistant's calls and
/// their results, with the instructions between them, and every tool message with what precedes it.
pub(crate) fn units(messages: &[Message]) -> Vec<usize> {
    let mut tracker = PairingTracker::default();
    let mut unit = 0;
    let mut units = Vec::with_capacity(messages.len());
    for (at, message) in messages.iter().enumerate() {
        let interrupts = message.role().is_instruction() && !tracker.open().is_empty();
        let continues =
            matches!(tracker.observe(message), Pairing::Answers | Pairing::Orphan) || interrupts;
        if at > 0 && !continues {
            unit += 1;
        }
        units.push(unit);
    }
    units
}

/// Runs a conversation through a chunker, checking the tail after each message, and the blocks at
/// the end.
pub(crate) fn cut(config: &ChunkerConfig, messages: &[Message]) -> Result<Vec<Closed>, String> {
    let mut chunker = Chunker::new(config.clone());
    let mut closed: Vec<Closed> = Vec::new();
    let units = units(messages);
    for (at, message) in messages.iter().enumerate() {
        let input = Input::of(message);
        closed.extend(chunker.push(Event::Message(input)));
        let open = chunker.open_from().0 as usize..chunker.next().0 as usize;
        if open.end != at + 1 {
            return Err(format!("{} messages were pushed, but the next is {}", at + 1, open.end));
        }
        let one_unit = units[open.start] == units[open.end - 1];
        if open.len() > config.max() as usize && !one_unit {
            return Err(format!("the tail holds {open:?} after message {at}"));
        }
    }
    closed.extend(chunker.push(Event::End));
    if chunker.open_len() != 0 {
        return Err("the tail is not empty at the end".to_owned());
    }
    check(config, messages, &closed)?;
    Ok(closed)
}

/// Checks the blocks of a whole conversation.
fn check(config: &ChunkerConfig, messages: &[Message], blocks: &[Closed]) -> Result<(), String> {
    let (min, max) = (u64::from(config.min()), u64::from(config.max()));
    let units = units(messages);
    let mut next = 0;
    for (nth, block) in blocks.iter().enumerate() {
        let (first, last) = (block.range.first().0, block.range.last().0);
        if first != next {
            return Err(format!("block {nth} begins at {first}, not at {next}"));
        }
        next = last + 1;
        if first > 0 && units[first as usize] == units[first as usize - 1] {
            return Err(format!("the unit of message {first} is cut"));
        }
        let one_unit = units[first as usize] == units[last as usize];
        if block.oversize != (block.range.len() > max) || (block.oversize && !one_unit) {
            return Err(format!("block {nth} is larger than it may be: {block:?}"));
        }
        if block.range.len() < min {
            let at_an_end = nth == 0 || nth + 1 == blocks.len();
            let hard = block.reason.is_topic_cut()
                || nth.checked_sub(1).is_some_and(|before| {
                    blocks[before].reason.is_topic_cut() || blocks[before].oversize
                });
            let behind = units.get(next as usize).map_or(0, |unit| {
                units.iter().skip(next as usize).take_while(|other| *other == unit).count() as u64
            });
            if !at_an_end && !hard && block.range.len() + behind <= max {
                return Err(format!("block {nth} is smaller than it may be: {block:?}"));
            }
        }
    }
    if next != messages.len() as u64 {
        return Err(format!("the blocks end at {next} of {}", messages.len()));
    }
    Ok(())
}

mod random {
    use super::{cut, units};
    use foldback_chunker::{Chunker, ChunkerConfig, Event, Input, State};
    use foldback_core::{Message, Timestamp, ToolCall, ToolCallId};
    use proptest::prelude::*;

    /// One step of a random conversation, whose calls and results need not fit together.
    #[derive(Clone, Debug)]
    pub(crate) enum Said {
        Text(u8, &'static str),
        Calls(Vec<u8>),
        Result(u8),
        Results(u16),
        Silence(i32),
    }

    pub(crate) fn messages(said: &[Said]) -> Vec<Message> {
        let mut at = 1_700_000_000_000_i64;
        let mut messages = Vec::new();
        for said in said {
            match said {
                Said::Text(0, text) => messages.push(Message::user(text)),
                Said::Text(1, text) => messages.push(Message::system(text)),
                Said::Text(_, text) => messages.push(Message::assistant(text)),
                Said::Calls(ids) => {
                    let calls = ids.iter().map(|id| ToolCall::new(&id.to_string(), "read", "{}"));
                    messages.push(Message::calls("", calls.collect()));
                }
                Said::Result(id) => {
                    messages.push(Message::tool_result(&ToolCallId::new(&id.to_string()), "ok"));
                }
                Said::Results(n) => {
                    let result = Message::tool_result(&ToolCallId::new("1"), "line");
                    messages.extend(std::iter::repeat_n(result, usize::from(*n)));
                }
                Said::Silence(seconds) => {
                    at += i64::from(*seconds) * 1000;
                    if let Some(last) = messages.pop() {
                        messages.push(last.at(Timestamp(at)));
                    }
                }
            }
        }
        messages
    }

    pub(crate) fn said() -> impl Strategy<Value = Vec<Said>> {
        let text = prop::sample::select(vec![
            "",
            "Hello, I need a hotel in Cambridge please",
            "The hotel is booked. Anything else?",
            "What's the weather in Boston?",
            "Thanks, bye",
            "换个话题，帮我查一下上海的天气",
            "好的，还有什么需要吗？",
            "The compiler panics at src/main.rs:12",
        ]);
        let one = prop_oneof![
            6 => (0_u8..4, text).prop_map(|(role, text)| Said::Text(role, text)),
            4 => prop::collection::vec(0_u8..4, 1..4).prop_map(Said::Calls),
            5 => (0_u8..5).prop_map(Said::Result),
            1 => prop_oneof![4 => 1_u16..12, 1 => 100_u16..400].prop_map(Said::Results),
            2 => (-500_i32..500).prop_map(Said::Silence),
        ];
        prop::collection::vec(one, 0..60)
    }

    fn configs() -> impl Strategy<Value = ChunkerConfig> {
        (1_u32..6, 0_u32..4, 0_u32..4).prop_map(|(min, more, look_ahead)| {
            let config = ChunkerConfig::default();
            let config = config.with_sizes(min, (min + more).min(8)).unwrap();
            config.with_look_ahead(look_ahead).unwrap()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(600))]

        #[test]
        fn bl1_bl2_bl3_the_laws_hold_for_any_conversation(said in said()) {
            cut(&ChunkerConfig::default(), &messages(&said)).map_err(TestCaseError::fail)?;
        }

        #[test]
        fn bl3_the_laws_hold_for_any_sizes(said in said(), config in configs()) {
            cut(&config, &messages(&said)).map_err(TestCaseError::fail)?;
        }

        /// Continuing from the stored state is the same as never having stopped; and the state
        /// stays within its bound.
        #[test]
        fn bl7_restoring_at_every_step_changes_nothing(said in said()) {
            let messages = messages(&said);
            let config = ChunkerConfig::default();
            let mut whole = Chunker::new(config.clone());
            let mut state = State::default();
            for message in &messages {
                let vector = [message.text().len() as f32, 1.0, 3.0];
                let input = || Event::Message(Input::of(message).with_vector(&vector));
                let mut restored = Chunker::restore(config.clone(), state);
                prop_assert_eq!(whole.push(input()), restored.push(input()));
                prop_assert_eq!(whole.state(), restored.state());
                let bytes = rmp_serde::to_vec(restored.state()).unwrap();
                prop_assert!(bytes.len() <= State::MAX_BYTES);
                state = rmp_serde::from_slice(&bytes).unwrap();
                prop_assert_eq!(&state, whole.state());
            }
            prop_assert_eq!(
                whole.push(Event::End),
                Chunker::restore(config, state).push(Event::End)
            );
        }

        /// A switch of todo may come at any time: no call loses its result.
        #[test]
        fn bl4_a_switch_never_parts_a_unit(said in said(), switches in prop::collection::vec(0_usize..60, 0..5)) {
            let messages = messages(&said);
            let units = units(&messages);
            let mut chunker = Chunker::new(ChunkerConfig::default());
            let mut blocks = Vec::new();
            for (at, message) in messages.iter().enumerate() {
                blocks.extend(chunker.push(Event::Message(Input::of(message))));
                if switches.contains(&at) {
                    blocks.extend(chunker.push(Event::Switch));
                }
            }
            blocks.extend(chunker.push(Event::End));
            let mut tracker = foldback_core::PairingTracker::default();
            let mut next = 0;
            let answers: Vec<bool> = messages
                .iter()
                .map(|message| tracker.observe(message) == foldback_core::Pairing::Answers)
                .collect();
            for block in blocks {
                let first = block.range.first().0 as usize;
                prop_assert_eq!(first as u64, next);
                prop_assert!(first == 0 || !(answers[first] && units[first] == units[first - 1]));
                next = block.range.last().0 + 1;
            }
            prop_assert_eq!(next, messages.len() as u64);
        }
    }
}
