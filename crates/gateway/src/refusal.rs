//! The gateway's own error responses, in the format of the API that was called.

use crate::Api;
use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use serde_json::json;

/// Why a request is not passed on: a status, and a sentence without its full stop.
pub(crate) type Refused = (StatusCode, String);

/// Returns an error response that says why there is no answer, as the API would.
pub(crate) fn refusal(api: Api, status: StatusCode, why: &str) -> Response<Body> {
    let kind = match status {
        StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => "permission_error",
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE => "api_error",
        _ => "invalid_request_error",
    };
    let message = format!("foldback gateway: {why}");
    let body = match api.is_anthropic() {
        true => json!({ "type": "error", "error": { "type": kind, "message": message } }),
        false => {
            json!({ "error": { "message": message, "type": kind, "param": null, "code": null } })
        }
    };
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
