//! Time limits for HTTP requests: a service that accepts a request and says nothing is found to be away.

use async_trait::async_trait;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
    ReqwestConnector,
};
use std::time::Duration;
use tokio::time::timeout;

/// How long a service may say nothing before its answer, beside the time for the bytes that it is sent, and within its
/// answer to a request without a body.
const SILENCE: Duration = Duration::from_secs(15);

/// How many bytes of a request are sent in a second at least. Two parts of an upload are sent at once.
const BYTES_A_SECOND: u64 = 32 << 10;

/// Makes clients whose requests have limits of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeLimit {
    silence: Duration,
}

impl Default for TimeLimit {
    fn default() -> Self {
        Self::of(SILENCE)
    }
}

impl TimeLimit {
    /// Returns limits with this silence.
    pub(crate) const fn of(silence: Duration) -> Self {
        Self { silence }
    }

    /// Returns how long the answer to a request may take to begin; `None` if only the limit for the whole request
    /// counts.
    fn for_answer(self, request: &HttpRequest) -> Option<Duration> {
        // A service may have to copy the parts of an upload before it answers.
        let query = request.uri().query().unwrap_or_default();
        if request.method() == "POST" && query.contains("uploadId=") {
            return None;
        }
        let bytes = request.body().content_length() as u64;
        Some(self.silence + Duration::from_secs(bytes / BYTES_A_SECOND))
    }
}

impl HttpConnector for TimeLimit {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let connector = ReqwestConnector::default();
        // While a request is sent, the client takes its own words for silence of the service.
        let sends = connector.connect(options)?;
        let asks = connector.connect(&options.clone().with_read_timeout(self.silence))?;
        Ok(HttpClient::new(Limited { limit: *self, sends, asks }))
    }
}

/// A client whose requests have limits of time.
#[derive(Debug)]
struct Limited {
    limit: TimeLimit,
    /// For requests with a body.
    sends: HttpClient,
    /// For requests without one.
    asks: HttpClient,
}

#[async_trait]
impl HttpService for Limited {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let limit = self.limit.for_answer(&request);
        let has_body = request.body().content_length() > 0;
        let client = if has_body { &self.sends } else { &self.asks };
        let answer = client.execute(request);
        match limit {
            Some(limit) => timeout(limit, answer)
                .await
                .unwrap_or_else(|late| Err(HttpError::new(HttpErrorKind::Timeout, late))),
            None => answer.await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bs9_a_request_has_the_time_that_its_bytes_need() {
        let limit = |method: &str, uri: &str, bytes: usize| {
            let mut request = HttpRequest::new(vec![0; bytes].into());
            *request.method_mut() = method.parse().unwrap();
            *request.uri_mut() = uri.parse().unwrap();
            TimeLimit::default().for_answer(&request).map(|limit| limit.as_secs())
        };
        assert_eq!(limit("GET", "http://host/bucket/name", 0), Some(15));
        assert_eq!(limit("PUT", "http://host/bucket/name?partNumber=1&uploadId=1", 0), Some(15));
        assert_eq!(limit("PUT", "http://host/bucket/name", 8 << 20), Some(15 + 256));
        assert_eq!(limit("POST", "http://host/bucket?delete", 64 << 10), Some(17));
        assert_eq!(limit("POST", "http://host/bucket/name?uploadId=1", 100), None);
    }
}
