//! The links of the documentation: each relative one leads to a file and, with an anchor, to a heading.
//!
//! The pages of `docs/` are also a book, which `SUMMARY.md` lists: it has every page once, and no page
//! of it links to a file outside, which the book does not contain.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use crate::tidy::File;

/// The book's list of pages.
const SUMMARY: &str = "docs/SUMMARY.md";

/// Returns the tree's pages: those at the root, those of `docs/`, and every README.
pub(crate) fn pages(root: &Path) -> io::Result<Vec<File>> {
    let mut pages = Vec::new();
    read(root, root, &mut pages)?;
    pages.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(pages)
}

/// Returns what is wrong with the links of these pages, as `path:line: what`.
pub(crate) fn findings(root: &Path, pages: &[File]) -> Vec<String> {
    judged(pages, |path| root.join(path).exists())
}

/// Reads the pages at the root, those of `docs/`, and every README below the other folders.
fn read(root: &Path, folder: &Path, pages: &mut Vec<File>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = entry.path();
        let from_root = path.strip_prefix(root).unwrap_or(&path).to_string_lossy();
        let from_root = from_root.replace('\\', "/");
        let is_built = ["target", "node_modules", "venv"].contains(&name.as_str());
        if entry.file_type()?.is_dir() {
            if !is_built && !name.starts_with('.') {
                read(root, &path, pages)?;
            }
            continue;
        }
        let is_of_book = from_root.starts_with("docs/") || !from_root.contains('/');
        if name == "README.md" || is_of_book && name.ends_with(".md") {
            pages.push(File { path: from_root, text: std::fs::read_to_string(&path)? });
        }
    }
    Ok(())
}

fn judged(pages: &[File], exists: impl Fn(&str) -> bool) -> Vec<String> {
    let anchors: BTreeMap<&str, BTreeSet<String>> =
        pages.iter().map(|page| (page.path.as_str(), anchors(&page.text))).collect();
    let mut found = Vec::new();
    let mut listed = Vec::new();
    for page in pages {
        for Link { line, target } in links(&page.text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let at = format!("{}:{line}: the link {target}", page.path);
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let Some(file) = resolved(&page.path, file) else {
                found.push(format!("{at} leads out of the repository"));
                continue;
            };
            if !exists(&file) {
                found.push(format!("{at} leads to no file"));
            } else if page.path.starts_with("docs/") && !file.starts_with("docs/") {
                found.push(format!("{at} leads out of the book; name the file without a link"));
            } else if !anchor.is_empty()
                && anchors.get(file.as_str()).is_some_and(|of_page| !of_page.contains(anchor))
            {
                found.push(format!("{at} leads to no heading"));
            }
            if page.path == SUMMARY {
                listed.push(file);
            }
        }
    }
    for page in pages.iter().filter(|page| page.path.starts_with("docs/")) {
        let times = listed.iter().filter(|file| **file == page.path).count();
        if page.path != SUMMARY && times != 1 {
            found.push(format!("{}: {SUMMARY} lists it {times} times, not once", page.path));
        }
    }
    found
}

/// Returns a link's file from the root, or nothing if the link leads out of the repository. An empty
/// link leads to the page itself.
fn resolved(page: &str, link: &str) -> Option<String> {
    if link.is_empty() {
        return Some(page.to_owned());
    }
    let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    (!link.starts_with('/')).then(|| parts.join("/"))
}

/// A link, and the line on which it begins, counted from 1.
#[derive(Debug, PartialEq, Eq)]
struct Link {
    line: usize,
    target: String,
}

