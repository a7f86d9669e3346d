//! The kinds of errors, which callers match on.

use super::Failure;
use foldback_backend_store::Error as PayloadError;
use foldback_blockstore::Error as BlockError;
use foldback_disclosure::Error as RecallError;
use foldback_kv::Error as KvError;

/// The kind of an [`Error`](crate::Error), divided by what the caller can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no such store, todo, message, block or payload, or this todo may not read it: the two look
    /// alike on purpose.
    NotFound,
    /// The todo or folder already holds something else. Choose another.
    AlreadyExists,
    /// Another writer came first, and nothing was written. Read the todo's current state and repeat.
    Conflict,
    /// Another process holds the store, or kept it busy for too long; nothing was changed. Try again later.
    Locked,
    /// The store is open read-only, or cannot be written.
    ReadOnly,
    /// The disk is full; nothing was changed.
    Full,
    /// Stored data are damaged. Everything else stays readable;
    /// [`doctor`](crate::Maintenance::doctor) names what is damaged.
    Corrupt,
    /// Acknowledged writes are gone from the store. It can be read, and takes no writes until that is
    /// [accepted](crate::Maintenance::accept_loss).
    Lost,
    /// A server went away while it was written to, and it is unknown whether that write is stored. Read the todo's
    /// current state before repeating it.
    Unknown,
    /// The source of an imported conversation has changed since it was imported. Forget the todo to import
    /// it whole.
    SourceChanged,
    /// The store was made by another engine or in another format, or this build cannot do what was asked.
    Unsupported,
    /// The store is encrypted, and the key was not given or is another one; or it is not encrypted, and a key was given.
    Key,
    /// An argument, a setting or a text makes no sense.
    InvalidInput,
    /// A todo was asked to grant or return what is not its own, or a key opens nothing.
    NotPermitted,
    /// A todo or the store has reached its limit; everything recorded before is there.
    Quota,
    /// The embedder failed.
    Embedder,
    /// The file system refused.
    Io,
    /// Something that should be impossible; please report it.
    Internal,
}

impl ErrorKind {
    pub(super) fn of(failure: &Failure) -> Self {
        match failure {
            Failure::Kv(error) => of_kv(error),
            Failure::NotOpened(error) => of_kv(error),
            Failure::Blocks(error) => of_blocks(error),
            Failure::Payloads(error) => of_payloads(error),
            Failure::Recall(error) => match error {
                RecallError::Blocks(error) => of_blocks(error),
                RecallError::Grants(error) => of_kv(error),
                RecallError::Payloads(error) => of_payloads(error),
                _ => Self::InvalidInput,
            },
            Failure::NoTodo(_)
            | Failure::NoTenant(_)
            | Failure::NoMessage { .. }
            | Failure::NoReference { .. } => Self::NotFound,
            Failure::NotEmpty { .. }
            | Failure::Used { .. }
            | Failure::Other { .. }
            | Failure::Longer { .. }
            | Failure::KnownTenant(_) => Self::AlreadyExists,
            Failure::MovedOn { .. } | Failure::FilledTwice => Self::Conflict,
            Failure::Unfinished
            | Failure::Damaged { .. }
            | Failure::State { .. }
            | Failure::StateMismatch { .. }
            | Failure::Uncounted(_)
            | Failure::Count(_)
            | Failure::Numbers(_) => Self::Corrupt,
            Failure::Rewritten { .. } => Self::SourceChanged,
            Failure::Chunker(_)
            | Failure::Scale { .. }
            | Failure::Id(_)
            | Failure::RedactionKey
            | Failure::NoRedactionKey
            | Failure::NoAuditFolder
            | Failure::Message(_)
            | Failure::Transcript(_)
            | Failure::TodoList(_) => Self::InvalidInput,
            Failure::NotOwn { .. }
            | Failure::ToItself(_)
            | Failure::NotReturned { .. }
            | Failure::Sealed { .. }
            | Failure::OtherRedactionKey(_)
            | Failure::NotChild { .. }
            | Failure::NoParent(_) => Self::NotPermitted,
            Failure::NoAuditSecret => Self::ReadOnly,
            Failure::Quota { .. } => Self::Quota,
            Failure::NoRoom { .. } => Self::Full,
            Failure::Embed(_) => Self::Embedder,
            Failure::Io { .. } | Failure::Random(_) => Self::Io,
            Failure::Internal(_) => Self::Internal,
        }
    }
}

fn of_blocks(error: &BlockError) -> ErrorKind {
    match error {
        BlockError::Conflict { .. } => ErrorKind::Conflict,
        BlockError::Corrupt { .. } => ErrorKind::Corrupt,
        BlockError::Refused { .. } | BlockError::Config(_) => ErrorKind::InvalidInput,
        BlockError::Kv(error) => of_kv(error),
        // The text of a payload, or an index, could not be read or written.
        _ => ErrorKind::Io,
    }
}

fn of_payloads(error: &PayloadError) -> ErrorKind {
    match error {
        PayloadError::NotFound { .. }
        | PayloadError::WrongCheck { .. }
        | PayloadError::BadRange { .. } => ErrorKind::NotFound,
        PayloadError::Corrupt { .. } | PayloadError::Refused { .. } => ErrorKind::Corrupt,
        PayloadError::BadPattern { .. }
        | PayloadError::TooLarge { .. }
        | PayloadError::Config { .. } => ErrorKind::InvalidInput,
        PayloadError::Kv(error) => of_kv(error),
        _ => ErrorKind::Io,
    }
}

fn of_kv(error: &KvError) -> ErrorKind {
    match error {
        KvError::Conflict { .. } | KvError::Changed { .. } => ErrorKind::Conflict,
        KvError::Corrupt { .. } | KvError::CorruptHead { .. } | KvError::Damaged { .. } => {
            ErrorKind::Corrupt
        }
        KvError::KeyOutOfRange { .. }
        | KvError::ValueTooLarge { .. }
        | KvError::Foreign { .. }
        | KvError::Address { .. }
        | KvError::UnknownEngine { .. } => ErrorKind::InvalidInput,
        KvError::Locked { .. } | KvError::Busy { .. } => ErrorKind::Locked,
        KvError::Full { .. } | KvError::NoRoom { .. } => ErrorKind::Full,
        KvError::TooManyTodos { .. } => ErrorKind::Quota,
        KvError::Lost { .. } => ErrorKind::Lost,
        KvError::Unknown { .. } => ErrorKind::Unknown,
        KvError::ReadOnly { .. } | KvError::PendingLog { .. } => ErrorKind::ReadOnly,
        KvError::NotFound { .. } | KvError::NoTenant { .. } => ErrorKind::NotFound,
        KvError::NoKey { .. } | KvError::WrongKey { .. } | KvError::NotEncrypted { .. } => {
            ErrorKind::Key
        }
        KvError::NotEmpty { .. } => ErrorKind::AlreadyExists,
        KvError::FormatVersion { .. }
        | KvError::FormatEngine { .. }
        | KvError::Format { .. }
        | KvError::Unfit { .. }
        | KvError::Unsupported { .. } => ErrorKind::Unsupported,
        // The file system, the server or the engine failed, now or at an earlier write.
        _ => ErrorKind::Io,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PG3: a write whose outcome is unknown has another kind of error than one that failed.
    #[test]
    fn pg3_a_write_of_unknown_outcome_has_a_kind_of_its_own() {
        let error = KvError::Unknown { path: "database".into(), detail: "gone".to_owned() };
        assert_eq!(of_kv(&error), ErrorKind::Unknown);
    }
}
