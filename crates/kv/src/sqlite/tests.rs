//! Tests with a file of an earlier format version.

use super::*;
use std::fs;

/// Removes from a store what later versions added, as if an earlier program had created it.
fn turn_back(dir: &Path) {
    let connection = Connection::open(dir.join(SQLITE_FILE)).unwrap();
    for space in [Space::Grant, Space::Plan, Space::Sent, Space::Parked] {
        let sql = format!("DROP TABLE {}", table_name(&connection, space));
        connection.execute_batch(&sql).unwrap();
    }
    connection.pragma_update(None, "user_version", 1).unwrap();
    fs::write(dir.join("FORMAT"), "foldback store\nversion 1\nengine sqlite\n").unwrap();
}

fn table_name(connection: &Connection, space: Space) -> String {
    let wanted = space.name().replace('-', "_");
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE '%' || ?";
    connection.query_row(sql, (wanted,), |row| row.get(0)).unwrap()
}

/// R9: a reader that came before the upgrade sees what was written after it.
#[test]
fn r9_a_reader_sees_that_another_has_upgraded() {
    let dir = tempfile::tempdir().unwrap();
    let open = |mode| Sqlite::open(dir.path(), mode).unwrap();
    drop(open(Mode::ReadWrite));
    turn_back(dir.path());
    let reader = open(Mode::ReadOnly);
    let key = Key { space: Space::Plan, todo: 1, n: 0 };
    assert_eq!(reader.get(key).unwrap(), None);
    let put = vec![(key, b"later".to_vec())];
    open(Mode::ReadWrite).commit(Batch { put, ..Batch::default() }).unwrap();
    assert_eq!(reader.get(key).unwrap(), Some(b"later".to_vec()));
    assert_eq!(reader.scan(Space::Plan, 1, 0..9, 9).unwrap().len(), 1);
    assert_eq!(reader.check().unwrap(), Vec::new());
}

/// R9: what a store of an earlier version cannot hold is refused with an explanation, not by the engine.
#[test]
fn r9_what_an_earlier_version_cannot_hold_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = Sqlite::open(dir.path(), Mode::ReadWrite).unwrap();
    turn_back(dir.path());
    store.format.store(1, Ordering::Release);
    let key = Key { space: Space::Grant, todo: 1, n: 0 };
    let refused = store.commit(Batch { put: vec![(key, vec![1])], ..Batch::default() });
    let said = refused.unwrap_err().to_string();
    assert!(said.contains("it could not be upgraded to hold a grant"), "{said}");
    // Everything else still works.
    let key = Key { space: Space::Message, todo: 1, n: 0 };
    store.commit(Batch { put: vec![(key, vec![1])], ..Batch::default() }).unwrap();
}

/// R4: what others write after a frozen file was opened is not taken for a loss.
#[test]
fn r4_a_frozen_file_reports_no_loss_of_later_writes() {
    let dir = tempfile::tempdir().unwrap();
    let put = |n| Batch {
        put: vec![(Key { space: Space::Message, todo: 1, n }, vec![7])],
        ..Batch::default()
    };
    let writer = Sqlite::open(dir.path(), Mode::ReadWrite).unwrap();
    writer.commit(put(0)).unwrap();
    drop(writer);
    let mut reader = Sqlite::open(dir.path(), Mode::ReadOnly).unwrap();
    reader.access = Access::Frozen;
    reader.readers.get_mut().clear();
    assert_eq!(reader.lost().unwrap(), None);
    let writer = Sqlite::open(dir.path(), Mode::ReadWrite).unwrap();
    writer.commit(put(1)).unwrap();
    assert_eq!(reader.lost().unwrap(), None);
}
