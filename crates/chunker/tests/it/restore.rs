//! The state that is stored with every message.

use foldback_chunker::{Chunker, ChunkerConfig, Event, Input, State};
use foldback_core::{Message, ToolCall, ToolCallId};

fn size(state: &State) -> usize {
    rmp_serde::to_vec(state).unwrap().len()
}

/// The worst case that was found: long messages of words that never return, hundreds of open calls,
/// vectors that are longer than any.
#[test]
fn bl7_the_state_is_bounded_however_large_the_messages_are() {
    let mut chunker = Chunker::new(ChunkerConfig::default());
    let vector: Vec<f32> = (0..4096).map(|i| (i as f32).sin()).collect();
    let mut largest = 0;
    for i in 0..120_u64 {
        let text: String = (0..4_000).map(|j| format!("w{} ", letters(i * 5_000 + j))).collect();
        let calls: Vec<ToolCall> = (0..if i % 3 == 0 { 1_000 } else { 0 })
            .map(|j| ToolCall::new(&format!("call-{i}-{j}"), &format!("tool_{j}"), "{}"))
            .collect();
        let message =
            if calls.is_empty() { Message::user(&text) } else { Message::calls(&text, calls) };
        chunker.push(Event::Message(Input::of(&message).with_vector(&vector)));
        largest = largest.max(size(chunker.state()));
    }
    println!("the largest state: {largest} bytes");
    assert!(largest <= State::MAX_BYTES, "{largest}");
}

/// A tail that larger blocks left open is sealed piece by piece, and nothing of it is lost.
#[test]
fn bl7_a_state_goes_on_under_smaller_blocks() {
    let message = |i: u64| Message::user(&format!("a message about number {i}"));
    let mut chunker = Chunker::new(ChunkerConfig::default().with_sizes(3, 8).unwrap());
    let mut blocks = Vec::new();
    let mut said = 0;
    while chunker.open_len() < 7 {
        blocks.extend(chunker.push(Event::Message(Input::of(&message(said)))));
        said += 1;
    }
    let mut chunker = Chunker::restore(ChunkerConfig::default(), chunker.state().clone());
    for i in said..said + 3 {
        blocks.extend(chunker.push(Event::Message(Input::of(&message(i)))));
        assert!(chunker.open_len() <= 5, "{}", chunker.open_len());
    }
    blocks.extend(chunker.push(Event::End));
    let mut next = 0;
    for block in blocks {
        assert_eq!(block.range.first().0, next);
        assert!(block.range.len() <= 8);
        next = block.range.last().0 + 1;
    }
    assert_eq!(next, said + 3);
}

fn letters(mut n: u64) -> String {
    let mut word = String::new();
    while n > 0 {
        word.push(char::from(b'a' + (n % 25) as u8));
        n /= 25;
    }
    word
}

#[test]
fn a_damaged_state_is_refused_or_goes_on() {
    let mut chunker = Chunker::new(ChunkerConfig::default());
    for i in 0..9 {
        let message = Message::user(&format!("a message about number {i}"));
        chunker.push(Event::Message(Input::of(&message).with_vector(&[0.6, 0.8])));
    }
    let bytes = rmp_serde::to_vec(chunker.state()).unwrap();
    let (mut refused, mut gone_on) = (0, 0);
    for at in 0..bytes.len() {
        for flip in [1, 16, 0x80] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            let Ok(state) = rmp_serde::from_slice::<State>(&damaged) else {
                refused += 1;
                continue;
            };
            let mut chunker = Chunker::restore(ChunkerConfig::default(), state);
            let result = Message::tool_result(&ToolCallId::new("c"), "r");
            for message in [Message::user("x"), result, Message::assistant("y")] {
                chunker.push(Event::Message(Input::of(&message)));
            }
            chunker.push(Event::End);
            gone_on += 1;
        }
    }
    assert!(refused > 0 && gone_on > 0, "{refused} were refused, {gone_on} went on");
}
