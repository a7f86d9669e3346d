//! Bars, one below the other, whose parts are stacked end to end or drawn side by side.

use super::lines::{failed, short};
use super::palette::{FONT, GRID, INK, colour};
use crate::BenchError;
use plotters::prelude::{ChartBuilder, IntoDrawingArea as _, Rectangle, SVGBackend, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color as _, IntoFont as _};

const WIDTH: u32 = 960;
/// The height of a bar including its margin, in pixels.
const ROW: u32 = 34;
/// The height of one of several parts drawn side by side, in pixels.
const PART: u32 = 20;
const NAMES: u32 = 190;

/// Bars, all divided into the same parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bars {
    /// What a bar's length means, with its unit.
    pub label: String,
    /// The names of a bar's parts, in order.
    pub parts: Vec<String>,
    /// The bars, from top to bottom.
    pub bars: Vec<Bar>,
    /// Whether the parts of a bar are drawn side by side, each with its number, rather than end to end.
    pub side_by_side: bool,
}

impl Bars {
    /// Returns bars whose parts are stacked end to end, each given by its name and the lengths of its
    /// parts.
    pub fn end_to_end(
        label: &str,
        parts: &[&str],
        bars: impl IntoIterator<Item = (String, Vec<f64>)>,
    ) -> Self {
        Self {
            label: label.to_owned(),
            parts: parts.iter().map(|&part| part.to_owned()).collect(),
            bars: bars.into_iter().map(|(name, values)| Bar { name, values }).collect(),
            side_by_side: false,
        }
    }
}

/// A bar.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bar {
    /// What it represents.
    pub name: String,
    /// The lengths of its parts, 0 or more.
    pub values: Vec<f64>,
}

impl Bars {
    /// Returns the picture as SVG.
    ///
    /// # Errors
    /// When no bar has a length.
    pub fn svg(&self) -> Result<String, BenchError> {
        let most = self.bars.iter().map(|bar| self.length(bar)).fold(0.0, f64::max);
        if most <= 0.0 || !most.is_finite() {
            return Err(BenchError::Picture("no bar has a length".to_owned()));
        }
        let parts = u32::try_from(self.parts.len()).unwrap_or(1);
        let row = if self.side_by_side { parts.saturating_mul(PART) + 14 } else { ROW };
        let rows = u32::try_from(self.bars.len()).unwrap_or(u32::MAX);
        let height = rows.saturating_mul(row).saturating_add(64);
        // The numbers beside the bars take room too.
        let end = if self.side_by_side { most * 1.08 } else { most };
        let mut svg = String::new();
        {
            let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
            let count = f64::from(rows);
            let mut chart = ChartBuilder::on(&root)
                .margin(8)
                .margin_right(24)
                .x_label_area_size(42)
                .y_label_area_size(NAMES)
                .build_cartesian_2d(0.0..end, 0.0..count)
                .map_err(failed)?;
            let words = || ("sans-serif", FONT).into_font().color(&INK);
            chart
                .configure_mesh()
                .disable_y_mesh()
                .y_labels(0)
                .light_line_style(GRID.mix(0.0))
                .bold_line_style(GRID)
                .axis_style(GRID)
                .label_style(words())
                .axis_desc_style(words())
                .x_desc(&self.label)
                .x_label_formatter(&|value| short(*value))
                .draw()
                .map_err(failed)?;
            for (at, bar) in self.bars.iter().enumerate() {
                let top = count - at as f64 - 0.18;
                let mut from = 0.0;
                let thick = if self.side_by_side { 0.64 / f64::from(parts.max(1)) } else { 0.64 };
                for (part, value) in bar.values.iter().enumerate() {
                    let above = if self.side_by_side { top - part as f64 * thick } else { top };
                    let corners = [(from, above), (from + value, above - thick)];
                    let shape = Rectangle::new(corners, colour(part).filled());
                    chart.draw_series([shape]).map_err(failed)?;
                    if self.side_by_side {
                        let style = words().pos(Pos::new(HPos::Left, VPos::Center));
                        let (x, y) = chart.backend_coord(&(*value, above - thick / 2.0));
                        let number = Text::new(short(*value), (x + 6, y), style);
                        root.draw(&number).map_err(failed)?;
                    } else {
                        from += value;
                    }
                }
                let style = words().pos(Pos::new(HPos::Right, VPos::Center));
                let (x, y) = chart.backend_coord(&(0.0, top - 0.32));
                root.draw(&Text::new(bar.name.clone(), (x - 10, y), style)).map_err(failed)?;
            }
            root.present().map_err(failed)?;
        }
        Ok(svg)
    }

    /// Returns how far a bar reaches.
    fn length(&self, bar: &Bar) -> f64 {
        match self.side_by_side {
            true => bar.values.iter().copied().fold(0.0, f64::max),
            false => bar.values.iter().sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_every_bar_is_drawn() {
        let bar =
            |name: &str, values: &[f64]| Bar { name: name.to_owned(), values: values.to_vec() };
        let bars = Bars {
            label: "facts".to_owned(),
            parts: vec!["visible".to_owned(), "lost".to_owned()],
            bars: vec![bar("full", &[10.0, 0.0]), bar("折叠 <b>", &[4.25, 6.0])],
            side_by_side: false,
        };
        let svg = bars.svg().unwrap();
        assert_eq!(svg.matches("fill=\"#4CA89F\"").count(), 2, "{svg}");
        assert!(svg.contains("折叠 &lt;b&gt;"), "{svg}");
        assert!(!svg.contains("\n4.25\n"), "a part shows no number: {svg}");
        let beside = Bars { side_by_side: true, ..bars.clone() }.svg().unwrap();
        assert_eq!(beside.matches("fill=\"#4CA89F\"").count(), 2, "{beside}");
        assert!(beside.contains("\n4.25\n"), "each part shows its number: {beside}");
        let none = Bars { bars: vec![bar("full", &[0.0])], ..bars };
        assert!(none.svg().unwrap_err().to_string().contains("no bar has a length"));
    }
}
