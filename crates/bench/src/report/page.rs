//! The page: sections of text, pictures and tables in one HTML file that loads nothing.

use super::palette::{COLOURS, dark_rules, hex};
use super::{Bars, Lines};
use crate::{BenchError, Sheet};
use std::fmt::Write as _;

const STYLE: &str = include_str!("page.css");

/// A page of results.
#[derive(Clone, Debug, Default)]
pub struct Page {
    title: String,
    lead: String,
    sections: Vec<Section>,
}

/// A section of a page under one heading.
#[derive(Clone, Debug, Default)]
pub struct Section {
    heading: String,
    body: String,
}

impl Page {
    /// Returns a page with a title and a sentence below it.
    #[must_use]
    pub fn new(title: &str, lead: &str) -> Self {
        Self { title: title.to_owned(), lead: lead.to_owned(), sections: Vec::new() }
    }

    /// Adds a section.
    pub fn section(&mut self, section: Section) {
        self.sections.push(section);
    }

    /// Returns the whole file.
    #[must_use]
    pub fn html(&self) -> String {
        let title = escaped(&self.title);
        let mut html = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title} · foldback</title>\n<style>\n{STYLE}\n\
             @media (prefers-color-scheme: dark) {{\n{}}}\n</style>\n</head>\n<body>\n\
             <header><p class=\"wordmark\">foldback <span>bench</span></p><h1>{title}</h1><p class=\"lead\">{}</p></header>\n<main>\n",
            dark_rules(),
            escaped(&self.lead),
        );
        for section in &self.sections {
            let heading = escaped(&section.heading);
            html.push_str(&format!("<section>\n<h2>{heading}</h2>\n{}</section>\n", section.body));
        }
        html.push_str(concat!(
            "</main>\n<footer>Made by foldback ",
            env!("CARGO_PKG_VERSION"),
            ". The same input gives the same page, except for times.</footer>\n</body>\n</html>\n"
        ));
        html
    }
}

impl Section {
    /// Returns a section with nothing below its heading.
    #[must_use]
    pub fn new(heading: &str) -> Self {
        Self { heading: heading.to_owned(), body: String::new() }
    }

    /// Adds a paragraph.
    #[must_use]
    pub fn note(mut self, text: &str) -> Self {
        self.put(&format!("<p class=\"note\">{}</p>\n", escaped(text)));
        self
    }

    /// Adds a caption for the element that follows.
    #[must_use]
    pub fn caption(mut self, text: &str) -> Self {
        self.put(&format!("<h3>{}</h3>\n", escaped(text)));
        self
    }

    /// Adds curves, with the names of those that have points.
    ///
    /// # Errors
    /// When there is nothing to draw.
    pub fn lines(mut self, lines: &Lines) -> Result<Self, BenchError> {
        let names = lines.series.iter().map(|series| {
            (!series.points.is_empty()).then_some((series.name.as_str(), series.dashed))
        });
        self.figure(&lines.svg()?, " class=\"named\"", names);
        Ok(self)
    }

    /// Adds bars, with the names of the parts that have a length.
    ///
    /// # Errors
    /// When there is nothing to draw.
    pub fn bars(mut self, bars: &Bars) -> Result<Self, BenchError> {
        let is_drawn = |at: usize| {
            bars.bars.iter().any(|bar| bar.values.get(at).is_some_and(|value| *value > 0.0))
        };
        let parts = bars.parts.iter().enumerate();
        let names = parts.map(|(at, part)| is_drawn(at).then_some((part.as_str(), false)));
        self.figure(&bars.svg()?, "", names);
        Ok(self)
    }

    /// Adds a list of names, each with its description.
    #[must_use]
    pub fn terms(
        mut self,
        terms: impl IntoIterator<Item = (impl AsRef<str>, impl AsRef<str>)>,
    ) -> Self {
        self.put("<dl>\n");
        for (name, text) in terms {
            let (name, text) = (escaped(name.as_ref()), escaped(text.as_ref()));
            self.put(&format!("<dt>{name}</dt><dd>{text}</dd>\n"));
        }
        self.put("</dl>\n");
        self
    }

