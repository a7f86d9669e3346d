//! The pages and their files: static, without any recorded text.

use crate::api::ApiError;
use crate::pictures::Drawing;
use crate::server::Shared;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, Uri, header::CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use std::sync::Arc;

const INDEX: &str = include_str!("page/index.html");
const SESSION: &str = include_str!("page/session.html");
const ICON: &str = include_str!("page/icon.svg");
const STYLE: &str = include_str!("page/inspector.css");

/// The scripts of the first page; what both need comes first, in one scope with the drawing's.
const SHARED: [&str; 2] = [include_str!("page/ask.js"), include_str!("page/hits.js")];
const FIRST: [&str; 1] = [include_str!("page/index.js")];
const OF_SESSION: [&str; 8] = [
    include_str!("page/requests.js"),
    include_str!("page/sent.js"),
    include_str!("page/runs.js"),
    include_str!("page/branches.js"),
    include_str!("page/record.js"),
    include_str!("page/payloads.js"),
    include_str!("page/facts.js"),
    include_str!("page/session.js"),
];

/// The scripts and the style, put together once.
pub(crate) struct Assets {
    index_js: String,
    session_js: String,
    style: String,
}

impl Assets {
    pub(crate) fn new(drawing: &dyn Drawing) -> Self {
        let (drawn, shared) = (drawing.scripts(), SHARED.concat());
        // In a block, two functions of one name are an error; elsewhere the later one would replace the earlier one.
        let scope = |code: &[&str]| format!("\"use strict\";\n{{\n{}}}\n", code.concat());
        let of_session = OF_SESSION.concat();
        Self {
            index_js: scope(&[&drawn, &shared, &FIRST.concat()]),
            session_js: scope(&[&drawn, &shared, &of_session]),
            style: format!("{}\n{STYLE}", drawing.style()),
        }
    }
}

/// The routes of the pages.
pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/", get(async || file("text/html", INDEX.to_owned())))
        .route("/sessions/{id}", get(async || file("text/html", SESSION.to_owned())))
        .route("/assets/icon.svg", get(async || file("image/svg+xml", ICON.to_owned())))
        .route("/favicon.ico", get(async || file("image/svg+xml", ICON.to_owned())))
        .route(
            "/assets/index.js",
            get(async |State(shared): State<Arc<Shared>>| {
                file("text/javascript", shared.assets.index_js.clone())
            }),
        )
        .route(
            "/assets/session.js",
            get(async |State(shared): State<Arc<Shared>>| {
                file("text/javascript", shared.assets.session_js.clone())
            }),
        )
        .route(
            "/assets/style.css",
            get(async |State(shared): State<Arc<Shared>>| {
                file("text/css", shared.assets.style.clone())
            }),
        )
}

/// The answer to an address that leads nowhere.
pub(crate) async fn nothing(uri: Uri) -> Response {
    if uri.path().starts_with("/api/") {
        let what = "no such address; /api/v1/openapi.json describes what there is";
        return ApiError::not_found(what).into_response();
    }
    let text = "There is no such page. The sessions are at /.\n".to_owned();
    let mut answer = file("text/plain", text);
    *answer.status_mut() = StatusCode::NOT_FOUND;
    answer
}

fn file(kind: &str, text: String) -> Response {
    let mut answer = text.into_response();
    if let Ok(kind) = HeaderValue::from_str(&format!("{kind}; charset=utf-8")) {
        answer.headers_mut().insert(CONTENT_TYPE, kind);
    }
    answer
}
