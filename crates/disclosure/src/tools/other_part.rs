//! Parts of a message that are not text, as a line of text.

use crate::raw::RawObject;
use crate::repair::legal_name;
use foldback_core::{Content, Message, Part, thousands};
use serde_json::value::RawValue;

/// A longer address, in bytes, is not shown.
const ADDRESS: usize = 2_000;

/// Returns what is shown of a part: the address of an image on the web, otherwise its kind and, if its bytes are in the
/// message, how many there are.
pub(super) fn told(json: &str) -> String {
    let kind = kind(json);
    match (web_address(json), inline_bytes(json)) {
        (Some(address), _) => format!("[image: {address}]"),
        (None, Some(bytes)) => format!("[{kind}, {} bytes: not shown]", thousands(bytes)),
        (None, None) => format!("[{kind}: not shown]"),
    }
}

/// Returns whether a part of the message is not shown by what is [told] of it.
pub(super) fn has_unshown(message: &Message) -> bool {
    let Content::Parts(parts) = message.content() else { return false };
    parts.iter().any(|part| matches!(part, Part::Other(json) if web_address(json).is_none()))
}

/// Returns the kind of a part; each API has its own name for an image.
fn kind(json: &str) -> String {
    let kind = RawObject::parse(json).and_then(|part| text(part.get("type")?));
    match kind.as_deref().unwrap_or("part") {
        "image_url" | "input_image" => "image".to_owned(),
        kind => legal_name(kind).into_owned(),
    }
}

fn web_address(json: &str) -> Option<String> {
    let address = address(json)?;
    let is_web = address.starts_with("https://") || address.starts_with("http://");
    let is_plain = !address.contains(|c: char| c.is_whitespace() || c.is_control());
    (is_web && is_plain && address.len() <= ADDRESS).then_some(address)
}

/// Returns the address of an image: `image_url` is an object or a text, and Anthropic has a `source`.
fn address(json: &str) -> Option<String> {
    let part = RawObject::parse(json)?;
    if let Some(image) = part.get("image_url") {
        return text(image).or_else(|| text(RawObject::parse(image.get())?.get("url")?));
    }
    let is_image = text(part.get("type")?)? == "image";
    is_image.then(|| text(RawObject::parse(part.get("source")?.get())?.get("url")?))?
}

/// Returns how many bytes are in the part itself, as base64.
fn inline_bytes(json: &str) -> Option<u64> {
    let data = match address(json) {
        Some(address) => address.strip_prefix("data:")?.split_once(";base64,")?.1.to_owned(),
        None => {
            let part = RawObject::parse(json)?;
            let holder = ["source", "input_audio", "file"].iter().find_map(|key| part.get(key))?;
            let holder = RawObject::parse(holder.get())?;
            text(holder.get("data").or_else(|| holder.get("file_data"))?)?
        }
    };
    Some(data.trim_end_matches('=').len() as u64 * 3 / 4)
}

fn text(json: &RawValue) -> Option<String> {
    serde_json::from_str(json.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TL3: what is not text is named; only what is shown counts as shown.
    #[test]
    fn tl3_an_image_is_its_address_or_its_size() {
        let url = "https://example.org/图.png";
        for (json, expected) in [
            (format!(r#"{{"type":"image_url","image_url":{{"url":"{url}"}}}}"#), url),
            (format!(r#"{{"type":"input_image","image_url":"{url}"}}"#), url),
            (format!(r#"{{"type":"image","source":{{"type":"url","url":"{url}"}}}}"#), url),
        ] {
            assert_eq!(told(&json), format!("[image: {expected}]"));
            assert!(web_address(&json).is_some());
        }
        let long = format!("https://example.org/{}", "a".repeat(ADDRESS));
        for (json, expected) in [
            (
                r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,QUJDRA=="}}"#,
                "image, 4 bytes",
            ),
            (r#"{"type":"image","source":{"type":"base64","data":"QUJD"}}"#, "image, 3 bytes"),
            (
                r#"{"type":"input_audio","input_audio":{"data":"QUJD","format":"wav"}}"#,
                "input_audio, 3 bytes",
            ),
            (r#"{"type":"thinking","thinking":"…","signature":"s"}"#, "thinking"),
            (r#"{"type":"image_url","image_url":{"url":"https://a b"}}"#, "image"),
            (&format!(r#"{{"type":"input_image","image_url":"{long}"}}"#), "image"),
            ("7", "part"),
        ] {
            assert_eq!(told(json), format!("[{expected}: not shown]"));
            assert!(web_address(json).is_none());
        }
    }
}
