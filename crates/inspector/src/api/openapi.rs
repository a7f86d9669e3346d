//! The description of the API.

use super::answer::{ApiError, Json};
use super::{
    blocks, branches, contents, events, messages, payloads, replays, requests, runs, search,
    sessions,
};
use utoipa::OpenApi;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "foldback inspector",
        description = "What a store of conversations holds, read-only. Every request needs the token that `foldback serve` \
                       printed, as `Authorization: Bearer TOKEN`, or the cookie that a browser gets for it."
    ),
    paths(
        sessions::list,
        sessions::one,
        replays::replay,
        requests::requests,
        contents::contents,
        branches::branches,
        runs::runs,
        blocks::blocks,
        messages::messages,
        payloads::payloads,
        payloads::payload,
        search::in_session,
        search::everywhere,
        events::events,
        openapi
    )
)]
struct Description;

/// Describes this API in the form of OpenAPI 3.1.
#[utoipa::path(
    get,
    path = "/api/v1/openapi.json",
    responses((status = 200, body = Object))
)]
pub(crate) async fn openapi() -> Result<Json<utoipa::openapi::OpenApi>, ApiError> {
    Ok(Json(Description::openapi()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn in6_every_route_is_described_and_nothing_else() {
        let described: BTreeSet<_> = Description::openapi().paths.paths.into_keys().collect();
        let routes: BTreeSet<_> =
            super::super::all().into_iter().map(|(path, _)| path.to_owned()).collect();
        assert_eq!(described, routes);
    }
}
