//! The laws, and figures, over the recorded conversations; skipped if the data is not available.

use crate::laws::cut;
use foldback_chunker::{Chunker, ChunkerConfig, Closed, Event, Input, State};
use foldback_core::Message;
use foldback_testkit::{data, skip_without_data};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Line<'a> {
    id: String,
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
    #[serde(default)]
    boundaries: Vec<usize>,
}

struct Conversation {
    id: String,
    messages: Vec<Message>,
    boundaries: Vec<usize>,
}

#[expect(
    clippy::disallowed_methods,
    reason = "the chunker knows no files, but its data lies in some"
)]
fn read(file: &str) -> Vec<Conversation> {
    let path = data::folder().unwrap().join(file);
    let bytes = std::fs::read(&path).unwrap();
    let bytes = if path.extension().is_some_and(|ext| ext == "zst") {
        zstd::decode_all(bytes.as_slice()).unwrap()
    } else {
        bytes
    };
    let text = String::from_utf8(bytes).unwrap();
    let read = |line: &str| {
        let line: Line<'_> = serde_json::from_str(line).unwrap();
        let messages = line.messages.iter().map(|m| Message::from_json(m.get()).unwrap());
        Conversation { id: line.id, messages: messages.collect(), boundaries: line.boundaries }
    };
    text.lines().map(read).collect()
}

fn topic_cuts(blocks: &[Closed]) -> Vec<usize> {
    let cuts = blocks.iter().filter(|block| block.reason.is_topic_cut());
    cuts.map(|block| block.range.last().0 as usize + 1).collect()
}

/// Pk and WindowDiff of one conversation, with k = max(2, round(n / segments / 2)).
fn pk_wd(n: usize, gold: &[usize], found: &[usize]) -> (f64, f64) {
    let k = ((n as f64 / (gold.len() + 1) as f64 / 2.0).round() as usize).max(2);
    let between =
        |cuts: &[usize], i: usize| cuts.iter().filter(|c| i < **c && **c <= i + k).count();
    let (mut pk, mut wd) = (0, 0);
    let windows = n.saturating_sub(k);
    for i in 0..windows {
        let (a, b) = (between(gold, i), between(found, i));
        pk += usize::from((a == 0) != (b == 0));
        wd += usize::from(a != b);
    }
    let windows = windows.max(1) as f64;
    (pk as f64 / windows, wd as f64 / windows)
}

/// The figures of one file.
struct Figures {
    conversations: f64,
    /// Means over the conversations that have a boundary; topic cuts only.
    pk: f64,
    wd: f64,
    /// Topic cuts per conversation.
    cuts: f64,
}

fn figures(file: &str) -> Figures {
    let config = ChunkerConfig::default();
    let (mut pk, mut wd, mut scored) = (0.0, 0.0, 0.0);
    let (mut cuts, mut gold, mut hits, mut messages, mut blocks) = (0, 0, 0, 0, 0);
    let conversations = read(file);
    for conversation in &conversations {
        let found = cut(&config, &conversation.messages)
            .unwrap_or_else(|error| panic!("{}: {error}", conversation.id));
        let topics = topic_cuts(&found);
        messages += conversation.messages.len();
        blocks += found.len();
        cuts += topics.len();
        gold += conversation.boundaries.len();
        hits += topics.iter().filter(|cut| conversation.boundaries.contains(cut)).count();
        if !conversation.boundaries.is_empty() {
            let (p, w) = pk_wd(conversation.messages.len(), &conversation.boundaries, &topics);
            pk += p;
            wd += w;
            scored += 1.0;
        }
    }
    let all = conversations.len() as f64;
    let cuts_each = cuts as f64 / all;
    print!("{file}: {all} conversations, {:.2} messages a block", messages as f64 / blocks as f64);
    print!(", {cuts_each:.2} topic cuts each");
    if scored > 0.0 {
        (pk, wd) = (pk / scored, wd / scored);
        let f1 = 2.0 * hits as f64 / (cuts + gold) as f64;
        print!(", Pk {pk:.4}, WD {wd:.4}, F1 {f1:.3}, ratio {:.2}", cuts as f64 / gold as f64);
    }
    println!();
    Figures { conversations: all, pk, wd, cuts: cuts_each }
}

