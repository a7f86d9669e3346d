//! Contents of items: texts, images, and tool results.

use crate::draft::{Draft, push_member};
use crate::format::anthropic_blocks::members_but;
use crate::object::Object;
use serde_json::value::RawValue;

/// A content that is built from parts.
#[derive(Default)]
pub(super) struct Parts {
    parts: Vec<String>,
    /// The exact text of the only part, if it is a plain text.
    only: Option<String>,
}

impl Parts {
    /// Adds the parts of a content: a text, or a list. Anything else is one part of its own.
    pub(super) fn push_all(&mut self, content: &RawValue) {
        match Object::array_of(content) {
            Some(parts) => parts.into_iter().for_each(|part| self.push(part)),
            None => self.push(content),
        }
    }

    /// Adds one part: a text or an image as chat APIs write it, anything else as it is.
    fn push(&mut self, part: &RawValue) {
        if part.get().starts_with('"') {
            return self.push_text(part, "{}");
        }
        let Some(fields) = Object::of(part) else {
            if part.get() != "null" {
                let mut json = String::from("{\"type\":\"unknown\"");
                push_member("value", part.get(), &mut json);
                self.push_json(json + "}");
            }
            return;
        };
        match fields.text("type").as_deref() {
            Some("input_text" | "output_text" | "text" | "Text" | "summary_text") => {
                if let Some(text) = fields.get("text").filter(|text| text.get().starts_with('"')) {
                    return self.push_text(text, &members_but(&fields, &["type", "text"]));
                }
                self.push_json(part.get().to_owned());
            }
            Some("input_image") => self.push_json(image(&fields).unwrap_or(part.get().to_owned())),
            _ => self.push_json(part.get().to_owned()),
        }
    }

    /// Adds a text, and what else its part says.
    pub(super) fn push_text(&mut self, text: &RawValue, further: &str) {
        let mut json = String::from("{\"type\":\"text\"");
        push_member("text", text.get(), &mut json);
        if let Some(further) = further.strip_prefix('{').filter(|further| *further != "}") {
            json.push(',');
            json.push_str(further);
        } else {
            json.push('}');
            if self.parts.is_empty() {
                self.only = Some(text.get().to_owned());
                self.parts.push(json);
                return;
            }
        }
        self.push_json(json);
    }

    pub(super) fn push_json(&mut self, json: String) {
        self.only = None;
        self.parts.push(json);
    }

    /// Makes this the content of `draft`; a single plain text becomes a string.
    pub(super) fn write(self, draft: &mut Draft) {
        match self.only {
            Some(text) => draft.content(&text),
            None => self.parts.iter().for_each(|part| draft.part(part)),
        }
    }
}

/// Returns an image as chat APIs write it.
fn image(fields: &Object<'_>) -> Option<String> {
    let url = fields.get("image_url").filter(|url| url.get().starts_with('"'))?;
    let mut inner = String::new();
    push_member("url", url.get(), &mut inner);
    if let Some(detail) = fields.get("detail") {
        push_member("detail", detail.get(), &mut inner);
    }
    let mut json = String::from("{\"type\":\"image_url\"");
    push_member("image_url", &format!("{{{}}}", inner.strip_prefix(',')?), &mut json);
    for (key, value) in &fields.0 {
        if !["type", "image_url", "detail"].contains(&key.as_ref()) {
            push_member(key, value.get(), &mut json);
        }
    }
    json.push('}');
    Some(json)
}

/// Writes what a tool returned into the result `draft`.
pub(super) fn write_output(output: &RawValue, draft: &mut Draft) {
    if output.get().starts_with('[') {
        let mut parts = Parts::default();
        parts.push_all(output);
        return parts.write(draft);
    }
    if let Some(said) = Object::text_of(output) {
        draft.content(output.get());
        // Some tools answer with a JSON text that holds their output and how they ended.
        let inner = said.trim_start().starts_with('{').then(|| said.as_ref());
        let inner = inner.and_then(|said| serde_json::from_str::<Object<'_>>(said).ok());
        let metadata = inner.and_then(|inner| inner.object("metadata"));
        if let Some(code) = metadata.and_then(|metadata| metadata.get("exit_code")) {
            draft.keep("exit_code", code.get());
        }
        return;
    }
    // Old files write an object.
    let Some(fields) = Object::of(output) else {
        if output.get() != "null" {
            draft.text(output.get());
        }
        return;
    };
    let content = fields.get("content").or_else(|| fields.get("content_items"));
    match content {
        Some(content) => {
            let mut parts = Parts::default();
            parts.push_all(content);
            parts.write(draft);
            let rest = members_but(&fields, &["content"]);
            if rest != "{}" {
                draft.keep("output", &rest);
            }
        }
        None => draft.text(output.get()),
    }
    if fields.get("success").is_some_and(|success| success.get() == "false") {
        draft.field("is_error", "true");
    }
}
