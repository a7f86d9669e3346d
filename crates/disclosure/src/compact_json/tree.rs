//! A JSON value as a tree of the exact pieces of its text.

/// A value that is nested deeper is left as it is.
const DEPTH_MOST: usize = 64;

/// A JSON value; values without parts, and keys, are their exact text, with quotes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node<'t> {
    Scalar(&'t str),
    Array(Vec<Node<'t>>),
    Object(Vec<(&'t str, Node<'t>)>),
}

impl<'t> Node<'t> {
    /// Reads `json`, which a parser accepted as one value. `None` if it is nested too deeply.
    pub(super) fn read(json: &'t str) -> Option<Self> {
        Reader { json, at: 0 }.value(0)
    }

    pub(super) fn members(&self) -> Option<&[(&'t str, Node<'t>)]> {
        match self {
            Self::Object(members) => Some(members),
            Self::Scalar(_) | Self::Array(_) => None,
        }
    }

    pub(super) fn items(&self) -> Option<&[Node<'t>]> {
        match self {
            Self::Array(items) => Some(items),
            Self::Scalar(_) | Self::Object(_) => None,
        }
    }
}

struct Reader<'t> {
    json: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    fn value(&mut self, depth: usize) -> Option<Node<'t>> {
        if depth > DEPTH_MOST {
            return None;
        }
        match self.peek()? {
            b'[' => {
                let mut items = Vec::new();
                self.at += 1;
                while self.goes_on(b']')? {
                    items.push(self.value(depth + 1)?);
                }
                Some(Node::Array(items))
            }
            b'{' => {
                let mut members = Vec::new();
                self.at += 1;
                while self.goes_on(b'}')? {
                    let key = self.string()?;
                    self.peek().filter(|byte| *byte == b':')?;
                    self.at += 1;
                    members.push((key, self.value(depth + 1)?));
                }
                Some(Node::Object(members))
            }
            b'"' => self.string().map(Node::Scalar),
            _ => {
                let rest = self.json.get(self.at..)?;
                let ends = |c: char| matches!(c, ',' | ']' | '}') || c.is_ascii_whitespace();
                let end = rest.find(ends).unwrap_or(rest.len());
                self.at += end;
                rest.get(..end).filter(|scalar| !scalar.is_empty()).map(Node::Scalar)
            }
        }
    }

    /// Returns whether another part follows before `end`, and passes `end` if not.
    fn goes_on(&mut self, end: u8) -> Option<bool> {
        if self.peek()? == b',' {
            self.at += 1;
        }
        let is_end = self.peek()? == end;
        self.at += usize::from(is_end);
        Some(!is_end)
    }

    /// Returns a string with its quotes.
    fn string(&mut self) -> Option<&'t str> {
        self.peek().filter(|byte| *byte == b'"')?;
        let bytes = self.json.as_bytes();
        let mut end = self.at + 1;
        while *bytes.get(end)? != b'"' {
            end += if bytes.get(end) == Some(&b'\\') { 2 } else { 1 };
        }
        let string = self.json.get(self.at..=end)?;
        self.at = end + 1;
        Some(string)
    }

    /// Returns the next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        while self.json.as_bytes().get(self.at)?.is_ascii_whitespace() {
            self.at += 1;
        }
        self.json.as_bytes().get(self.at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_keep_their_text() {
        let node = Node::read(" {\"a\\\"\" : [1.50, -0e1 , \"x, ]\\\\\"],\n\"表\":{} }").unwrap();
        let numbers = ["1.50", "-0e1", "\"x, ]\\\\\""].map(Node::Scalar).to_vec();
        let members = vec![("\"a\\\"\"", Node::Array(numbers)), ("\"表\"", Node::Object(vec![]))];
        assert_eq!(node, Node::Object(members));
        let deep = "[".repeat(DEPTH_MOST + 2) + &"]".repeat(DEPTH_MOST + 2);
        assert_eq!(Node::read(&deep), None);
        assert!(Node::read(&deep[2..deep.len() - 2]).is_some());
    }
}
