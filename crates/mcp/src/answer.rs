//! What a server's tool answers.

use foldback_core::thousands;
use foldback_tool::{Data, ToolError, ToolOutput};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

/// Turns an answer into output: its structured part if it has one, otherwise its text. Parts that are
/// neither are only named. An answer that is marked as an error becomes one.
pub(crate) fn answer(result: CallToolResult) -> Result<ToolOutput, ToolError> {
    let is_error = result.is_error == Some(true);
    let structured = result.structured_content.as_ref().map(ToString::to_string);
    // Servers repeat structured content as text.
    let is_said = |part: &&ContentBlock| match (part, &result.structured_content) {
        (ContentBlock::Text(text), Some(said)) => {
            serde_json::from_str::<serde_json::Value>(&text.text).is_ok_and(|text| text == *said)
        }
        _ => false,
    };
    let parts = result.content.iter().filter(|part| !is_said(part));
    let parts: Vec<String> = structured.iter().cloned().chain(parts.map(told)).collect();
    let text = parts.join("\n");
    // The structured content is a part of the text.
    let bytes = text.len();
    if bytes > LARGEST {
        return Err(ToolError::permanent(format!(
            "the tool's answer has {} bytes, and at most {} are accepted; ask for less, or \
             for a part",
            thousands(bytes as u64),
            thousands(LARGEST as u64)
        )));
    }
    if is_error {
        let all: Vec<String> = result.content.iter().map(told).collect();
        let message = if all.is_empty() { text } else { all.join("\n") };
        return Err(ToolError::permanent(if message.is_empty() {
            "the tool failed and does not say why".to_owned()
        } else {
            message
        }));
    }
    Ok(ToolOutput { data: Data { text, structured } })
}

/// How many bytes of an answer are accepted.
const LARGEST: usize = 4 << 20;

/// A part of a kind that a later version of the protocol added.
const UNKNOWN: &str = "[a part of an unknown type: not shown]";

/// Returns a part of an answer as text.
fn told(part: &ContentBlock) -> String {
    let binary = |what: &str, kind: Option<&str>, base64: &str| {
        let bytes = base64.trim_end_matches('=').len() * 3 / 4;
        format!("[{what}, {}, {bytes} bytes: not shown]", kind.unwrap_or("of unknown kind"))
    };
    match part {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => binary("image", Some(&image.mime_type), &image.data),
        ContentBlock::Audio(audio) => binary("audio", Some(&audio.mime_type), &audio.data),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                format!("[resource {uri}]\n{text}")
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                binary(&format!("resource {uri}"), mime_type.as_deref(), blob)
            }
            _ => UNKNOWN.to_owned(),
        },
        ContentBlock::ResourceLink(link) => {
            let described = link.description.as_deref().unwrap_or(&link.name);
            format!("[resource {}: {described}]", link.uri)
        }
        _ => UNKNOWN.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn of(result: Value) -> Result<ToolOutput, ToolError> {
        answer(serde_json::from_value(result).unwrap())
    }

    #[test]
    fn text_is_answered_as_it_is() {
        let output = of(json!({ "content": [
            { "type": "text", "text": "杭州" }, { "type": "text", "text": "小雨\n" }
        ] }));
        assert_eq!(output, Ok(ToolOutput::text("杭州\n小雨\n")));
        assert_eq!(of(json!({ "content": [] })), Ok(ToolOutput::text("")));
    }

    #[test]
    fn what_is_structured_goes_before_its_text() {
        let output = of(json!({
            "content": [
                { "type": "text", "text": "{ \"rain\": 1.5, \"city\": \"杭州\" }" },
                { "type": "image", "data": "AAAA", "mimeType": "image/png" },
            ],
            "structuredContent": { "city": "杭州", "rain": 1.50 },
        }));
        let output = output.unwrap().data;
        assert_eq!(output.structured.as_deref(), Some(r#"{"city":"杭州","rain":1.5}"#));
        assert_eq!(
            output.text,
            "{\"city\":\"杭州\",\"rain\":1.5}\n[image, image/png, 3 bytes: not shown]"
        );
    }

    /// Only an exact repetition is left out.
    #[test]
    fn text_beside_what_is_structured_is_kept() {
        let output = of(json!({
            "content": [
                { "type": "text", "text": "杭州: 1 of 20 pages; call again with page 2" },
                { "type": "text", "text": "{\"rain\": 1.5, \"city\": \"杭州\"}" },
            ],
            "structuredContent": { "city": "杭州", "rain": 1.5 },
        }));
        assert_eq!(
            output.unwrap().data.text,
            "{\"city\":\"杭州\",\"rain\":1.5}\n杭州: 1 of 20 pages; call again with page 2"
        );
    }

    #[test]
    fn what_is_no_text_is_told_as_what_it_is() {
        let output = of(json!({ "content": [
            { "type": "audio", "data": "AAAAAAA=", "mimeType": "audio/wav" },
            { "type": "resource", "resource": { "uri": "file:///a", "text": "文" } },
            { "type": "resource", "resource": { "uri": "file:///b", "blob": "AAAA" } },
            { "type": "resource_link", "uri": "file:///c", "name": "c" },
        ] }));
        assert_eq!(
            output.unwrap().data.text,
            "[audio, audio/wav, 5 bytes: not shown]\n[resource file:///a]\n文\n[resource file:///b, of \
             unknown kind, 3 bytes: not shown]\n[resource file:///c: c]"
        );
    }

    #[test]
    fn an_error_is_an_error() {
        let error = of(json!({ "content": [{ "type": "text", "text": "没有" }], "isError": true }));
        assert_eq!(error, Err(ToolError::permanent("没有")));
        let error = of(json!({ "content": [], "isError": true }));
        assert_eq!(error, Err(ToolError::permanent("the tool failed and does not say why")));
    }
}
