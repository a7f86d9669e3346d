//! Names that a provider accepts for names that it would refuse.

use crate::ChatRequest;
use std::collections::{BTreeMap, BTreeSet};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The longest tool name that providers accept, in characters.
const LONGEST_NAME: usize = 64;

/// The digits of a checksum in a name.
const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// How many digits: 50 bits, so that names collide by chance once in some ten million tools.
const CHECKSUM: usize = 10;

/// The tool names of a request as they are sent, and the way back.
///
/// Providers accept letters, digits, `_` and `-`, up to 64 of them. A legal name stays as it is.
/// Any other keeps its legal beginning, so that a family stays a family, and ends with a checksum
/// of the whole name: `browser_查询订单` becomes `browser_` and ten characters. A wire name depends
/// only on the name itself, so it is the same in every request; only if two names collide does one
/// get another checksum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolNames {
    to_wire: BTreeMap<String, String>,
    from_wire: BTreeMap<String, String>,
}

impl ToolNames {
    /// Maps the names of a set of tools; their order does not matter.
    ///
    /// ```
    /// let names = foldback_llm::ToolNames::new(["file_read", "browser_查询订单"]);
    /// let wire = names.wire("browser_查询订单");
    /// assert!(wire.starts_with("browser_") && wire.is_ascii());
    /// assert_eq!(names.original(&wire), "browser_查询订单");
    /// assert_eq!(names.wire("file_read"), "file_read");
    /// ```
    #[must_use]
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let (legal, refused): (BTreeSet<&str>, BTreeSet<&str>) =
            names.into_iter().partition(|name| is_legal(name, LONGEST_NAME));
        let mut all = Self::default();
        for name in legal {
            all.insert(name, name.to_owned());
        }
        for name in refused {
            let free = (0..)
                .map(|attempt| checksummed(name, LONGEST_NAME, attempt))
                .find(|wire| !all.from_wire.contains_key(wire));
            if let Some(wire) = free {
                all.insert(name, wire);
            }
        }
        all
    }

    /// Maps the names that a request declares, and those that its messages call.
    #[must_use]
    pub fn of_request(request: &ChatRequest) -> Self {
        let declared = request.tools.iter().map(|tool| tool.name.as_str());
        let called = request
            .messages
            .iter()
            .flat_map(|message| message.tool_calls())
            .map(|call| call.name.as_str());
        Self::new(declared.chain(called))
    }

    /// Returns the name on the wire.
    #[must_use]
    pub fn wire(&self, name: &str) -> String {
        self.to_wire.get(name).cloned().unwrap_or_else(|| legal_name(name, LONGEST_NAME))
    }

    /// Returns the name behind a wire name; an unknown wire name is returned as it is.
    #[must_use]
    pub fn original(&self, wire: &str) -> String {
        self.from_wire.get(wire).cloned().unwrap_or_else(|| wire.to_owned())
    }

    fn insert(&mut self, name: &str, wire: String) {
        self.from_wire.insert(wire.clone(), name.to_owned());
        self.to_wire.insert(name.to_owned(), wire);
    }
}

/// Returns a name that providers accept, for any text: the text itself if it is legal and has at
/// most `longest` characters, otherwise its legal beginning and a checksum. The result never
/// changes. `longest` leaves room for the checksum: 12 or more.
#[must_use]
pub fn legal_name(text: &str, longest: usize) -> String {
    if is_legal(text, longest) { text.to_owned() } else { checksummed(text, longest, 0) }
}

fn is_legal(name: &str, longest: usize) -> bool {
    !name.is_empty() && name.len() <= longest && name.bytes().all(is_legal_byte)
}

fn is_legal_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// Returns the legal beginning of `name`, with a checksum of all of it.
fn checksummed(name: &str, longest: usize, attempt: u64) -> String {
    let room = longest.saturating_sub(CHECKSUM + 1);
    let mut out: String =
        name.bytes().take_while(|byte| is_legal_byte(*byte)).take(room).map(char::from).collect();
    if out.is_empty() {
        out.push('x');
    }
    if !out.ends_with(['_', '-']) {
        out.push('_');
    }
    let mut sum = xxh3_64_with_seed(name.as_bytes(), attempt);
    for _ in 0..CHECKSUM {
        out.push(char::from(DIGITS[(sum % 32) as usize]));
        sum /= 32;
    }
    out
}
