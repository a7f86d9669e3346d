//! A deep search whose process was killed.

use super::{
    Library, Searcher, afterwards, citing_afterwards, model, node, nodes, plain, queries, search,
    two, usual,
};
use crate::script::running;
use foldback_agent::{Executor, Journal, JournalError, MemoryJournal, Record};
use foldback_deep_search::{Citing, DeepSearch, Passage};
use foldback_llm::{Answer, ModelError, ModelErrorKind};
use foldback_tool::{ToolError, Toolbox};
use futures::future::BoxFuture;
use std::sync::{Arc, Mutex};

/// A journal that keeps the order of its records.
#[derive(Default)]
struct Log(MemoryJournal, Mutex<Vec<(String, Record)>>);

impl Log {
    /// The first `n` records of another.
    fn first(of: &[(String, Record)], n: usize) -> Arc<Self> {
        let log = Self::default();
        for (run, record) in &of[..n] {
            log.append(run, record).unwrap();
        }
        Arc::new(log)
    }
}

impl Journal for Log {
    fn append(&self, run: &str, record: &Record) -> Result<(), JournalError> {
        self.1.lock().unwrap().push((run.to_owned(), record.clone()));
        self.0.append(run, record)
    }

    fn sync(&self) -> BoxFuture<'_, Result<(), JournalError>> {
        self.0.sync()
    }

    fn records(&self, run: &str) -> Result<Vec<Record>, JournalError> {
        self.0.records(run)
    }
}

/// A run that was killed after any of its records resumes: finished requests and searches are not repeated,
/// and the answer, its links and its sources are the same, even if a search would now find something else.
#[tokio::test(start_paused = true)]
async fn ds1_a_killed_run_goes_on() {
    for settings in [plain(), afterwards()] {
        let answer = match settings.citing {
            Citing::WhileWriting => usual,
            Citing::Afterwards => citing_afterwards,
        };
        let run = async |journal: &Arc<Log>,
                         searched: fn(&str) -> Result<Vec<Passage>, ToolError>| {
            let (model, library) = (model(answer), Library::new(searched));
            let executor = Executor::new(Toolbox::default()).with_journal(journal.clone());
            let deep = DeepSearch::new(library.clone()).with_settings(settings.clone());
            let searcher = Searcher { agent: running(&model, executor), deep };
            (search(&searcher).await, nodes(&model), library.asked())
        };
        let log = Arc::new(Log::default());
        let (whole, asked, searched) = run(&log, two).await;
        let records = log.1.lock().unwrap().clone();
        assert!(records.len() > asked.len() + 2 * searched.len());
        for n in 0..=records.len() {
            let is_answer = |r: &Record| matches!(r, Record::Note { kind, .. } if kind == "model");
            let noted = records[..n].iter().filter(|(_, r)| is_answer(r)).count();
            let ended =
                records[..n].iter().filter(|(_, r)| matches!(r, Record::Ended { .. })).count();
            let (report, asked_again, searched_again) = run(&Log::first(&records, n), two).await;
            assert_eq!(asked_again.len(), asked.len() - noted, "killed after {n} records");
            assert_eq!(searched_again.len(), searched.len() - ended, "killed after {n} records");
            assert_eq!((report.text, report.sources), (whole.text.clone(), whole.sources.clone()));
            assert_eq!(report.state.search_query, whole.state.search_query);
        }
        let nothing = |_: &str| Ok(Vec::new());
        let (report, asked_again, searched_again) =
            run(&Log::first(&records, records.len()), nothing).await;
        assert_eq!((asked_again.len(), searched_again.len()), (0, 0));
        assert_eq!(report.text, whole.text);
    }
}

/// R12: a search that ended because an answer was of no use asks for it again when it is resumed, once for each
/// process, and does nothing else again.
#[tokio::test(start_paused = true)]
async fn r12_an_answer_that_was_of_no_use_is_asked_for_again() {
    let log = Arc::new(Log::default());
    let run = async |useless: &'static [&'static str]| {
        let answer = move |request: &_| match node(request) {
            at if useless.contains(&at) => Answer::text(""),
            "queries/queries-repair" | "queries/queries-2" | "queries/queries-3" => {
                Answer::text(&queries(&["潮差", "tide times"]))
            }
            "answer/answer-2" => Answer::text("潮差三米。"),
            _ => usual(request),
        };
        let (model, library) = (model(answer), Library::new(two));
        let executor = Executor::new(Toolbox::default()).with_journal(log.clone());
        let deep = DeepSearch::new(library.clone()).with_settings(plain());
        let searcher = Searcher { agent: running(&model, executor), deep };
        (search(&searcher).await.text, nodes(&model))
    };
    let first: &[_] = &["queries/queries", "queries/queries-repair"];
    let second: &[_] = &["queries/queries-2", "queries/queries-2-repair"];
    for useless in [first, second] {
        let (text, asked) = run(useless).await;
        assert_eq!(text, None);
        assert_eq!(asked, useless);
    }
    let (text, asked) = run(&["answer/answer"]).await;
    assert_eq!((text, asked[0].as_str()), (None, "queries/queries-3"));
    assert_eq!(asked.last().unwrap(), "answer/answer");
    let (text, asked) = run(&[]).await;
    assert_eq!(text.as_deref(), Some("潮差三米。"));
    assert_eq!(asked, ["answer/answer-2"]);
}

/// R12: what the model was asked in this process is its one chance: a resumed search whose repair fails, or is of no
/// use, asks no further question.
#[tokio::test(start_paused = true)]
async fn r12_a_resumed_search_asks_for_a_useless_answer_once() {
    let refused = || ModelError::new(ModelErrorKind::Authentication, "no key").into();
    let log = Arc::new(Log::default());
    let run = async |repair: fn() -> Answer| {
        let model = model(move |request| match node(request) {
            "queries/queries" => Answer::text("无"),
            _ => repair(),
        });
        let executor = Executor::new(Toolbox::default()).with_journal(log.clone());
        let deep = DeepSearch::new(Library::new(two)).with_settings(plain());
        let text = search(&Searcher { agent: running(&model, executor), deep }).await.text;
        (text, nodes(&model))
    };
    // The first answer is kept, and what failed is not.
    let (text, asked) = run(refused).await;
    assert_eq!((text, asked.len()), (None, 2));
    for repair in [refused, || Answer::text("还是无")] {
        let (text, asked) = run(repair).await;
        assert_eq!((text, asked), (None, vec!["queries/queries-repair".to_owned()]));
    }
}
