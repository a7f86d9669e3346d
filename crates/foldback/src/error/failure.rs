//! The causes of errors in detail, from which the sentences of an [`Error`](crate::Error) are made.

use foldback_core::{
    EmbedError, IdError, MessageError, Reference, SeqNo, TenantId, TodoId, TodoListError,
};

/// The cause of an error. It may change from version to version, unlike its [kind](super::ErrorKind).
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The underlying store failed.
    #[error(transparent)]
    Kv(#[from] foldback_kv::Error),
    /// Messages, blocks or their search failed.
    #[error(transparent)]
    Blocks(#[from] foldback_blockstore::Error),
    /// Payloads failed.
    #[error(transparent)]
    Payloads(#[from] foldback_backend_store::Error),
    /// A recall tool failed in a way that the model cannot correct.
    #[error(transparent)]
    Recall(#[from] foldback_disclosure::Error),
    /// The chunker was given a setting that makes no sense.
    #[error(transparent)]
    Chunker(#[from] foldback_chunker::Error),
    /// The embedder failed.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// The measurements of an embedder do not make a valid scale.
    #[error(
        "the scale of {model} is {} for the same topic and {} for an answer; cosines between 0 and 1 \
         are expected, the second at most the first", .scale.same_topic, .scale.answering
    )]
    Scale {
        /// The model.
        model: String,
        /// The scale.
        scale: foldback_core::Scale,
    },
    /// A text is not a valid id.
    #[error(transparent)]
    Id(#[from] IdError),
    /// A text is not a valid message.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// A conversation could not be read or written.
    #[error(transparent)]
    Transcript(#[from] foldback_transcript::Error),
    /// A file or folder of the store could not be used.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: std::path::PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The disk has too little room.
    #[error("the disk that holds {} is full, {free} bytes are free: {what}", .path.display())]
    NoRoom {
        /// The store's folder.
        path: std::path::PathBuf,
        /// How many bytes are free.
        free: u64,
        /// What needed more room, and what can be done.
        what: String,
    },
    /// The system gave no random bytes for the secret of a store.
    #[error("the secret of the store could not be made: {0}")]
    Random(getrandom::Error),
    /// A text is not a valid key for removed secrets.
    #[error(
        "a key for removed secrets has 32 bytes, as 64 hexadecimal digits or in base64 (`openssl rand -hex 32` makes one)"
    )]
    RedactionKey,
    /// Removed text was requested, and there is no key.
    #[error("removed text can only be read with the key that sealed it, and no key was given")]
    NoRedactionKey,
    /// Removed text was sealed with another key, or is damaged.
    #[error(
        "the text removed from {place} of todo {todo} was sealed with a different key than the one given, or is damaged"
    )]
    Sealed {
        /// The todo.
        todo: TodoId,
        /// What the text was removed from.
        place: String,
    },
    /// A todo's removed text was sealed with another key.
    #[error(
        "the text removed from todo {0} before was sealed with a different key than the one given, and one key opens \
         a todo; give that key, or record into another todo"
    )]
    OtherRedactionKey(TodoId),
    /// The database of a store is damaged, so the store could not be opened.
    #[error(
        "{0}; restore a backup into a new store (`foldback --store NEW restore BACKUP`), or import what \
         `foldback export --lenient` can still read into a new store"
    )]
    NotOpened(foldback_kv::Error),
    /// Look-ups are to be logged, and there is no folder for the log.
    #[error("an audit log is kept in the store's folder, and a store in memory has none")]
    NoAuditFolder,
    /// Look-ups are to be logged, and the store has no secret to check the log with.
    #[error(
        "an audit log is checked with the store's secret, which is missing or damaged and cannot be saved now; open the \
         store once for writing (`foldback doctor --repair`)"
    )]
    NoAuditSecret,
    /// A limit on what a todo may hold would be exceeded.
    #[error(
        "todo {todo} may hold at most {most} {what} ({setting}; of a tenant, `foldback tenant limit NAME`), and this would \
         exceed the limit"
    )]
    Quota {
        /// The todo.
        todo: TodoId,
        /// What is limited.
        what: &'static str,
        /// The limit.
        most: u64,
        /// The setting of the limit.
        setting: &'static str,
    },
    /// Filling the store from another one was begun and not finished.
    #[error(
        "the store is not complete: filling it from another one was interrupted; repeat `foldback restore`, which begins again"
    )]
    Unfinished,
    /// Filling the store was begun again elsewhere.
    #[error(
        "the store is being filled by another `foldback restore`, which began later; this one has ended"
    )]
    FilledTwice,
    /// A store that was to be filled from another one has been used.
    #[error(
        "todos were made in the store of {}; only a new store can be filled from another one", .path.display()
    )]
    Used {
        /// The store's folder.
        path: std::path::PathBuf,
    },
    /// The store knows a tenant of this name.
    #[error("there is a tenant {0} already, or it is being forgotten")]
    KnownTenant(TenantId),
    /// The store lets no tenant of this name in.
    #[error("there is no tenant {0}")]
    NoTenant(TenantId),
    /// A todo has a limit in bytes, and its bytes cannot be counted.
    #[error(
        "todo {0} has a limit in bytes (memory.max_bytes), but its bytes cannot be counted because a message is damaged; \
         nothing was recorded, and `doctor --repair` counts what is left"
    )]
    Uncounted(TodoId),
    /// A todo's byte count cannot be read.
    #[error("the byte count of todo {0} is damaged; `doctor --repair` recounts the bytes")]
    Count(TodoId),
    /// The numbers of a todo's secrets cannot be read, so a new secret gets none.
    #[error(
        "the numbers of the secrets in todo {0} are damaged, and without them no secret is replaced and recorded there; \
         `doctor --repair` rebuilds them"
    )]
    Numbers(TodoId),
    /// There is no such todo.
    #[error("the store holds no todo {0}; `todos` lists those it holds")]
    NoTodo(TodoId),
    /// There is no such message.
    #[error("todo {todo} holds {len} messages, numbered from 0, so there is no message {seq}")]
    NoMessage {
        /// The todo.
        todo: TodoId,
        /// The number that was asked for.
        seq: SeqNo,
        /// How many messages there are.
        len: u64,
    },
    /// A reference leads to nothing that the todo may read: it was never there, or was not granted.
    /// Both are reported alike.
    #[error("nothing is stored under {reference} in todo {todo}; use a reference as it was shown")]
    NoReference {
        /// The todo.
        todo: TodoId,
        /// The requested reference.
        reference: Reference,
    },
    /// A todo was asked to grant what belongs to another.
    #[error("todo {todo} can grant its own blocks and payloads only, not {reference}")]
    NotOwn {
        /// The todo.
        todo: TodoId,
        /// The reference that it was asked to grant.
        reference: Reference,
    },
    /// A todo was asked to grant something to itself.
    #[error("todo {0} reads what is its own without a grant; name another todo to grant it to")]
    ToItself(TodoId),
    /// A todo list, or a change of it, makes no sense.
    #[error(transparent)]
    TodoList(#[from] TodoListError),
    /// A todo list says that an item returned something that it did not return.
    #[error(
        "item {item} has not returned {reference}; what an item returns is recorded when it is finished"
    )]
    NotReturned {
        /// The item.
        item: TodoId,
        /// The reference that it claims to have returned.
        reference: Reference,
    },
    /// A todo is not a child of the one whose list names it.
    #[error(
        "todo {todo} was not begun as a child of {parent}, so nothing passes between the two; give new work \
         an id of its own"
    )]
    NotChild {
        /// The todo with the list.
        parent: TodoId,
        /// The other.
        todo: TodoId,
    },
    /// A todo was asked to return something, but has no parent.
    #[error("todo {0} was not begun as a child of a todo that is still there")]
    NoParent(TodoId),
    /// A message was to be recorded under a number that is not the todo's next.
    #[error(
        "the next message of todo {todo} has number {found}, but number {expected} was to be recorded"
    )]
    MovedOn {
        /// The todo.
        todo: TodoId,
        /// The number that was to be recorded.
        expected: SeqNo,
        /// The number of the todo's next message.
        found: SeqNo,
    },
    /// A conversation is to begin in a todo that already holds one.
    #[error("todo {todo} already holds {len} messages; give the conversation another todo")]
    NotEmpty {
        /// The todo.
        todo: TodoId,
        /// How many messages it holds.
        len: u64,
    },
    /// A conversation is to continue in a todo that holds another one.
    #[error(
        "todo {todo} already holds {len} messages, and its message {seq} is a different one: the conversation has one \
         {given} there; give the conversation another todo"
    )]
    Other {
        /// The todo.
        todo: TodoId,
        /// How many messages it holds.
        len: u64,
        /// The first message that differs.
        seq: SeqNo,
        /// What the conversation has in its place.
        given: String,
    },
    /// A todo holds a conversation and more.
    #[error(
        "todo {todo} already holds {len} messages, of which the conversation has only the first {has}; give the \
         conversation another todo"
    )]
    Longer {
        /// The todo.
        todo: TodoId,
        /// How many messages it holds.
        len: u64,
        /// How many of them the conversation has.
        has: u64,
    },
    /// Of the messages that a todo holds of a conversation, only the last one, a response, differs
    /// from its source now.
    #[error(
        "the last message that todo {todo} holds, {seq}, is different in its source now: the \
         response was still being written when it was recorded; forget the todo to import it whole"
    )]
    Rewritten {
        /// The todo.
        todo: TodoId,
        /// The message.
        seq: SeqNo,
    },
    /// A recorded message cannot be rebuilt.
    #[error("message {seq} of todo {todo} is damaged: {what}")]
    Damaged {
        /// The todo.
        todo: TodoId,
        /// The message.
        seq: SeqNo,
        /// What is wrong with it.
        what: String,
    },
    /// A session's saved state cannot be read.
    #[error("the saved state of todo {todo} cannot be read: {what}")]
    State {
        /// The todo.
        todo: TodoId,
        /// What is wrong with it.
        what: String,
    },
    /// A session's saved state and the records do not agree.
    #[error("the saved state of todo {todo} covers {state} messages, but {records} are recorded")]
    StateMismatch {
        /// The todo.
        todo: TodoId,
        /// The messages that the state knows.
        state: u64,
        /// The messages that are recorded.
        records: u64,
    },
    /// Something that should be impossible; please report it.
    #[error("internal error: {0}")]
    Internal(&'static str),
}
