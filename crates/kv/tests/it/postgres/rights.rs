//! Roles with as few rights as their work needs.

use super::{append, batch, values, writing};
use foldback_kv::{Error, Mode, Server as Address, open};
use foldback_testkit::postgres::Server;

/// PG6: the rights in `docs/scaling.md` are enough, and none of them is more than is needed: the owner makes the tables,
/// a writer changes rows, a reader reads them.
#[test]
fn pg6_the_documented_rights_are_enough() {
    let Some(server) = Server::start("pg6_the_documented_rights_are_enough") else { return };
    let (dir, address) = (tempfile::tempdir().unwrap(), server.database());
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scaling.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    let (_, rights) = docs.split_once("```sql\n").expect("the page has the rights as SQL");
    let (rights, _) = rights.split_once("```").unwrap();
    let of = |role: &str| address.replace("owner@", &format!("{role}@"));
    server.sql("test_0", "CREATE ROLE foldback_writer LOGIN; CREATE ROLE foldback_reader LOGIN");
    let early = open(&dir.path().join("1"), Address::new(of("foldback_writer")), Mode::ReadWrite);
    let early = early.err().unwrap();
    assert!(matches!(early, Error::Refused { .. }), "{early}");
    assert!(
        early.to_string().contains("open the store once as the role that owns them"),
        "{early}"
    );
    drop(writing(&dir.path().join("2"), &address));
    server.sql("test_0", "DROP ROLE foldback_writer; DROP ROLE foldback_reader");
    server.sql("test_0", rights);
    let writer = writing(&dir.path().join("1"), &of("foldback_writer"));
    for n in 0..3 {
        append(writer.as_ref(), 1, &[n]).unwrap();
    }
    writer.compact().unwrap();
    assert_eq!(writer.check().unwrap(), []);
    let reader =
        open(&dir.path().join("3"), Address::new(of("foldback_reader")), Mode::ReadOnly).unwrap();
    assert_eq!(values(reader.as_ref(), 1).len(), 3);
    assert_eq!((reader.lost().unwrap(), reader.check().unwrap()), (None, vec![]));
    assert!(!reader.wait_for_change(reader.changed().unwrap(), std::time::Duration::ZERO).unwrap());
    // A reader that is opened for writing is refused by the server.
    let posing = open(&dir.path().join("4"), Address::new(of("foldback_reader")), Mode::ReadWrite);
    let refused = posing.unwrap().commit(batch(1, 3, b"no")).unwrap_err();
    assert!(matches!(refused, Error::Refused { .. }), "{refused}");
    assert!(refused.to_string().contains("permission denied"), "{refused}");
    for (role, sql) in [
        ("foldback_writer", "DROP TABLE foldback_record"),
        ("foldback_writer", "TRUNCATE foldback_record"),
        ("foldback_writer", "INSERT INTO foldback_migration (version) VALUES (9)"),
        ("foldback_writer", "UPDATE foldback_store SET id = id"),
        ("foldback_writer", "CREATE TABLE other (a int)"),
        ("foldback_reader", "DELETE FROM foldback_record"),
    ] {
        let script = format!("SET ROLE {role}; {sql}");
        let refused = std::panic::catch_unwind(|| server.sql("test_0", &script));
        assert!(refused.is_err(), "{role} may {sql}");
    }
}
