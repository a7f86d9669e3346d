//! Reads an answer while it is being written.

use super::prose::{self, Located};
use super::{ExecuteTools, lower, places::Places};
use crate::{Catalog, Finding, FindingKind, ParseError};

/// So many closing tags that turn out to be part of a body are tried while the text comes in; each
/// costs a look at all of it. Behind them the block comes out at the end of the text.
const TRIES_MOST: usize = 32;

/// Reads an answer while it is being written: [`push`](Self::push) takes the next part of the text, of
/// any length, and gives the block as soon as it has closed, so that the rest need not be waited for.
#[derive(Debug)]
pub struct ExecuteToolsReader<'c> {
    catalog: &'c Catalog,
    text: String,
    closing: Closing,
    tries: usize,
    is_found: bool,
}

/// What came out of a text.
#[derive(Clone, Debug, PartialEq)]
pub enum ExecuteToolsEvent {
    /// The first block outside of code fences has closed.
    Block(ExecuteTools),
    /// It cannot be read.
    Failed(ParseError),
}

impl<'c> ExecuteToolsReader<'c> {
    /// A reader that has read nothing.
    #[must_use]
    pub fn new(catalog: &'c Catalog) -> Self {
        Self {
            catalog,
            text: String::new(),
            closing: Closing::default(),
            tries: 0,
            is_found: false,
        }
    }

    /// Takes the next part of the text. What all calls together give does not depend on how the text
    /// was cut.
    pub fn push(&mut self, text: &str) -> Vec<ExecuteToolsEvent> {
        let before = self.text.len();
        self.text.push_str(text);
        let mut events = Vec::new();
        for (at, c) in text.char_indices() {
            if self.is_found || self.tries == TRIES_MOST {
                break;
            }
            if self.closing.ends_with(c) {
                self.tries += 1;
                events.extend(self.block_before(before + at + c.len_utf8()));
                self.is_found = !events.is_empty();
            }
        }
        events
    }

    /// What the text up to a closing tag comes to, if anything for sure.
    fn block_before(&self, end: usize) -> Option<ExecuteToolsEvent> {
        let text = &self.text[..end];
        let located = prose::blocks(text).into_iter().find(|block| !block.is_fenced)?;
        match located.block {
            Err(unread) if unread.is_open => None,
            Err(unread) => Some(ExecuteToolsEvent::Failed(unread.into())),
            Ok(block) => {
                let read = lower::lower(text, located.at, block, self.catalog);
                Some(ExecuteToolsEvent::Block(read))
            }
        }
    }

    /// The end of the text. A block outside of code fences counts before one inside; a second one is
    /// an error among the findings.
    ///
    /// # Errors
    /// [`ParseError::NoPlan`] when there is no block in the text; others when it breaks off, or when it
    /// cannot be said where a call ends.
    pub fn finish(self) -> Result<ExecuteTools, ParseError> {
        let text = self.text.as_str();
        let mut blocks = prose::blocks(text);
        let bare = blocks.iter().filter(|block| !block.is_fenced).count();
        let mut examples = Vec::new();
        if bare > 0 {
            blocks.retain(|block| {
                if block.is_fenced {
                    examples.push(block.at);
                }
                !block.is_fenced
            });
        }
        let mut blocks = blocks.into_iter();
        let Some(Located { at, block, .. }) = blocks.next() else {
            return Err(ParseError::NoPlan {
                expected: "`<execute_tools>` with calls `<server><tool>..</tool></server>`",
            });
        };
        let mut read = lower::lower(text, at, block?, self.catalog);
        let mut places = Places::new(text);
        for example in examples {
            let message = "the block in a code fence was taken for an example";
            let finding = Finding::of_plan(FindingKind::Leniency, message);
            read.findings.push(finding.at(places.of(example)));
        }
        for Located { at, .. } in blocks {
            let message = "there is a second block in the text; expected one that holds all calls";
            let finding = Finding::of_plan(FindingKind::Syntax, message);
            read.findings.push(finding.at(places.of(at)));
        }
        Ok(read)
    }
}

/// Looks for the closing tag of a block, whether it is one or part of a body; each character once.
#[derive(Debug, Default)]
struct Closing {
    /// How much of [`Self::TAG`] has come, in bytes.
    matched: usize,
}

impl Closing {
    /// Before the `>`; space may stand between.
    const TAG: &str = "</execute_tools";

    /// Whether a closing tag ends with the next character.
    fn ends_with(&mut self, c: char) -> bool {
        let left = &Self::TAG[self.matched..];
        if left.starts_with(c) {
            self.matched += c.len_utf8();
        } else if !left.is_empty() || !c.is_whitespace() {
            // The tag begins with the only `<` in it.
            self.matched = usize::from(c == '<');
            return left.is_empty() && c == '>';
        }
        false
    }
}
