//! Texts that stand side by side in English and in Chinese, Japanese or Korean.

mod clean;
mod dialogues;
mod markdown;
mod sources;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::texts::read;
use crate::units::is_in;
use crate::wheel::sha256_hex;
pub(crate) use sources::{ENGLISH, Language, SOURCES, Source};
use sources::{Format, Pages};

/// A text and its translation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pair {
    /// Its place in [`SOURCES`].
    pub(crate) source: usize,
    pub(crate) english: String,
    pub(crate) translated: String,
}

/// The texts of a source, English first.
type Texts = Vec<(String, String)>;

/// The pairs of all [`SOURCES`], whose repositories are in `folder`; none of a source is there twice.
pub(crate) fn pairs(folder: &Path) -> Result<Vec<Pair>> {
    let mut pairs = Vec::new();
    for (at, source) in SOURCES.iter().enumerate() {
        let texts = texts(folder, source)
            .with_context(|| format!("{} ({:?})", source.repository, source.language))?;
        let is_pair = |(english, translated): &(String, String)| {
            !english.is_empty() && is_in(translated) && !is_in(english)
        };
        let mut seen = HashSet::new();
        for text in texts.into_iter().filter(is_pair) {
            if seen.insert(text.clone()) {
                pairs.push(Pair { source: at, english: text.0, translated: text.1 });
            }
        }
    }
    Ok(pairs)
}

/// The SHA-256 of all pairs, a line for each, in hex.
pub(crate) fn sha256(pairs: &[Pair]) -> String {
    let line = |pair: &Pair| format!("{}\t{}\t{}\n", pair.source, pair.english, pair.translated);
    sha256_hex(pairs.iter().map(line).collect::<String>().as_bytes())
}

fn texts(folder: &Path, source: &Source) -> Result<Texts> {
    let root = checkout(folder, source.repository);
    match &source.format {
        Format::Tabbed(path) => Ok(tabbed(&text(&root.join(path))?)),
        Format::Dialogues { english, translated } => dialogues::by_turn(&root, english, translated),
        Format::Chats { english, translated } => {
            dialogues::chats(&read(&root.join(english))?, &read(&root.join(translated))?)
        }
        Format::Pages(pages) => of_pages(&checkout(folder, pages.repository), &root, pages),
    }
}

/// Where the repository `name`, as `owner/name`, is checked out.
fn checkout(folder: &Path, name: &str) -> PathBuf {
    folder.join(name.replace('/', "+"))
}

/// A pair a line, with a tab between; what stands behind a second one says who wrote them.
fn tabbed(lines: &str) -> Texts {
    let mut texts = Texts::new();
    for line in lines.trim_start_matches('\u{feff}').lines() {
        let mut parts = line.split('\t').map(|part| part.trim().to_owned());
        if let (Some(english), Some(translated)) = (parts.next(), parts.next()) {
            texts.push((english, translated));
        }
    }
    texts
}

/// The pages in a folder of English ones that have a translation.
fn of_pages(english: &Path, translated: &Path, pages: &Pages) -> Result<Texts> {
    let from = english.join(pages.english);
    let mut paths = Vec::new();
    files(&from, &mut paths)?;
    paths.sort();
    let mut texts = Vec::new();
    for path in paths {
        let name = path.strip_prefix(&from)?.to_string_lossy().replace('\\', "/");
        if name.contains("/demo/") && pages.english.is_empty() {
            texts.extend(markdown::of_one_page(&text(&path)?));
        }
        let other = translated.join(pages.translated).join(name.replace(".en-US.", ".zh-CN."));
        if other != path && other.exists() {
            texts.extend(markdown::aligned(&text(&path)?, &text(&other)?));
        }
    }
    Ok(texts)
}

/// Adds the Markdown files in `folder`, other than lists of changes, to `paths`.
fn files(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<()> {
    let entries = folder.read_dir().with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        if path.is_dir() {
            files(&path, paths)?;
        } else if name.ends_with(".md") && !name.contains("changelog") || name.ends_with(".mdx") {
            paths.push(path);
        }
    }
    Ok(())
}

fn text(path: &Path) -> Result<String> {
    Ok(String::from_utf8_lossy(&read(path)?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_a_tab_is_a_pair() {
        let lines = "\u{feff}Run.\t跑。\tCC-BY\nno pair\nI see.\t そうですか。 \nHi.\t안녕.";
        let expected = [("Run.", "跑。"), ("I see.", "そうですか。"), ("Hi.", "안녕.")];
        assert_eq!(tabbed(lines), expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    }

    #[test]
    fn pages_are_found_beside_their_translation() {
        let folder = std::env::temp_dir().join(format!("distill-pages-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = folder.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("docs/a.en-US.md", "# One\n\nThe first.");
        write("docs/a.zh-CN.md", "# 一\n\n第一个。");
        write("docs/CHANGELOG.en-US.md", "Old.");
        write("docs/CHANGELOG.zh-CN.md", "旧的。");
        write("docs/alone.en-US.md", "Not translated.");
        write("x/demo/b.md", "## zh-CN\n\n第二个。\n\n## en-US\n\nThe second.\n\n```tsx\n```\n");
        let pages = Pages { repository: "", english: "", translated: "" };
        let found = of_pages(&folder, &folder, &pages).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let expected = [("One", "一"), ("The first.", "第一个。"), ("The second.", "第二个。")];
        assert_eq!(found, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    }
}
