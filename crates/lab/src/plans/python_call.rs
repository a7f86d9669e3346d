//! A parser of calls in Python notation: a name, and literals as arguments.

use serde_json::{Map, Number, Value};

/// A call: the function's name and its arguments by name. An argument without a name is called
/// `arg1`, `arg2`, ... by its place.
#[derive(Clone, Debug, PartialEq)]
pub struct PythonCall {
    /// The function.
    pub function: String,
    /// Its arguments, in order.
    pub arguments: Vec<(String, Value)>,
}

/// A text that is not a call with literal arguments.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {at}: expected {expected}")]
pub struct PythonCallError {
    /// The position in bytes, counted from 0.
    pub at: usize,
    /// What was expected there.
    pub expected: &'static str,
}

/// The maximum nesting depth of lists.
const DEPTH_MOST: usize = 64;

impl PythonCall {
    /// Parses a call such as `mv(source='a.txt', destination="b")`.
    ///
    /// # Errors
    /// When the text is not a call of a name with literals: strings (not raw, formatted or of bytes),
    /// numbers, `True`, `False`, `None`, lists, tuples and dictionaries with string keys.
    pub fn parse(text: &str) -> Result<Self, PythonCallError> {
        let mut reader = Reader { text, at: 0 };
        reader.space();
        let function = reader.path()?;
        reader.expect('(', "(")?;
        let mut arguments = Vec::new();
        while !reader.take(')') {
            let name = reader.keyword().unwrap_or_else(|| format!("arg{}", arguments.len() + 1));
            let value = reader.value(0)?;
            arguments.push((name, value));
            if !reader.take(',') {
                reader.expect(')', ", or )")?;
                break;
            }
        }
        reader.space();
        match reader.rest().is_empty() {
            true => Ok(Self { function, arguments }),
            false => Err(reader.error("the end")),
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn error(&self, expected: &'static str) -> PythonCallError {
        PythonCallError { at: self.at, expected }
    }

    fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Takes a character, and the space before it.
    fn take(&mut self, wanted: char) -> bool {
        self.space();
        let is_there = self.peek() == Some(wanted);
        if is_there {
            self.at += wanted.len_utf8();
        }
        is_there
    }

    fn expect(&mut self, wanted: char, expected: &'static str) -> Result<(), PythonCallError> {
        if self.take(wanted) { Ok(()) } else { Err(self.error(expected)) }
    }

    /// Reads a name; empty if there is none.
    fn name(&mut self) -> String {
        let is_part = |c: char| c == '_' || c.is_alphanumeric();
        let name: String = self.rest().chars().take_while(|c| is_part(*c)).collect();
        let is_name = !name.starts_with(|c: char| c.is_ascii_digit());
        let name = if is_name { name } else { String::new() };
        self.at += name.len();
        name
    }

    /// Reads names joined by dots.
    fn path(&mut self) -> Result<String, PythonCallError> {
        let mut path = String::new();
        loop {
            let name = self.name();
            if name.is_empty() {
                return Err(self.error("the name of a function"));
            }
            path.push_str(&name);
            if self.peek() != Some('.') {
                return Ok(path);
            }
            path.push('.');
            self.at += 1;
        }
    }

    /// Reads the `name=` before an argument.
    fn keyword(&mut self) -> Option<String> {
        self.space();
        let start = self.at;
        let name = self.name();
        if !name.is_empty() && self.take('=') {
            return Some(name);
        }
        self.at = start;
        None
    }

    fn value(&mut self, depth: usize) -> Result<Value, PythonCallError> {
        if depth > DEPTH_MOST {
            return Err(self.error("less deeply nested lists"));
        }
        self.space();
        match self.peek() {
            Some('\'' | '"') => self.strings().map(Value::String),
            Some('[') => self.list('[', ']', depth).map(|(items, _)| Value::Array(items)),
            Some('(') => {
                let (mut items, has_comma) = self.list('(', ')', depth)?;
                // (1) is a number, (1,) is a tuple.
                match items.pop() {
                    Some(only) if items.is_empty() && !has_comma => Ok(only),
                    last => Ok(Value::Array(items.into_iter().chain(last).collect())),
                }
            }
            Some('{') => self.dictionary(depth),
            Some('-' | '+' | '.' | '0'..='9') => self.number(),
            _ => {
                let start = self.at;
                match self.name().as_str() {
                    "True" => Ok(Value::Bool(true)),
                    "False" => Ok(Value::Bool(false)),
                    "None" => Ok(Value::Null),
                    _ => {
                        self.at = start;
                        Err(self.error("a literal"))
                    }
                }
            }
        }
    }

    /// Reads the items between brackets, and whether a comma follows the last.
    fn list(
        &mut self,
        open: char,
        close: char,
        depth: usize,
    ) -> Result<(Vec<Value>, bool), PythonCallError> {
        self.expect(open, "a bracket")?;
        let (mut items, mut has_comma) = (Vec::new(), false);
        while !self.take(close) {
            items.push(self.value(depth + 1)?);
            has_comma = self.take(',');
            if !has_comma {
                self.expect(close, "a comma or the closing bracket")?;
                break;
            }
        }
        Ok((items, has_comma))
    }

    fn dictionary(&mut self, depth: usize) -> Result<Value, PythonCallError> {
        self.expect('{', "{")?;
        let mut object = Map::new();
        while !self.take('}') {
            self.space();
            let key = self.strings()?;
            self.expect(':', ":")?;
            object.insert(key, self.value(depth + 1)?);
            if !self.take(',') {
                self.expect('}', ", or }")?;
                break;
            }
        }
        Ok(Value::Object(object))
    }

    /// Reads a number; one that JSON cannot represent is refused.
    fn number(&mut self) -> Result<Value, PythonCallError> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_');
        let rest = self.rest();
        let mut end = 0;
        let mut before = ' ';
        for c in rest.chars() {
            let is_sign = matches!(c, '-' | '+') && (end == 0 || matches!(before, 'e' | 'E'));
            if !is_sign && !is_part(c) {
                break;
            }
            before = c;
            end += c.len_utf8();
        }
        let text = rest.get(..end).unwrap_or_default().replace('_', "");
        let text = text.strip_prefix('+').unwrap_or(&text);
        let whole = text.parse::<i64>().ok().map(Number::from);
        let fraction = || text.parse::<f64>().ok().and_then(Number::from_f64);
        let number = whole.or_else(fraction).ok_or_else(|| self.error("a decimal number"))?;
        self.at += end;
        Ok(Value::Number(number))
    }

    /// Reads one string, or several adjacent ones.
    fn strings(&mut self) -> Result<String, PythonCallError> {
        let mut text = self.string()?;
        loop {
            let start = self.at;
            self.space();
            if !matches!(self.peek(), Some('\'' | '"')) {
                self.at = start;
                return Ok(text);
            }
            text.push_str(&self.string()?);
        }
    }

    fn string(&mut self) -> Result<String, PythonCallError> {
        let Some(quote @ ('\'' | '"')) = self.peek() else { return Err(self.error("a string")) };
        let triple: String = std::iter::repeat_n(quote, 3).collect();
        let (end, is_long) = match self.rest().starts_with(&triple) {
            true => (triple, true),
            false => (quote.to_string(), false),
        };
        self.at += end.len();
        let mut text = String::new();
        loop {
            if self.rest().starts_with(&end) {
                self.at += end.len();
                return Ok(text);
            }
            match self.next() {
                Some('\\') => self.escape(&mut text)?,
                Some('\n') if !is_long => return Err(self.error("the end of the string")),
                Some(c) => text.push(c),
                None => return Err(self.error("the end of the string")),
            }
        }
    }

    /// Reads what follows a backslash. An unknown escape is kept, with its backslash.
    fn escape(&mut self, text: &mut String) -> Result<(), PythonCallError> {
        let Some(c) = self.next() else { return Err(self.error("the rest of an escape")) };
        let digits = match c {
            '\n' => return Ok(()),
            '\\' | '\'' | '"' => {
                text.push(c);
                return Ok(());
            }
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => {
                let control = [
                    ('n', '\n'),
                    ('t', '\t'),
                    ('r', '\r'),
                    ('0', '\0'),
                    ('a', '\u{7}'),
                    ('b', '\u{8}'),
                    ('f', '\u{c}'),
                    ('v', '\u{b}'),
                ];
                match control.iter().find(|(name, _)| *name == c) {
                    Some((_, meant)) => text.push(*meant),
                    None => text.extend(['\\', c]),
                }
                return Ok(());
            }
        };
        let code = self.rest().get(..digits).and_then(|code| u32::from_str_radix(code, 16).ok());
        let Some(meant) = code.and_then(char::from_u32) else {
            return Err(self.error("the code of a character"));
        };
        self.at += digits;
        text.push(meant);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn arguments(text: &str) -> Value {
        let call = PythonCall::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        Value::Object(call.arguments.into_iter().collect())
    }

    #[test]
    fn literals_of_every_kind_are_read() {
        for (text, expected) in [
            ("sort('final.pdf')", json!({ "arg1": "final.pdf" })),
            ("f()", json!({})),
            ("f(a=1, b=-2.5, c=1e3,)", json!({ "a": 1, "b": -2.5, "c": 1000.0 })),
            ("f(a=True,b=False,c=None)", json!({ "a": true, "b": false, "c": null })),
            (
                "f(tags=['#a', \"b\"], t=(1, 2), one=(3), t1=(3,))",
                json!({ "tags": ["#a", "b"], "t": [1, 2], "one": 3, "t1": [3] }),
            ),
            (
                "f(d={'priority': 3, 'n': {'x': []}})",
                json!({ "d": { "priority": 3, "n": { "x": [] } } }),
            ),
            (
                r"echo(content='company\'s \n- 中文\u4e2d\x41 \d')",
                json!({ "content": "company's \n- 中文中A \\d" }),
            ),
            ("f(a='one ' 'two', b='''it's''')", json!({ "a": "one two", "b": "it's" })),
            ("f(a='x(y, z)=1, [2]')", json!({ "a": "x(y, z)=1, [2]" })),
            ("f(名字='值', n=1_000)", json!({ "名字": "值", "n": 1000 })),
        ] {
            assert_eq!(arguments(text), expected, "{text}");
        }
        assert_eq!(PythonCall::parse(" a.b.c( 1 ) ").unwrap().function, "a.b.c");
    }

    #[test]
    fn what_is_no_call_is_told_with_its_place() {
        for (text, at, expected) in [
            ("", 0, "the name of a function"),
            ("mv", 2, "("),
            ("mv(a", 3, "a literal"),
            ("mv(a=b)", 5, "a literal"),
            ("mv('a", 5, "the end of the string"),
            ("mv('中\n')", 8, "the end of the string"),
            ("mv('a') + 1", 8, "the end"),
            ("mv([1, 2)", 8, "a comma or the closing bracket"),
            (r"mv('\uD800')", 6, "the code of a character"),
            ("mv(0x1F)", 3, "a decimal number"),
        ] {
            assert_eq!(
                PythonCall::parse(text).unwrap_err(),
                PythonCallError { at, expected },
                "{text}"
            );
        }
        let deep = format!("f({}", "[".repeat(100_000));
        assert_eq!(PythonCall::parse(&deep).unwrap_err().expected, "less deeply nested lists");
    }
}
