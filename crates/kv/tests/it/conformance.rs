//! Every engine passes the suite.

use foldback_kv::{EncryptionKey, Engine, Mode, open_with};
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

/// So do sealed stores.
fn conforms(kind: Engine) {
    let dir = tempfile::tempdir().unwrap();
    let stores = std::cell::Cell::new(0);
    for key in [None, Some(EncryptionKey::new([7; 32]))] {
        engine::conforms(|| {
            let store = stores.replace(stores.get() + 1);
            let dir = dir.path().join(store.to_string());
            open_with(&dir, kind, Mode::ReadWrite, key.as_ref()).unwrap()
        });
    }
}
