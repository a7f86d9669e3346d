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
    /// The server only follows another one.
    Standby,
    /// The server is there, and is not what the store needs.
    Unfit(Box<Error>),
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
            Self::Silence | Self::Standby | Self::Unconnected(None) => return Kind::Cut,
            Self::NoConnection | Self::Unfit(_) => return Kind::Lasting,
        };
        match error.code() {
            Some(code) => kind_of(code),
            // Without a code it is the client's own: what it could not connect to may be there later, but what it
            // could not agree on with the server may not.
            None if is_of_tls(error) || is_of_password(error) => Kind::Lasting,
            None => Kind::Cut,
        }
    }

    /// Returns whether the connection may be used again.
    pub(super) fn leaves_connection(&self) -> bool {
        matches!(self, Self::Client(error) if error.code().is_some_and(|code| kind_of(code) != Kind::Cut))
    }

    /// Returns whether something may have been done by what was not answered.
    pub(super) fn may_be_done(&self) -> bool {
        match self {
            Self::Silence => true,
            Self::Client(error) => error.code().map_or(self.kind() == Kind::Cut, may_be_done),
            _ => false,
        }
    }

    pub(super) fn is(&self, state: &SqlState) -> bool {
        matches!(self, Self::Client(error) if error.code() == Some(state))
    }

    /// Returns the crate's error for it. `name` is the database's.
    pub(super) fn into_error(self, name: &Path) -> Error {
        let path = name.to_owned();
        let unreachable = |path, what: &str| Error::Unreachable { path, detail: what.to_owned() };
        let error = match self {
            Self::Client(error) | Self::Unconnected(Some(error)) => error,
            Self::Silence | Self::Unconnected(None) => {
                return unreachable(path, "it did not answer in time");
            }
            Self::Standby => {
                return unreachable(
                    path,
                    "it takes no writes: it is a standby, or default_transaction_read_only is on",
                );
            }
            Self::Unfit(error) => return *error,
            Self::NoConnection => {
                let doing = "all of this process's connections were in use";
                return Error::Busy { path, doing };
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
            &SqlState::DISK_FULL => Error::Full { path },
            &SqlState::READ_ONLY_SQL_TRANSACTION => Error::ReadOnly { path },
            &SqlState::DATA_CORRUPTED | &SqlState::INDEX_CORRUPTED => {
                Error::Damaged { path, detail }
            }
            &SqlState::UNDEFINED_TABLE | &SqlState::UNDEFINED_COLUMN => {
                Error::Format { path, detail: format!("the server says: {detail}") }
            }
            &SqlState::QUERY_CANCELED => {
                let doing =
                    "its server cancelled what was asked (statement_timeout, or an administrator)";
                Error::Busy { path, doing }
            }
            code if kind_of(code) == Kind::InTheWay => Error::Busy { path, doing: "others wrote" },
            code if kind_of(code) == Kind::Cut => Error::Unreachable { path, detail },
            // Error classes of a wrong role, a missing database, and missing rights or objects.
            code if ["28", "3D", "42"].iter().any(|class| code.code().starts_with(class)) => {
                Error::Refused { path, detail }
            }
            _ => Error::Engine { engine: Engine::Postgres.name(), path, source: Box::new(error) },
        }
    }
}

fn kind_of(code: &SqlState) -> Kind {
    match code {
        // The transaction was rolled back: for another one, after waiting for a lock, or because somebody or a limit
        // of the server cancelled it.
        &SqlState::T_R_SERIALIZATION_FAILURE
        | &SqlState::T_R_DEADLOCK_DETECTED
        | &SqlState::LOCK_NOT_AVAILABLE
        | &SqlState::QUERY_CANCELED => Kind::InTheWay,
        // Nothing came of it either, but on another connection, or later, it may.
        &SqlState::READ_ONLY_SQL_TRANSACTION
        | &SqlState::TOO_MANY_CONNECTIONS
        | &SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT => Kind::Cut,
        code if may_be_done(code) => Kind::Cut,
        _ => Kind::Lasting,
    }
}

/// Returns whether a server that answers this may have done what it was asked: it is going away or coming up, the
/// connection failed, or it does not know itself.
fn may_be_done(code: &SqlState) -> bool {
    *code == SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN
        || ["08", "57P"].iter().any(|class| code.code().starts_with(class))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// PG3: only what the server may have done is said to be unknown, and what may pass is repeated.
    #[test]
    fn pg3_each_code_is_taken_for_what_it_means() {
        for (codes, kind, is_unknown) in [
            (&["40001", "40P01", "55P03", "57014"][..], Kind::InTheWay, false),
            (&["25006", "25P03", "53300"], Kind::Cut, false),
            (&["40003", "08000", "08006", "08007", "08P01"], Kind::Cut, true),
            (&["57P01", "57P02", "57P03", "57P04", "57P05"], Kind::Cut, true),
            (&["23505", "28P01", "3D000", "42501", "42P01", "53100"], Kind::Lasting, false),
        ] {
            for code in codes {
                let state = SqlState::from_code(code);
                assert_eq!((kind_of(&state), may_be_done(&state)), (kind, is_unknown), "{code}");
            }
        }
    }
}
