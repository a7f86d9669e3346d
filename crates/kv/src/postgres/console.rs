//! Questions about a server itself: how large its tables are, how long its own commits take.

use super::address::Address;
use super::io::Io;
use super::pool::{Asked, Pool};
use crate::error::reading;
use crate::{Error, Mode, Server};
use tokio_postgres::SimpleQueryMessage;

/// A connection to a database, made in the way in which a store makes its own, on which any SQL may be asked. It is for
/// measurements: what is asked on it never goes through a store.
pub struct Console {
    pool: Pool,
}

impl Console {
    /// Connects to the database at an address.
    ///
    /// # Errors
    /// When the address cannot be read, or no server there answers and takes writes.
    pub fn open(server: &Server) -> Result<Self, Error> {
        let mut address = Address::of(server, Mode::ReadWrite)?;
        // What is asked one after the other is asked on one connection.
        address.connections = 1;
        let io = Io::start().map_err(reading("start a thread for", &address.name))?;
        let console = Self { pool: Pool::new(address, io) };
        console.ask("SELECT 1")?;
        Ok(console)
    }

    /// Runs SQL once, in one round trip, and returns the rows of all its statements as text; a null is empty.
    ///
    /// # Errors
    /// When the server refuses or does not answer. What was asked may have been done then.
    pub fn ask(&self, sql: &str) -> Result<Vec<Vec<String>>, Error> {
        let sql = sql.to_owned();
        let asked = self.pool.once(move |client| -> Asked<Vec<Vec<String>>> {
            Box::pin(async move {
                let answers = client.simple_query(&sql).await?;
                let rows = answers.iter().filter_map(|answer| match answer {
                    SimpleQueryMessage::Row(row) => Some(row),
                    _ => None,
                });
                let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
                rows.map(|row| (0..row.len()).map(|at| row.try_get(at).map(text)).collect())
                    .collect()
            })
        });
        asked.map_err(|fault| fault.into_error(&self.pool.address.name))
    }
}
