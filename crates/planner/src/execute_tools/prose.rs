//! Finds blocks in an answer.

use super::block::{self, BLOCK, Block, GroupKind, Item, Unread};

/// A block in an answer.
#[derive(Debug)]
pub(super) struct Located<'a> {
    /// Its opening tag.
    pub(super) at: usize,
    pub(super) is_fenced: bool,
    pub(super) block: Result<Block<'a>, Unread<'a>>,
}

/// Returns all blocks of an answer, up to the first one outside code fences that cannot be read. The
/// text is read once, however many there are.
pub(super) fn blocks(text: &str) -> Vec<Located<'_>> {
    let mut located = Vec::new();
    let mut fences = Fences { text, at: 0, open: None };
    let mut from = 0;
    // The end of the last fence that was sought, and the first opening tag after it.
    let mut fence_end = 0;
    let mut most = 0;
    while let Some(at) = opening(text, from) {
        fences.walk_to(at);
        let is_fenced = fences.open.is_some();
        from = at + BLOCK.len() + 1;
        if is_mention(text, at) {
            continue;
        }
        // A block may contain lines that look like the end of its fence. It is read beyond them, up to
        // the beginning of another block; the search resumes there if this one is broken.
        if is_fenced && fence_end <= at {
            fence_end = fences.end();
            most = opening(text, fence_end).unwrap_or(text.len());
        }
        let block = block::read(if is_fenced { &text[..most] } else { text }, at);
        match &block {
            Ok(block) => {
                from = block.end;
                // Tags around text without a call are only a mention; tags with nothing between them
                // are a block.
                if !block.strays.is_empty() && !holds_call(&block.root.items) {
                    continue;
                }
                fences.skip_to(from);
            }
            Err(_) if is_fenced => from = fence_end,
            Err(_) => {}
        }
        let is_over = block.is_err() && !is_fenced;
        located.push(Located { at, is_fenced, block });
        if is_over {
            break;
        }
    }
    located
}

/// Returns the next opening tag of a block.
fn opening(text: &str, mut from: usize) -> Option<usize> {
    loop {
        let at = from + text.get(from..)?.find("<execute_tools")?;
        let behind = at + 1 + BLOCK.len();
        if !text[behind..].starts_with(block::is_name) {
            return Some(at);
        }
        from = behind;
    }
}

/// Returns whether a tag only mentions blocks: it is directly after a backtick, or followed by text and
/// not closed before the next one.
fn is_mention(text: &str, at: usize) -> bool {
    if text[..at].ends_with('`') {
        return true;
    }
    let behind = &text[at + 1..];
    let Some(end) = behind.find(['>', '<']).filter(|end| behind[*end..].starts_with('>')) else {
        return false;
    };
    let behind = behind[end + 1..].trim_start();
    if behind.is_empty() || behind.starts_with('<') {
        return false;
    }
    let until = behind.find("<execute_tools").unwrap_or(behind.len());
    !behind[..until].contains("</execute_tools")
}

fn holds_call(items: &[Item<'_>]) -> bool {
    items.iter().any(|item| match item {
        Item::Call(_) => true,
        Item::Group(group) => group.kind != GroupKind::Block && holds_call(&group.items),
    })
}

/// A tracker of Markdown code fences: three backticks or tildes at the beginning of a line.
#[derive(Clone, Copy)]
struct Fences<'a> {
    text: &'a str,
    /// The lines that begin before this offset have been read.
    at: usize,
    /// The character and the length of the open fence.
    open: Option<(char, usize)>,
}

impl Fences<'_> {
    /// Reads the lines that begin before `to`.
    fn walk_to(&mut self, to: usize) {
        while self.at < to {
            self.take_line();
        }
    }

    /// Resumes after a place; the line that contains it is not a fence.
    fn skip_to(&mut self, to: usize) {
        if self.at <= to {
            self.at = self.text[to..].find('\n').map_or(self.text.len(), |at| to + at + 1);
        }
    }

    /// Returns the place after the open fence.
    fn end(mut self) -> usize {
        while self.open.is_some() && self.at < self.text.len() {
            self.take_line();
        }
        self.at
    }

    fn take_line(&mut self) {
        let rest = &self.text[self.at..];
        let length = rest.find('\n').map_or(rest.len(), |at| at + 1);
        let line = rest[..length].trim();
        self.at += length;
        let Some(mark) = line.chars().next().filter(|c| matches!(c, '`' | '~')) else { return };
        let run = line.chars().take_while(|c| *c == mark).count();
        // Fence characters are one byte long.
        let behind = &line[run..];
        match self.open {
            Some((open, length)) if open == mark && run >= length && behind.is_empty() => {
                self.open = None;
            }
            None if run >= 3 && !behind.contains('`') => self.open = Some((mark, run)),
            _ => {}
        }
    }
}
