//! The outcomes and errors of a command.

use crate::run::NO_DOCUMENTS;
use foldback::ErrorKind;
use foldback::core::{TenantId, TodoId, thousands};
use foldback_agent::{AgentError, JournalError};
use foldback_bench::BenchError;
use foldback_documents::DocumentsError;
use foldback_gateway::GatewayError;
use foldback_policies::UnknownPolicy;
use foldback_reference_agent::ReferenceAgentError;
use foldback_tools::PermissionsError;
use std::error::Error as _;
use std::io;
use std::process::ExitCode;

/// The outcome of a command that could run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The command did what was asked.
    Done,
    /// What was asked for does not exist or is not clean; the output says so.
    NotClean,
    /// A program that was run exited with this code.
    Program(u8),
}

impl Outcome {
    /// `Done` if `clean`, else `NotClean`.
    pub(crate) fn clean_if(clean: bool) -> Self {
        if clean { Self::Done } else { Self::NotClean }
    }

    pub(crate) fn code(self) -> ExitCode {
        match self {
            Self::Done => ExitCode::SUCCESS,
            Self::NotClean => ExitCode::from(1),
            Self::Program(code) => ExitCode::from(code),
        }
    }
}

/// An error that kept a command from running.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// What was asked for does not exist.
    #[error("{0}")]
    NotFound(String),
    /// Messages were to be recorded, but nobody reads the answers.
    #[error(
        "nobody reads the answers any more, so recording ends; {0} recorded, and the todo can be \
         recorded into again"
    )]
    Unread(String),
    /// A message could not be recorded, after others were.
    #[error("{}{}", .error.sentence(), before(*.line, *.recorded))]
    Stopped {
        /// Why it could not.
        error: Box<Self>,
        /// Its line, if the error does not name it.
        line: Option<u64>,
        /// How many messages were recorded before it.
        recorded: u64,
    },
    /// Files were to be followed, but nobody reads what is recorded of them.
    #[error(
        "nobody reads the results any more, so the files are not followed any more; what was reported is recorded, and \
         the same command continues after it"
    )]
    Unfollowed,
    /// Nobody has read a tenant's new token.
    #[error("nobody has read the new token of {0}; `foldback tenant token {0}` makes another")]
    UnreadToken(TenantId),
    /// The arguments or the input make no sense.
    #[error("{0}")]
    Usage(String),
    /// A conversation could not be read.
    #[error(transparent)]
    Input(#[from] foldback_transcript::Error),
    /// The memory failed.
    #[error(transparent)]
    Memory(#[from] foldback::Error),
    /// A measurement could not be made.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// A run of the agent could not continue.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// A run's journal could not be written or read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A run is in progress elsewhere.
    #[error("{0}; wait until it has ended")]
    InProgress(String),
    /// The tools of a run are not available as they are permitted.
    #[error(transparent)]
    Permissions(#[from] PermissionsError),
    /// The documents of a run cannot be read.
    #[error(transparent)]
    Documents(#[from] DocumentsError),
    /// A file or folder of the user could not be used.
    #[error("{what}: {source}")]
    Io {
        /// What was attempted, and with which file.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// A program could not be started; shells end with this code.
    #[error("{what}")]
    NotStarted {
        /// Which one, and why.
        what: String,
        /// 127 if there is no such program, 126 if it cannot be executed.
        code: u8,
    },
    /// The gateway failed.
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    /// The output could not be written.
    #[error("the output could not be written: {0}")]
    Output(#[source] io::Error),
}

impl CliError {
    /// Reports on stderr what went wrong, and returns the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        if self.is_broken_pipe() {
            // The reader of the output has seen enough. Commands that write to a store report
            // themselves what that means for them.
            return ExitCode::SUCCESS;
        }
        crate::output::error(self.sentence());
        ExitCode::from(self.code())
    }

    /// The same error; a journal that another process has open is that of this run.
    pub(crate) fn of_run(self, run: &TodoId) -> Self {
        match self {
            Self::Journal(JournalError::Locked { .. }) => {
                Self::InProgress(format!("the run {run} is in progress in another process"))
            }
            other => other,
        }
    }

    /// The message, followed by those of its sources that add something. Recorded text in it never
    /// reaches a terminal as a control character.
    pub(crate) fn sentence(&self) -> String {
        crate::output::text::plain(&foldback_core::error_text(self)).into_owned()
    }

    /// 1 for what does not exist or is damaged, 2 for what the caller has to change, 3 for a resource that the system
    /// does not have.
    fn code(&self) -> u8 {
        if let Self::Stopped { error, .. } = self {
            return error.code();
        }
        if self.is_of_resources() {
            return 3;
        }
        match self {
            Self::NotFound(_) | Self::Agent(_) => 1,
            Self::Unread(_) | Self::Unfollowed | Self::UnreadToken(_) | Self::Stopped { .. } => 1,
            Self::Journal(JournalError::Damaged { .. } | JournalError::Version { .. }) => 1,
            Self::Usage(_) | Self::Input(_) | Self::Io { .. } | Self::Output(_) => 2,
            Self::InProgress(_) => 3,
            Self::Journal(_) | Self::Permissions(_) | Self::Documents(_) => 2,
            Self::NotStarted { code, .. } => *code,
            Self::Memory(error) | Self::Bench(BenchError::Memory(error)) => memory_code(error),
            Self::Bench(_) | Self::Gateway(_) => 2,
        }
    }

    /// Whether what is missing is disk space, a permission, an unlocked store, or anything else that lets the same
    /// command succeed unchanged once it is there.
    pub(crate) fn is_of_resources(&self) -> bool {
        let (mut of_paths, mut refused) = (false, false);
        let mut error: Option<&dyn std::error::Error> = Some(self);
        while let Some(one) = error {
            if let Some(io) = one.downcast_ref() {
                of_paths |= is_of_paths(io);
                refused |= is_refused(io);
            }
            error = one.source();
        }
        let kind = match self {
            Self::Memory(error) | Self::Bench(BenchError::Memory(error)) => Some(error.kind()),
            _ => None,
        };
        match kind {
            Some(
                ErrorKind::Full | ErrorKind::Locked | ErrorKind::ReadOnly | ErrorKind::Unknown,
            ) => true,
            Some(ErrorKind::Io) => refused || !of_paths,
            _ => refused,
        }
    }

    /// Whether the disk of the store is full.
    pub(crate) fn is_full(&self) -> bool {
        matches!(self, Self::Memory(error) if error.kind() == ErrorKind::Full)
    }

    /// Whether nobody reads the output any more.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        let io = match self {
            Self::Output(io) => io,
            // A payload's bytes go straight to the output.
            Self::Memory(error) => {
                let io = error.source().and_then(|source| source.downcast_ref::<io::Error>());
                let Some(io) = io else { return false };
                io
            }
            _ => return false,
        };
        io.kind() == io::ErrorKind::BrokenPipe
    }
}

/// What was recorded before the message of a line, as the rest of a sentence.
fn before(line: Option<u64>, recorded: u64) -> String {
    let line = line.map(|line| format!(" (line {line} of standard input)")).unwrap_or_default();
    match recorded {
        0 => line,
        1 => format!("{line}; 1 message was recorded before it"),
        recorded => format!("{line}; {} messages were recorded before it", thousands(recorded)),
    }
}

/// Whether a path leads nowhere, or to something other than expected.
fn is_of_paths(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::IsADirectory
            | io::ErrorKind::InvalidInput
    )
}

