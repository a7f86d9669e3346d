//! Opening a store on a server, for the first time and again.

use super::{append, batch, replace, writing};
use foldback_kv::{Engine, Error, Mode, Server as Address, open};
use foldback_testkit::postgres::Server;
use std::fs;
use std::thread;

/// Many processes make one store at once.
#[test]
fn pg1_processes_make_one_store_at_once() {
    let Some(server) = Server::start("pg1_processes_make_one_store_at_once") else { return };
    let dir = tempfile::tempdir().unwrap();
    for round in 0..3 {
        let (address, dir) = (server.database(), dir.path().join(round.to_string()));
        thread::scope(|scope| {
            for at in 0..8_u8 {
                let (address, dir) = (&address, &dir);
                // Half of them share a folder.
                let dir = dir.join(format!("{}", if at % 2 == 0 { 0 } else { at }));
                scope.spawn(move || append(writing(&dir, address).as_ref(), 1, &[at]).unwrap());
            }
        });
        assert_eq!(writing(&dir.join("last"), &address).head(1).unwrap(), 8, "round {round}");
        let versions = "SELECT version FROM foldback_migration ORDER BY version";
        assert_eq!(server.sql(&format!("test_{round}"), versions).trim(), "1\n2\n3");
    }
}

/// A folder goes with one database, and holds no address.
#[test]
fn pg4_a_folder_is_tied_to_its_database() {
    let Some(server) = Server::start("pg4_a_folder_is_tied_to_its_database") else { return };
    let (dir, address) = (tempfile::tempdir().unwrap(), server.database());
    let store = dir.path().join("store");
    writing(&store, &address).commit(batch(1, 0, b"hello")).unwrap();
    let format = fs::read_to_string(store.join("FORMAT")).unwrap();
    let id = server.sql("test_0", "SELECT id FROM foldback_store");
    assert_eq!(
        format,
        format!("foldback store\nversion 4\nengine postgres\ndatabase {}\n", id.trim())
    );
    assert_eq!(writing(&store, &address).head(1).unwrap(), 1);
    let other = open(&store, Address::new(server.database()), Mode::ReadWrite).err().unwrap();
    assert!(other.to_string().contains("belongs to the database with the id"), "{other}");
    let engine = open(&store, Engine::Sqlite, Mode::ReadWrite).err().unwrap();
    assert!(matches!(engine, Error::FormatEngine { .. }), "{engine}");
    let without = open(&store, Engine::Postgres, Mode::ReadWrite).err().unwrap();
    assert!(matches!(without, Error::Address { .. }), "{without}");
}

/// A reader makes nothing: no table, and no folder.
#[test]
fn pg1_a_reader_makes_nothing() {
    let Some(server) = Server::start("pg1_a_reader_makes_nothing") else { return };
    let (dir, address) = (tempfile::tempdir().unwrap(), server.database());
    let reading = |name: &str| open(&dir.path().join(name), Address::new(&address), Mode::ReadOnly);
    let none = reading("1").err().unwrap();
    assert!(matches!(none, Error::NotFound { .. }), "{none}");
    assert_eq!(
        server.sql("test_0", "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").trim(),
        "0"
    );
    writing(&dir.path().join("2"), &address).commit(batch(1, 0, b"hello")).unwrap();
    let kv = reading("1").unwrap();
    assert_eq!((kv.head(1).unwrap(), kv.lost().unwrap()), (1, None));
    assert!(matches!(kv.commit(batch(1, 1, b"no")), Err(Error::ReadOnly { .. })));
    assert!(matches!(kv.compact(), Err(Error::ReadOnly { .. })));
    assert!(!dir.path().join("1").exists());
}

/// A database of a later version is refused by it.
#[test]
fn r9_a_later_database_is_refused() {
    let Some(server) = Server::start("r9_a_later_database_is_refused") else { return };
    let (dir, address) = (tempfile::tempdir().unwrap(), server.database());
    drop(writing(&dir.path().join("1"), &address));
    server.sql("test_0", "INSERT INTO foldback_migration (version) VALUES (4)");
    let later = open(&dir.path().join("1"), Address::new(&address), Mode::ReadOnly).err().unwrap();
    assert!(matches!(later, Error::FormatVersion { found: 4, expected: 3, .. }), "{later}");
}

/// R9: tables of the first version are read as they are, and brought up to date by the first writer.
#[test]
fn r9_an_earlier_database_is_brought_up_to_date() {
    let name = "r9_an_earlier_database_is_brought_up_to_date";
    let Some(server) = Server::start(name) else { return };
    let (dir, address) = (tempfile::tempdir().unwrap(), server.database());
    writing(dir.path(), &address).commit(batch(1, 0, b"hello")).unwrap();
    let first = "DROP INDEX foldback_commit_made; DROP TABLE foldback_tenant; \
                 DELETE FROM foldback_migration WHERE version > 1; \
                 ALTER TABLE foldback_head ALTER COLUMN slot TYPE SMALLINT; \
                 ALTER TABLE foldback_record ALTER COLUMN slot TYPE SMALLINT; \
                 ALTER TABLE foldback_slot ALTER COLUMN slot TYPE SMALLINT; \
                 ALTER TABLE foldback_commit ALTER COLUMN slot TYPE SMALLINT";
    server.sql("test_0", first);
    let versions = || {
        let sql =
            "SELECT max(version), to_regclass('foldback_commit_made') FROM foldback_migration";
        server.sql("test_0", sql).trim().to_owned()
    };
    let reader = open(dir.path(), Address::new(&address), Mode::ReadOnly).unwrap();
    assert_eq!((reader.head(1).unwrap(), versions().as_str()), (1, "1|"));
    assert_eq!((reader.check().unwrap(), reader.lost().unwrap()), (vec![], None));
    writing(dir.path(), &address).commit(batch(1, 1, b"hello")).unwrap();
    assert_eq!(versions(), "3|foldback_commit_made");
}

