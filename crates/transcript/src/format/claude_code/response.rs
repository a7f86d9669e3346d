//! Builds one response of the model from its lines.

use crate::object::Object;
use serde_json::value::RawValue;
use std::collections::HashMap;

/// The blocks and the usage of one response.
#[derive(Default)]
pub(super) struct Response<'r> {
    /// Each block once, in order.
    pub(super) blocks: Vec<&'r RawValue>,
    /// The other blocks on the lines, which a later line repeats more fully.
    pub(super) replaced: Vec<&'r RawValue>,
    /// The index of each call, by its id.
    calls: HashMap<String, usize>,
    usage: Option<(u64, &'r RawValue)>,
}

impl<'r> Response<'r> {
    /// Adds the next line. Most lines hold one new block; some versions repeat what was there
    /// already, with more of it each time.
    pub(super) fn add(&mut self, blocks: &[&'r RawValue], usage: Option<&'r RawValue>) {
        let repeats = blocks.len() >= self.blocks.len()
            && self.blocks.iter().zip(blocks).all(|(old, new)| continues(old, new));
        let known = if repeats { self.blocks.len() } else { 0 };
        for (at, block) in blocks.iter().enumerate() {
            let call = call_id(block);
            let place = if at < known { Some(at) } else { self.place_of(block, call.as_deref()) };
            match place.and_then(|place| self.blocks.get_mut(place)) {
                Some(old) if old.get() == block.get() => {}
                Some(old) => self.replaced.push(std::mem::replace(old, block)),
                None => {
                    self.calls.extend(call.map(|id| (id, self.blocks.len())));
                    self.blocks.push(block);
                }
            }
        }
        // A line that is written before the end counts few tokens, or none; the numbers of one
        // line belong together.
        if let Some(usage) = usage {
            let tokens = Object::of(usage).and_then(|usage| number(&usage, "output_tokens"));
            let tokens = tokens.unwrap_or(0);
            if self.usage.is_none_or(|(most, _)| tokens >= most) {
                self.usage = Some((tokens, usage));
            }
        }
    }

    /// Returns the cost of the response, as the API counted it.
    pub(super) fn usage(&self) -> Option<&'r RawValue> {
        self.usage.map(|(_, usage)| usage)
    }

    /// Returns the index of the block that `block` repeats.
    fn place_of(&self, block: &RawValue, call: Option<&str>) -> Option<usize> {
        if let Some(id) = call {
            return self.calls.get(id).copied();
        }
        let last = self.blocks.len().checked_sub(1)?;
        self.blocks.get(last).filter(|old| continues(old, block)).map(|_| last)
    }
}

fn call_id(block: &RawValue) -> Option<String> {
    // Looking for the name first spares most blocks a parse.
    let block = Object::of(block).filter(|_| block.get().contains("\"tool_use\""))?;
    let is_call = block.text("type").as_deref() == Some("tool_use");
    block.text("id").filter(|_| is_call).map(|id| id.into_owned())
}

fn number(object: &Object<'_>, key: &str) -> Option<u64> {
    object.get(key)?.get().parse().ok()
}

/// Returns whether `new` says what `old` says, or continues its text.
fn continues(old: &RawValue, new: &RawValue) -> bool {
    if old.get() == new.get() {
        return true;
    }
    let (Some(old), Some(new)) = (Object::of(old), Object::of(new)) else { return false };
    let kind = old.text("type");
    if kind != new.text("type") {
        return false;
    }
    match kind.as_deref() {
        Some("text") => match (old.text("text"), new.text("text")) {
            (Some(old), Some(new)) => !old.is_empty() && new.starts_with(old.as_ref()),
            _ => false,
        },
        Some("tool_use") => old.text("id") == new.text("id"),
        _ => false,
    }
}
