//! The arguments of a tool: one description that is shown to models and people, and that checks
//! what a model wrote.

use crate::cut::one_line;
use crate::raw::{ObjectWriter, RawObject, string};
use foldback_backend_store::Position;
use foldback_core::{BlockType, Timestamp};

/// One argument of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its key.
    pub name: &'static str,
    /// Its purpose, in one sentence.
    pub help: &'static str,
    /// The kind of its value.
    pub kind: ArgumentKind,
    /// Whether it is required.
    pub required: bool,
}

/// The kind of an argument's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    /// A text.
    Text,
    /// A whole number. A value out of bounds is brought to the nearest bound.
    Count {
        /// The least.
        least: usize,
        /// The greatest.
        most: usize,
        /// The default for a number that is not given.
        default: usize,
    },
    /// The type of a block.
    BlockType,
    /// A time, RFC 3339 or a date.
    Time,
    /// Lines: `10-40`, `10-` or `10`; inside a very long line `10+4096-`.
    Lines,
}

/// Every type of block, by name.
const BLOCK_TYPES: [BlockType; 3] = [BlockType::ToolCall, BlockType::Qa, BlockType::Chat];

impl ArgumentKind {
    /// Describes its value in words.
    #[must_use]
    pub fn expected(self) -> String {
        match self {
            Self::Text => "a text".to_owned(),
            Self::Count { least, most, .. } => format!("a whole number from {least} to {most}"),
            Self::BlockType => "one of \"tool_call\", \"qa\", \"chat\"".to_owned(),
            Self::Time => "a time such as \"2025-01-31T10:00:00Z\" or \"2025-01-31\"".to_owned(),
            Self::Lines => "lines such as \"10-40\" or \"10-\"".to_owned(),
        }
    }

    /// Writes the schema as short as possible, since it is in every prompt: a number that is too large is
    /// brought to the bound, and any other value out of place is answered with what was expected.
    fn schema(self, help: &str) -> String {
        let mut out = ObjectWriter::default();
        match self {
            Self::Text | Self::Time | Self::Lines => out.member("type", "\"string\""),
            Self::Count { .. } => out.member("type", "\"integer\""),
            Self::BlockType => {
                out.member("type", "\"string\"");
                let names = BLOCK_TYPES.map(|kind| string(kind.as_str())).join(",");
                out.member("enum", &format!("[{names}]"));
            }
        }
        out.member("description", &string(help));
        out.finish()
    }

    /// Reads a value; `Err` for one of another kind.
    fn read(self, json: &str) -> Result<Value, ()> {
        let text = || serde_json::from_str::<String>(json).map_err(|_| ());
        match self {
            Self::Text => Ok(Value::Text(text()?)),
            Self::Count { least, most, .. } => {
                let number: f64 = serde_json::from_str(json).map_err(|_| ())?;
                if number.fract() != 0.0 || number < least as f64 {
                    return Err(());
                }
                // The cast saturates, and the bounds are small.
                Ok(Value::Count((number as usize).clamp(least, most)))
            }
            Self::BlockType => {
                let text = text()?;
                let kind = BLOCK_TYPES.into_iter().find(|kind| kind.as_str() == text);
                kind.map(Value::BlockType).ok_or(())
            }
            Self::Time => {
                let text = text()?;
                let at = Timestamp::parse(&text).ok_or(())?;
                Ok(Value::Time { at, is_day: text.trim().len() == "2025-01-31".len() })
            }
            Self::Lines => read_lines(&text()?).ok_or(()),
        }
    }
}

fn read_lines(text: &str) -> Option<Value> {
    let text = text.trim();
    let (from, to) = text.split_once('-').map_or((text, None), |(from, to)| (from, Some(to)));
    let from: Position = from.trim().parse().ok()?;
    let to = match to.map(str::trim) {
        None => from.line,
        Some("") => u64::MAX,
        // Lines are shown to their end.
        Some(to) => to.parse().ok().filter(|to: &Position| to.skip == 0)?.line,
    };
    (from.line > 0 && from.line <= to).then_some(Value::Lines { from, to })
}

