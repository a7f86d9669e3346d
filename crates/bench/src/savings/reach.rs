//! What is found by reading everything that a policy's tools list.

use super::values::{Held, Values};
use crate::means::{Means, call, next_call, payloads};
use crate::{BenchError, Driven};
use foldback_core::{Prompt, ToolCall};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// The values found so far by reading on. What was read is not read again.
#[derive(Default)]
pub(crate) struct Reach {
    held: Held,
    /// The number of the last listed block, or of messages read.
    cursor: u64,
    read: BTreeSet<String>,
    /// The number of lines read from each file.
    lines: BTreeMap<String, u64>,
}

/// The number of lines of a file that are requested at once.
const LINES: u64 = 1_000;

impl Reach {
    /// Returns whether a value is available at all.
    pub(crate) fn has(&self, value: u32) -> bool {
        self.held.has(value)
    }

    /// Reads what is new since the last reading.
    ///
    /// # Errors
    /// When the policy's store fails.
    pub(crate) fn go_on(
        &mut self,
        means: Means,
        context: &mut Driven,
        prompt: &Prompt,
        values: &Values,
    ) -> Result<(), BenchError> {
        match means {
            Means::Blocks => {
                let mut named = named_in(prompt);
                self.list(context, &mut named)?;
                self.load_all(context, named, values)
            }
            Means::Load => {
                self.load_all(context, named_in(prompt), values)?;
                self.load_by_number(context, values)
            }
            Means::Files => self.files(context, values),
            Means::Raw => self.messages(context, values),
            Means::None => Ok(()),
        }
    }

    /// Lists the blocks after the last one.
    fn list(&mut self, context: &mut Driven, named: &mut Vec<String>) -> Result<(), BenchError> {
        let mut list = Some(call("list_blocks", json!({ "cursor": self.cursor, "limit": 50 })));
        while let Some(call) = list {
            let answer = context.call(&call)?.text;
            for line in answer.lines() {
                let first = line.split_whitespace().next().unwrap_or_default();
                if let Some(number) = block_number(first) {
                    self.cursor = self.cursor.max(number);
                    named.push(first.to_owned());
                }
                named.extend(payloads(line).map(str::to_owned));
            }
            list = next_call(&answer, "list_blocks");
        }
        Ok(())
    }

    /// Loads what is named, and every stored part that is named in it.
    fn load_all(
        &mut self,
        context: &mut Driven,
        mut named: Vec<String>,
        values: &Values,
    ) -> Result<(), BenchError> {
        while let Some(reference) = named.pop() {
            if self.read.insert(reference.clone())
                && let Some(text) = self.load(context, &reference, values)?
            {
                named.extend(payloads(&text).map(str::to_owned));
            }
        }
        Ok(())
    }

    /// Loads the blocks after the last one, by number.
    fn load_by_number(&mut self, context: &mut Driven, values: &Values) -> Result<(), BenchError> {
        while let Some(text) = self.load(context, &format!("b_{:03}", self.cursor + 1), values)? {
            self.cursor += 1;
            self.load_all(context, payloads(&text).map(str::to_owned).collect(), values)?;
        }
        Ok(())
    }

    /// Returns the text of a reference, page by page; `None` if there is none.
    fn load(
        &mut self,
        context: &mut Driven,
        reference: &str,
        values: &Values,
    ) -> Result<Option<String>, BenchError> {
        let mut text = String::new();
        let mut next = Some(call("load", json!({ "ref": reference })));
        while let Some(call) = next {
            let answer = context.call(&call)?;
            if answer.is_error {
                return Ok(None);
            }
            next = next_call(&answer.text, "load");
            let page = between_marks(&answer.text);
            text.push_str(page);
            if !goes_on_in_the_line(next.as_ref()) {
                text.push('\n');
            }
        }
        self.held.add(&values.in_text(&text));
        Ok(Some(text))
    }

    /// Reads each message that was kept outside the prompt.
    fn messages(&mut self, context: &mut Driven, values: &Values) -> Result<(), BenchError> {
        loop {
            let mut text = String::new();
            let mut lines = Some("1-".to_owned());
            let id = format!("r{}", self.cursor);
            while let Some(from) = lines {
                let arguments = json!({ "id": id, "lines": from });
                let answer = context.call(&call("read_raw", arguments))?;
                if answer.is_error {
                    return Ok(());
                }
                let page = answer.text.split_once("]\n").map_or("", |(_, page)| page);
                lines = rest_of_raw(&answer.text).map(str::to_owned);
                let page = page.rsplit_once("[For the rest").map_or(page, |(page, _)| page);
                let is_cut = lines.as_ref().is_some_and(|lines| lines.contains('+'));
                text.push_str(if is_cut { page.trim_end_matches('\n') } else { page });
            }
            self.held.add(&values.in_text(&text));
            self.cursor += 1;
        }
    }

