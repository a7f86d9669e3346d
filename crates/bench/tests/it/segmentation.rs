//! How cuts are judged, and what the memory cuts.

use crate::cases::cases;
use foldback::Options;
use foldback_bench::Kind;
use foldback_bench::segmentation::{Errors, Segmentation, Tally, measure, window};
use proptest::prelude::*;
use serde_json::{Value, json};

fn judged(lines: &[Value]) -> Segmentation {
    measure(&cases(lines), &Options::default()).unwrap()
}

/// The cuts of a text of marks: a `1` at place `i` separates the units `i` and `i + 1`.
fn marks(text: &str) -> Vec<usize> {
    text.char_indices().filter(|(_, mark)| *mark == '1').map(|(at, _)| at + 1).collect()
}

fn errors(k: usize, given: &str, found: &str) -> Errors {
    Errors::of(given.len() + 1, k, &marks(given), &marks(found))
}

/// BL8: the worked examples in the documentation of NLTK's `segmentation` module.
#[test]
fn bl8_published_examples_come_out() {
    let [s1, s2, s3] = ["000100000010", "000010000100", "100000010000"];
    let rounded = |share: f64| (share * 100.0).round() / 100.0;
    assert_eq!(rounded(errors(3, s1, s1).wd), 0.00);
    assert_eq!(rounded(errors(3, s1, s2).wd), 0.30);
    assert_eq!(rounded(errors(3, s2, s3).wd), 0.80);
    let often = "0100".repeat(100);
    assert_eq!(rounded(errors(2, &often, &"1".repeat(400)).pk), 0.50);
    assert_eq!(rounded(errors(2, &often, &"0".repeat(400)).pk), 0.50);
    assert_eq!(rounded(errors(2, &often, &often).pk), 0.00);
}

/// BL8: ten messages, a topic from the fifth on (index 4), windows of two.
#[test]
fn bl8_errors_are_counted_by_hand() {
    let of = |found: &[usize]| Errors::of(10, 2, &[4], found);
    // Two of eight windows span the cut that was missed.
    assert_eq!(of(&[]), Errors { pk: 0.25, wd: 0.25 });
    // One message late: one window contains only the given cut, one only the found one.
    assert_eq!(of(&[5]), Errors { pk: 0.25, wd: 0.25 });
    // A cut beside the given one: WindowDiff also counts the window that contains both.
    assert_eq!(of(&[4, 5]), Errors { pk: 0.125, wd: 0.25 });
    assert_eq!((window(10, 1), window(10, 0), window(3, 2), window(30, 3)), (3, 5, 2, 4));
    let tally = Tally::of(&[4, 8], &[4, 5, 6]);
    assert_eq!((tally.f1(), tally.ratio()), (0.4, Some(1.5)));
    assert_eq!((Tally::default().f1(), Tally::default().ratio()), (1.0, None));
}

proptest! {
    /// BL8: errors are shares, zero for the given cuts themselves, and WindowDiff is the stricter.
    #[test]
    fn bl8_errors_are_shares(
        n in 2_usize..60,
        k in 2_usize..9,
        given in prop::collection::btree_set(1_usize..60, 0..12),
        found in prop::collection::btree_set(1_usize..60, 0..12),
    ) {
        let inside = |cuts: std::collections::BTreeSet<usize>| {
            cuts.into_iter().filter(|cut| *cut < n).collect::<Vec<_>>()
        };
        let (given, found) = (inside(given), inside(found));
        let both = [Errors::of(n, k, &given, &found), Errors::of(n, k, &found, &given)];
        prop_assert_eq!(both[0], both[1]);
        prop_assert!(0.0 <= both[0].pk && both[0].pk <= both[0].wd && both[0].wd <= 1.0);
        prop_assert_eq!(Errors::of(n, k, &given, &given), Errors::default());
        let f1 = Tally::of(&given, &found).f1();
        prop_assert!((0.0..=1.0).contains(&f1));
        prop_assert_eq!(Tally::of(&given, &given).f1(), 1.0);
    }
}

/// Two talks of twelve messages with half an hour between them; every message belongs to its talk.
fn two_talks(id: &str, boundaries: &Value) -> Value {
    let talks = [
        ["The ferry to Rhodes leaves at nine.", "当日的渡轮九点开往罗得岛。"],
        ["The oven must be cleaned on Friday.", "烤箱要在星期五清洗。"],
    ];
    let messages: Vec<Value> = (0..24)
        .map(|i| {
            let minute = if i < 12 { 0 } else { 42 };
            let role = if i % 2 == 0 { "user" } else { "assistant" };
            json!({
                "role": role,
                "content": format!("{} {i}", talks[i / 12][i % 2]),
                "timestamp": format!("2025-03-01T10:{minute:02}:{i:02}Z"),
            })
        })
        .collect();
    json!({ "id": id, "messages": messages, "boundaries": boundaries })
}

