//! Python literals as JSON: what models write after they were shown dicts.

use crate::json;

/// Deeper values are refused.
const DEEPEST: usize = 64;

/// Converts a Python literal to JSON: a dict, list, tuple, string, number, `True`, `False` or
/// `None`. The error says what was expected, and before which text.
pub(super) fn python_to_json(text: &str) -> Result<String, String> {
    let mut reader = Reader { rest: text, json: String::with_capacity(text.len()) };
    reader.value(0)?;
    reader.space();
    if reader.rest.is_empty() { Ok(reader.json) } else { Err(reader.expected("the end")) }
}

struct Reader<'t> {
    rest: &'t str,
    json: String,
}

impl Reader<'_> {
    fn value(&mut self, depth: usize) -> Result<(), String> {
        if depth > DEEPEST {
            return Err(format!("values are nested deeper than {DEEPEST}"));
        }
        self.space();
        match self.rest.chars().next() {
            Some('{') => self.sequence(depth, '}', ('{', '}')),
            Some('[') => self.sequence(depth, ']', ('[', ']')),
            Some('(') => self.sequence(depth, ')', ('[', ']')),
            Some('\'' | '"') => self.string(),
            _ => self.word(),
        }
    }

    /// Reads values between brackets, separated by commas, with an optional trailing comma.
    fn sequence(&mut self, depth: usize, end: char, json: (char, char)) -> Result<(), String> {
        self.skip(1);
        self.json.push(json.0);
        let mut is_first = true;
        loop {
            self.space();
            if self.take(end) {
                self.json.push(json.1);
                return Ok(());
            }
            if !is_first {
                self.json.push(',');
            }
            is_first = false;
            if end == '}' {
                if !self.rest.starts_with(['\'', '"']) {
                    return Err(self.expected("a key in quotes"));
                }
                self.string()?;
                self.space();
                if !self.take(':') {
                    return Err(self.expected("a colon"));
                }
                self.json.push(':');
            }
            self.value(depth + 1)?;
            self.space();
            if !self.take(',') && !self.rest.starts_with(end) {
                return Err(self.expected(&format!("a comma or {end:?}")));
            }
        }
    }

    fn string(&mut self) -> Result<(), String> {
        let quote = if self.rest.starts_with('"') { '"' } else { '\'' };
        self.skip(1);
        let mut text = String::new();
        loop {
            let Some(c) = self.rest.chars().next() else {
                return Err(format!("a string has no end: {quote} is missing"));
            };
            self.skip(c.len_utf8());
            match c {
                '\\' => self.escape(&mut text)?,
                c if c == quote => break,
                c => text.push(c),
            }
        }
        self.json.push_str(&json::string(&text));
        Ok(())
    }

    fn escape(&mut self, text: &mut String) -> Result<(), String> {
        let Some(c) = self.rest.chars().next() else {
            return Err("a string ends with a backslash".to_owned());
        };
        self.skip(c.len_utf8());
        match c {
            'n' => text.push('\n'),
            't' => text.push('\t'),
            'r' => text.push('\r'),
            'b' => text.push('\u{8}'),
            'f' => text.push('\u{c}'),
            '0' => text.push('\0'),
            'x' => text.push(self.code(2)?),
            'u' => text.push(self.code(4)?),
            'U' => text.push(self.code(8)?),
            '\n' => {}
            '\'' | '"' | '\\' | '/' => text.push(c),
            // Python keeps the backslash of an unknown escape.
            other => text.extend(['\\', other]),
        }
        Ok(())
    }

    /// Reads the character of this many hexadecimal digits, or of a pair of surrogates.
    fn code(&mut self, digits: usize) -> Result<char, String> {
        let unit = |rest: &str| {
            let digits = rest.get(..digits)?;
            let are_digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            are_digits.then(|| u32::from_str_radix(digits, 16).ok())?
        };
        let code = unit(self.rest)
            .ok_or_else(|| self.expected(&format!("{digits} hexadecimal digits")))?;
        self.skip(digits);
        if (0xd800..0xdc00).contains(&code)
            && let Some(low) = self.rest.strip_prefix("\\u").and_then(unit)
            && (0xdc00..0xe000).contains(&low)
        {
            self.skip(2 + digits);
            let pair = 0x1_0000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            return Ok(char::from_u32(pair).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn word(&mut self) -> Result<(), String> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let word = self.rest.get(..end).unwrap_or_default();
        let json = match word {
            "True" | "true" => "true",
            "False" | "false" => "false",
            "None" | "null" => "null",
            number if serde_json::from_str::<serde_json::Number>(number).is_ok() => number,
            _ => return Err(self.expected("a value")),
        };
        self.json.push_str(json);
        self.skip(end);
        Ok(())
    }

    fn space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, c: char) -> bool {
        let found = self.rest.starts_with(c);
        if found {
            self.skip(c.len_utf8());
        }
        found
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    fn expected(&self, what: &str) -> String {
        match self.rest.chars().take(20).collect::<String>() {
            rest if rest.is_empty() => format!("{what} is expected at the end"),
            rest => format!("{what} is expected before {rest:?}"),
        }
    }
}
