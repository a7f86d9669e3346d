//! The file: a template, its style and script, and the data of the conversations. It loads nothing.

use super::Picture;
use crate::error::CliError;
use crate::outfile;
use crate::replay::{Report, rivals};
use serde::Serialize;
use std::path::{Path, PathBuf};

const TEMPLATE: &str = include_str!("page/index.html");
pub(super) const STYLE: &str = include_str!("page/style.css");

/// The data of the file, before the scripts, and their start, after them.
const DATA: &str = include_str!("page/data.js");
const START: &str = include_str!("page/start.js");

/// The scripts, in this order, in one scope. The inspector's page of a session has them, too.
pub(super) const SCRIPTS: [&str; 9] = [
    include_str!("page/element.js"),
    include_str!("page/terms.js"),
    include_str!("page/session.js"),
    include_str!("page/head.js"),
    include_str!("page/chart.js"),
    include_str!("page/blocks.js"),
    include_str!("page/views.js"),
    include_str!("page/outside.js"),
    include_str!("page/main.js"),
];

/// Collects conversations, and writes the file.
pub(crate) struct Page {
    entries: Vec<Entry>,
    pictures: Vec<String>,
    bytes: usize,
}

/// A conversation in the page's index.
#[derive(Serialize)]
struct Entry {
    /// The number of its picture; `null` if only its figures are here.
    picture: Option<usize>,
    report: Report,
}

#[derive(Serialize)]
struct Index<'a> {
    version: &'static str,
    /// The policies that foldback is compared with, in the order of each call's numbers.
    policies: Vec<Policy>,
    /// Further conversations are not drawn.
    pictures_most: usize,
    entries: &'a [Entry],
}

#[derive(Serialize)]
struct Policy {
    name: &'static str,
    title: &'static str,
    about: &'static str,
}

impl Page {
    /// The most conversations that are drawn; for the others the page has only the figures.
    pub(crate) const PICTURES_MOST: usize = 50;

    /// The most bytes of all pictures together, not counting the first.
    const BYTES_MOST: usize = 40_000_000;

    pub(crate) fn new() -> Self {
        Self { entries: Vec::new(), pictures: Vec::new(), bytes: 0 }
    }

    /// Whether another conversation could be drawn.
    pub(crate) fn has_room(&self) -> bool {
        self.pictures.len() < Self::PICTURES_MOST && self.bytes < Self::BYTES_MOST
    }

    /// Adds the next conversation, with its picture if it has one.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub(crate) fn push(
        &mut self,
        report: Report,
        picture: Option<Picture>,
    ) -> Result<(), CliError> {
        let json = picture.map(|picture| embedded(&picture)).transpose()?;
        let fits = |json: &String| {
            self.pictures.is_empty()
                || (self.has_room() && self.bytes + json.len() <= Self::BYTES_MOST)
        };
        let json = json.filter(fits);
        let picture = json.as_ref().map(|_| self.pictures.len());
        self.bytes += json.as_ref().map_or(0, String::len);
        self.pictures.extend(json);
        self.entries.push(Entry { picture, report });
        Ok(())
    }

    /// Returns the whole file.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub(crate) fn html(&self) -> Result<String, CliError> {
        let mut data = script("data-index", &self.index()?);
        for (at, picture) in self.pictures.iter().enumerate() {
            data.push_str(&script(&format!("data-picture-{at}"), picture));
        }
        let title = match self.entries.as_slice() {
            [only] => format!("{} · foldback", only.report.id),
            many => format!("{} conversations · foldback", many.len()),
        };
        let scripts = SCRIPTS.concat();
        let code = format!("(() => {{\n\"use strict\";\n{DATA}{scripts}{START}}})();\n");
        Ok(filled(&[
            ("<!--title-->", &escaped(&title)),
            ("/*style*/", STYLE),
            ("<!--data-->", &data),
            ("/*script*/", &code),
        ]))
    }

    /// Returns the index as JSON that can be put into a script element.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub(super) fn index(&self) -> Result<String, CliError> {
        let policies = rivals().map(|baseline| Policy {
            name: baseline.name,
            title: baseline.title,
            about: baseline.about,
        });
        embedded(&Index {
            version: env!("CARGO_PKG_VERSION"),
            policies: policies.collect(),
            pictures_most: Self::PICTURES_MOST,
            entries: &self.entries,
        })
    }

    /// Takes its pictures, as JSON that can be put into a script element.
    pub(super) fn into_pictures(self) -> Vec<String> {
        self.pictures
    }

    /// Writes the file, whole or not at all, and returns its size in bytes.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn write(&self, path: &Path) -> Result<u64, CliError> {
        let html = self.html()?;
        outfile::write(path, |file| {
            let written = file.write_all(html.as_bytes());
            written.map_err(|source| cannot_write(path, source))
        })?;
        Ok(html.len() as u64)
    }
}

/// Checks before any work that there is a folder to write the file into.
///
/// # Errors
/// When there is none, or a folder has the name of the file.
pub(crate) fn can_be_written(path: &Path) -> Result<(), CliError> {
    if path.is_dir() || path.file_name().is_none() {
        let what = format!("--report names a file to write, but {} is not one", path.display());
        return Err(CliError::Usage(what));
    }
    match std::fs::metadata(folder(path)) {
        Ok(meta) if meta.is_dir() => Ok(()),
        Ok(_) => Err(cannot_write(path, std::io::ErrorKind::NotADirectory.into())),
        Err(error) => Err(cannot_write(path, error)),
    }
}

fn folder(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

fn cannot_write(path: &Path, source: std::io::Error) -> CliError {
    CliError::Io { what: format!("{} could not be written", path.display()), source }
}

/// Fills each gap of the template. A gap occurs once, and its content is not scanned again.
fn filled(gaps: &[(&str, &str)]) -> String {
    let mut out = String::new();
    let mut rest = TEMPLATE;
    for (gap, text) in gaps {
        let (before, behind) = rest.split_once(gap).unwrap_or((rest, ""));
        out.push_str(before);
        out.push_str(text);
        rest = behind;
    }
    out.push_str(rest);
    out
}

fn script(id: &str, json: &str) -> String {
    format!("<script type=\"application/json\" id=\"{id}\">{json}</script>\n")
}

/// JSON that can be put into a script element: nothing in it ends the element or begins a comment.
fn embedded(value: &impl Serialize) -> Result<String, CliError> {
    let json = serde_json::to_string(value)
        .map_err(|error| CliError::Usage(format!("this cannot be put into a page: {error}")))?;
    // Outside strings JSON has none of these.
    Ok(json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029"))
}

/// A text as HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_gap_of_the_template_is_filled_in_its_order() {
        let html = Page::new().html().unwrap();
        for gap in ["<!--title-->", "/*style*/", "<!--data-->", "/*script*/"] {
            assert_eq!(TEMPLATE.matches(gap).count(), 1, "{gap}");
            assert!(!html.contains(gap), "{gap}");
        }
        assert!(html.ends_with("</html>\n"), "the template is there to its end");
    }

    #[test]
    fn nothing_ends_a_script_early() {
        let json = embedded(&"</script><!-- <b>数</b> \u{2028}").unwrap();
        assert!(!json.contains('<') && !json.contains('\u{2028}'), "{json}");
        let read: String = serde_json::from_str(&json).unwrap();
        assert_eq!(read, "</script><!-- <b>数</b> \u{2028}");
        assert_eq!(escaped("<a & b>"), "&lt;a &amp; b&gt;");
    }
}