#[test]
fn bl8_dialogues_that_were_joined() {
    skip_without_data!();
    let found = figures("segmentation/restricted_dialseg711.jsonl.zst");
    assert!(found.pk < 0.15 && found.wd < 0.17, "{} {}", found.pk, found.wd);
}

#[test]
fn bl8_open_chat() {
    skip_without_data!();
    let found = figures("segmentation/tiage.jsonl.zst");
    assert!(found.pk < 0.40, "{} {}", found.pk, found.wd);
}

#[test]
fn bl8_agent_sessions_that_were_joined() {
    skip_without_data!();
    let found = figures("segmentation/composite_agent_multitask.jsonl.zst");
    assert!(found.pk < 0.07, "{} {}", found.pk, found.wd);
}

#[test]
fn bl8_meetings_are_left_alone() {
    skip_without_data!();
    let found = figures("segmentation/qmsum_meetings.jsonl.zst");
    assert!(found.pk < 0.37, "{} {}", found.pk, found.wd);
}

#[test]
fn bl8_sessions_of_one_task_stay_whole() {
    skip_without_data!();
    let (mut cuts, mut sessions) = (0.0, 0.0);
    for file in [
        "intercode_shell_sql_ctf",
        "medical_records_fhir",
        "openhands",
        "restricted_swe_agent_gpt4",
        "restricted_swe_agent_java",
        "swe_agent",
        "tau2_airline_timestamped",
        "tau2_retail_airline",
        "tau_bench_airline",
        "toolbench",
    ] {
        let found = figures(&format!("agent/{file}.jsonl.zst"));
        assert!(found.cuts < 0.3, "{file}: {}", found.cuts);
        cuts += found.cuts * found.conversations;
        sessions += found.conversations;
    }
    println!("all agent sessions: {:.3} topic cuts each", cuts / sessions);
}

#[test]
fn bl1_long_dialogues_keep_the_laws() {
    skip_without_data!();
    for file in [
        "bfcl_memory.jsonl",
        "longmemeval_single.jsonl.zst",
        "memorybank_en.jsonl.zst",
        "restricted_locomo.jsonl.zst",
        "secom_example.jsonl",
    ] {
        assert!(figures(&format!("dialogue/{file}")).conversations > 0.0, "{file}");
    }
}

/// The state stored with every message, with vectors of 256 dimensions.
#[test]
fn bl7_the_state_is_small_on_real_conversations() {
    skip_without_data!();
    for file in [
        "agent/tau_bench_airline.jsonl.zst",
        "agent/restricted_swe_agent_gpt4.jsonl.zst",
        "dialogue/restricted_locomo.jsonl.zst",
        "segmentation/tiage.jsonl.zst",
    ] {
        let mut sizes = Vec::new();
        for conversation in read(file).iter().take(40) {
            let mut chunker = Chunker::new(ChunkerConfig::default());
            for (at, message) in conversation.messages.iter().enumerate() {
                let vector: Vec<f32> = (0..256).map(|i| ((at * 31 + i) as f32).sin()).collect();
                chunker.push(Event::Message(Input::of(message).with_vector(&vector)));
                sizes.push(rmp_serde::to_vec(chunker.state()).unwrap().len());
            }
        }
        sizes.sort_unstable();
        let (median, largest) = (sizes[sizes.len() / 2], sizes[sizes.len() - 1]);
        println!("{file}: a state of {median} bytes in the median, {largest} at most");
        assert!(median < 4_096 && largest <= State::MAX_BYTES);
    }
}
