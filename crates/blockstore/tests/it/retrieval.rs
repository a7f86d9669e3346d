//! Retrieval on recorded conversations with questions, where there are such.

use crate::fixture::{numbers, stored};
use foldback_blockstore::{
    BlockStore, Commit, Head, IndexConfig, NewMessage, Ranking, SearchRequest,
};
use foldback_core::{BlockType, Embedder, Message, SeqNo, SeqRange, TodoId};
use foldback_embedder::StaticEmbedder;
use foldback_kv::{Registry, Todo};
use foldback_testkit::{data, skip_without_data};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A conversation in blocks of five messages, and for each question the blocks that answer it.
struct Case {
    store: BlockStore,
    todo: Todo,
    questions: Vec<(String, BTreeSet<u32>)>,
}

fn cases(file: &str, block: usize) -> Vec<Case> {
    let mut bytes = std::fs::read(data::folder().unwrap().join(file)).unwrap();
    if file.ends_with(".zst") {
        bytes = zstd::decode_all(bytes.as_slice()).unwrap();
    }
    let text = String::from_utf8(bytes).unwrap();
    text.lines().map(|line| case(&serde_json::from_str(line).unwrap(), block)).collect()
}

fn case(conversation: &Value, size: usize) -> Case {
    let embedder = StaticEmbedder::new();
    let kv = foldback_kv::memory();
    let id = TodoId::from_foreign(conversation["id"].as_str().unwrap());
    let todo = Registry::new(kv.clone()).create(&id, b"").unwrap();
    let store = BlockStore::open(kv, None, IndexConfig::default()).unwrap();
    let mut places = BTreeMap::new();
    let mut messages = Vec::new();
    for (seq, value) in conversation["messages"].as_array().unwrap().iter().enumerate() {
        let message = Message::from_json(&value.to_string()).unwrap();
        let id = message.id().map_or_else(|| seq.to_string(), str::to_owned);
        places.insert(id, (seq / size) as u32 + 1);
        let text = message.text();
        let vectors = embedder.embed(&embedder.windows(&text, 8)).unwrap();
        messages.push(NewMessage { stored: stored(&message), vectors });
    }
    let blocks: Vec<_> = (0..messages.len().div_ceil(size))
        .map(|i| {
            let last = (messages.len() - 1).min(i * size + size - 1) as u64;
            let range = SeqRange::new(SeqNo((i * size) as u64), SeqNo(last)).unwrap();
            crate::fixture::block(&todo, i as u32 + 1, range, BlockType::Chat, &[], i as i64)
        })
        .collect();
    let commit = Commit {
        todo: &todo,
        head: Head::default(),
        messages: &messages,
        blocks: &blocks,
        session: vec![],
        extra: vec![],
        delete: vec![],
    };
    store.commit(commit, embedder.model_id()).unwrap();
    let questions = conversation["qa"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|qa| qa["category"].as_u64() != Some(5))
        .filter_map(|qa| {
            let ids = qa["evidence"].as_array()?.iter().filter_map(Value::as_str);
            let evidence: BTreeSet<u32> = ids.filter_map(|id| places.get(id).copied()).collect();
            let question = qa["question"].as_str()?.to_owned();
            (!evidence.is_empty()).then_some((question, evidence))
        })
        .collect();
    Case { store, todo, questions }
}

/// The mean share of a question's evidence among the first 1, 5 and 10 blocks.
fn recall(cases: &[Case], ask: impl Fn(SearchRequest<'_>) -> SearchRequest<'_>) -> [f64; 3] {
    let embedder = StaticEmbedder::new();
    let (mut sums, mut count) = ([0.0; 3], 0.0);
    for case in cases {
        let searcher = case.store.searcher(&case.todo).unwrap();
        for (question, evidence) in &case.questions {
            let vector = embedder.embed_question(question).unwrap();
            let request =
                SearchRequest::new(question).k(10).vector(&embedder, vector.row(0).unwrap());
            let found = numbers(&searcher.search(&ask(request)).unwrap());
            for (sum, k) in sums.iter_mut().zip([1, 5, 10]) {
                let hit = found.iter().take(k).filter(|n| evidence.contains(n)).count();
                *sum += hit as f64 / evidence.len() as f64;
            }
            count += 1.0;
        }
    }
    sums.map(|sum| (sum / count * 1000.0).round() / 1000.0)
}

/// Prints what words, meaning and both together recall, and gives the last at 10.
fn measure(file: &str, block: usize) -> f64 {
    let cases = cases(file, block);
    let questions: usize = cases.iter().map(|case| case.questions.len()).sum();
    println!("{file}, blocks of {block}, {questions} questions, recall at 1, 5, 10:");
    println!("  words alone    {:?}", recall(&cases, |request| request.ranking(Ranking::Words)));
    println!("  meaning alone  {:?}", recall(&cases, |request| request.ranking(Ranking::Meaning)));
    for weight in [0.2, 0.3, 0.4, 0.5] {
        println!("  weight {weight}     {:?}", recall(&cases, |r| r.lexical_weight(weight)));
    }
    let [_, _, at_10] = recall(&cases, |request| request);
    at_10
}

#[test]
fn locomo_evidence_is_found() {
    skip_without_data!();
    let at_10 = measure("dialogue/restricted_locomo.jsonl.zst", 5);
    assert!(at_10 >= 0.81, "{at_10}");
}

/// TL7: the cut-offs keep what answers a question, and drop more of what is found in another
/// conversation. Measured: 715 of 721 answers and 1,970 of 2,553 others pass 0.675, 653 and 645 pass
/// 0.775.
#[test]
fn tl7_the_cutoffs_keep_answers_and_drop_the_rest() {
    skip_without_data!();
    let cases = cases("dialogue/restricted_locomo.jsonl.zst", 5);
    let embedder = StaticEmbedder::new();
    for cutoff in [0.675, 0.775] {
        let (mut kept, mut good, mut shown, mut others) = (0, 0, 0, 0);
        for (at, case) in cases.iter().enumerate() {
            let other = &cases[(at + 1) % cases.len()];
            let [own, foreign] = [case, other].map(|case| case.store.searcher(&case.todo).unwrap());
            for (question, evidence) in &case.questions {
                let vector = embedder.embed_question(question).unwrap();
                let request =
                    SearchRequest::new(question).vector(&embedder, vector.row(0).unwrap());
                let is_good = |n: &u32| evidence.contains(n);
                let all = numbers(&own.search(&request).unwrap());
                let passed = numbers(&own.search(&request.cutoff(cutoff)).unwrap());
                good += all.iter().filter(|n| is_good(n)).count();
                kept += all.iter().filter(|n| is_good(n) && passed.contains(n)).count();
                others += foreign.search(&request).unwrap().len();
                shown += foreign.search(&request.cutoff(cutoff)).unwrap().len();
            }
        }
        println!("cut-off {cutoff}: {kept} of {good} answers kept, {shown} of {others} others");
        let share = |part: usize, all: usize| part as f64 / all as f64;
        assert!(share(kept, good) > 0.9 && share(shown, others) < share(kept, good) - 0.2);
    }
}

#[test]
fn what_was_told_long_ago_is_found() {
    skip_without_data!();
    for block in [1, 3] {
        let at_10 = measure("dialogue/bfcl_memory.jsonl", block);
        assert!(at_10 >= 0.9, "{at_10}");
    }
}
