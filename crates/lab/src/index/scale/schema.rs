//! A schema for one store, removed when it is dropped.

use foldback::Error;
use foldback_bench::BenchError;
use foldback_kv::{Console, Server};
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

pub(super) struct Schema {
    pub(super) console: Console,
    pub(super) name: String,
}

impl Schema {
    /// Creates an empty one. Processes on several machines may do so at once.
    pub(super) fn create(server: &Server) -> Result<Self, BenchError> {
        let (now, process) = (SystemTime::now().duration_since(UNIX_EPOCH), std::process::id());
        let name = format!("foldback_bench_{process}_{:x}", now.unwrap_or_default().as_nanos());
        let console = ask(Console::open(server))?;
        ask(console.ask(&format!("CREATE SCHEMA {name}")))?;
        Ok(Self { console, name })
    }

    /// Returns the bytes of each table with its indexes, and `all` of them.
    pub(super) fn bytes(&self) -> Result<BTreeMap<String, u64>, BenchError> {
        let rows = ask(self.console.ask(&format!(
            "SELECT relname, pg_total_relation_size(c.oid) FROM pg_class AS c \
             JOIN pg_namespace AS s ON s.oid = relnamespace WHERE nspname = '{}' AND relkind = 'r'",
            self.name
        )))?;
        let bytes = |row: &Vec<String>| {
            let name = row.first()?.trim_start_matches("foldback_").to_owned();
            Some((name, row.get(1)?.parse().ok()?))
        };
        let mut bytes: BTreeMap<String, u64> = rows.iter().filter_map(bytes).collect();
        bytes.insert("all".to_owned(), bytes.values().sum());
        Ok(bytes)
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        let drop = format!("DROP SCHEMA {} CASCADE", self.name);
        if let Err(error) = self.console.ask(&drop) {
            eprintln!("the schema is still there: {error}; `{drop}` removes it");
        }
    }
}

/// Returns the number of connections to this database, without the one that asks.
pub(super) fn connections(console: &Console) -> Result<u64, BenchError> {
    let rows = ask(console.ask(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
         AND backend_type = 'client backend' AND pid <> pg_backend_pid()",
    ))?;
    Ok(rows.first().and_then(|row| row.first()?.parse().ok()).unwrap_or_default())
}

/// Returns the error of a console as one of a measurement.
pub(super) fn ask<T>(answer: Result<T, foldback_kv::Error>) -> Result<T, BenchError> {
    answer.map_err(|error| BenchError::Memory(Error::from(error)))
}
