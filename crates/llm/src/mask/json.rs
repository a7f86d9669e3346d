//! One JSON object, followed byte by byte.

/// Deeper values are not let in.
const DEEPEST: usize = 64;

/// Where in an object the next byte stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct JsonObject {
    /// What is open, outermost first.
    open: Vec<Kind>,
    expects: Expects,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Object,
    Array,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Expects {
    /// The brace that it begins with.
    Begin,
    KeyOrEnd,
    Key,
    Colon,
    Value,
    ValueOrEnd,
    CommaOrEnd,
    /// More of a string; whether it is a key.
    String(bool),
    Escape(bool),
    /// So many more hexadecimal digits.
    Hex(bool, u8),
    /// More of `true`, `false` or `null`.
    Word(&'static [u8]),
    Number(Digits),
}

/// Where in a number the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Digits {
    Minus,
    Zero,
    Whole,
    Point,
    Fraction,
    Exponent,
    Sign,
    Power,
}

/// What a byte leads to.
pub(super) enum JsonStep {
    Inside(JsonObject),
    /// It was the brace that ends the object.
    Ended,
}

impl JsonObject {
    pub(super) fn new() -> Self {
        Self { open: Vec::new(), expects: Expects::Begin }
    }

    /// Where a byte leads; `None` where JSON does not go on so.
    pub(super) fn step(mut self, byte: u8) -> Option<JsonStep> {
        if let Expects::Number(digits) = self.expects {
            match digits.step(byte) {
                Some(next) => return self.expect(Expects::Number(next)),
                None if digits.is_whole() => self.expects = Expects::CommaOrEnd,
                None => return None,
            }
        }
        let is_space = matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
        match (self.expects, byte) {
            (Expects::String(is_key), b'"') => self.expect(after_string(is_key)),
            (Expects::String(is_key), b'\\') => self.expect(Expects::Escape(is_key)),
            (Expects::String(_), 0x20..) => Some(JsonStep::Inside(self)),
            (Expects::Escape(is_key), b'u') => self.expect(Expects::Hex(is_key, 4)),
            (Expects::Escape(is_key), b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.expect(Expects::String(is_key))
            }
            (Expects::Hex(is_key, left), _) if byte.is_ascii_hexdigit() => match left {
                1 => self.expect(Expects::String(is_key)),
                _ => self.expect(Expects::Hex(is_key, left - 1)),
            },
            (Expects::Word(&[next, ref rest @ ..]), _) if byte == next => match rest {
                [] => self.expect(Expects::CommaOrEnd),
                _ => self.expect(Expects::Word(rest)),
            },
            (Expects::String(_) | Expects::Escape(_) | Expects::Hex(..) | Expects::Word(_), _) => {
                None
            }
            (Expects::Begin, b'{') => self.enter(Kind::Object),
            (Expects::Begin, _) => None,
            (_, _) if is_space => Some(JsonStep::Inside(self)),
            (Expects::KeyOrEnd | Expects::Key, b'"') => self.expect(Expects::String(true)),
            (Expects::Colon, b':') => self.expect(Expects::Value),
            (Expects::CommaOrEnd, b',') => match self.open.last()? {
                Kind::Object => self.expect(Expects::Key),
                Kind::Array => self.expect(Expects::Value),
            },
            (Expects::KeyOrEnd | Expects::CommaOrEnd, b'}') => self.leave(Kind::Object),
            (Expects::ValueOrEnd | Expects::CommaOrEnd, b']') => self.leave(Kind::Array),
            (Expects::Value | Expects::ValueOrEnd, _) => self.value(byte),
            _ => None,
        }
    }

    fn value(self, byte: u8) -> Option<JsonStep> {
        match byte {
            b'{' => self.enter(Kind::Object),
            b'[' => self.enter(Kind::Array),
            b'"' => self.expect(Expects::String(false)),
            b't' => self.expect(Expects::Word(b"rue")),
            b'f' => self.expect(Expects::Word(b"alse")),
            b'n' => self.expect(Expects::Word(b"ull")),
            b'-' => self.expect(Expects::Number(Digits::Minus)),
            b'0' => self.expect(Expects::Number(Digits::Zero)),
            b'1'..=b'9' => self.expect(Expects::Number(Digits::Whole)),
            _ => None,
        }
    }

    fn expect(mut self, expects: Expects) -> Option<JsonStep> {
        self.expects = expects;
        Some(JsonStep::Inside(self))
    }

    fn enter(mut self, kind: Kind) -> Option<JsonStep> {
        if self.open.len() >= DEEPEST {
            return None;
        }
        self.open.push(kind);
        self.expect(match kind {
            Kind::Object => Expects::KeyOrEnd,
            Kind::Array => Expects::ValueOrEnd,
        })
    }

    fn leave(mut self, kind: Kind) -> Option<JsonStep> {
        if self.open.pop() != Some(kind) {
            return None;
        }
        if self.open.is_empty() { Some(JsonStep::Ended) } else { self.expect(Expects::CommaOrEnd) }
    }
}

fn after_string(is_key: bool) -> Expects {
    if is_key { Expects::Colon } else { Expects::CommaOrEnd }
}

impl Digits {
    fn step(self, byte: u8) -> Option<Self> {
        match (self, byte) {
            (Self::Minus, b'0') => Some(Self::Zero),
            (Self::Minus, b'1'..=b'9') | (Self::Whole, b'0'..=b'9') => Some(Self::Whole),
            (Self::Zero | Self::Whole, b'.') => Some(Self::Point),
            (Self::Point | Self::Fraction, b'0'..=b'9') => Some(Self::Fraction),
            (Self::Zero | Self::Whole | Self::Fraction, b'e' | b'E') => Some(Self::Exponent),
            (Self::Exponent, b'+' | b'-') => Some(Self::Sign),
            (Self::Exponent | Self::Sign | Self::Power, b'0'..=b'9') => Some(Self::Power),
            _ => None,
        }
    }

    /// Whether a number may end here.
    fn is_whole(self) -> bool {
        matches!(self, Self::Zero | Self::Whole | Self::Fraction | Self::Power)
    }
}
