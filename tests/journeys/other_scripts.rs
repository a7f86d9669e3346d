//! BL10: text in a script other than the question's has reserved places among the hits.

use crate::story::{open, options, todo};
use foldback::{ChunkerConfig, Close, Memory, SearchRequest};
use foldback_core::Message;

/// One fact in English, and what was said beside it in Chinese.
const FACT: &str =
    "The nightly vacuum locks the orders table, which is why reports time out around two.";
const BESIDE: [&str; 4] = [
    "订单表按月份拆分以后，查询历史记录要跨很多张表。",
    "报表系统每天凌晨导出一次数据，再发给财务。",
    "空调滴水，是因为排水管被灰尘堵住了。",
    "我们在山脚的民宿住两晚，第三天清早上山看日出。",
];
const QUESTION: &str = "半夜跑报表为什么总是超时？";

/// A memory whose blocks are single messages.
fn memory_of(memory: Memory, texts: &[&str]) -> Memory {
    let mut session = memory.session(&todo("quay")).unwrap();
    session.record_all(texts.iter().map(|text| Message::user(text)).collect()).unwrap();
    session.close(Close::End).unwrap();
    memory
}

fn by_message() -> foldback::Options {
    let chunker = ChunkerConfig::default().with_sizes(1, 1).unwrap().with_look_ahead(0).unwrap();
    options().with_chunker(chunker)
}

/// The numbers of the messages that are found.
fn found(memory: &Memory, request: &SearchRequest<'_>) -> Vec<u64> {
    let hits = memory.search(&todo("quay"), request).unwrap().hits;
    hits.iter().map(|hit| hit.block.range.first().0).collect()
}

fn bilingual() -> Vec<&'static str> {
    [BESIDE[0], BESIDE[1], FACT, BESIDE[2], BESIDE[3]].to_vec()
}

#[test]
fn bl10_an_answer_in_another_script_has_the_second_place() {
    let memory = memory_of(Memory::in_memory(by_message()).unwrap(), &bilingual());
    for k in [2, 3, 5] {
        let request = SearchRequest::new(QUESTION).k(k);
        assert_eq!(found(&memory, &request)[1], 2, "{k}");
    }
    let hits = memory.search(&todo("quay"), &SearchRequest::new(QUESTION).k(3)).unwrap().hits;
    let marks: Vec<bool> = hits.iter().map(|hit| hit.explanation.another_script).collect();
    assert_eq!(marks, [false, true, false]);
    assert!(hits[1].to_string().contains("in another script"), "{}", hits[1]);
    // One place is the best hit's.
    assert_ne!(found(&memory, &SearchRequest::new(QUESTION).k(1)), [2]);
}

/// For other scripts, three quarters of a cut-off applies.
#[test]
fn bl10_a_cut_off_leaves_an_answer_in_another_script() {
    let memory = memory_of(Memory::in_memory(by_message()).unwrap(), &bilingual());
    let all = memory.search(&todo("quay"), &SearchRequest::new(QUESTION).k(5)).unwrap().hits;
    let relevance = all.iter().find(|hit| hit.explanation.another_script).unwrap().relevance;
    let cutoff = (relevance * 1.2).min(1.0);
    let hits = memory
        .search(&todo("quay"), &SearchRequest::new(QUESTION).k(5).cutoff(cutoff))
        .unwrap()
        .hits;
    assert!(hits.iter().any(|hit| hit.explanation.another_script), "{relevance}");
    let own = hits.iter().filter(|hit| !hit.explanation.another_script);
    assert!(own.clone().all(|hit| hit.relevance >= cutoff), "{relevance}");
}

/// An answer in the question's own script keeps its places: by its words, and by a name.
#[test]
fn bl10_an_answer_in_the_questions_script_keeps_its_place() {
    let mut texts = bilingual();
    texts.push("半夜跑报表总是超时，是因为备份占满了磁盘。");
    let memory = memory_of(Memory::in_memory(by_message()).unwrap(), &texts);
    let hits = found(&memory, &SearchRequest::new(QUESTION).k(2));
    assert_eq!(hits[0], 5);
    assert_ne!(hits[1], 2);

    let mut texts = bilingual();
    texts.extend(["工单 E-4417 已经转给值班的同事。", "E-4417 的附件打不开。"]);
    let memory = memory_of(Memory::in_memory(by_message()).unwrap(), &texts);
    let named = format!("E-4417：{QUESTION}凌晨财务收到的数据为什么不完整？");
    let mut hits = found(&memory, &SearchRequest::new(&named).k(2));
    hits.sort_unstable();
    assert_eq!(hits, [5, 6]);
}

/// A store on disk, indexed, gives the same hits as in memory.
#[test]
fn bl10_an_index_on_disk_places_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let expected = memory_of(Memory::in_memory(by_message()).unwrap(), &bilingual());
    drop(memory_of(Memory::open(folder.path(), by_message()).unwrap(), &bilingual()));
    let kept = open(folder.path());
    kept.maintenance().index().unwrap();
    for k in 1..=5 {
        let request = SearchRequest::new(QUESTION).k(k);
        assert_eq!(found(&kept, &request), found(&expected, &request), "{k}");
    }
}