/// Returns the links of a page that are not code: those of Markdown, and those of HTML attributes.
fn links(text: &str) -> Vec<Link> {
    let prose = without_code(text);
    let mut found = Vec::new();
    for (at, line) in prose.lines().enumerate() {
        let mut add = |target: &str| {
            let target = target.trim().trim_start_matches('<').trim_end_matches('>');
            found.push(Link { line: at + 1, target: target.to_owned() });
        };
        for (begin, mark) in line.match_indices("](") {
            add(until_closed(&line[begin + mark.len()..]));
        }
        for attribute in ["src=\"", "srcset=\"", "href=\""] {
            for (begin, mark) in line.match_indices(attribute) {
                let is_name = line[..begin].ends_with([' ', '\t']);
                let value = line[begin + mark.len()..].split('"').next().unwrap_or_default();
                for one in value.split(',').filter(|_| is_name) {
                    add(one.split_whitespace().next().unwrap_or_default());
                }
            }
        }
        let definition = line.strip_prefix('[').filter(|line| !line.starts_with('^'));
        if let Some((_, target)) = definition.and_then(|line| line.split_once("]: ")) {
            add(target.split_whitespace().next().unwrap_or_default());
        }
    }
    found
}

/// Returns the target of a link, which ends at white space or at a bracket that it did not open.
fn until_closed(rest: &str) -> &str {
    let mut open = 0_usize;
    let end = rest.find(|letter: char| {
        match letter {
            '(' => open += 1,
            ')' if open == 0 => return true,
            ')' => open -= 1,
            _ => {}
        }
        letter.is_whitespace()
    });
    &rest[..end.unwrap_or(rest.len())]
}

/// Returns the anchors of a page: of its headings, as a forge and mdbook name them, and every `id`.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for line in outside_fences(text) {
        for (begin, mark) in line.match_indices(" id=\"") {
            let id = line[begin + mark.len()..].split('"').next().unwrap_or_default();
            found.insert(id.to_owned());
        }
        let level = line.len() - line.trim_start_matches('#').len();
        let Some(heading) = line[level..].strip_prefix(' ').filter(|_| (1..=6).contains(&level))
        else {
            continue;
        };
        let slug = slug(heading);
        let before = times.entry(slug.clone()).or_default();
        found.insert(if *before == 0 { slug } else { format!("{slug}-{before}") });
        *before += 1;
    }
    found
}

/// Returns the anchor of a heading: letters, digits, `-` and `_` stay, blanks become `-`.
fn slug(heading: &str) -> String {
    let mut words = String::new();
    let mut rest = heading.trim();
    while let Some((text, target)) = rest.split_once("](") {
        words.push_str(text);
        rest = target.get(until_closed(target).len() + 1..).unwrap_or_default();
    }
    words.push_str(rest);
    let kept = words.to_lowercase().replace(' ', "-");
    kept.chars().filter(|letter| letter.is_alphanumeric() || "-_".contains(*letter)).collect()
}

/// Returns the lines of a text; those of fenced code are empty.
fn outside_fences(text: &str) -> Vec<&str> {
    let mut fence: Option<&str> = None;
    let mut lines = Vec::new();
    for line in text.lines() {
        let bare = line.trim_start();
        let mark = bare.chars().next().filter(|letter| "`~".contains(*letter));
        let length = mark.map_or(0, |mark| bare.len() - bare.trim_start_matches(mark).len());
        match fence {
            None if length >= 3 => {
                fence = Some(&bare[..length]);
                lines.push("");
            }
            None => lines.push(line),
            Some(begun) => {
                if bare.starts_with(begun) && bare[length..].trim().is_empty() {
                    fence = None;
                }
                lines.push("");
            }
        }
    }
    lines
}

/// Returns a text with blanks in the place of all code, on the same lines.
fn without_code(text: &str) -> String {
    let mut prose = String::new();
    let mut paragraph = String::new();
    for line in outside_fences(text) {
        // Code ends with its paragraph, its heading or its row of a table at the latest.
        let is_alone = line.trim().is_empty() || line.starts_with(['|', '#']);
        if is_alone {
            prose.push_str(&without_spans(&paragraph));
            paragraph.clear();
        }
        paragraph.push_str(line);
        paragraph.push('\n');
        if is_alone {
            prose.push_str(&without_spans(&paragraph));
            paragraph.clear();
        }
    }
    prose.push_str(&without_spans(&paragraph));
    prose
}

