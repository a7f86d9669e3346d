//! Messages as they appear in the history file: Markdown sections of tagged messages, whose texts are
//! unchanged.

use crate::log::Entry;
use foldback_core::Message;

/// Returns a section of messages that left together.
pub(super) fn section(messages: &[Entry]) -> String {
    let (Some(first), Some(last)) = (messages.first(), messages.last()) else {
        return String::new();
    };
    let mut text = format!("## Messages {} to {}\n\n", first.seq(), last.seq());
    for entry in messages {
        write(entry.kept(), &mut text);
    }
    text.push('\n');
    text
}

fn write(message: &Message, out: &mut String) {
    let said = message.text();
    let role = message.role().as_str();
    if message.tool_calls().is_empty() {
        out.push_str(&format!("<message type=\"{role}\">{said}</message>\n"));
        return;
    }
    out.push_str(&format!("<message type=\"{role}\">\n"));
    if !said.is_empty() {
        out.push_str(&format!("  <content>{said}</content>\n"));
    }
    for call in message.tool_calls() {
        let (id, name, arguments) = (call.id.as_str(), &call.name, &call.arguments);
        out.push_str(&format!(
            "  <tool_call id=\"{id}\" name=\"{name}\">{arguments}</tool_call>\n"
        ));
    }
    out.push_str("</message>\n");
}
