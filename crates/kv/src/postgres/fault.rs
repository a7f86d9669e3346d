//! What an answer of the server, or its silence, means to the caller.

use crate::{Engine, Error};
use std::path::Path;
use tokio_postgres::error::SqlState;

/// Why something was not answered.
#[derive(Debug)]
pub(super) enum Fault {
    /// The client says so: the server refused, or the connection is gone.
    Client(tokio_postgres::Error),
    /// There was no connection to ask on, and none could be made; without a reason, the server took too long.
    Unconnected(Option<tokio_postgres::Error>),
    /// The server said nothing for too long. The connection is given up.
    Silence,
    /// All connections of this process were in use for too long.
    NoConnection,
}

/// What may be done about a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Another transaction was in the way, and this one has changed nothing. It may be repeated.
    InTheWay,
    /// The connection, or the server, is gone. What was asked may have been done.
    Cut,
    /// Repeating it changes nothing.
    Lasting,
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Client(error)
    }
}

impl Fault {
    pub(super) fn kind(&self) -> Kind {
        let error = match self {
            Self::Client(error) | Self::Unconnected(Some(error)) => error,
            Self::Silence | Self::Unconnected(None) => return Kind::Cut,
            Self::NoConnection => return Kind::Lasting,
        };
        match error.code() {
            Some(code) if is_in_the_way(code) => Kind::InTheWay,
            Some(code) if is_cut(code) => Kind::Cut,
            Some(_) => Kind::Lasting,
            // Without a code it is the client's own: what it could not connect to may be there later, but what it
            // could not agree on with the server may not.
            None if is_of_tls(error) || is_of_password(error) => Kind::Lasting,
            None => Kind::Cut,
        }
    }

    /// Returns whether the connection may be used again.
    pub(super) fn leaves_connection(&self) -> bool {
        matches!(self, Self::Client(error) if error.code().is_some_and(|code| !is_cut(code)))
    }

    /// Returns whether something may have been done by what was not answered.
    pub(super) fn may_be_done(&self) -> bool {
        matches!(self, Self::Silence) || matches!(self, Self::Client(_)) && self.kind() == Kind::Cut
    }

    pub(super) fn is(&self, state: &SqlState) -> bool {
        matches!(self, Self::Client(error) if error.code() == Some(state))
    }

    /// Returns the crate's error for it. `name` is the database's.
    pub(super) fn into_error(self, name: &Path) -> Error {
        let path = name.to_owned();
        let error = match self {
            Self::Client(error) | Self::Unconnected(Some(error)) => error,
            Self::Silence | Self::Unconnected(None) => {
                let what = "it did not answer in time";
                return Error::Unreachable { path, detail: what.to_owned() };
            }
            Self::NoConnection => {
                return Error::Busy {
                    path,
                    doing: "all of this process's connections were in use",
                };
            }
        };
        let detail = words(&error);
        let Some(code) = error.code() else {
            return match is_of_tls(&error) || is_of_password(&error) {
                true => Error::Refused { path, detail },
                false => Error::Unreachable { path, detail },
            };
        };
        match code {
            &SqlState::LOCK_NOT_AVAILABLE => Error::Busy { path, doing: "others wrote" },
            &SqlState::DISK_FULL => Error::Full { path },
            &SqlState::READ_ONLY_SQL_TRANSACTION => Error::ReadOnly { path },
            &SqlState::DATA_CORRUPTED | &SqlState::INDEX_CORRUPTED => {
                Error::Damaged { path, detail }
            }
            &SqlState::UNDEFINED_TABLE | &SqlState::UNDEFINED_COLUMN => {
                Error::Format { path, detail: format!("the server says: {detail}") }
            }
            code if is_in_the_way(code) => Error::Busy { path, doing: "others wrote" },
            code if is_cut(code) => Error::Unreachable { path, detail },
            // Who asks, for what, and with which rights.
            code if ["28", "3D", "42"].iter().any(|class| code.code().starts_with(class)) => {
                Error::Refused { path, detail }
            }
            _ => Error::Engine { engine: Engine::Postgres.name(), path, source: Box::new(error) },
        }
    }
}

/// Returns whether a transaction was rolled back so that another could go on.
fn is_in_the_way(code: &SqlState) -> bool {
    [&SqlState::T_R_SERIALIZATION_FAILURE, &SqlState::T_R_DEADLOCK_DETECTED].contains(&code)
}

/// Returns whether the server is going away, coming up, or no longer the one that takes writes.
fn is_cut(code: &SqlState) -> bool {
    code.code().starts_with("08")
        || [
            &SqlState::ADMIN_SHUTDOWN,
            &SqlState::CRASH_SHUTDOWN,
            &SqlState::CANNOT_CONNECT_NOW,
            &SqlState::TOO_MANY_CONNECTIONS,
            &SqlState::QUERY_CANCELED,
            &SqlState::READ_ONLY_SQL_TRANSACTION,
            &SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
        ]
        .contains(&code)
}

fn is_of_tls(error: &tokio_postgres::Error) -> bool {
    error.to_string().starts_with("error performing TLS handshake")
}

/// Returns whether the server wants a password and there is none, or it wants to be asked in a way that the client
/// does not know.
fn is_of_password(error: &tokio_postgres::Error) -> bool {
    let text = error.to_string();
    ["invalid configuration", "authentication error"].iter().any(|begin| text.starts_with(begin))
}

/// Returns the innermost message, which names the reason; of the server's own words the hint, too.
pub(super) fn words(error: &tokio_postgres::Error) -> String {
    if let Some(said) = error.as_db_error() {
        let more = [said.detail(), said.hint()].into_iter().flatten();
        return more.fold(said.message().to_owned(), |text, more| format!("{text} ({more})"));
    }
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}
