//! Why a turn cannot go on.

use axum::http::StatusCode;
use serde_json::{Map, Value};
use std::fmt;

/// A later request of a streamed turn that was not answered with a stream.
#[derive(Debug, Default)]
pub(super) struct Failed {
    /// `None` if the provider did not answer.
    pub(super) status: Option<StatusCode>,
    /// The answer's text.
    pub(super) body: String,
}

impl Failed {
    /// Returns the provider's own error; `None` if its answer has none.
    pub(super) fn error(&self) -> Option<Map<String, Value>> {
        let mut body: Value = serde_json::from_str(&self.body).ok()?;
        match body.get_mut("error").map(Value::take) {
            Some(Value::Object(error)) => Some(error),
            _ => None,
        }
    }

    /// Returns the kind of error that Anthropic's API reports with its status.
    pub(super) fn kind(&self) -> &'static str {
        match self.status.map_or(0, |status| status.as_u16()) {
            400 | 422 => "invalid_request_error",
            401 => "authentication_error",
            403 => "permission_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            _ => "api_error",
        }
    }

    /// Returns the code of OpenAI's APIs for its status.
    pub(super) fn code(&self) -> &'static str {
        match self.status {
            Some(StatusCode::TOO_MANY_REQUESTS) => "rate_limit_exceeded",
            _ => "server_error",
        }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Some(status) if status.is_success() => write!(
                f,
                "the provider answered a look-up with status {}, but without a stream that can be read",
                status.as_u16()
            ),
            Some(status) => {
                write!(f, "the provider answered a look-up with status {}", status.as_u16())
            }
            None => f.write_str("the provider could not be reached after a look-up"),
        }
    }
}
