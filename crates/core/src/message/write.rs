//! The JSON text of a message that is created here.

use super::Message;
use crate::{Content, Escape, Part, escape_into};

impl Message {
    /// Returns the text of the message: the known keys, with `content` as its exact JSON if it is given, followed by
    /// these keys.
    pub(super) fn write_json(&self, content: Option<&str>, extra: &[(String, String)]) -> String {
        let mut out = String::from("{\"role\":");
        push_string(self.role.as_str(), &mut out);
        if !(self.content == Content::Empty && self.tool_call_id.is_none()) {
            out.push_str(",\"content\":");
            match content {
                Some(raw) => out.push_str(raw),
                None => write_content(&self.content, &mut out),
            }
        } else if !self.tool_calls.is_empty() {
            out.push_str(",\"content\":null");
        }
        if !self.tool_calls.is_empty() {
            out.push_str(",\"tool_calls\":[");
            for (i, call) in self.tool_calls.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                out.push_str("{\"id\":");
                push_string(call.id.as_str(), &mut out);
                out.push_str(",\"type\":\"function\",\"function\":{\"name\":");
                push_string(&call.name, &mut out);
                out.push_str(",\"arguments\":");
                push_string(&call.arguments, &mut out);
                out.push_str("}}");
            }
            out.push(']');
        }
        if let Some(id) = self.tool_call_id.as_ref()
            && !extra.iter().any(|(key, _)| key == "tool_call_id")
        {
            out.push_str(",\"tool_call_id\":");
            push_string(id.as_str(), &mut out);
        }
        for (key, value) in extra {
            out.push(',');
            push_string(key, &mut out);
            out.push(':');
            out.push_str(value);
        }
        out.push('}');
        out
    }
}

fn write_content(content: &Content, out: &mut String) {
    match content {
        Content::Empty => out.push_str("null"),
        Content::Text(text) => push_string(text, out),
        Content::Parts(parts) => {
            out.push('[');
            for (i, part) in parts.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                match part {
                    Part::Text(text) => {
                        out.push_str("{\"type\":\"text\",\"text\":");
                        push_string(text, out);
                        out.push('}');
                    }
                    Part::Other(json) => out.push_str(json),
                }
            }
            out.push(']');
        }
    }
}

pub(super) fn push_string(text: &str, out: &mut String) {
    out.push('"');
    escape_into(text, Escape::Minimal, out);
    out.push('"');
}
