//! Records whose bytes differ from what was written, although each is sealed as the store seals its
//! own.

use super::{check, one_of};
use crate::fuzzing::fuzzed::sound_store::sound_store;
use foldback::kv::{Key, Space};
use foldback_core::{Block, StoredMessage};
use foldback_testkit::Random;
use serde_json::{Value, json};

/// The records that are read whenever the todo is.
const READ: [Space; 6] = [
    Space::Message,
    Space::Block,
    Space::Vector,
    Space::Payload,
    Space::PayloadBytes,
    Space::Session,
];

fn any_of(random: &mut Random, spaces: &[Space]) -> (Key, Vec<u8>) {
    let records: Vec<&(Key, Vec<u8>)> =
        sound_store().records.iter().filter(|(key, _)| spaces.contains(&key.space)).collect();
    (*one_of(random, &records)).clone()
}

#[track_caller]
fn with(key: Key, value: Option<Vec<u8>>) -> bool {
    check(sound_store().kv(&[(key, value)]), sound_store().dir.path(), &[])
}

pub(super) fn truncated(random: &mut Random) -> bool {
    let (key, mut value) = match random.below(8) {
        0 => any_of(random, &[Space::Todo, Space::Name, Space::Meta, Space::PayloadHash]),
        _ => any_of(random, &READ),
    };
    value.truncate(random.below(value.len().max(1)));
    with(key, Some(value))
}

/// A MessagePack text that claims to be longer than the record.
pub(super) fn length_beyond(random: &mut Random) -> bool {
    let more = 1 + random.below(1 << 20) as u32;
    long_text(random, |left| left as u32 + more)
}

/// A MessagePack text or list of the maximum length.
pub(super) fn length_of_all_bits(random: &mut Random) -> bool {
    long_text(random, |_| u32::MAX)
}

fn long_text(random: &mut Random, length: impl Fn(usize) -> u32) -> bool {
    let (key, mut value) = any_of(random, &[Space::Message, Space::Block, Space::Vector]);
    let is_text = |byte: &u8| (0xa1..=0xbf).contains(byte) || *byte == 0xd9;
    let at = value.iter().position(is_text).unwrap();
    let header = if value[at] == 0xd9 { 2 } else { 1 };
    let length = length(value.len() - at - header);
    // As a text, as bytes, as a list.
    let kind = *one_of(random, &[0xdb, 0xc6, 0xdd]);
    value.splice(at..at + header, [&[kind][..], &length.to_be_bytes()].concat());
    with(key, Some(value))
}

/// A block in place of the next one, or with the messages of the previous one.
pub(super) fn duplicate(random: &mut Random) -> bool {
    let blocks = sound_store().of(Space::Block);
    let pairs: Vec<_> = blocks.windows(2).filter(|pair| pair[0].0.todo == pair[1].0.todo).collect();
    let pair = one_of(random, &pairs);
    let (before, (key, value)) = (&pair[0].1, pair[1]);
    if random.below(2) == 0 {
        return with(*key, Some(before.clone()));
    }
    let range = edited(before, |_| {})["range"].clone();
    with_other_range(*key, packed(&edited(value, |block| block["range"] = range)))
}

/// Only that block differs, and the doctor says so.
#[track_caller]
fn with_other_range(key: Key, block: Vec<u8>) -> bool {
    let kv = sound_store().kv(&[(key, Some(block))]);
    check(kv, sound_store().dir.path(), &[&format!(" block {}:", key.n)])
}

pub(super) fn gap(random: &mut Random) -> bool {
    let (key, _) = any_of(random, &[Space::Message, Space::Block]);
    with(key, None)
}

pub(super) fn regress(random: &mut Random) -> bool {
    let (store, todo) = (sound_store(), 1 + random.below(2) as u32);
    let kv = store.kv(&[]);
    let head = store.head(todo);
    store.set_head(kv.as_ref(), todo, head, 1 + random.below(head as usize - 1) as u64);
    check(kv, store.dir.path(), &[" length"])
}

pub(super) fn dangling(random: &mut Random) -> bool {
    let (key, _) = any_of(random, &[Space::Payload, Space::PayloadBytes]);
    with(key, None)
}

/// Another hash in the record of a payload, or other bytes under the same.
pub(super) fn wrong_hash(random: &mut Random) -> bool {
    let (key, mut value) = any_of(random, &[Space::Payload, Space::PayloadBytes]);
    let at = if key.space == Space::Payload {
        // The record is a list that begins with 32 bytes of hash.
        let hash = value.windows(2).position(|header| header == [0xc4, 32]).unwrap() + 2;
        hash + random.below(32)
    } else {
        random.below(value.len())
    };
    value[at] ^= 1 << random.below(8);
    with(key, Some(value))
}

pub(super) fn no_text(random: &mut Random) -> bool {
    let (key, mut value) = any_of(random, &[Space::Message, Space::Block]);
    // Within a word: a letter by itself may be a number.
    let is_word = |at: &usize| value[*at - 2..*at + 4].iter().all(u8::is_ascii_lowercase);
    let letters: Vec<usize> = (2..value.len() - 4).filter(is_word).collect();
    let bad = *one_of(random, &[&b"\xff"[..], b"\xc0\xaf", b"\xed\xa0\x80", b"\x80"]);
    let at = *one_of(random, &letters);
    for (place, byte) in value.iter_mut().skip(at).zip(bad) {
        *place = *byte;
    }
    with(key, Some(value))
}