    /// Adds a table.
    #[must_use]
    pub fn sheet(mut self, sheet: &Sheet) -> Self {
        let mut table = format!(
            "<div class=\"scroll\"><table>\n<caption>{}</caption>\n<thead><tr>",
            escaped(&sheet.title)
        );
        for (at, column) in sheet.columns.iter().enumerate() {
            let name = if at < sheet.names { " class=\"name\"" } else { "" };
            table.push_str(&format!("<th{name}>{}</th>", escaped(column)));
        }
        table.push_str("</tr></thead>\n<tbody>\n");
        for row in &sheet.rows {
            table.push_str("<tr>");
            for (at, cell) in row.iter().enumerate() {
                let cell = escaped(cell);
                table.push_str(&match at < sheet.names {
                    true => format!("<th class=\"name\">{cell}</th>"),
                    false => format!("<td>{cell}</td>"),
                });
            }
            table.push_str("</tr>\n");
        }
        table.push_str("</tbody>\n</table></div>\n");
        self.put(&table);
        self
    }

    fn figure<'n>(
        &mut self,
        svg: &str,
        class: &str,
        names: impl Iterator<Item = Option<(&'n str, bool)>>,
    ) {
        let mut key = String::new();
        for (at, name) in names.enumerate() {
            let Some((name, dashed)) = name else { continue };
            let colour = COLOURS.get(at % COLOURS.len()).map(|(colour, _)| hex(*colour));
            let colour = colour.unwrap_or_default();
            let dashed = if dashed { " class=\"dashed\"" } else { "" };
            // Writing to a string cannot fail.
            let _ = write!(
                key,
                "<span><i data-colour=\"{colour}\" style=\"background:{colour}\"{dashed}></i>{}</span>",
                escaped(name)
            );
        }
        self.put(&format!(
            "<figure{class}>\n<div class=\"scroll\">{svg}</div>\n<figcaption class=\"key\">{key}</figcaption>\n</figure>\n"
        ));
    }

    fn put(&mut self, html: &str) {
        self.body.push_str(html);
    }
}

/// Escapes a text for HTML.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Axis, Bar, Series};

    #[test]
    fn a_part_that_no_bar_has_is_not_in_the_key() {
        let bars = Bars {
            parts: vec!["visible".to_owned(), "lost".to_owned()],
            bars: vec![Bar { name: "one".to_owned(), values: vec![0.0, 2.0] }],
            ..Bars::default()
        };
        let mut page = Page::new("Facts", "");
        page.section(Section::new("Bars").bars(&bars).unwrap());
        let html = page.html();
        assert!(html.contains("</i>lost<") && !html.contains("</i>visible<"), "{html}");
    }

    const TERM: &str = "<dt>&lt;b&gt;</dt><dd>a &amp; b</dd>";

    #[test]
    fn a_page_holds_everything_and_loads_nothing() {
        let mut sheet = Sheet::new("Facts", &["policy"], &["lost"]);
        sheet.row(["<full>", "0"]);
        let series = Series {
            name: "full & all".to_owned(),
            points: vec![(1.0, 2.0), (2.0, 3.0)],
            ..Series::default()
        };
        let lines = Lines {
            x: Axis::linear("call"),
            y: Axis::log("tokens"),
            series: vec![series],
            marks: vec![],
        };
        let bars = Bars {
            label: "facts".to_owned(),
            parts: vec!["visible".to_owned()],
            bars: vec![Bar { name: "full".to_owned(), values: vec![1.0] }],
            side_by_side: false,
        };
        let mut page = Page::new("Savings", "What is sent.");
        let section = Section::new("Curves").note("A \"note\".").lines(&lines).unwrap();
        let section = section.caption("One & all").bars(&bars).unwrap().sheet(&sheet);
        page.section(section.terms([("<b>", "a & b")]));
        let html = page.html();
        for part in [
            "&lt;full&gt;",
            "full &amp; all",
            "A &quot;note&quot;.",
            "<h2>Curves</h2>",
            "<svg",
            TERM,
            "<h3>One &amp; all</h3>",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
        // The only address is the name of SVG.
        let rest = html.replace("http://www.w3.org/2000/svg", "");
        assert!(!rest.contains("http") && !rest.contains("src="), "{rest}");
    }
}
