//! The todo that a call is about: chosen by the user, or by the folders that the client names.

use crate::scope::{Chosen, Scope};
use crate::uri;
use foldback::{Error, Memory, Origin};
use foldback_core::{Reference, TodoId};
use parking_lot::Mutex;
use rmcp::model::{InputRequest, InputRequiredResult, InputResponses, ProtocolVersion};
use rmcp::service::{RequestContext, RoleServer};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Where a call searches.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// In this todo.
    Todo(TodoId),
    /// In the todo of the first of these folders that has one.
    Folders(Vec<PathBuf>),
    /// In the first of these, or in another of them that a call names.
    Session(Vec<TodoId>),
    /// The client must be asked first.
    Ask(Box<InputRequiredResult>),
    /// Nowhere, for this reason.
    Nowhere(String),
}

/// A todo that was found, and the folder that led to it.
pub(crate) struct Found {
    pub(crate) todo: TodoId,
    folder: Option<PathBuf>,
}

/// What one client has said of its roots, if it is asked only once.
#[derive(Clone, Default)]
pub(crate) struct Roots(Arc<Mutex<Known>>);

/// The folders that a client named, and how often it has said that they changed.
#[derive(Default)]
struct Known {
    folders: Option<Vec<PathBuf>>,
    changes: u64,
}

/// The name under which the client answers for its roots.
const ROOTS: &str = "roots";

/// The source under which the todos of folders are written.
const SOURCE: &str = "mcp";

/// A client that does not name its roots within this time has none.
const PATIENCE: Duration = Duration::from_secs(10);

impl Place {
    /// Finds where a call of this client searches. `responses` are its answers to an earlier `Ask`.
    pub(crate) async fn of(
        scope: &Scope,
        (tool, arguments): (&str, &str),
        roots: &Roots,
        responses: Option<&InputResponses>,
        context: &RequestContext<RoleServer>,
    ) -> Self {
        match &scope.chosen {
            Chosen::Todo(todo) => Self::Todo(todo.clone()),
            Chosen::Folder(folder) => Self::Folders(vec![folder.clone()]),
            Chosen::Roots => roots.ask(responses, context).await,
            Chosen::Session(todos) => {
                let mut todos = todos(tool, arguments);
                let named = named(arguments);
                if let Some(at) = todos.iter().position(|todo| Some(todo) == named.as_ref()) {
                    todos.swap(0, at);
                }
                Self::Session(todos)
            }
        }
    }

    /// Finds the todo to search; otherwise returns a sentence that says what to do.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) fn find(
        &self,
        scope: &Scope,
        memory: &Memory,
    ) -> Result<Result<Found, String>, Error> {
        let folders = match self {
            Self::Todo(todo) => return Ok(Ok(Found { todo: todo.clone(), folder: None })),
            Self::Folders(folders) => folders,
            Self::Session(todos) => {
                let why = "Nothing of this session is recorded yet.";
                let first = todos.first().ok_or_else(|| why.to_owned());
                return Ok(first.map(|todo| Found { todo: todo.clone(), folder: None }));
            }
            Self::Nowhere(why) => return Ok(Err(why.clone())),
            Self::Ask(_) => {
                return Ok(Err("The client did not say which folder it works in.".to_owned()));
            }
        };
        for folder in folders {
            if scope.record {
                let todo = TodoId::from_foreign(&format!("{SOURCE}-{}", folder.display()));
                return Ok(Ok(Found { todo, folder: Some(folder.clone()) }));
            }
            if let Some(todo) = memory.conversations().latest_in(folder)? {
                return Ok(Ok(Found { todo, folder: Some(folder.clone()) }));
            }
        }
        let named: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
        Ok(Err(format!(
            "The store has no conversation from {}. The user can start the server with --todo ID to \
             choose one, or import one from there.",
            named.join(", ")
        )))
    }
}

impl Found {
    /// Records in which folder the todo was made, if that was not known.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) fn note_origin(&self, memory: &Memory) -> Result<(), Error> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let conversations = memory.conversations();
        if conversations.info(&self.todo)?.origin != Origin::default() {
            return Ok(());
        }
        let folder = Some(folder.to_string_lossy().into_owned());
        conversations.set_origin(&self.todo, &Origin { source: Some(SOURCE.to_owned()), folder })
    }
}

impl Roots {
    /// Forgets what the client said.
    pub(crate) fn forget(&self) {
        let mut known = self.0.lock();
        known.folders = None;
        known.changes += 1;
    }

    /// Returns the folders that the client works in. Up to the protocol of 2025 it is asked once; after
    /// that it answers with the call, and nothing is kept.
    #[expect(
        deprecated,
        reason = "roots are how clients name their folders, whatever may replace them"
    )]
    async fn ask(
        &self,
        responses: Option<&InputResponses>,
        context: &RequestContext<RoleServer>,
    ) -> Place {
        let capabilities = context.client_capabilities();
        if capabilities.is_none_or(|capabilities| capabilities.roots.is_none()) {
            return Place::Nowhere(
                "The client does not say which folder it works in, so the conversation is not known. \
                 The user can start the server with --todo ID or --folder DIR."
                    .to_owned(),
            );
        }
        let version = context.protocol_version();
        if version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
        {
            let Some(answered) = responses.and_then(|responses| responses.get(ROOTS)) else {
                let request = InputRequest::ListRoots(rmcp::model::ListRootsRequest::default());
                let requests = BTreeMap::from([(ROOTS.to_owned(), request)]);
                return Place::Ask(Box::new(InputRequiredResult::from_input_requests(requests)));
            };
            let listed = serde_json::from_value::<rmcp::model::ListRootsResult>(answered.clone());
            return match listed {
                Ok(listed) => folders(listed.roots.iter().map(|root| root.uri.as_str())),
                Err(error) => {
                    Place::Nowhere(format!("The client's roots cannot be read: {error}."))
                }
            };
        }
        let changes = {
            let known = self.0.lock();
            if let Some(folders) = known.folders.clone() {
                return Place::Folders(folders);
            }
            known.changes
        };
        let place = match tokio::time::timeout(PATIENCE, context.peer.list_roots()).await {
            Ok(Ok(listed)) => folders(listed.roots.iter().map(|root| root.uri.as_str())),
            Ok(Err(error)) => {
                Place::Nowhere(format!("The client's roots are not available: {error}."))
            }
            Err(_) => Place::Nowhere("The client did not say which folder it works in.".to_owned()),
        };
        if let Place::Folders(folders) = &place {
            let mut known = self.0.lock();
            // If they have changed while the client was asked, its answer may be from before that.
            if known.changes == changes {
                known.folders = Some(folders.clone());
            }
        }
        place
    }
}

/// Returns the todo that a call names in full, by what it loads.
fn named(arguments: &str) -> Option<TodoId> {
    #[derive(serde::Deserialize)]
    struct Asked {
        r#ref: String,
    }
    let asked: Asked = serde_json::from_str(arguments).ok()?;
    let reference: Reference = asked.r#ref.trim().parse().ok()?;
    Some(reference.todo().clone())
}

/// Returns the folders of these addresses. A client without a folder works in the root of the file system.
fn folders<'a>(uris: impl Iterator<Item = &'a str>) -> Place {
    let folders = uris.filter_map(uri::folder).filter(|folder| folder.as_path() != Path::new("/"));
    let folders: Vec<PathBuf> = folders.collect();
    if !folders.is_empty() {
        return Place::Folders(folders);
    }
    let what = "The client's folder is not on this machine, so the conversation is not known. The \
                user can start the server with --todo ID or --folder DIR.";
    Place::Nowhere(what.to_owned())
}
