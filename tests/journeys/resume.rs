//! TD3: a session resumes exactly where it was.

use crate::story::{
    engines, exchange, in_memory_showing, open_on, open_showing, options, todo, views,
};
use foldback::{CacheAware, Engine, FoldPolicy, Memory, ViewConfig};
use foldback_core::{Budget, Message, Timestamp, check_request};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tempfile::tempdir;

/// TD3: on each engine, under each fold policy.
#[test]
fn td3_a_dropped_session_resumes_at_every_message() {
    let id = todo("resume");
    let large = "a line of a long file\n".repeat(400);
    let messages: Vec<Message> = (0..12)
        .flat_map(|n| exchange(n, "parser", if n % 3 == 0 { &large } else { "short" }))
        .collect();
    for view in views() {
        let straight = {
            let memory = in_memory_showing(&view);
            let mut session = memory.session(&id).unwrap();
            messages.iter().map(|m| after(&mut session, m)).collect::<Vec<_>>()
        };
        for engine in engines() {
            let dir = tempdir().unwrap();
            // The same with a new process's eyes after every message.
            let broken: Vec<_> = messages
                .iter()
                .map(|m| {
                    let memory = open_showing(&view, engine, dir.path());
                    after(&mut memory.session(&id).unwrap(), m)
                })
                .collect();
            assert_eq!(broken, straight, "{engine}");
        }
    }
}

/// LV4, TD3: a todo continues under the other fold policy at any message: each prompt is valid and keeps its
/// bound, and nothing is lost.
#[test]
fn lv4_a_todo_continues_under_the_other_fold_policy() {
    let id = todo("both");
    let large = "a line of a long file\n".repeat(400);
    let messages: Vec<Message> = (0..16)
        .flat_map(|n| exchange(n, "parser", if n % 3 == 0 { &large } else { "short" }))
        .collect();
    let dir = tempdir().unwrap();
    for (n, message) in messages.iter().enumerate() {
        let view = &views()[usize::from(n % 7 < 4)];
        let memory = open_showing(view, Engine::Sqlite, dir.path());
        let mut session = memory.session(&id).unwrap();
        session.record(message.clone()).unwrap();
        let prompt = session.prompt(&Budget::default());
        assert_eq!(check_request(prompt.messages.iter().map(AsRef::as_ref)), []);
        assert!(prompt.window <= view.window_bound());
        assert!(prompt.messages[0].text().starts_with("Please look at parser (step 0)."));
    }
    let memory = open_on(Engine::Sqlite, dir.path());
    assert_eq!(memory.conversations().export(&id).unwrap().messages, messages);
}

/// LV12: the messages carry no times; those of their recording show the pause, also in another process.
#[test]
fn lv12_a_session_that_is_resumed_after_a_long_pause_folds_at_once() {
    let folded = |pause: i64| {
        let clock = Arc::new(AtomicI64::new(1_700_000_000_000));
        let life = Some(Duration::from_secs(300));
        let policy = FoldPolicy::CacheAware(CacheAware::default().with_cache_life(life));
        let view = ViewConfig::default().with_fold_policy(policy);
        let dir = tempdir().unwrap();
        let open = || {
            let clock = Arc::clone(&clock);
            let now = move || Timestamp(clock.load(Ordering::Relaxed));
            Memory::open(dir.path(), options().with_view(view.clone()).with_clock(now)).unwrap()
        };
        let result = "一行很长的日志 line of a log\n".repeat(25);
        let memory = open();
        let mut session = memory.session(&todo("pause")).unwrap();
        for n in 0..30 {
            for message in exchange(n, &format!("part{n}"), &result) {
                session.record(message).unwrap();
                clock.fetch_add(2_000, Ordering::Relaxed);
            }
        }
        let window = |session: &foldback::Session| session.prompt(&Budget::default()).window;
        let before = window(&session);
        drop((session, memory));
        clock.fetch_add(1_000 * pause, Ordering::Relaxed);
        let memory = open();
        let mut session = memory.session(&todo("pause")).unwrap();
        session.record(Message::user("And now? 现在呢？")).unwrap();
        window(&session) < before
    };
    assert!(!folded(60));
    assert!(folded(300));
}