/// A value that a model wrote for one argument.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Text(String),
    Count(usize),
    BlockType(BlockType),
    Time { at: Timestamp, is_day: bool },
    Lines { from: Position, to: u64 },
}

/// The checked arguments that a model wrote.
#[derive(Debug)]
pub(crate) struct Arguments {
    described: &'static [Argument],
    given: Vec<(&'static str, Value)>,
}

impl Arguments {
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the number, or the default if none is given.
    pub(crate) fn count(&self, name: &str) -> usize {
        match self.get(name) {
            Some(Value::Count(count)) => *count,
            _ => self
                .described
                .iter()
                .find_map(|argument| match argument.kind {
                    ArgumentKind::Count { default, .. } if argument.name == name => Some(default),
                    _ => None,
                })
                .unwrap_or(0),
        }
    }

    pub(crate) fn block_type(&self, name: &str) -> Option<BlockType> {
        match self.get(name)? {
            Value::BlockType(kind) => Some(*kind),
            _ => None,
        }
    }

    /// Returns the time; for a day, its first moment.
    pub(crate) fn since(&self, name: &str) -> Option<Timestamp> {
        match self.get(name)? {
            Value::Time { at, .. } => Some(*at),
            _ => None,
        }
    }

    /// Returns the time; for a day, its last moment.
    pub(crate) fn until(&self, name: &str) -> Option<Timestamp> {
        const DAY: i64 = 86_400_000;
        match self.get(name)? {
            Value::Time { at, is_day } if *is_day => Some(Timestamp(at.0 + DAY - 1)),
            Value::Time { at, .. } => Some(*at),
            _ => None,
        }
    }

