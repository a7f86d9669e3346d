//! An exchange as it is kept in a file.

use crate::{Api, GatewayError};
use axum::http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// An exchange as it is kept in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Taped<'x> {
    /// Milliseconds since 1970.
    pub at: u64,
    /// The API that was called.
    pub api: Api,
    /// The path, without its query.
    pub path: Cow<'x, str>,
    /// The program that sent the request, in a word.
    pub client: Cow<'x, str>,
    /// A digest of the session that the headers name, with its agent; `None` if they name none.
    pub session: Option<String>,
    /// The headers that say who sent the request and what for.
    pub headers: BTreeMap<Cow<'x, str>, Cow<'x, str>>,
    /// The status of the answer.
    pub status: u16,
    /// The body of the request.
    pub request: Cow<'x, str>,
    /// The body of the answer, as far as it came.
    pub answer: Cow<'x, str>,
    /// Milliseconds from the request's end to the answer's first byte.
    pub first_ms: Option<u64>,
    /// Milliseconds from the request's end to the answer's last byte.
    pub last_ms: Option<u64>,
}

impl Taped<'_> {
    /// Returns its headers, as requests have them.
    pub(crate) fn header_map(&self) -> HeaderMap {
        let headers = self.headers.iter();
        let header = headers.map(|(name, value)| Some((name.parse().ok()?, value.parse().ok()?)));
        header.flatten().collect::<HeaderMap>()
    }
}

impl Taped<'static> {
    /// Reads the exchanges of a folder, in the order in which they were asked; none if the folder holds none. Other
    /// files are skipped, and so are exchanges whose request is not JSON: of each of these, what is wrong with it.
    ///
    /// # Errors
    /// When the folder or a file cannot be read, or a file of an exchange holds something else.
    pub fn folder(dir: &Path) -> Result<(Vec<Self>, Vec<GatewayError>), GatewayError> {
        let failed = |path: &Path, what: String| GatewayError::Exchange {
            path: path.to_owned(),
            what: format!("cannot be read: {what}"),
        };
        let entries = std::fs::read_dir(dir).map_err(|error| failed(dir, error.to_string()))?;
        let mut files = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| failed(dir, error.to_string()))?.path();
            if is_exchange(&path) {
                files.push(path);
            }
        }
        files.sort();
        let read = |path: &PathBuf| {
            let bytes = std::fs::read(path).map_err(|error| failed(path, error.to_string()))?;
            serde_json::from_slice(&bytes).map_err(|error| GatewayError::Exchange {
                path: path.clone(),
                what: format!(
                    "holds something else at line {}, column {}; an exchange that a gateway kept was expected",
                    error.line(),
                    error.column()
                ),
            })
        };
        let (mut exchanges, mut skipped) = (Vec::new(), Vec::new());
        for path in files {
            let exchange: Self = read(&path)?;
            match serde_json::from_str::<Value>(&exchange.request) {
                Ok(_) => exchanges.push(exchange),
                Err(_) => {
                    let what = "has a request that is not JSON".to_owned();
                    skipped.push(GatewayError::Exchange { path, what });
                }
            }
        }
        exchanges.sort_by_key(|exchange| exchange.at);
        Ok((exchanges, skipped))
    }
}

/// Returns the name of an exchange's file, without its extension.
pub(crate) fn file_name(at: u64, n: u64) -> String {
    format!("{at:013}-{}-{n:06}", std::process::id())
}

/// Returns whether a file has the name of an exchange.
fn is_exchange(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let Some(name) = name.and_then(|name| name.strip_suffix(".json")) else { return false };
    let numbers: Vec<_> = name.split('-').collect();
    let is_number =
        |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    numbers.len() == 3 && numbers.iter().all(is_number)
}