/// Records, and returns what the model would see and which blocks closed.
fn after(session: &mut foldback::Session, message: &Message) -> (Vec<String>, Vec<String>) {
    let recorded = session.record(message.clone()).unwrap();
    let prompt = session.prompt(&Budget::default());
    (
        prompt.messages.iter().map(|message| message.api_json()).collect(),
        recorded.closed.iter().map(ToString::to_string).collect(),
    )
}

#[test]
fn a_failed_import_goes_on_where_it_stopped() {
    engines().into_iter().for_each(check_continued);
}

#[track_caller]
fn check_continued(engine: Engine) {
    let dir = tempdir().unwrap();
    let id = todo("import");
    let messages: Vec<Message> = (0..20).flat_map(|n| exchange(n, "lexer", "ok")).collect();
    let conversation = foldback_transcript::Conversation::from_parts(
        Some("import".to_owned()),
        messages.clone(),
        foldback_transcript::Envelope::default(),
    );
    let memory = open_on(engine, dir.path());
    let mut session = memory.session(&id).unwrap();
    for message in messages.iter().take(33) {
        session.record(message.clone()).unwrap();
    }
    drop(session);
    assert!(
        memory.conversations().import(&id, &conversation).is_err(),
        "the todo already holds messages"
    );
    memory.conversations().continue_import(&id, &conversation).unwrap();
    assert_eq!(memory.conversations().export(&id).unwrap().messages, messages);
}

/// A second opener of the store that `memory` has open: another handle, as another process would have
/// it, or the same one if only a single process is served.
fn another(memory: &Memory, engine: Engine, dir: &Path) -> Memory {
    if engine == Engine::Sqlite { open_on(engine, dir) } else { memory.clone() }
}

#[test]
fn r10_a_session_that_slept_through_a_close_reads_again() {
    engines().into_iter().for_each(check_turns);
}

#[track_caller]
fn check_turns(engine: Engine) {
    let dir = tempdir().unwrap();
    let id = todo("turns");
    let memory = open_on(engine, dir.path());
    let mut awake = memory.session(&id).unwrap();
    let mut asleep = another(&memory, engine, dir.path()).session(&id).unwrap();
    for n in 0..9 {
        let [first, rest @ ..] = exchange(n, "turns", "ok");
        awake.record(first).unwrap();
        // The other closes what is open, without a message, and pins, which changes only the view.
        asleep.refresh().unwrap();
        for message in rest {
            awake.record(message).unwrap();
        }
        awake.close(foldback::Close::Switch).unwrap();
        awake.pin(foldback_core::SeqNo(awake.len() - 1)).unwrap();
        asleep.record(Message::user(&format!("a word between, {n}"))).unwrap();
        awake.record(Message::assistant("yes")).unwrap();
    }
    asleep.refresh().unwrap();
    assert_eq!(view(&asleep), view(&awake));
    assert_eq!(memory.conversations().export(&id).unwrap().messages.len(), 9 * 6);
    let checkup = memory.maintenance().doctor().unwrap();
    assert_eq!(checkup.findings, Vec::<String>::new());
}

fn view(session: &foldback::Session) -> Vec<String> {
    let prompt = session.prompt(&Budget::default());
    prompt.messages.iter().map(|message| message.api_json()).collect()
}

#[test]
fn two_imports_of_one_conversation_bring_it_once() {
    engines().into_iter().for_each(check_imports);
}

#[track_caller]
fn check_imports(engine: Engine) {
    let dir = tempdir().unwrap();
    let id = todo("twice");
    let messages: Vec<Message> = (0..400).flat_map(|n| exchange(n, "twice", "ok")).collect();
    let conversation = foldback_transcript::Conversation::from_parts(
        Some("a name/with a slash".to_owned()),
        messages.clone(),
        foldback_transcript::Envelope::default(),
    );
    // A session that was opened before, and records nothing, does not remove the name.
    let memory = open_on(engine, dir.path());
    drop(memory.session(&id).unwrap());
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let memory = another(&memory, engine, dir.path());
            let (id, conversation) = (&id, &conversation);
            scope.spawn(move || memory.conversations().continue_import(id, conversation).unwrap());
        }
    });
    let export = memory.conversations().export(&id).unwrap();
    assert_eq!(export.messages, messages);
    assert_eq!(export.id.as_deref(), Some("a name/with a slash"));
    assert_eq!(memory.maintenance().doctor().unwrap().findings, Vec::<String>::new());
}
