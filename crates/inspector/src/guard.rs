//! Access control: who may ask, and the headers of every answer.

use crate::server::Shared;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, HOST,
    LOCATION, ORIGIN, REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::Response;
use foldback_gateway::is_this_machine;
use std::sync::Arc;

/// Only scripts, styles and data of this server, and no page around it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The headers of every answer.
const HEADERS: [(HeaderName, &str); 7] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("x-frame-options"), "DENY"),
];

/// Refuses what may not ask, lets the rest through, and gives every answer its headers.
pub(crate) async fn guard(
    State(shared): State<Arc<Shared>>,
    request: Request,
    next: Next,
) -> Response {
    let mut answer = match decided(&shared, &request) {
        Decision::Passes => next.run(request).await,
        Decision::Refused(status, why) => refused(status, &why),
        Decision::Exchanged(place) => exchanged(&shared, &place),
    };
    let headers = answer.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}

enum Decision {
    Passes,
    Refused(StatusCode, String),
    /// The token of the address was right: a cookie takes its place, and the browser goes to this place without it.
    Exchanged(String),
}

fn decided(shared: &Shared, request: &Request) -> Decision {
    let (uri, headers) = (request.uri(), request.headers());
    if let Some(why) = stranger(uri, headers) {
        return Decision::Refused(StatusCode::FORBIDDEN, why);
    }
    if request.method() != Method::GET {
        let why = "the inspector only reads: expected the method GET".to_owned();
        return Decision::Refused(StatusCode::METHOD_NOT_ALLOWED, why);
    }
    if let Some((token, rest)) = token_of(uri) {
        return match shared.token.is(token.as_bytes()) {
            true => Decision::Exchanged(place(uri.path(), &rest)),
            false => Decision::Refused(
                StatusCode::UNAUTHORIZED,
                unknown("the token in it is of another run"),
            ),
        };
    }
    match is_known(shared, headers) {
        true => Decision::Passes,
        false => Decision::Refused(
            StatusCode::UNAUTHORIZED,
            unknown("this browser has not shown it yet"),
        ),
    }
}

fn unknown(why: &str) -> String {
    format!("open the address that `foldback serve` printed, with its token; {why}")
}

/// Returns why a request does not come from this machine's own page or program; `None` if it does. A page of another
/// site can reach this machine under a name of its own, and shows that in `Host` and `Origin`.
fn stranger(uri: &Uri, headers: &HeaderMap) -> Option<String> {
    let text = |name| {
        headers
            .get(name)
            .map(|value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let host =
        uri.authority().map(|authority| authority.as_str().to_owned()).or_else(|| text(HOST));
    let host = host.unwrap_or_default();
    if !is_this_machine(&host) {
        return Some(format!("the host {host:?} is not this machine"));
    }
    // A page of another port of this machine is another program's.
    let origin = text(ORIGIN)?;
    (origin != format!("http://{host}")).then(|| format!("a page from {origin:?} may not ask"))
}

/// The token in a query, and the rest of the query.
fn token_of(uri: &Uri) -> Option<(&str, String)> {
    let pairs: Vec<&str> = uri.query()?.split('&').collect();
    let token = pairs.iter().find_map(|pair| pair.strip_prefix("token="))?;
    let rest: Vec<&str> =
        pairs.iter().copied().filter(|pair| !pair.starts_with("token=")).collect();
    Some((token, rest.join("&")))
}

/// A place on this server. A path that begins with two slashes would name another server.
fn place(path: &str, query: &str) -> String {
    let path = if path.starts_with("//") || path.contains('\\') { "/" } else { path };
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

/// Whether a request has the cookie, or the token as a program sends it.
fn is_known(shared: &Shared, headers: &HeaderMap) -> bool {
    let bearer =
        headers.get(AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    if bearer.is_some_and(|token| shared.token.is(token)) {
        return true;
    }
    let name = cookie_name(shared);
    let cookies = headers
        .get_all(COOKIE)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b';'));
    cookies
        .filter_map(|cookie| cookie.trim_ascii().strip_prefix(name.as_bytes())?.strip_prefix(b"="))
        .any(|value| shared.cookie.is(value))
}

/// Cookies are shared by all ports of a host, so the name has the port.
fn cookie_name(shared: &Shared) -> String {
    format!("foldback-{}", shared.address.port())
}

fn exchanged(shared: &Shared, place: &str) -> Response {
    let cookie = format!(
        "{}={}; HttpOnly; SameSite=Strict; Path=/",
        cookie_name(shared),
        shared.cookie.text()
    );
    let mut answer = plain(StatusCode::SEE_OTHER, String::new());
    let values = [(LOCATION, place), (SET_COOKIE, cookie.as_str())];
    for (name, value) in values {
        if let Ok(value) = HeaderValue::from_str(value) {
            answer.headers_mut().insert(name, value);
        }
    }
    answer
}

fn refused(status: StatusCode, why: &str) -> Response {
    let mut answer = plain(status, format!("{why}\n"));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
    }
    answer
}

fn plain(status: StatusCode, text: String) -> Response {
    let mut answer = Response::new(Body::from(text));
    *answer.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(host: &str, origin: Option<&str>) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(host).unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        stranger(&Uri::from_static("/"), &headers)
    }

    #[test]
    fn in5_only_this_machine_and_its_own_page_are_no_strangers() {
        for host in ["127.0.0.1:8378", "localhost:8378", "[::1]:8378", "127.9.9.9"] {
            assert_eq!(why(host, None), None, "{host}");
            assert_eq!(why(host, Some(&format!("http://{host}"))), None, "{host}");
        }
        for host in
            ["", "evil.example", "127.0.0.1.evil.example:8378", "localhost.evil:1", "10.0.0.1"]
        {
            assert!(why(host, None).is_some(), "{host}");
        }
        for origin in [
            "null",
            "http://evil.example",
            "http://127.0.0.1:3000",
            "https://127.0.0.1:8378",
            "http://127.0.0.1:83780",
        ] {
            assert!(why("127.0.0.1:8378", Some(origin)).is_some(), "{origin}");
        }
    }

    #[test]
    fn in5_the_token_leaves_the_address_and_no_other_server_is_named() {
        let uri = Uri::from_static("/sessions/a?theme=dark&token=abc&q=1");
        assert_eq!(token_of(&uri), Some(("abc", "theme=dark&q=1".to_owned())));
        assert_eq!(token_of(&Uri::from_static("/?mytoken=abc")), None);
        assert_eq!(place("//evil.example/", ""), "/");
        assert_eq!(place("/sessions/a", "q=1"), "/sessions/a?q=1");
    }
}
