//! What every answer has in common: JSON, errors in one form, work off the threads that serve.

use crate::server::Shared;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header::CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use foldback::core::TodoId;
use foldback::{AuditEvent, Error, ErrorKind};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::sync::Arc;
use utoipa::ToSchema;

/// Why there is no answer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ApiError {
    error: Reason,
    #[serde(skip)]
    #[schema(ignore)]
    status: u16,
}

/// The kind of an error, for programs, and a sentence.
#[derive(Debug, Serialize, ToSchema)]
struct Reason {
    /// `invalid`, `not_found`, `damaged`, `busy` or `failed`.
    kind: &'static str,
    /// What was wrong and what was expected.
    message: String,
}

impl ApiError {
    fn new(status: StatusCode, kind: &'static str, message: impl ToString) -> Self {
        let error = Reason { kind, message: message.to_string() };
        Self { error, status: status.as_u16() }
    }

    pub(crate) fn not_found(message: impl ToString) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    pub(crate) fn invalid(message: impl ToString) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid", message)
    }

    pub(crate) fn busy(message: impl ToString) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message)
    }

    pub(crate) fn failed(message: impl ToString) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", message)
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        let message = error.sentence();
        match error.kind() {
            ErrorKind::NotFound => Self::not_found(message),
            ErrorKind::InvalidInput => Self::invalid(message),
            ErrorKind::Locked => Self::busy(message),
            ErrorKind::Corrupt | ErrorKind::Lost => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "damaged", message)
            }
            _ => Self::failed(message),
        }
    }
}

impl From<foldback_backend_store::Error> for ApiError {
    fn from(error: foldback_backend_store::Error) -> Self {
        Error::from(error).into()
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        json(status, &self)
    }
}

/// An answer as JSON.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        json(StatusCode::OK, &self.0)
    }
}

fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let (status, body) = match serde_json::to_vec(value) {
        Ok(body) => (status, body),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, b"{}".to_vec()),
    };
    let mut answer = (status, body).into_response();
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// JSON that is passed on as it is.
pub(super) fn raw(json: &str) -> Result<Box<RawValue>, ApiError> {
    RawValue::from_string(json.to_owned()).map_err(ApiError::failed)
}

/// The parameters of a query. A wrong one is an error in the API's form.
pub(crate) struct Asked<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let asked = Query::<T>::from_request_parts(parts, state).await;
        asked
            .map(|Query(asked)| Self(asked))
            .map_err(|error: QueryRejection| ApiError::invalid(error.body_text()))
    }
}

/// The parts of a path.
pub(crate) struct Named<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Named<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let named = Path::<T>::from_request_parts(parts, state).await;
        named
            .map(|Path(named)| Self(named))
            .map_err(|error: PathRejection| ApiError::invalid(error.body_text()))
    }
}

/// Reads the store on a thread that may wait for a disk.
pub(crate) async fn reading<T: Send + 'static>(
    shared: Arc<Shared>,
    read: impl FnOnce(&Shared) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let reading = tokio::task::spawn_blocking(move || read(&shared));
    reading.await.unwrap_or_else(|error| Err(ApiError::failed(error)))
}

/// The id of a session.
pub(crate) fn session_id(text: &str) -> Result<TodoId, ApiError> {
    TodoId::new(text).map_err(ApiError::invalid)
}

/// Logs an access in the audit log, if the store has one. Content is given only if the access is recorded.
pub(crate) fn noted(
    shared: &Shared,
    todo: Option<&TodoId>,
    what: &str,
    references: &[String],
) -> Result<(), ApiError> {
    let event = AuditEvent { todo, what, references, ..AuditEvent::default() };
    Ok(shared.memory.audit().note(&event)?)
}