/// The number of bytes at the end of a vector record that are numbers: at least those of one vector.
fn numbers(value: &[u8]) -> usize {
    let header = value.iter().rposition(|byte| *byte == 0xc5 || *byte == 0xc6);
    header.map_or(256, |at| (value.len() - at).min(256)) & !1
}

pub(super) fn no_number(random: &mut Random) -> bool {
    let (key, mut value) = any_of(random, &[Space::Vector]);
    let half = *one_of(random, &[0x7e00_u16, 0x7c00, 0xfc00, 0xffff, 0x7c01]);
    let at = value.len() - 2 * (1 + random.below(numbers(&value) / 2));
    value[at..at + 2].copy_from_slice(&half.to_le_bytes());
    with(key, Some(value))
}

pub(super) fn zero_vector(random: &mut Random) -> bool {
    let (key, mut value) = any_of(random, &[Space::Vector]);
    let from = value.len() - numbers(&value);
    value[from..].fill(0);
    with(key, Some(value))
}

/// The model's name and the dimension in a record of vectors: where each begins, and where the numbers' header is.
fn fields(value: &[u8]) -> (usize, usize, usize) {
    assert_eq!(value[0], 0x93, "a list of three");
    let (name, length) = match value[1] {
        0xd9 => (3, usize::from(value[2])),
        short => (2, usize::from(short & 0x1f)),
    };
    let dimension = name + length;
    let width = match value[dimension] {
        0xcd => 3,
        0xcc => 2,
        _ => 1,
    };
    (name, dimension, dimension + width)
}

pub(super) fn wrong_dimension(random: &mut Random) -> bool {
    let (key, mut value) = any_of(random, &[Space::Vector]);
    let (_, dimension, rows) = fields(&value);
    let other = *one_of(random, &[0_u32, 1, 2, 3, 100, 128, 255, 257, 65_535, u32::MAX]);
    let other = [&[0xce][..], &other.to_be_bytes()].concat();
    value.splice(dimension..rows, other);
    with(key, Some(value))
}

pub(super) fn other_model(random: &mut Random) -> bool {
    let (key, mut value) = any_of(random, &[Space::Vector]);
    let (name, dimension, _) = fields(&value);
    let at = name + random.below(dimension - name);
    value[at] = b'a' + random.below(26) as u8;
    with(key, Some(value))
}

/// A block's record as JSON, changed.
fn edited(record: &[u8], change: impl FnOnce(&mut Value)) -> Value {
    let mut block = serde_json::to_value(rmp_serde::from_slice::<Block>(record).unwrap()).unwrap();
    change(&mut block);
    block
}

fn packed(value: &Value) -> Vec<u8> {
    rmp_serde::to_vec(value).unwrap()
}

/// A block of messages before the first, after the last, in reverse, or beyond the range of numbers.
pub(super) fn block_out_of_range(random: &mut Random) -> bool {
    let (key, value) = any_of(random, &[Space::Block]);
    let (a, b) = (random.below(90) as u64, random.below(9) as u64);
    let ends = [
        json!([a + b + 1, a]),
        json!([u64::MAX, u64::MAX]),
        json!([a, u64::MAX]),
        json!([a, u64::MAX - 1]),
        json!([-1, 4]),
        json!([u64::from(u32::MAX), u64::from(u32::MAX) + b]),
    ];
    let range = one_of(random, &ends).clone();
    let block = edited(&value, |block| {
        let names: Vec<String> = block["range"]
            .as_object()
            .map(|range| range.keys().cloned().collect())
            .unwrap_or_default();
        match names.as_slice() {
            [first, last] => {
                block["range"][first] = range[0].clone();
                block["range"][last] = range[1].clone();
            }
            _ => block["range"] = range,
        }
    });
    with_other_range(key, packed(&block))
}

/// A block of one todo that claims to belong to the other, and a block of the other in its place.
pub(super) fn block_of_other_todo(random: &mut Random) -> bool {
    let (key, value) = any_of(random, &[Space::Block]);
    let store = sound_store();
    if random.below(2) == 0 {
        let others: Vec<_> = store
            .of(Space::Block)
            .into_iter()
            .filter(|(other, _)| other.todo != key.todo)
            .collect();
        return with(key, Some(one_of(random, &others).1.clone()));
    }
    let block = edited(&value, |block| block["header"]["todo_id"] = json!("elsewhere"));
    with(key, Some(packed(&block)))
}

/// A message whose hole is filled from a payload that its todo does not have.
pub(super) fn hole_of_no_payload(random: &mut Random) -> bool {
    let store = sound_store();
    let with_holes: Vec<(Key, Value)> = store
        .of(Space::Message)
        .into_iter()
        .filter_map(|(key, value)| {
            let stored: StoredMessage = rmp_serde::from_slice(value).unwrap();
            (!stored.offloads.is_empty()).then(|| (*key, serde_json::to_value(stored).unwrap()))
        })
        .collect();
    let (key, stored) = one_of(random, &with_holes);
    let n = *one_of(random, &[0, 9, 1_000, u64::from(u32::MAX) + 1, u64::MAX]);
    let mut stored = stored.clone();
    let mut holes = 0;
    for piece in stored["pieces"].as_array_mut().unwrap() {
        if let Some(source) = piece.pointer_mut("/Hole/source/Payload") {
            *source = json!(n);
            holes += 1;
        }
    }
    assert!(holes > 0, "{stored}");
    let kv = store.kv(&[(*key, Some(packed(&stored)))]);
    check(kv, store.dir.path(), &[])
}
