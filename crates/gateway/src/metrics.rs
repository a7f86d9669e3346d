//! What a gateway did since it began, in the format of Prometheus.

use crate::{Ledger, Tokens};
use axum::body::Body;
use axum::http::{HeaderValue, Response, header};

/// The media type of the text format (prometheus.io/docs/instrumenting/exposition_formats).
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// Returns the answer to a request for metrics.
pub(crate) fn metrics(ledger: &Ledger) -> Response<Body> {
    let sums = ledger.sums();
    let mut text = String::new();
    let mut family = |name: &str, help: &str, samples: &[(&str, f64)]| {
        text.push_str(&format!("# HELP foldback_{name} {help}\n# TYPE foldback_{name} counter\n"));
        for (labels, value) in samples {
            text.push_str(&format!("foldback_{name}{labels} {value}\n"));
        }
    };
    let requests = [("", sums.requests as f64)];
    family("requests_total", "Requests of a conversation that were answered.", &requests);
    let folded = [("", sums.folded as f64)];
    family("folded_requests_total", "Answered requests of which something was left out.", &folded);
    let estimated = [("", sums.estimated as f64)];
    let help = "Answered requests for which the provider reported no tokens.";
    family("estimated_requests_total", help, &estimated);
    let refusals = [("", ledger.refusals() as f64)];
    family("refusals_total", "Requests of a conversation that a provider refused.", &refusals);
    let kinds = |tokens: Tokens| {
        [
            ("{kind=\"read\"}", tokens.read as f64),
            ("{kind=\"written\"}", tokens.written as f64),
            ("{kind=\"plain\"}", tokens.plain as f64),
        ]
    };
    let output = [("{kind=\"output\"}", sums.output as f64)];
    let sent = [&kinds(sums.sent.tokens)[..], &output].concat();
    family("tokens_total", "Tokens, by what the provider's cache did with them.", &sent);
    let whole = "The same, if every conversation had been sent whole.";
    family("whole_tokens_total", whole, &kinds(sums.whole.tokens));
    let recalls = [("", sums.recalls.requests as f64)];
    let help = "Requests after the first of a turn, in which the model looked things up.";
    family("recall_requests_total", help, &recalls);
    let output = [("{kind=\"output\"}", sums.recalls.output as f64)];
    let recalls = [&kinds(sums.recalls.tokens)[..], &output].concat();
    family(
        "recall_tokens_total",
        "Tokens of the requests in which the model looked things up.",
        &recalls,
    );
    let cost = [("", sums.cost())];
    let help = "What was sent, including recalls, in weighted tokens.";
    family("cost_tokens_total", help, &cost);
    let cost = [("", sums.whole.cost)];
    family("whole_cost_tokens_total", whole, &cost);
    ledger.operations().write(&mut text);
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(header::CONTENT_TYPE, TEXT);
    response
}
