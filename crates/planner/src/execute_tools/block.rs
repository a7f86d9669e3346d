//! The structure of one block: groups, calls, and where the body of a call ends.

use crate::json::DEPTH_MOST;
use crate::{ParseError, Position, excerpt};

/// The tag of a block.
pub(super) const BLOCK: &str = "execute_tools";

/// A block as it was written.
#[derive(Debug)]
pub(super) struct Block<'a> {
    /// Its items.
    pub(super) root: Group<'a>,
    /// Skipped text: its position and content.
    pub(super) strays: Vec<(usize, &'a str)>,
    /// The offset of the byte after its closing tag.
    pub(super) end: usize,
}

/// Items that run in parallel or in sequence.
#[derive(Debug)]
pub(super) struct Group<'a> {
    pub(super) kind: GroupKind,
    /// Its opening tag.
    at: usize,
    pub(super) items: Vec<Item<'a>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupKind {
    /// The block itself.
    Block,
    Parallel,
    Sequential,
}

#[derive(Debug)]
pub(super) enum Item<'a> {
    Group(Group<'a>),
    Call(Call<'a>),
}

/// `<server><tool>body</tool></server>`.
#[derive(Debug)]
pub(super) struct Call<'a> {
    /// Its opening tag.
    pub(super) at: usize,
    pub(super) server: &'a str,
    pub(super) tool: &'a str,
    /// The body as it was written.
    pub(super) body: &'a str,
}

impl GroupKind {
    const fn tag(self) -> &'static str {
        match self {
            Self::Block => BLOCK,
            Self::Parallel => "parallel",
            Self::Sequential => "sequential",
        }
    }

    fn of(tag: &str) -> Option<Self> {
        [Self::Block, Self::Parallel, Self::Sequential].into_iter().find(|kind| kind.tag() == tag)
    }
}

/// Why a block cannot be read. Lines are counted only if the error is used.
#[derive(Debug)]
pub(super) struct Unread<'a> {
    text: &'a str,
    at: usize,
    fault: Fault<'a>,
}

#[derive(Debug)]
enum Fault<'a> {
    /// The text ends inside a group, and perhaps inside a call of a server.
    Truncated {
        group: (GroupKind, usize),
        call: Option<(&'a str, usize)>,
    },
    Syntax {
        found: String,
        expected: String,
    },
    TooDeep,
}

impl<'a> Unread<'a> {
    fn truncated(text: &'a str, group: &Group<'_>, call: Option<(&'a str, usize)>) -> Self {
        let fault = Fault::Truncated { group: (group.kind, group.at), call };
        Self { text, at: text.len(), fault }
    }

    fn syntax(text: &'a str, at: usize, found: String, expected: String) -> Self {
        Self { text, at, fault: Fault::Syntax { found, expected } }
    }
}

impl From<Unread<'_>> for ParseError {
    fn from(unread: Unread<'_>) -> Self {
        let place = |at| Position::of(unread.text, at);
        let at = place(unread.at);
        match unread.fault {
            Fault::Truncated { group: (kind, opening), call } => {
                let group = format!("`<{}>` ({})", kind.tag(), place(opening));
                let open = match call {
                    Some((server, opening)) => {
                        format!("`<{server}>` ({}) in {group}", place(opening))
                    }
                    None => group,
                };
                Self::Truncated { at, open }
            }
            Fault::Syntax { found, expected } => Self::Syntax { at, found, expected },
            Fault::TooDeep => Self::TooDeep { at, most: DEPTH_MOST },
        }
    }
}