/// Whether the system refused for lack of a resource or permission, not because of the request itself.
fn is_refused(error: &io::Error) -> bool {
    use rustix::io::Errno;
    match error.kind() {
        io::ErrorKind::StorageFull
        | io::ErrorKind::QuotaExceeded
        | io::ErrorKind::PermissionDenied
        | io::ErrorKind::ReadOnlyFilesystem
        | io::ErrorKind::ResourceBusy
        | io::ErrorKind::OutOfMemory => true,
        _ => matches!(
            Errno::from_io_error(error),
            Some(Errno::IO | Errno::MFILE | Errno::NFILE | Errno::NOLCK)
        ),
    }
}

fn memory_code(error: &foldback::Error) -> u8 {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::Corrupt | ErrorKind::Lost => 1,
        _ => 2,
    }
}

impl From<foldback::embedder::LoadError> for CliError {
    fn from(error: foldback::embedder::LoadError) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<UnknownPolicy> for CliError {
    fn from(error: UnknownPolicy) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<ReferenceAgentError> for CliError {
    fn from(error: ReferenceAgentError) -> Self {
        match error {
            ReferenceAgentError::Permissions(error) => Self::Permissions(error),
            ReferenceAgentError::Setting(error) => Self::Agent(error.into()),
            ReferenceAgentError::NoDocuments => Self::Usage(NO_DOCUMENTS.to_owned()),
            error => Self::Usage(error.to_string()),
        }
    }
}

impl From<foldback_kv::Error> for CliError {
    fn from(error: foldback_kv::Error) -> Self {
        Self::Memory(error.into())
    }
}

impl From<foldback_backend_store::Error> for CliError {
    fn from(error: foldback_backend_store::Error) -> Self {
        Self::Memory(error.into())
    }
}