/// Returns a paragraph with blanks in the place of code between equal runs of backticks.
fn without_spans(paragraph: &str) -> String {
    let mut prose = String::new();
    let mut rest = paragraph;
    while let Some(begin) = rest.find('`') {
        let (before, code) = rest.split_at(begin);
        prose.push_str(before);
        let length = code.len() - code.trim_start_matches('`').len();
        let (run, after) = code.split_at(length);
        let Some(end) = end_of_span(after, length) else {
            prose.push_str(run);
            rest = after;
            continue;
        };
        let (span, after) = after.split_at(end);
        let blank = |letter: char| if letter == '\n' { '\n' } else { ' ' };
        prose.extend(span.chars().map(blank));
        rest = after;
    }
    prose.push_str(rest);
    prose
}

/// Returns the byte after the next run of exactly this many backticks.
fn end_of_span(text: &str, length: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(begin) = text[at..].find('`') {
        let run = &text[at + begin..];
        let count = run.len() - run.trim_start_matches('`').len();
        at += begin + count;
        if count == length {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn every_link_of_the_documentation_leads_somewhere() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        assert_eq!(findings(&root, &pages(&root).unwrap()), Vec::<String>::new());
    }

    /// The findings on `README.md`, beside a page with headings.
    fn check(text: &str, expected: &[&str]) {
        let pages = [
            page("README.md", text),
            page("docs/SUMMARY.md", "- [A](a.md)"),
            page("docs/a.md", "# A page\n\n## 杭州: the `tide`\n\n## Twice\n\n## Twice\n"),
        ];
        let exists = |path: &str| pages.iter().any(|page| page.path == path) || path == "b.png";
        assert_eq!(judged(&pages, exists), expected, "{text}");
    }

    #[test]
    fn a_link_leads_to_a_file_and_to_a_heading() {
        check("[a](docs/a.md), [b](docs/a.md#a-page), [c](docs/a.md#twice-1), ![d](b.png)", &[]);
        check("# Here\n\n[a](docs/a.md#杭州-the-tide), [b](#here), [c](https://d.example/#e)", &[]);
        check("[a](docs/c.md)", &["README.md:1: the link docs/c.md leads to no file"]);
        check("\n[a](docs/a.md#b)", &["README.md:2: the link docs/a.md#b leads to no heading"]);
        check("[a](../b.md)", &["README.md:1: the link ../b.md leads out of the repository"]);
        check("<img src=\"c.png\">", &["README.md:1: the link c.png leads to no file"]);
        check("[a]: c.md 'A title'", &["README.md:1: the link c.md leads to no file"]);
    }

    #[test]
    fn code_has_no_links_and_no_headings() {
        check("`[a](c.md)`, ``[a`](c.md)``\n`over two\nlines [a](c.md)`", &[]);
        check("```\n[a](c.md)\n# b\n```\n~~~~\n~~~\n[a](c.md)\n~~~~", &[]);
        let text = "```\n# b\n```\n[a](#b)";
        check(text, &["README.md:4: the link #b leads to no heading"]);
    }

    #[test]
    fn the_book_has_each_page_once_and_nothing_else() {
        let summary = page("docs/SUMMARY.md", "- [A](a.md)\n- [A](a.md)");
        let pages = [summary, page("docs/a.md", "[r](../README.md)"), page("docs/b.md", "")];
        assert_eq!(
            judged(&pages, |_| true),
            [
                "docs/a.md:1: the link ../README.md leads out of the book; name the file without a link",
                "docs/a.md: docs/SUMMARY.md lists it 2 times, not once",
                "docs/b.md: docs/SUMMARY.md lists it 0 times, not once",
            ]
        );
    }
}