/// Reads a block whose opening tag is at `at`.
pub(super) fn read(text: &str, at: usize) -> Result<Block<'_>, Unread<'_>> {
    let mut cursor = Cursor { text, at };
    cursor.tag();
    let mut group = Group { kind: GroupKind::Block, at, items: Vec::new() };
    let mut outer: Vec<Group<'_>> = Vec::new();
    let mut strays = Vec::new();
    loop {
        if let Some(stray) = cursor.skip_to_tag(&group)? {
            strays.push(stray);
        }
        let tag_at = cursor.at;
        let Some(tag) = cursor.tag() else { return Err(Unread::truncated(text, &group, None)) };
        match (tag, GroupKind::of(tag.name())) {
            (Tag::Close(_), Some(kind)) if kind == group.kind => match outer.pop() {
                Some(parent) => {
                    let closed = std::mem::replace(&mut group, parent);
                    group.items.push(Item::Group(closed));
                }
                None => return Ok(Block { root: group, strays, end: cursor.at }),
            },
            (Tag::Close(name), _) => {
                let found = format!("`</{name}>`");
                let expected = format!("a call or `</{}>`", group.kind.tag());
                return Err(Unread::syntax(text, tag_at, found, expected));
            }
            (Tag::Open(_), Some(kind @ (GroupKind::Parallel | GroupKind::Sequential))) => {
                if outer.len() + 1 == DEPTH_MOST {
                    return Err(Unread { text, at: tag_at, fault: Fault::TooDeep });
                }
                let inner = Group { kind, at: tag_at, items: Vec::new() };
                outer.push(std::mem::replace(&mut group, inner));
            }
            (Tag::Empty(_), Some(GroupKind::Parallel | GroupKind::Sequential)) => {}
            (Tag::Open(server), None) => {
                let call = cursor.call(tag_at, server, &group)?;
                group.items.push(Item::Call(call));
            }
            (Tag::Open(name) | Tag::Empty(name), _) => {
                let expected = "`<server><tool>..</tool></server>`".to_owned();
                return Err(Unread::syntax(text, tag_at, format!("`<{name}>`"), expected));
            }
        }
    }
}

