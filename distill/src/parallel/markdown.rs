//! Pages of Markdown, and which block of one is the translation of which block of the other.

use super::Texts;
use super::clean::clean;
use crate::units::is_in;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Heading,
    /// A paragraph, or an item of a list.
    Paragraph,
    Code,
    /// A cell of a table.
    Cell,
}

type Section = Vec<(Kind, String)>;

/// The blocks of a page that stand in the same places of the other one: there must be as many
/// sections, and in a section the same kinds of blocks in the same order.
pub(super) fn aligned(english: &str, translated: &str) -> Texts {
    let (english, translated) = (sections(english), sections(translated));
    if english.len() != translated.len() {
        return Vec::new();
    }
    let kinds = |section: &Section| section.iter().map(|block| block.0).collect::<Vec<_>>();
    let alike = english.iter().zip(&translated).filter(|(a, b)| kinds(a) == kinds(b));
    let blocks = alike.flat_map(|(a, b)| a.iter().zip(b));
    blocks.filter(|(a, _)| a.0 != Kind::Code).map(|(a, b)| (clean(&a.1), clean(&b.1))).collect()
}

/// The same of a page with Chinese below `## zh-CN`, then English below `## en-US`, then code.
pub(super) fn of_one_page(page: &str) -> Texts {
    let parts = page.split_once("## zh-CN").and_then(|(_, rest)| rest.split_once("## en-US"));
    let Some((chinese, english)) = parts else { return Vec::new() };
    let english = english.split("\n```").next().unwrap_or_default();
    aligned(english, chinese)
}

/// The sections of a page, each of which begins with its heading.
fn sections(page: &str) -> Vec<Section> {
    let page = without_front_matter(page);
    let mut sections = vec![Section::new()];
    let mut paragraph: Vec<&str> = Vec::new();
    let mut fence: Option<&str> = None;
    let without_comments = without_comments(page);
    for line in without_comments.lines().map(str::trim).chain([""]) {
        if let Some(mark) = fence {
            if line.starts_with(mark) {
                fence = None;
            }
            continue;
        }
        fence = opens_fence(line);
        let item = after_item_mark(line);
        let is_text = fence.is_none() && !line.is_empty() && !is_heading(line) && !is_layout(line);
        if is_text && item.is_none() && !line.starts_with('|') {
            paragraph.push(line);
            continue;
        }
        let mut add = |kind, text: &str| {
            if let Some(section) = sections.last_mut() {
                section.push((kind, text.to_owned()));
            }
        };
        if !paragraph.is_empty() {
            add(Kind::Paragraph, &paragraph.join(" "));
            paragraph.clear();
        }
        if fence.is_some() {
            add(Kind::Code, "");
        } else if let Some(item) = item {
            paragraph.push(item);
        } else if is_heading(line) {
            sections.push(vec![(Kind::Heading, line.trim_start_matches(['#', ' ']).to_owned())]);
        } else if line.starts_with('|') && line.contains(|c| !"|:- \t".contains(c)) {
            line.trim_matches('|').split('|').for_each(|cell| add(Kind::Cell, cell));
        }
    }
    sections
}

fn without_front_matter(page: &str) -> &str {
    let rest = page.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n"));
    rest.map_or(page, |(_, rest)| rest)
}

fn without_comments(page: &str) -> String {
    let mut kept = String::new();
    let mut rest = page;
    while let Some((before, comment)) = rest.split_once("<!--") {
        let Some((_, after)) = comment.split_once("-->") else { break };
        kept.push_str(before);
        rest = after;
    }
    kept + rest
}

/// The mark with which a block of code begins, and ends.
fn opens_fence(line: &str) -> Option<&str> {
    let length = ['`', '~'].map(|mark| line.len() - line.trim_start_matches(mark).len());
    let length = length[0].max(length[1]);
    line.get(..length).filter(|_| length >= 3)
}

fn is_heading(line: &str) -> bool {
    let marks = line.len() - line.trim_start_matches('#').len();
    (1..=6).contains(&marks) && line[marks..].starts_with(char::is_whitespace)
}

/// Whether it is a line of a container or a tag, with no text in these scripts.
fn is_layout(line: &str) -> bool {
    let tag = line.strip_prefix('<').map(|rest| rest.strip_prefix('/').unwrap_or(rest));
    let is_tag = tag.is_some_and(|tag| tag.starts_with(|c: char| c.is_ascii_alphabetic()));
    line.starts_with(":::") || is_tag && !is_in(line)
}

/// The text of an item of a list, behind `-`, `*`, `+` or `1.`.
fn after_item_mark(line: &str) -> Option<&str> {
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = if digits.len() < line.len() {
        digits.strip_prefix(['.', ')', '、'])
    } else {
        line.strip_prefix(['-', '*', '+'])
    };
    rest.filter(|rest| rest.starts_with(char::is_whitespace)).map(str::trim_start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(english: &str, translated: &str) -> Vec<String> {
        aligned(english, translated).into_iter().map(|(a, b)| format!("{a} = {b}")).collect()
    }

    #[test]
    fn blocks_in_the_same_places_are_pairs() {
        let english = "---\ntitle: x\n---\n# The **port**\n\nIt is\nopen.\n- one\n- two\n\n\
            ```sh\nrun\n\n# no heading\n```\n\n| name | use |\n|---|---|\n| `a` | b c |\n";
        let korean = "# **포트**\n\n열려 있다.\n\n1. 하나\n2. 둘\n\n\
            ```sh\n실행\n```\n\n| 이름 | 용도 |\n|:--|:--|\n| `a` | 나 |\n";
        let expected = ["The port = 포트", "It is open. = 열려 있다.", "one = 하나", "two = 둘"];
        let cells = ["name = 이름", "use = 용도", "a = a", "b c = 나"];
        assert_eq!(pairs(english, korean), [expected, cells].concat());
    }

    #[test]
    fn a_section_with_other_blocks_is_left_out() {
        let english =
            "# One\n\nText.\n\nMore.\n\n# Two\n\n<Tip>\n\nKeep <!-- not -->it.\n\n</Tip>\n";
        let japanese = "# 一\n\n本文。続き。\n\n# 二\n\n:::tip\n\n残す。\n\n:::\n";
        assert_eq!(pairs(english, japanese), ["Two = 二", "Keep it. = 残す。"]);
        assert_eq!(pairs(english, "# 一\n\n本文。"), [""; 0]);
    }

    #[test]
    fn both_languages_may_be_in_one_page() {
        let page = "---\norder: 1\n---\n\n## zh-CN\n\n基本用法。\n\n## en-US\n\nBasic use.\n\n```tsx\nx\n```";
        let expected = [("Basic use.".to_owned(), "基本用法。".to_owned())];
        assert_eq!(of_one_page(page), expected);
        assert_eq!(of_one_page("## en-US\n\nOnly English."), []);
    }
}
