//! Which conversations of a family are held.

use super::{Family, MOST_MEMBERS, MOST_MESSAGES, fit};
use crate::branches::{Heard, Mark};
use crate::identity::KnownBy;
use crate::member::Member;
use foldback::{Memory, NewSent, Options, Origin};
use foldback_core::{Message, SeqNo, Timestamp, TodoId};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// What was asked and answered in a conversation.
fn said(n: usize) -> Vec<blake3::Hash> {
    digests(&["你好".to_owned(), format!("答 {n}")])
}

/// The same with a common first answer.
fn said_alike(n: usize) -> Vec<blake3::Hash> {
    digests(&["你好".to_owned(), "答".to_owned(), format!("问 {n}"), format!("答 {n}")])
}

fn digests(texts: &[String]) -> Vec<blake3::Hash> {
    texts.iter().map(|text| blake3::hash(text.as_bytes())).collect()
}

/// Records a conversation's first turns, or later a message without its client's.
fn record(memory: &Memory, n: usize, said: &[blake3::Hash]) {
    let name = if n == 1 { "a".to_owned() } else { format!("a-{n}") };
    let mut session = memory.session(&TodoId::new(&name).unwrap()).unwrap();
    if !session.is_empty() {
        session.record(Message::user("again")).unwrap();
        return;
    }
    let sent: Vec<_> = (0..)
        .zip(said)
        .map(|(place, digest)| {
            let answer = (place % 2 == 1).then_some(Heard::FromClient);
            let tag = Mark { digest: *digest, agent: None, answer, behind: None }.tag();
            let (parent, messages) = (u32::checked_sub(place, 1), vec![Message::user("你好")]);
            NewSent { parent, tag, json: "{}".to_owned(), messages }
        })
        .collect();
    session.record_sent(SeqNo(0), 0, &sent, &[]).unwrap();
}

fn record_all(memory: &Memory, which: RangeInclusive<usize>) {
    which.for_each(|n| record(memory, n, &said(n)));
}

fn name(member: &Member) -> usize {
    let name = member.session.todo().as_str();
    name.strip_prefix("a-").map_or(1, |n| n.parse().unwrap())
}

fn names(family: &Family) -> BTreeSet<usize> {
    family.members.iter().map(name).collect()
}

/// Where the next turn of a conversation belongs, and how much of it is known there.
fn place(family: &mut Family, memory: &Memory, said: &[blake3::Hash]) -> (usize, usize) {
    let (at, known) = family.place(memory, said, None).unwrap();
    (name(&family.members[at]), known.messages)
}

/// A memory whose time goes on with every look at it.
fn ticking() -> Memory {
    let now = Arc::new(AtomicI64::new(0));
    let now = move || Timestamp(now.fetch_add(1, Ordering::Relaxed));
    Memory::in_memory(Options::default().with_clock(now)).unwrap()
}

fn family(memory: &Memory) -> Family {
    let origin = Origin::default();
    Family::open(memory, "a".to_owned(), KnownBy::Beginning, origin).unwrap()
}

/// GW3: of conversations that begin alike, a bounded number is held, and they are those that were used last, also
/// if another process has begun more of them.
#[test]
fn gw3_the_conversations_that_were_used_last_are_held() {
    let memory = ticking();
    record_all(&memory, 1..=100);
    record_all(&memory, 3..=3);
    memory.maintenance().forget(&TodoId::new("a-90").unwrap()).unwrap();
    let mut opened = family(&memory);
    let last: BTreeSet<_> = [3].into_iter().chain(37..90).chain(91..=100).collect();
    assert_eq!((names(&opened), opened.members.len()), (last, MOST_MEMBERS));
    // One that is held continues, and stays when a new one begins.
    assert_eq!(place(&mut opened, &memory, &said(37)), (37, 2));
    assert_eq!(place(&mut opened, &memory, &said(101)), (101, 0));
    assert_eq!(opened.members.len(), MOST_MEMBERS);
    assert!(names(&opened).contains(&37) && !names(&opened).contains(&38));
    // Another process has begun many under the next names.
    record_all(&memory, 101..=400);
    let mut late = family(&memory);
    record_all(&memory, 401..=700);
    assert_eq!(place(&mut late, &memory, &said(700)), (700, 2));
    assert_eq!(late.members.len(), MOST_MEMBERS);
    // What was used here meanwhile stays.
    record_all(&memory, 701..=1000);
    let used = || (650..=700).map(|n| (n, 2));
    assert!(used().all(|(n, known)| place(&mut late, &memory, &said(n)) == (n, known)));
    assert_eq!(place(&mut late, &memory, &said(1001)), (1001, 0));
    assert_eq!(names(&late), (650..=700).chain(989..=1000).chain([1001]).collect());
}

/// GW3: a conversation continues in its todo however many others were asked since, also if the model's first
/// answers in all of them were the same.
#[test]
fn gw3_a_conversation_that_is_not_held_is_opened_again() {
    for said in [said, said_alike] {
        let memory = ticking();
        (1..=100).for_each(|n| record(&memory, n, &said(n)));
        memory.maintenance().forget(&TodoId::new("a-7").unwrap()).unwrap();
        let mut opened = family(&memory);
        for _ in 0..3 {
            for n in (1..=100).filter(|n| *n != 7) {
                let said = said(n);
                assert_eq!(place(&mut opened, &memory, &said), (n, said.len()));
            }
            assert_eq!(opened.members.len(), MOST_MEMBERS);
        }
        // One that was forgotten while it was not held does not come back.
        memory.maintenance().forget(&TodoId::new("a").unwrap()).unwrap();
        let (n, known) = place(&mut opened, &memory, &said(1));
        assert!(n > 1 && known < said(1).len());
    }
}

#[test]
fn a_few_conversations_are_held_whatever_their_size() {
    assert!(fit(8, usize::MAX) && !fit(9, MOST_MESSAGES + 1));
    assert!(fit(MOST_MEMBERS, MOST_MESSAGES) && !fit(MOST_MEMBERS + 1, 0));
}
