//! The light message that replaces one with large parts.

use crate::Names;
use crate::raw::string;
use crate::repair::Changes;
use foldback_core::{
    Content, Message, Offload, Part, PayloadRef, Site, TodoId, ToolCall, thousands,
};
use std::borrow::Cow;

/// Returns the light form of `message`: for a part that is stored outside, a notice says where it is, how large it is
/// and what it holds, and shows a short preview. Everything else stays as it is; arguments that are JSON stay JSON. An
/// offload that names no place in this message changes nothing.
#[must_use]
pub fn light(message: &Message, offloads: &[Offload]) -> Message {
    light_of(message, offloads.iter(), &Names::default())
}

/// Does the same as [`light`] for a message of the todo `of` as another todo sees it: the notices carry full names.
pub(crate) fn light_elsewhere(message: &Message, offloads: &[Offload], of: &TodoId) -> Message {
    light_of(message, offloads.iter(), &Names { load: None, todo: Some(of.clone()) })
}

pub(crate) fn light_of<'o>(
    message: &Message,
    offloads: impl Iterator<Item = &'o Offload> + Clone,
    names: &Names,
) -> Message {
    let mut changes = Changes::default();
    for offload in offloads.clone() {
        match offload.site {
            Site::Content => {
                if let Content::Text(_) = message.content() {
                    changes.content = Some(Content::Text(notice(offload, names)));
                }
            }
            Site::Part(index) => {
                let content = changes.content.get_or_insert_with(|| message.content().clone());
                if let Content::Parts(parts) = content
                    && let Some(Part::Text(text)) = parts.get_mut(index as usize)
                {
                    *text = notice(offload, names);
                }
            }
            Site::Arguments(_) | Site::Argument(..) => {
                changes.calls.get_or_insert_with(|| message.tool_calls().to_vec());
            }
        }
    }
    for (index, call) in changes.calls.iter_mut().flatten().enumerate() {
        call.arguments = light_arguments(call, index, offloads.clone(), names);
    }
    changes.apply(message)
}

/// Returns the notice in place of a part: where it is, how large, of what kind, and a short preview.
fn notice(offload: &Offload, names: &Names) -> String {
    let mut text = format!(
        "[stored at {}, use {} to see it: {}, {} bytes, {} lines]",
        PayloadRef { todo: names.todo.clone(), ..offload.reference() },
        names.load(),
        offload.kind,
        thousands(offload.bytes),
        thousands(offload.lines),
    );
    if !offload.preview.is_empty() {
        text.push('\n');
        text.push_str(&offload.preview);
    }
    text
}

fn light_arguments<'o>(
    call: &ToolCall,
    index: usize,
    offloads: impl Iterator<Item = &'o Offload>,
    names: &Names,
) -> String {
    let mut values: Vec<(u32, &Offload)> = Vec::new();
    for offload in offloads {
        match offload.site {
            Site::Arguments(at) if at as usize == index => {
                // Arguments that are not JSON do not have to become JSON.
                let is_json =
                    serde_json::from_str::<serde::de::IgnoredAny>(&call.arguments).is_ok();
                let notice = notice(offload, names);
                return if is_json {
                    format!("{{\"stored\":{}}}", string(&notice))
                } else {
                    notice
                };
            }
            Site::Argument(at, key) if at as usize == index => values.push((key, offload)),
            _ => {}
        }
    }
    values.sort_by_key(|(key, _)| *key);
    let mut arguments = Cow::Borrowed(call.arguments.as_str());
    // From the last to the first, so that the places of earlier ones stay valid.
    for (key, offload) in values.iter().rev() {
        if let Some(place) = value_place(call, *key as usize) {
            arguments.to_mut().replace_range(place, &string(&notice(offload, names)));
        }
    }
    arguments.into_owned()
}

