//! The text of a PDF, page by page.
//!
//! The file may be hostile: the unpacked size of its streams is limited, and so are its pages, its text
//! and the time; it is read on a thread of its own, and one that crashes or hangs affects nothing else.

mod pieces;

use crate::SkipReason;
use foldback::core::script::is_of_cjk_blocks;
use lopdf::content::{Content, Operation};
use lopdf::{Document, Encoding, LoadOptions, Object, ObjectId};
use std::collections::BTreeMap;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How long the parsing of a file may take.
const TIME: Duration = Duration::from_secs(20);

/// A file may unpack to this many times its size, and to the following number of bytes in any case.
const RATIO: usize = 100;
const RATIO_FROM: usize = 1 << 20;

/// How many bytes the unpacked content of a page may have.
const UNPACKED: usize = 32 << 20;

/// How many bytes an unpacked stream of objects, or a font's character map, may have: objects take many times as
/// much memory.
const OBJECTS: usize = 4 << 20;

/// How many pages are read.
const PAGES: usize = 5_000;

/// How much text is taken from all of them, in bytes.
const TEXT: usize = 16 << 20;

/// The nesting of objects is limited where they are read; this is room for that.
const STACK: usize = 16 << 20;

/// Returns the texts of the pages, in order; for a file that is too long, those of the first pages.
///
/// # Errors
/// When it is not a PDF, is locked, has no text, or takes too long.
pub(crate) fn pages(bytes: Vec<u8>) -> Result<Vec<String>, SkipReason> {
    let (done, pages) = mpsc::channel();
    let end = Instant::now() + TIME;
    // By the time it is done, nobody may be waiting for it.
    let read = move || drop(done.send(read(&bytes, end)));
    let thread = std::thread::Builder::new().name("pdf".to_owned()).stack_size(STACK).spawn(read);
    if thread.is_err() {
        return Err(SkipReason::Slow);
    }
    match pages.recv_timeout(TIME + Duration::from_secs(1)) {
        Ok(pages) => pages,
        Err(RecvTimeoutError::Timeout) => Err(SkipReason::Slow),
        // It crashed.
        Err(RecvTimeoutError::Disconnected) => Err(SkipReason::Damaged),
    }
}

fn read(bytes: &[u8], end: Instant) -> Result<Vec<String>, SkipReason> {
    let most = bytes.len().saturating_mul(RATIO).max(RATIO_FROM);
    let objects = Some(most.min(OBJECTS));
    let options = LoadOptions { max_decompressed_size: objects, ..LoadOptions::default() };
    let document = Document::load_mem_with_options(bytes, options);
    let is_locked = || bytes.windows(8).any(|name| name == b"/Encrypt");
    let document = document.map_err(|_| match is_locked() {
        true => SkipReason::Locked,
        false => SkipReason::Damaged,
    })?;
    if document.is_encrypted() {
        return Err(SkipReason::Locked);
    }
    let (mut texts, mut size) = (Vec::new(), 0);
    for page in document.page_iter().take(PAGES) {
        if Instant::now() >= end {
            return Err(SkipReason::Slow);
        }
        // A page that cannot be read is empty, so that the others keep their numbers.
        let text = page_text(&document, page, most, end).unwrap_or_default();
        size += text.len();
        texts.push(text);
        if size >= TEXT {
            break;
        }
    }
    match texts.iter().all(|text| text.trim().is_empty()) {
        // A locked file is not read at all.
        true if is_locked() => Err(SkipReason::Locked),
        true => Err(SkipReason::NoText),
        false => Ok(texts),
    }
}

/// Returns the text of a page whose content may unpack to this many bytes.
fn page_text(
    document: &Document,
    page: ObjectId,
    most: usize,
    end: Instant,
) -> lopdf::Result<String> {
    let fonts = document.get_page_fonts(page)?;
    let fonts = fonts.into_iter().filter_map(|(name, font)| {
        Some((name, font.get_font_encoding_with_limit(document, most.min(OBJECTS)).ok()?))
    });
    let bytes = document.get_page_content_with_limit(page, most.min(UNPACKED))?;
    let mut writer = Writer { fonts: fonts.collect(), font: None, text: String::new(), at: None };
    for piece in pieces::pieces(&bytes) {
        if Instant::now() >= end || writer.text.len() >= TEXT {
            break;
        }
        let Ok(content) = Content::decode(piece) else { continue };
        content.operations.iter().for_each(|operation| writer.take(operation));
    }
    Ok(writer.text)
}

/// The text of a page: a new line for each vertical move, a space for each horizontal move.
struct Writer<'d> {
    fonts: BTreeMap<Vec<u8>, Encoding<'d>>,
    /// The name of the current font.
    font: Option<Vec<u8>>,
    text: String,
    /// The place that the last text matrix set.
    at: Option<(f32, f32)>,
}

/// A gap of more than this many thousandths of the font's size separates words.
const GAP: f32 = -180.0;

impl Writer<'_> {
    fn take(&mut self, operation: &Operation) {
        let operands = &operation.operands;
        let number = |at: usize| operands.get(at).and_then(|number| number.as_float().ok());
        match operation.operator.as_str() {
            "Tf" => {
                let name = operands.first().and_then(|name| name.as_name().ok());
                self.font = name.map(<[u8]>::to_vec);
            }
            "Tj" | "TJ" => operands.iter().for_each(|shown| self.show(shown)),
            "'" => {
                self.line();
                operands.iter().for_each(|shown| self.show(shown));
            }
            "\"" => {
                self.line();
                operands.iter().skip(2).for_each(|shown| self.show(shown));
            }
            "Td" | "TD" if number(1).is_some_and(|down| down != 0.0) => self.line(),
            "Td" | "TD" => self.space(),
            "Tm" => {
                let at = number(4).zip(number(5));
                match (self.at, at) {
                    (Some((_, before)), Some((_, now))) if (before - now).abs() > 0.5 => {
                        self.line();
                    }
                    (Some((before, _)), Some((now, _))) if (before - now).abs() > 0.5 => {
                        self.space();
                    }
                    _ => {}
                }
                self.at = at;
            }
            "T*" | "ET" => self.line(),
            _ => {}
        }
    }

    fn show(&mut self, shown: &Object) {
        match shown {
            Object::String(bytes, _) => {
                let font = self.font.as_deref().and_then(|font| self.fonts.get(font));
                let Some(Ok(text)) = font.map(|font| Document::decode_text(font, bytes)) else {
                    return;
                };
                let is_shown = |c: &char| !c.is_control() || c.is_whitespace();
                self.text.extend(text.chars().filter(is_shown));
            }
            // Shown arrays are not nested.
            Object::Array(parts) => {
                for part in parts {
                    match part {
                        Object::String(..) => self.show(part),
                        part if part.as_float().is_ok_and(|by| by < GAP) => self.space(),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }

    fn line(&mut self) {
        let kept = self.text.trim_end_matches(' ').len();
        self.text.truncate(kept);
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    /// In scripts without spaces between words, none is meant.
    fn space(&mut self) {
        let last = self.text.chars().next_back();
        if last.is_some_and(|last| !last.is_whitespace() && !is_of_cjk_blocks(last)) {
            self.text.push(' ');
        }
    }
}