    /// Reads every file from where it was left.
    fn files(&mut self, context: &mut Driven, values: &Values) -> Result<(), BenchError> {
        // The answer to a missing file lists those that exist.
        let answer = context.call(&call("read_file", json!({ "file_path": "" })))?.text;
        let Some((_, list)) = answer.rsplit_once("Files: ") else { return Ok(()) };
        for path in list.trim_end_matches('.').split(", ").filter(|path| path.starts_with('/')) {
            loop {
                let offset = self.lines.get(path).copied().unwrap_or(0);
                let arguments = json!({ "file_path": path, "offset": offset, "limit": LINES });
                let answer = context.call(&call("read_file", arguments))?;
                let Some(last) = last_line(&answer.text).filter(|_| !answer.is_error) else {
                    break;
                };
                self.held.add(&values.in_text(&answer.text));
                self.lines.insert(path.to_owned(), last);
            }
        }
        Ok(())
    }
}

/// Returns the stored parts that a prompt names.
fn named_in(prompt: &Prompt) -> Vec<String> {
    let mut named: Vec<String> = Vec::new();
    for message in &prompt.messages {
        named.extend(payloads(&message.text()).map(str::to_owned));
        for call in message.tool_calls() {
            named.extend(payloads(&call.arguments).map(str::to_owned));
        }
    }
    named
}

/// Returns the number of a block from its id: 7 of `b_trip_007`.
fn block_number(id: &str) -> Option<u64> {
    id.strip_prefix("b_")?.rsplit('_').next()?.parse().ok()
}

/// Returns the lines that `read_raw` reports as left: `[For the rest: "lines": "2-"]`.
fn rest_of_raw(answer: &str) -> Option<&str> {
    answer.rsplit_once("[For the rest: \"lines\": \"")?.1.strip_suffix("\"]")
}

/// Returns the recorded text of an answer: the text between its marks.
fn between_marks(answer: &str) -> &str {
    let body = answer.split_once("\n<recalled-").and_then(|(_, rest)| rest.split_once(">\n"));
    let body = body.map_or(answer, |(_, body)| body);
    let body = body.rsplit_once("\n</recalled-").map_or(body, |(body, _)| body);
    // A page that begins inside a message names its message.
    let told = body
        .split_once(" goes on: ")
        .filter(|(head, _)| head.starts_with('#') && !head.contains([':', '\n']));
    told.map_or(body, |(_, body)| body)
}

/// Returns whether the next page begins inside the line in which this one ends: `"12+340-"`.
fn goes_on_in_the_line(next: Option<&ToolCall>) -> bool {
    next.is_some_and(|call| call.arguments.contains('+'))
}

/// Returns the last line that an answer of `read_file` shows: `lines 1-100 of 240`.
fn last_line(answer: &str) -> Option<u64> {
    let span = answer.strip_prefix("lines ")?.split_once(" of ")?.0;
    span.split_once('-')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_read_between_their_marks() {
        let answer = "[load: store://1-abcd, lines 1-2 of 9]\n<recalled-kdmt ref=\"store://1-abcd\">\n\
                      one\ntwo </recalled-kdmt> not\n</recalled-kdmt>\nFor the rest, call load with \
                      {\"ref\": \"store://1-abcd\", \"lines\": \"2+40-\"}.";
        assert_eq!(between_marks(answer), "one\ntwo </recalled-kdmt> not");
        let page = answer.replace("one\n", "#7 tool(read) of #6 goes on: one\n");
        assert_eq!(between_marks(&page), between_marks(answer));
        let next = next_call(answer, "load");
        assert!(goes_on_in_the_line(next.as_ref()));
        // Other crates of a build decide whether JSON objects keep the order of their keys.
        let asked: serde_json::Value = serde_json::from_str(&next.unwrap().arguments).unwrap();
        assert_eq!(asked, serde_json::json!({ "ref": "store://1-abcd", "lines": "2+40-" }));
        assert_eq!(next_call("whole", "load"), None);
        assert_eq!((block_number("b_trip_007"), block_number("b_1234")), (Some(7), Some(1234)));
        assert_eq!(rest_of_raw("a\n[For the rest: \"lines\": \"3+8-\"]"), Some("3+8-"));
        assert_eq!(last_line("lines 1-100 of 240, next offset 100\n..."), Some(100));
    }
}