/// A tag; attributes are skipped.
#[derive(Clone, Copy)]
enum Tag<'a> {
    Open(&'a str),
    Close(&'a str),
    /// `<name/>`
    Empty(&'a str),
}

impl<'a> Tag<'a> {
    fn name(self) -> &'a str {
        match self {
            Self::Open(name) | Self::Close(name) | Self::Empty(name) => name,
        }
    }
}

/// A scanner that walks through the text.
#[derive(Clone, Copy)]
struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Skips white space and comments. `None` means that a comment does not end.
    fn skip_space(&mut self) -> Option<()> {
        loop {
            self.skip_blanks();
            if !self.rest().starts_with("<!--") {
                return Some(());
            }
            self.at += self.rest().find("-->")? + 3;
        }
    }

    /// Advances to the next tag and returns the text on the way.
    fn skip_to_tag(&mut self, group: &Group<'_>) -> Result<Option<(usize, &'a str)>, Unread<'a>> {
        let mut stray: Option<(usize, usize)> = None;
        loop {
            if self.skip_space().is_none() {
                return Err(Unread::truncated(self.text, group, None));
            }
            if self.rest().is_empty() || self.is_at_tag() {
                return Ok(stray.map(|(from, to)| (from, &self.text[from..to])));
            }
            let from = stray.map_or(self.at, |(from, _)| from);
            let length = self.rest().char_indices().skip(1).find(|(_, c)| *c == '<');
            self.at += length.map_or(self.rest().len(), |(at, _)| at);
            stray = Some((from, self.at));
        }
    }

    fn is_at_tag(mut self) -> bool {
        self.tag().is_some()
    }

    /// Advances past a tag, if there is one here.
    fn tag(&mut self) -> Option<Tag<'a>> {
        let inside = self.rest().strip_prefix('<')?;
        let (is_close, inside) = match inside.strip_prefix('/') {
            Some(inside) => (true, inside),
            None => (false, inside),
        };
        let length = inside.find(|c| !is_name(c)).unwrap_or(inside.len());
        let (name, attributes) = inside.split_at(length);
        if !name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            return None;
        }
        let end = attributes.find(['>', '<'])?;
        let (attributes, behind) = attributes.split_at(end);
        let behind = behind.strip_prefix('>')?;
        let bare = attributes.trim_end().strip_suffix('/').unwrap_or(attributes);
        if !bare.is_empty() && !bare.starts_with(char::is_whitespace) {
            return None;
        }
        self.at = self.text.len() - behind.len();
        Some(match (is_close, attributes.trim_end().ends_with('/')) {
            (true, _) => Tag::Close(name),
            (false, true) => Tag::Empty(name),
            (false, false) => Tag::Open(name),
        })
    }

    /// Reads a call after the opening tag of its server.
    fn call(
        &mut self,
        at: usize,
        server: &'a str,
        group: &Group<'_>,
    ) -> Result<Call<'a>, Unread<'a>> {
        let text = self.text;
        let truncated = || Unread::truncated(text, group, Some((server, at)));
        if self.skip_space().is_none() {
            return Err(truncated());
        }
        let tool_at = self.at;
        let (tool, is_empty) = match self.tag() {
            Some(Tag::Open(tool)) if GroupKind::of(tool).is_none() => (tool, false),
            Some(Tag::Empty(tool)) if GroupKind::of(tool).is_none() => (tool, true),
            // A tag may have been cut off.
            None if self.rest().is_empty()
                || (self.rest().starts_with('<') && !self.rest().contains('>')) =>
            {
                return Err(truncated());
            }
            _ => {
                let found = format!("`{}`", excerpt::of(&text[tool_at..]));
                let expected = format!("the tag of a tool inside `<{server}>`");
                return Err(Unread::syntax(text, tool_at, found, expected));
            }
        };
        let from = self.at;
        if is_empty {
            return match self.server_end(server) {
                Some(()) => Ok(Call { at, server, tool, body: "" }),
                None if self.rest().trim_start().is_empty() => Err(truncated()),
                None => Err(Unread::syntax(
                    text,
                    self.at,
                    format!("`{}`", excerpt::of(self.rest().trim_start())),
                    format!("`</{server}>`"),
                )),
            };
        }
        // The positions at which calls of the same tool, quoted by the body, begin.
        let mut quoted: Vec<usize> = Vec::new();
        // The last such call that took a closing tag: where it begins, and where that tag ends.
        let mut closed: Option<(usize, usize)> = None;
        while let Some(next) = self.rest().find('<') {
            self.at += next;
            let tag_at = self.at;
            if let Some(data) = self.rest().strip_prefix("<![CDATA[") {
                let Some(length) = data.find("]]>") else { return Err(truncated()) };
                self.at = text.len() - data.len() + length + 3;
                continue;
            }
            match self.tag() {
                Some(Tag::Open(name)) if name == server => {
                    let mut inner = *self;
                    inner.skip_blanks();
                    if matches!(inner.tag(), Some(Tag::Open(name)) if name == tool) {
                        quoted.push(tag_at);
                        *self = inner;
                    }
                }
                Some(Tag::Close(name)) if name == tool && self.server_end(server).is_some() => {
                    if let Some(opening) = quoted.pop() {
                        closed = Some((opening, self.at));
                        continue;
                    }
                    self.check_behind(tool, server)?;
                    return Ok(Call { at, server, tool, body: &text[from..tag_at] });
                }
                Some(_) => {}
                None => self.at += 1,
            }
        }
        match closed.filter(|(_, end)| is_block_end_behind(&text[*end..])) {
            Some((opening, _)) => Err(self.unbalanced(opening, tool, server)),
            None => Err(truncated()),
        }
    }

    /// Returns the error for a body that contains an opening tag without its closing tags.
    fn unbalanced(&self, opening: usize, tool: &str, server: &str) -> Unread<'a> {
        let found = format!(
            "`<{server}><{tool}>` inside the body of such a call; the `</{tool}></{server}>` after it \
             was taken for its end, so the call itself has none"
        );
        let expected = "both tags or none; a body that contains its own tags is written in \
                        `<![CDATA[..]]>`";
        Unread::syntax(self.text, opening, found, expected.to_owned())
    }

    /// Advances past the closing tag of a server, if it is next.
    fn server_end(&mut self, server: &str) -> Option<()> {
        let mut cursor = *self;
        cursor.skip_blanks();
        match cursor.tag() {
            Some(Tag::Close(name)) if name == server => {
                *self = cursor;
                Some(())
            }
            _ => None,
        }
    }

    /// After a call the structure continues, or the text ends.
    fn check_behind(&self, tool: &str, server: &str) -> Result<(), Unread<'a>> {
        let mut cursor = *self;
        if cursor.skip_space().is_none() || cursor.rest().is_empty() {
            return Ok(());
        }
        // A truncated tag counts: the block is reported as truncated then.
        let is_cut = cursor.rest().starts_with('<') && !cursor.rest().contains('>');
        if is_cut || cursor.is_at_tag() {
            return Ok(());
        }
        let found = format!(
            "text after `</{tool}></{server}>`: `{}`; it is not certain that the call ends there",
            excerpt::of(cursor.rest())
        );
        let expected = "the next tag; a body that contains its own closing tags is written in \
                        `<![CDATA[..]]>`";
        Err(Unread::syntax(self.text, cursor.at, found, expected.to_owned()))
    }
}

/// Returns whether a block definitely ends in a text: the last of its closing tags is followed by white
/// space or by nothing.
fn is_block_end_behind(text: &str) -> bool {
    let closing = "</execute_tools>";
    text.rfind(closing).is_some_and(|at| {
        let behind = &text[at + closing.len()..];
        behind.is_empty() || behind.starts_with(char::is_whitespace)
    })
}

/// Returns whether a character may occur in the name of a tag.
pub(super) fn is_name(c: char) -> bool {
    !c.is_whitespace() && !c.is_control() && !"<>/\"'=&`!?,;(){}[]|\\".contains(c)
}
