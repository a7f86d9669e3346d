//! Shared by the journeys: small stores, and generated conversations.

use foldback::{CacheAware, Engine, FoldPolicy, KNOWN_SECRET, Memory, Options, ViewConfig};
use foldback_core::{Message, Timestamp, TodoId, ToolCall, ToolCallId};
use std::path::{Path, PathBuf};

/// A todo id.
pub(crate) fn todo(id: &str) -> TodoId {
    TodoId::new(id).unwrap()
}

/// Options whose clock stands still and whose secret is known, so that two runs are alike.
pub(crate) fn options() -> Options {
    Options::default().with_clock(|| Timestamp(1_700_000_000_000)).with_secret(KNOWN_SECRET)
}

/// Views under both fold policies; `cache-aware` with marks that short histories reach.
pub(crate) fn views() -> [ViewConfig; 2] {
    let marks = CacheAware::default().with_least_cached(64).with_most(24, 2_000).unwrap();
    let aware = ViewConfig::default().with_fold_policy(FoldPolicy::CacheAware(marks));
    [ViewConfig::default(), aware]
}

/// A store on disk, with this engine, that shows conversations in this way.
pub(crate) fn open_showing(view: &ViewConfig, engine: Engine, dir: &Path) -> Memory {
    Memory::open(dir, options().with_engine(engine).with_view(view.clone())).unwrap()
}

/// A store in memory that shows conversations in this way.
pub(crate) fn in_memory_showing(view: &ViewConfig) -> Memory {
    Memory::in_memory(options().with_view(view.clone())).unwrap()
}

/// The persistent engines: what a journey promises holds on each of them.
pub(crate) fn engines() -> [Engine; 3] {
    [Engine::Sqlite, Engine::Redb, Engine::Sled]
}

/// A store on disk, with the default engine.
pub(crate) fn open(dir: &Path) -> Memory {
    open_on(Engine::default(), dir)
}

/// A store on disk, with this engine.
pub(crate) fn open_on(engine: Engine, dir: &Path) -> Memory {
    Memory::open(dir, options().with_engine(engine)).unwrap()
}

/// A store in memory.
pub(crate) fn in_memory() -> Memory {
    Memory::in_memory(options()).unwrap()
}

/// A user's message, a call, its result, and a reply: one small exchange about `subject`.
pub(crate) fn exchange(n: usize, subject: &str, result: &str) -> [Message; 4] {
    let id = format!("call_{n}");
    let arguments = serde_json::json!({ "path": format!("src/{subject}.rs") }).to_string();
    [
        Message::user(&format!("Please look at {subject} (step {n}).")),
        Message::calls("", vec![ToolCall::new(&id, "read_file", &arguments)]),
        Message::tool_result(&ToolCallId::new(&id), result),
        Message::assistant(&format!(
            "I have read {subject}: {}",
            result.lines().next().unwrap_or("")
        )),
    ]
}

/// The project's folder.
pub(crate) fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