/// Returns where in the call's arguments the value of the `key`-th member is.
fn value_place(call: &ToolCall, key: usize) -> Option<std::ops::Range<usize>> {
    let members = call.members()?;
    let (_, value) = members.get(key)?;
    // The value is a slice of the arguments, so its address gives its place.
    let start = (value.get().as_ptr() as usize).checked_sub(call.arguments.as_ptr() as usize)?;
    let place = start..start + value.get().len();
    (call.arguments.get(place.clone()) == Some(value.get())).then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_core::{Check, PayloadKind};

    fn offload(site: Site, n: u64, preview: &str) -> Offload {
        Offload {
            site,
            n,
            check: Check::of(b"x"),
            kind: PayloadKind::Log,
            bytes: 12_345,
            lines: 310,
            tokens: 3_000,
            preview: preview.to_owned(),
        }
    }

    #[test]
    fn bs1_the_notice_says_where_how_large_and_what() {
        let message =
            Message::from_json(r#"{"role":"tool","x":1.0,"tool_call_id":"a","content":"long"}"#)
                .unwrap();
        let light = light(&message, &[offload(Site::Content, 3, "头几行\n尾几行")]);
        let check = Check::of(b"x");
        assert_eq!(
            light.text(),
            format!(
                "[stored at store://3-{check}, use load to see it: log, 12,345 bytes, 310 lines]\n\
                 头几行\n尾几行"
            )
        );
        assert!(light.json().contains(r#""x":1.0"#));
    }

    #[test]
    fn bs1_an_argument_stays_json_and_the_others_exact() {
        let arguments = r#"{ "path": "a\u00e9",  "content":"xx\"y", "n":1.50,"old":"zz" }"#;
        let message = Message::calls(
            "so",
            vec![ToolCall::new("c", "write", arguments), ToolCall::new("d", "write", "{}")],
        );
        let light = light(
            &message,
            &[offload(Site::Argument(0, 3), 2, ""), offload(Site::Argument(0, 1), 1, "\"q\"\n")],
        );
        let call = &light.tool_calls()[0];
        let check = Check::of(b"x");
        let at = |n| {
            format!(
                "[stored at store://{n}-{check}, use load to see it: log, 12,345 bytes, 310 lines]"
            )
        };
        assert_eq!(
            call.arguments,
            format!(
                r#"{{ "path": "a\u00e9",  "content":"{}\n\"q\"\n", "n":1.50,"old":"{}" }}"#,
                at(1),
                at(2)
            )
        );
        let value: serde_json::Value = serde_json::from_str(&call.arguments).unwrap();
        assert_eq!(value["path"], "aé");
        assert_eq!(light.tool_calls()[1], message.tool_calls()[1]);
        assert_eq!(light.text(), "so");
    }

    #[test]
    fn bs1_whole_arguments_stay_json_where_they_were() {
        let message = Message::calls(
            "",
            vec![ToolCall::new("a", "t", "[1]"), ToolCall::new("b", "t", "raw")],
        );
        let light = light(
            &message,
            &[offload(Site::Arguments(0), 1, ""), offload(Site::Arguments(1), 2, "")],
        );
        assert!(light.tool_calls()[0].arguments.starts_with("{\"stored\":\"[stored at store://1-"));
        assert!(light.tool_calls()[1].arguments.starts_with("[stored at store://2-"));
    }

    #[test]
    fn an_offload_of_no_place_changes_nothing() {
        let message = Message::user("hello");
        for site in [Site::Part(0), Site::Argument(3, 1), Site::Arguments(9)] {
            assert_eq!(light(&message, &[offload(site, 1, "p")]).text(), "hello");
        }
    }

    #[test]
    fn parts_are_replaced_one_by_one() {
        let message = Message::from_json(
            r#"{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"一"},{"type":"image_url","image_url":{"url":"u"}},{"type":"text","text":"二"}]}"#,
        )
        .unwrap();
        let light = light(&message, &[offload(Site::Part(2), 1, "")]);
        let Content::Parts(parts) = light.content() else { panic!("{light:?}") };
        assert_eq!(parts[0], Part::Text("一".to_owned()));
        assert!(matches!(&parts[2], Part::Text(text) if text.starts_with("[stored at")));
        assert_eq!(parts.len(), 3);
    }
}