    /// Returns the first place and the last line.
    pub(crate) fn lines(&self, name: &str) -> Option<(Position, u64)> {
        match self.get(name)? {
            Value::Lines { from, to } => Some((*from, *to)),
            _ => None,
        }
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.given.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    }
}

/// Reads what a model wrote for these arguments; otherwise returns what is wrong with it, as a sentence.
pub(crate) fn parse(described: &'static [Argument], json: &str) -> Result<Arguments, String> {
    let json = if json.trim().is_empty() { "{}" } else { json };
    let Some(object) = RawObject::parse(json) else {
        return Err("The arguments are not a JSON object.".to_owned());
    };
    let mut given = Vec::new();
    for (key, value) in &object.0 {
        let Some(argument) = described.iter().find(|argument| argument.name == key) else {
            let names: Vec<&str> = described.iter().map(|argument| argument.name).collect();
            let key = one_line(key, 40);
            return Err(format!("There is no argument {key:?}; there are {}.", names.join(", ")));
        };
        // Models write null for what they leave out.
        if value.get() == "null" {
            continue;
        }
        let Ok(value) = argument.kind.read(value.get()) else {
            let found = one_line(value.get(), 40);
            let expected = argument.kind.expected();
            return Err(format!("{:?} has to be {expected}, not {found}.", argument.name));
        };
        given.retain(|(name, _)| *name != argument.name);
        given.push((argument.name, value));
    }
    let arguments = Arguments { described, given };
    for argument in described.iter().filter(|argument| argument.required) {
        let is_blank = |text: &str| text.trim().is_empty();
        match arguments.get(argument.name) {
            None => return Err(format!("{:?} is missing.", argument.name)),
            Some(Value::Text(text)) if is_blank(text) => {
                return Err(format!("{:?} is empty.", argument.name));
            }
            Some(_) => {}
        }
    }
    Ok(arguments)
}

/// Returns the JSON schema of these arguments.
pub(crate) fn schema(arguments: &[Argument]) -> String {
    let mut properties = ObjectWriter::default();
    for argument in arguments {
        properties.member(argument.name, &argument.kind.schema(argument.help));
    }
    let required: Vec<String> =
        arguments.iter().filter(|a| a.required).map(|a| string(a.name)).collect();
    let mut out = ObjectWriter::default();
    out.member("type", "\"object\"");
    out.member("properties", &properties.finish());
    if !required.is_empty() {
        out.member("required", &format!("[{}]", required.join(",")));
    }
    out.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DESCRIBED: &[Argument] = &[
        Argument { name: "q", help: "A \"q\".", kind: ArgumentKind::Text, required: true },
        Argument {
            name: "k",
            help: "A k.",
            kind: ArgumentKind::Count { least: 1, most: 5, default: 3 },
            required: false,
        },
        Argument { name: "l", help: "L.", kind: ArgumentKind::Lines, required: false },
        Argument { name: "t", help: "T.", kind: ArgumentKind::Time, required: false },
        Argument { name: "b", help: "B.", kind: ArgumentKind::BlockType, required: false },
    ];

    #[track_caller]
    fn check(json: &str, expected: &str) {
        assert_eq!(parse(DESCRIBED, json).map(|a| format!("{:?}", a.given)).unwrap_err(), expected);
    }

    #[test]
    fn tl4_what_is_wrong_is_said_in_a_sentence() {
        check("", "\"q\" is missing.");
        check("[]", "The arguments are not a JSON object.");
        check("{\"q\":\"a\"", "The arguments are not a JSON object.");
        check(&"[".repeat(100_000), "The arguments are not a JSON object.");
        check(r#"{"q":" "}"#, "\"q\" is empty.");
        check(r#"{"q":7}"#, "\"q\" has to be a text, not 7.");
        check(r#"{"q":"a","k":"3"}"#, "\"k\" has to be a whole number from 1 to 5, not \"3\".");
        check(r#"{"q":"a","k":1.5}"#, "\"k\" has to be a whole number from 1 to 5, not 1.5.");
        check(r#"{"q":"a","k":0}"#, "\"k\" has to be a whole number from 1 to 5, not 0.");
        check(r#"{"q":"a","k":-1}"#, "\"k\" has to be a whole number from 1 to 5, not -1.");
        check(
            r#"{"q":"a","l":"1+5-1+2"}"#,
            "\"l\" has to be lines such as \"10-40\" or \"10-\", not \"1+5-1+2\".",
        );
        check(
            r#"{"q":"a","l":"9-3"}"#,
            "\"l\" has to be lines such as \"10-40\" or \"10-\", not \"9-3\".",
        );
        check(r#"{"q":"a","查询":1}"#, "There is no argument \"查询\"; there are q, k, l, t, b.");
        check(
            r#"{"q":"a","b":"all"}"#,
            "\"b\" has to be one of \"tool_call\", \"qa\", \"chat\", not \"all\".",
        );
    }

    #[test]
    fn what_is_right_is_read() {
        let read = parse(DESCRIBED, r#"{"q":"中文","k":99,"l":"3+10-","t":"2025-01-31","b":"qa"}"#)
            .unwrap();
        assert_eq!(read.text("q"), Some("中文"));
        assert_eq!(read.count("k"), 5);
        assert_eq!(read.lines("l"), Some((Position { line: 3, skip: 10 }, u64::MAX)));
        assert_eq!(read.until("t").unwrap().0 - read.since("t").unwrap().0, 86_399_999);
        assert_eq!(read.block_type("b"), Some(BlockType::Qa));
        let read = parse(DESCRIBED, r#"{"q":"a","k":null,"l":"4"}"#).unwrap();
        assert_eq!((read.count("k"), read.lines("l")), (3, Some((Position::from(4), 4))));
        let read = parse(DESCRIBED, r#"{"q":"a","l":"4+2"}"#).unwrap();
        assert_eq!(read.lines("l"), Some((Position { line: 4, skip: 2 }, 4)));
    }

    #[test]
    fn tl5_the_schema_comes_from_the_same_description() {
        let schema: serde_json::Value = serde_json::from_str(&schema(DESCRIBED)).unwrap();
        assert_eq!(schema["required"], serde_json::json!(["q"]));
        assert_eq!(schema["properties"]["q"]["description"], "A \"q\".");
        assert_eq!(schema["properties"]["k"]["type"], "integer");
    }
}
