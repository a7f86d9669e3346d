//! S12: whatever the question is, the answer is bounded and nothing breaks.

use crate::fixture::{MODEL, Writer};
use foldback_blockstore::SearchRequest;
use foldback_core::Embedder;
use foldback_testkit::{effort, hostile_queries};
use proptest::prelude::*;

#[test]
fn s12_hostile_questions_are_answered_within_bounds() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::indexed(dir.path());
    writer.fill(1, 3_000);
    let in_memory = writer.store.searcher(&writer.todo).unwrap();
    writer.store.maintain(&writer.todo).unwrap();
    let on_disk = writer.store.searcher(&writer.todo).unwrap();
    assert!(on_disk.blocks_on_disk() > 1_000 && in_memory.blocks_on_disk() == 0);
    for question in hostile_queries(effort(400) as usize) {
        let vector = MODEL.embed(&[&question]).unwrap();
        for searcher in [&in_memory, &on_disk] {
            let request = SearchRequest::new(&question)
                .k(usize::MAX)
                .cutoff(f32::NAN)
                .lexical_weight(f32::INFINITY)
                .vector(&MODEL, vector.row(0).unwrap());
            let hits = searcher.search(&request).unwrap();
            assert!(hits.len() <= SearchRequest::MAX_K);
            assert!(
                hits.iter().all(|hit| hit.score.is_finite() && hit.explanation.terms.len() <= 64)
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn s12_any_text_is_stored_and_asked(texts in prop::collection::vec(any::<String>(), 1..6), question in any::<String>()) {
        let mut writer = Writer::in_memory();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        writer.lines(&texts);
        let searcher = writer.store.searcher(&writer.todo).unwrap();
        searcher.search(&SearchRequest::new(&question)).unwrap();
        // The exact text of a block finds it, if it has any word at all.
        for (n, text) in (1..).zip(&texts) {
            let hits = searcher.search(&SearchRequest::new(text).k(10)).unwrap();
            if let Some(best) = hits.first() {
                let found = crate::fixture::numbers(&hits);
                prop_assert!(found.contains(&n) || best.explanation.terms.is_empty(), "{text:?}");
            }
        }
    }
}