/// One task of an agent, without a given boundary.
fn one_task() -> Value {
    let call = json!([{ "id": "c1", "type": "function",
        "function": { "name": "read", "arguments": "{\"path\": \"a.txt\"}" } }]);
    json!({ "id": "task", "messages": [
        { "role": "user", "content": "How long is a.txt?" },
        { "role": "assistant", "content": null, "tool_calls": call },
        { "role": "tool", "tool_call_id": "c1", "content": "12 lines" },
        { "role": "assistant", "content": "12 lines." },
    ] })
}

/// BL8: boundaries that follow from sizes are not changes of topic, and only changes of topic are
/// scored as such.
#[test]
fn bl8_topic_cuts_are_told_apart_from_block_cuts() {
    let found = judged(&[two_talks("talks", &json!([12]))]);
    let [one] = &found.each[..] else { panic!("{found:?}") };
    assert_eq!((one.kind, one.messages, one.window), (Kind::Dialogue, 24, Some(6)));
    assert_eq!(one.topics.tally, Tally { given: 1, found: 1, hits: 1 });
    assert_eq!(one.topics.errors, Errors::default());
    // Talks of twelve messages are more than one block each.
    assert!(one.blocks.tally.found > 2 && one.blocks.tally.hits == 1, "{one:?}");
    assert!(one.blocks.errors.pk > 0.0);
    let all = found.all;
    assert_eq!((all.conversations, all.boundary_ratio), (1, Some(1.0)));
    assert_eq!((all.topics.pk, all.topics.wd, all.topics.f1), (Some(0.0), Some(0.0), Some(1.0)));
    // Six of eighteen windows span the cut; an even cut of two talks of one length is right.
    assert_eq!(all.no_cut.pk, Some(0.333333));
    assert_eq!(all.even_cuts.f1, Some(1.0));
}

/// BL8: sessions of one task are counted, and conversations without topics are left out.
#[test]
fn bl8_sessions_of_one_task_are_counted_apart() {
    let found =
        judged(&[one_task(), two_talks("none", &json!([])), two_talks("talks", &json!([12]))]);
    let all = found.all;
    assert_eq!((all.conversations, all.left_out), (1, 1));
    assert_eq!((all.single_task.sessions, all.single_task.topic_cuts), (1, 0));
    assert_eq!(all.single_task.topic_cuts_each, Some(0.0));
    assert_eq!(found.files.len(), 1);
    assert_eq!(found.sheets().len(), 3);
    let csv = String::from_utf8(found.sheet_of_each().csv().unwrap()).unwrap();
    assert_eq!(csv.lines().count(), 4, "{csv}");
    let alone = judged(&[one_task()]).all;
    assert_eq!((alone.conversations, alone.topics.pk, alone.boundary_ratio), (0, None, None));
}

/// BL8: boundaries outside the conversation do not count, and conversations too short for a window are
/// left out of the means.
#[test]
fn bl8_what_cannot_be_judged_is_left_out() {
    let short = |id: &str, n: usize, boundaries: Value| {
        let role = |i| if i % 2 == 0 { "user" } else { "assistant" };
        let message = |i| json!({ "role": role(i), "content": "茶 tea" });
        let messages: Vec<Value> = (0..n).map(message).collect();
        json!({ "id": id, "messages": messages, "boundaries": boundaries })
    };
    let found = judged(&[
        short("empty", 0, json!([1])),
        short("one", 1, json!([0, 1])),
        short("two", 2, json!([1])),
        short("outside", 3, json!([0, 3, 99])),
        short("three", 3, json!([2, 2, 1])),
    ]);
    assert_eq!((found.all.conversations, found.all.left_out), (1, 4));
    // One window over both cuts, and none of them was found.
    let three = found.each[4].topics;
    assert_eq!((three.errors, three.tally.given), (Errors { pk: 1.0, wd: 1.0 }, 2));
    assert_eq!((found.all.topics.pk, found.all.boundary_ratio), (Some(1.0), Some(0.0)));
}

/// BL8: the same conversations give the same figures.
#[test]
fn bl8_figures_are_the_same_again() {
    let lines = [two_talks("talks", &json!([12])), two_talks("other", &json!([5, 12])), one_task()];
    let json = || serde_json::to_string(&judged(&lines)).unwrap();
    assert_eq!(json(), json());
}
