//! What went wrong, in detail: what the sentences of an [`Error`](crate::Error) are made of.

use foldback_core::{EmbedError, IdError, MessageError, Reference, SeqNo, TodoId, TodoListError};

/// What went wrong. It may change from version to version, unlike its [kind](super::ErrorKind).
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The store under everything failed.
    #[error(transparent)]
    Kv(#[from] foldback_kv::Error),
    /// Messages, blocks or their search failed.
    #[error(transparent)]
    Blocks(#[from] foldback_blockstore::Error),
    /// Payloads failed.
    #[error(transparent)]
    Payloads(#[from] foldback_backend_store::Error),
    /// A recall tool failed below the model's reach.
    #[error(transparent)]
    Recall(#[from] foldback_disclosure::Error),
    /// The chunker was told something that makes no sense.
    #[error(transparent)]
    Chunker(#[from] foldback_chunker::Error),
    /// The embedder failed.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// What was measured of an embedder is no scale.
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
    /// A text is not an id.
    #[error(transparent)]
    Id(#[from] IdError),
    /// A text is not a message.
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
        /// What the system says.
        source: std::io::Error,
    },
    /// The disk has too little room.
    #[error("the disk that holds {} is full, {free} bytes are free: {what}", .path.display())]
    NoRoom {
        /// The store's folder.
        path: std::path::PathBuf,
        /// How many bytes are free.
        free: u64,
        /// What took more, and what can be done.
        what: String,
    },
    /// The system gave no random bytes for the secret of a store.
    #[error("the secret of the store could not be made: {0}")]
    Random(getrandom::Error),
    /// A text is no key for removed secrets.
    #[error(
        "a key for removed secrets has 32 bytes, as 64 hexadecimal digits or in base64 (`openssl rand -hex 32` makes one)"
    )]
    RedactionKey,
    /// What was removed is to be read, and there is no key.
    #[error("what was removed can be read with the key that it was sealed with, and none is given")]
    NoRedactionKey,
    /// What was removed was sealed with another key, or is damaged.
    #[error(
        "what was removed from todo {todo} was sealed with another key than the one given, or is damaged"
    )]
    Sealed {
        /// The todo.
        todo: TodoId,
    },
    /// What is looked up is to be noted, and there is no folder to note it in.
    #[error("an audit log is kept in the store's folder, and a store in memory has none")]
    NoAuditFolder,
    /// What is looked up is to be noted, and the store has no secret to check the log with.
    #[error(
        "an audit log is checked with the store's secret, which is missing or damaged and cannot be kept now; open the \
         store once for writing (`foldback doctor --repair`)"
    )]
    NoAuditSecret,
    /// A todo may not hold as much.
    #[error(
        "todo {todo} may hold {most} {what} at most ({setting}), and this would be more; nothing of it was recorded"
    )]
    Quota {
        /// The todo.
        todo: TodoId,
        /// What is bounded.
        what: &'static str,
        /// The bound.
        most: u64,
        /// The setting that names it.
        setting: &'static str,
    },
    /// What a todo holds is bounded and cannot be counted.
    #[error(
        "todo {0} is bounded in bytes (memory.max_bytes), and what it holds cannot be counted, because a message is damaged; \
         nothing was recorded, and `doctor --repair` counts what is left"
    )]
    Uncounted(TodoId),
    /// The count of a todo's bytes cannot be read.
    #[error("the count of the bytes in todo {0} is damaged; `doctor --repair` counts them again")]
    Count(TodoId),
    /// The numbers of a todo's secrets cannot be read, so a new secret gets none.
    #[error(
        "the numbers of the secrets in todo {0} are damaged, and without them no secret is replaced and recorded there; \
         `doctor --repair` makes them again"
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
    /// The two are told alike.
    #[error("nothing is stored under {reference} in todo {todo}; use a reference as it was shown")]
    NoReference {
        /// The todo.
        todo: TodoId,
        /// What was asked for.
        reference: Reference,
    },
    /// A todo was to grant what belongs to another.
    #[error("todo {todo} can grant its own blocks and payloads only, not {reference}")]
    NotOwn {
        /// The todo.
        todo: TodoId,
        /// What it was to grant.
        reference: Reference,
    },
    /// A todo was to grant something to itself.
    #[error("todo {0} reads what is its own without a grant; name another todo to grant it to")]
    ToItself(TodoId),
    /// A todo list, or a change of it, makes no sense.
    #[error(transparent)]
    TodoList(#[from] TodoListError),
    /// A todo list says that an item returned something that it has not.
    #[error(
        "item {item} has not returned {reference}; what an item returns is recorded when it is finished"
    )]
    NotReturned {
        /// The item.
        item: TodoId,
        /// What it claims to have returned.
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
    /// A todo was to return something, and has no parent to return it to.
    #[error("todo {0} was not begun as a child of a todo that is still there")]
    NoParent(TodoId),
    /// A message was to be recorded under a number at which the todo does not stand.
    #[error("todo {todo} stands at message {found}, and {expected} was to be recorded")]
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
    /// Of what a todo holds of a conversation, only the last message, a response, is not as it is
    /// there now.
    #[error(
        "the last message that todo {todo} holds, {seq}, is another one in its source now: the \
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
    #[error("the saved state of todo {todo} is of {state} messages, but {records} are recorded")]
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
