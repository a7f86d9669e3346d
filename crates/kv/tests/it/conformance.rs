//! Every engine passes the suite.

use foldback_kv::{Engine, Mode, open};
use foldback_testkit::engine;

#[test]
fn memory_conforms() {
    conforms(Engine::Memory);
}

#[cfg(feature = "sqlite")]
#[test]
fn sqlite_conforms() {
    conforms(Engine::Sqlite);
}

#[cfg(feature = "redb")]
#[test]
fn redb_conforms() {
    conforms(Engine::Redb);
}

#[cfg(feature = "sled")]
#[test]
fn sled_conforms() {
    conforms(Engine::Sled);
}

fn conforms(kind: Engine) {
    let dir = tempfile::tempdir().unwrap();
    let stores = std::cell::Cell::new(0);
    engine::conforms(|| {
        let store = stores.replace(stores.get() + 1);
        open(&dir.path().join(store.to_string()), kind, Mode::ReadWrite).unwrap()
    });
}
