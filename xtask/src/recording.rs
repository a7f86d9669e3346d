//! The recording of the demo in `docs/start.md`: what a terminal shows, as a picture made of text.

use std::fmt::Write as _;
use std::io::{self, Error};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Columns of the terminal.
const COLUMNS: usize = 100;

/// Width of a column and height of a line, in pixels, at [`FONT`].
const CELL: (f64, f64) = (8.0, 19.0);

/// Size of the letters, in pixels.
const FONT: f64 = 13.3;

/// The margin around the text, in pixels.
const MARGIN: f64 = 18.0;

/// A larger picture does not belong in a repository.
const BYTES_MOST: usize = 200_000;

/// Background and text colour: a pair that can be read on light and on dark pages.
const PAPER: &str = "#1b1e24";
const INK: &str = "#d8dce3";

/// Writes `docs/demo.svg`: the demo, run offline in a separate store. Returns its path.
///
/// # Errors
/// When the command cannot be built, the demo does not finish, or the picture is too large.
pub(crate) fn record(root: &Path) -> io::Result<PathBuf> {
    let root = root.canonicalize()?;
    let scratch = std::env::temp_dir().join(format!("foldback-recording-{}", std::process::id()));
    std::fs::create_dir_all(&scratch)?;
    let shown = shown(&root, &scratch);
    std::fs::remove_dir_all(&scratch)?;
    let picture = picture(&shown?);
    if picture.len() > BYTES_MOST {
        let what = format!("the recording has {} bytes, over {BYTES_MOST}", picture.len());
        return Err(Error::other(what));
    }
    let path = root.join("docs/demo.svg");
    std::fs::write(&path, picture)?;
    Ok(path)
}

/// Returns what the demo prints, with its colour codes.
fn shown(root: &Path, scratch: &Path) -> io::Result<String> {
    let (lines, answer) = (scratch.join("lines"), scratch.join("answer"));
    let mut demo = Command::new(env!("CARGO"));
    demo.current_dir(root).args(["run", "-q", "-p", "foldback-cli", "--", "run", "--demo"]);
    demo.args(["--id", "demo", "--store"]).arg(scratch.join("store"));
    demo.env("CLICOLOR_FORCE", "1").env("COLUMNS", COLUMNS.to_string()).env_remove("NO_COLOR");
    demo.stdin(Stdio::null());
    demo.stdout(std::fs::File::create(&answer)?).stderr(std::fs::File::create(&lines)?);
    let status = demo.status()?;
    let (lines, answer) = (std::fs::read_to_string(lines)?, std::fs::read_to_string(answer)?);
    if !status.success() {
        return Err(Error::other(format!("the demo ended with {status}: {lines}")));
    }
    let answer: Vec<String> = answer.lines().flat_map(wrapped).collect();
    Ok(format!("$ foldback run --demo\n{lines}{}", answer.join("\n")))
}

/// Returns a line as a terminal of [`COLUMNS`] columns would show it, but broken between words.
fn wrapped(line: &str) -> Vec<String> {
    if line.chars().count() <= COLUMNS || line.contains('\u{1b}') {
        return vec![line.to_owned()];
    }
    let mut lines = vec![String::new()];
    for word in line.split(' ') {
        let last = lines.last().map_or(0, |line| line.chars().count());
        if last > 0 && last + 1 + word.chars().count() > COLUMNS {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

/// Returns text with colour codes as an SVG.
fn picture(shown: &str) -> String {
    let lines: Vec<&str> = shown.lines().collect();
    let width = COLUMNS as f64 * CELL.0 + 2.0 * MARGIN;
    let height = lines.len() as f64 * CELL.1 + 2.0 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"foldback run --demo\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{PAPER}\"/>\n\
         <g font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" \
         font-size=\"{FONT}\" fill=\"{INK}\">\n"
    );
    let mut style = Style::default();
    for (at, line) in lines.into_iter().enumerate() {
        let y = MARGIN + CELL.1 * (at as f64 + 0.75);
        // Spaces are kept because each text element asks for it: browsers ignore the attribute on a
        // group. Writing to a string cannot fail.
        let _ = write!(svg, "<text x=\"{MARGIN}\" y=\"{y}\" xml:space=\"preserve\">");
        for (text, now) in parts(line, &mut style) {
            let _ = write!(svg, "<tspan{}>{}</tspan>", now.attributes(), escaped(text));
        }
        svg.push_str("</text>\n");
    }
    svg + "</g>\n</svg>\n"
}

/// The style of a text.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Style {
    bold: bool,
    dim: bool,
    colour: Option<&'static str>,
}

impl Style {
    /// Applies one code, the number of an SGR sequence.
    fn take(&mut self, mark: &str) {
        match mark {
            "" | "0" => *self = Self::default(),
            "1" => self.bold = true,
            "2" => self.dim = true,
            "31" | "91" => self.colour = Some("#ff7b72"),
            "32" | "92" => self.colour = Some("#7ee787"),
            "33" | "93" => self.colour = Some("#e3b341"),
            "36" | "96" => self.colour = Some("#79c0ff"),
            "39" => self.colour = None,
            _ => {}
        }
    }

    fn attributes(self) -> String {
        let mut attributes = String::new();
        if let Some(colour) = self.colour {
            let _ = write!(attributes, " fill=\"{colour}\"");
        } else if self.dim {
            attributes.push_str(" fill=\"#8b929e\"");
        }
        if self.bold {
            attributes.push_str(" font-weight=\"bold\"");
        }
        attributes
    }
}

/// Returns the parts of a line, each with its style. A style continues on the next line.
fn parts<'l>(line: &'l str, style: &mut Style) -> Vec<(&'l str, Style)> {
    let mut parts = Vec::new();
    let mut rest = line;
    while let Some((text, after)) = rest.split_once("\u{1b}[") {
        parts.push((text, *style));
        let Some((marks, after)) = after.split_once('m') else {
            rest = "";
            break;
        };
        marks.split(';').for_each(|mark| style.take(mark));
        rest = after;
    }
    parts.push((rest, *style));
    parts.retain(|(text, _)| !text.is_empty());
    parts
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_between_words() {
        let lines = wrapped(&"a word ".repeat(30));
        assert!(lines.len() == 3 && lines.iter().all(|line| line.chars().count() <= COLUMNS));
        assert_eq!(wrapped("  a  b"), ["  a  b"]);
    }

    #[test]
    fn marks_become_looks() {
        let mut style = Style::default();
        let found = parts("a \u{1b}[1m\u{1b}[31mb <c>\u{1b}[0m d", &mut style);
        let red = Style { bold: true, colour: Some("#ff7b72"), ..Style::default() };
        assert_eq!(found, [("a ", Style::default()), ("b <c>", red), (" d", Style::default())]);
        let svg = picture("a \u{1b}[2mb & 杭州\u{1b}[0m");
        assert!(svg.contains("<tspan fill=\"#8b929e\">b &amp; 杭州</tspan>"), "{svg}");
    }
}