/// PG4: an address that leads to another database while a store is open gives it no writes of the store.
#[test]
fn pg4_another_database_in_its_place_is_noticed() {
    let name = "pg4_another_database_in_its_place_is_noticed";
    let Some(server) = Server::start(name) else { return };
    let (dir, address, other) =
        (tempfile::tempdir().unwrap(), server.database(), server.database());
    let kv = writing(&dir.path().join("1"), &address);
    drop(writing(&dir.path().join("2"), &other));
    // The other one would take this write, and have an answer to the question.
    replace(&server, "test_1");
    let wrong = kv.commit(batch(1, 0, b"hello")).unwrap_err();
    assert!(matches!(wrong, Error::Unfit { .. }), "{wrong}");
    assert!(wrong.to_string().contains("leads to another database than before"), "{wrong}");
    assert!(matches!(kv.head(1), Err(Error::Unfit { .. })));
    assert_eq!(server.sql("test_0", "SELECT count(*) FROM foldback_record").trim(), "0");
}

/// PG3: a writer is not opened where the server acknowledges what a crash would lose.
#[test]
fn pg3_a_server_that_does_not_wait_for_its_disk_is_refused() {
    let name = "pg3_a_server_that_does_not_wait_for_its_disk_is_refused";
    let Some(server) = Server::start(name) else { return };
    let (dir, address) = (tempfile::tempdir().unwrap(), server.database());
    drop(writing(dir.path(), &address));
    server.sql("postgres", "ALTER ROLE owner SET synchronous_commit = off");
    let refused = open(dir.path(), Address::new(&address), Mode::ReadWrite).err().unwrap();
    assert!(matches!(refused, Error::Unfit { .. }), "{refused}");
    assert!(refused.to_string().contains("SET synchronous_commit = on"), "{refused}");
    open(dir.path(), Address::new(&address), Mode::ReadOnly).unwrap();
    server.sql("postgres", "ALTER ROLE owner SET synchronous_commit = local");
    writing(dir.path(), &address).commit(batch(1, 0, b"hello")).unwrap();
}

/// PG1: a commit whose rows a trigger keeps from being stored is not acknowledged.
#[test]
fn pg1_a_trigger_in_the_way_is_noticed() {
    let Some(server) = Server::start("pg1_a_trigger_in_the_way_is_noticed") else { return };
    let (dir, address) = (tempfile::tempdir().unwrap(), server.database());
    let kv = writing(dir.path(), &address);
    kv.commit(batch(1, 0, b"before")).unwrap();
    server.sql(
        "test_0",
        "CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; \
         CREATE TRIGGER nothing BEFORE INSERT ON foldback_commit FOR EACH ROW EXECUTE FUNCTION nothing()",
    );
    let error = kv.commit(batch(1, 1, b"lost")).unwrap_err();
    assert!(matches!(error, Error::Unfit { .. }), "{error}");
    server.sql("test_0", "DROP TRIGGER nothing ON foldback_commit");
    assert_eq!(kv.head(1).unwrap(), 1);
    kv.commit(batch(1, 1, b"after")).unwrap();
}

/// PG4: the tables are found by the schema that the role asks in, so a database holds a store in each of them.
#[test]
fn pg4_each_schema_holds_a_store() {
    let Some(server) = Server::start("pg4_each_schema_holds_a_store") else { return };
    let (dir, address) = (tempfile::tempdir().unwrap(), server.database());
    let in_public = writing(&dir.path().join("1"), &address);
    in_public.commit(batch(1, 0, b"public")).unwrap();
    server.sql(
        "test_0",
        "CREATE ROLE team LOGIN; CREATE SCHEMA team AUTHORIZATION team; ALTER ROLE team SET search_path = team",
    );
    let in_team = writing(&dir.path().join("2"), &address.replace("owner@", "team@"));
    assert_eq!(in_team.head(1).unwrap(), 0);
    in_team.commit(batch(1, 0, b"team")).unwrap();
    assert_eq!(in_public.head(1).unwrap(), 1);
    assert_eq!(server.sql("test_0", "SELECT count(*) FROM team.foldback_record").trim(), "1");
}

/// What the server refuses is said in its words, with the database's name and without the password.
#[test]
fn pg4_a_refusal_names_the_database_and_no_password() {
    let name = "pg4_a_refusal_names_the_database_and_no_password";
    let Some(server) = Server::start(name) else { return };
    let dir = tempfile::tempdir().unwrap();
    let port = server.port();
    let address = format!("postgres://owner:hunter2@127.0.0.1:{port}/nowhere");
    let refused = open(dir.path(), Address::new(address), Mode::ReadWrite).err().unwrap();
    let said = refused.to_string();
    assert_eq!(
        said,
        format!(
            "the database postgres://127.0.0.1:{port}/nowhere refused: database \"nowhere\" does not exist"
        )
    );
    let nobody = format!("postgres://nobody:hunter2@127.0.0.1:{port}/postgres");
    let refused = open(dir.path(), Address::new(nobody), Mode::ReadWrite).err().unwrap();
    assert!(refused.to_string().ends_with("role \"nobody\" does not exist"), "{refused}");
    assert!(!format!("{refused:?}").contains("hunter2"));
}
