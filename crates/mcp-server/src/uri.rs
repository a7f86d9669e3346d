//! The addresses of blocks and stored parts as resources, and of folders as roots.

use foldback_core::Reference;
use std::path::PathBuf;

/// Templates of the addresses.
pub(crate) const BLOCK: &str = "foldback://block/{id}{?lines}";
pub(crate) const PAYLOAD: &str = "foldback://payload/{todo}/{part}{?lines}";

const BLOCK_PREFIX: &str = "foldback://block/";
const PAYLOAD_PREFIX: &str = "foldback://payload/";

/// The scheme of stored parts in texts.
const STORE: &str = "store://";

/// Returns the address of a block or a stored part. Names of todos need no escapes in it.
pub(crate) fn of(reference: &Reference) -> String {
    match reference {
        Reference::Block(id) => format!("{BLOCK_PREFIX}{id}"),
        Reference::Payload { .. } => reference.to_string().replacen(STORE, PAYLOAD_PREFIX, 1),
    }
}

/// Parses an address: a reference, and the lines that are requested.
pub(crate) fn read(uri: &str) -> Option<(Reference, Option<String>)> {
    let (path, query) = match uri.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (uri, None),
    };
    let lines = match query {
        None | Some("") => None,
        Some(query) => Some(decoded(query.strip_prefix("lines=")?)?),
    };
    let name = match path.strip_prefix(BLOCK_PREFIX) {
        Some(id) => decoded(id)?,
        None => format!("{STORE}{}", decoded(path.strip_prefix(PAYLOAD_PREFIX)?)?),
    };
    Some((name.parse().ok()?, lines))
}

/// Returns the folder of a `file:` address.
pub(crate) fn folder(uri: &str) -> Option<PathBuf> {
    let path = uri.strip_prefix("file://")?;
    let path = path.strip_prefix("localhost").unwrap_or(path);
    let path = decoded(path).filter(|path| path.starts_with('/'))?;
    let folder = PathBuf::from(path);
    Some(folder.canonicalize().unwrap_or(folder))
}

/// Decodes the percent signs of a text.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        bytes.extend_from_slice(rest.get(..at)?.as_bytes());
        let digits = rest.get(at + 1..at + 3)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = rest.get(at + 3..)?;
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rc2_addresses_lead_back_to_what_they_name() {
        for name in ["b_a:b.c_003", "store://a:b.c/3-k4qd"] {
            let reference: Reference = name.parse().unwrap();
            assert_eq!(read(&of(&reference)), Some((reference.clone(), None)));
            // A client that fills the template escapes what it likes.
            let escaped = of(&reference).replace("a:b", "a%3Ab") + "?lines=10%2B4-";
            assert_eq!(read(&escaped), Some((reference, Some("10+4-".to_owned()))));
        }
        for wrong in
            ["", "foldback://block/", "foldback://block/b_003", "foldback://payload/3-k4qd"]
        {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert_eq!(read("foldback://block/b_t_003?line=3"), None);
        assert_eq!(read("foldback://block/b_t_%zz"), None);
    }

    #[test]
    fn rc3_roots_are_folders() {
        assert_eq!(folder("file:///no/such%20%E6%9D%AD"), Some(PathBuf::from("/no/such 杭")));
        for wrong in ["https://example.org/", "file://host/share", "file://", "/tmp"] {
            assert_eq!(folder(wrong), None, "{wrong}");
        }
    }
}
