//! Curves over two axes.

use super::palette::{FONT, GRID, INK, colour};
use crate::BenchError;
use plotters::chart::ChartContext;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::drawing::DrawingArea;
use plotters::prelude::{
    BindKeyPoints as _, Cartesian2d, ChartBuilder, IntoDrawingArea as _, IntoLogRange as _,
    LineSeries, PathElement, SVGBackend, Text,
};
use plotters::series::DashedLineSeries;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color as _, IntoFont as _, RGBColor, ShapeStyle, TextStyle};
use std::fmt::Display;
use std::ops::Range;

/// The width and height of a picture, in pixels; a page scales them.
const SIZE: (u32, u32) = (960, 440);

/// A curve with more points is drawn thinner.
const MANY: usize = 150;

/// The height of a line of text, in pixels.
const LINE: i32 = 16;
/// Names at the ends of curves take at most this width, in pixels.
const NAMES: u32 = 200;
/// The width of a character, in pixels, on the large side.
const CHARACTER: u32 = 7;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b, X, Y> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<X, Y>>;

/// Curves over two axes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lines {
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The curves.
    pub series: Vec<Series>,
    /// Labelled places on the horizontal axis.
    pub marks: Vec<Mark>,
}

/// An axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// What it measures, with its unit.
    pub label: String,
    /// Whether each step is ten times the previous one; values of 0 and less are then left out.
    pub log: bool,
}

impl Axis {
    /// Returns an axis with equal steps.
    #[must_use]
    pub fn linear(label: &str) -> Self {
        Self { label: label.to_owned(), log: false }
    }

    /// Returns an axis on which each step is ten times the previous one.
    #[must_use]
    pub fn log(label: &str) -> Self {
        Self { label: label.to_owned(), log: true }
    }
}

/// A curve.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// What it shows.
    pub name: String,
    /// The points, in the order of their first number.
    pub points: Vec<(f64, f64)>,
    /// Whether it is the subject of the picture.
    pub strong: bool,
    /// Whether it is dashed.
    pub dashed: bool,
}

/// A labelled place on the horizontal axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mark {
    /// The place.
    pub x: f64,
    /// The label.
    pub label: String,
}

impl Lines {
    /// Returns the picture as SVG.
    ///
    /// # Errors
    /// When there is no point to draw.
    pub fn svg(&self) -> Result<String, BenchError> {
        let shown = |point: &&(f64, f64)| {
            let fits = |value: f64, axis: &Axis| value.is_finite() && (!axis.log || value > 0.0);
            fits(point.0, &self.x) && fits(point.1, &self.y)
        };
        let series: Vec<Series> = self
            .series
            .iter()
            .map(|series| Series {
                points: series.points.iter().filter(shown).copied().collect(),
                ..series.clone()
            })
            .collect();
        let all = || series.iter().flat_map(|series| &series.points);
        let (x0, x1) = ends(all().map(|point| point.0), self.x.log)?;
        let (y0, y1) = ends(all().map(|point| point.1), self.y.log)?;
        let mut svg = String::new();
        {
            let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
            let log = |from, to| (from..to).log_scale().with_key_points(ticks(from, to));
            match (self.x.log, self.y.log) {
                (false, false) => self.draw(&root, &series, x0..x1, y0..y1),
                (true, false) => self.draw(&root, &series, log(x0, x1), y0..y1),
                (false, true) => self.draw(&root, &series, x0..x1, log(y0, y1)),
                (true, true) => self.draw(&root, &series, log(x0, x1), log(y0, y1)),
            }?;
            root.present().map_err(failed)?;
        }
        Ok(svg)
    }

    fn draw<X, Y>(&self, root: &Area<'_>, series: &[Series], x: X, y: Y) -> Result<(), BenchError>
    where
        X: AsRangedCoord<Value = f64>,
        Y: AsRangedCoord<Value = f64>,
        X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
        Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        let mut chart = ChartBuilder::on(root)
            .margin(14)
            .margin_top(14 + LINE * i32::try_from(self.marks.len()).unwrap_or_default())
            .margin_right(names_width(series))
            .x_label_area_size(44)
            .y_label_area_size(66)
            .build_cartesian_2d(x, y)
            .map_err(failed)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(RGBColor::mix(&GRID, 0.0))
            .bold_line_style(GRID)
            .axis_style(GRID)
            .label_style(words())
            .axis_desc_style(words())
            .x_desc(&self.x.label)
            .y_desc(&self.y.label)
            .x_label_formatter(&|value| short(*value))
            .y_label_formatter(&|value| short(*value))
            .draw()
            .map_err(failed)?;
        draw_curves(&mut chart, series)?;
        let (across, down) = chart.plotting_area().get_pixel_range();
        let place = |x, y| chart.plotting_area().map_coordinate(&(x, y));
        // Any height will do, as long as it is on the axis.
        let anywhere = series.iter().flat_map(|one| &one.points).map(|point| point.1).next();
        let marks = self
            .marks
            .iter()
            .map(|mark| (place(mark.x, anywhere.unwrap_or_default()).0, mark.label.as_str()));
        draw_marks(root, &down, marks)?;
        let ends = series.iter().enumerate().filter_map(|(at, one)| {
            let (x, y) = *one.points.last()?;
            Some((at, one.name.as_str(), place(x, y)))
        });
        draw_names(root, &across, &down, &ends.collect::<Vec<_>>())
    }
}

/// Draws the curves, with the picture's subjects in front.
fn draw_curves<X, Y>(chart: &mut Chart<'_, '_, X, Y>, series: &[Series]) -> Result<(), BenchError>
where
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
{
    let mut order: Vec<usize> = (0..series.len()).collect();
    order.sort_by_key(|at| series.get(*at).is_some_and(|series| series.strong));
    for at in order {
        let Some(one) = series.get(at) else { continue };
        // With many points, thick lines would run into each other.
        let thin = u32::from(one.points.len() > MANY);
        let width = if one.strong { 3 } else { 2 } - thin;
        let style = ShapeStyle::from(colour(at)).stroke_width(width);
        let points = one.points.iter().copied();
        if one.dashed {
            chart.draw_series(DashedLineSeries::new(points, 7, 5, style)).map_err(failed)?;
        } else {
            chart.draw_series(LineSeries::new(points, style)).map_err(failed)?;
        }
    }
    Ok(())
}

/// Draws marks at these pixels of the horizontal axis. Their labels are above the picture, the last
/// mark's on top, so that no line runs through a label to its left.
fn draw_marks<'m>(
    root: &Area<'_>,
    down: &Range<i32>,
    marks: impl Iterator<Item = (i32, &'m str)>,
) -> Result<(), BenchError> {
    for (nth, (at, label)) in (1..).zip(marks) {
        let top = down.start - nth * LINE - 2;
        root.draw(&PathElement::new([(at, down.end), (at, top)], INK.mix(0.6))).map_err(failed)?;
        let has_room = i64::from(at) >= i64::from(width(label));
        let (side, at) = if has_room { (HPos::Right, at - 6) } else { (HPos::Left, at + 6) };
        let style = words().pos(Pos::new(side, VPos::Top));
        root.draw(&Text::new(label.to_owned(), (at, top), style)).map_err(failed)?;
    }
    Ok(())
}

/// Draws the names of curves beside their ends. Each curve is given by its number, name and last pixel.
fn draw_names(
    root: &Area<'_>,
    across: &Range<i32>,
    down: &Range<i32>,
    ends: &[(usize, &str, (i32, i32))],
) -> Result<(), BenchError> {
    let heights: Vec<i32> = ends.iter().map(|(_, _, (_, y))| *y).collect();
    for ((at, name, (x, y)), place) in ends.iter().zip(apart(&heights, down.end)) {
        let thread = [(x + 2, *y), (across.end + 4, *y), (across.end + 14, place)];
        root.draw(&PathElement::new(thread, colour(*at).mix(0.45))).map_err(failed)?;
        let style = ("sans-serif", FONT - 1).into_font().color(&colour(*at));
        let style = style.pos(Pos::new(HPos::Left, VPos::Center));
        root.draw(&Text::new((*name).to_owned(), (across.end + 18, place), style))
            .map_err(failed)?;
    }
    Ok(())
}

/// Returns the text style.
fn words() -> TextStyle<'static> {
    ("sans-serif", FONT).into_font().color(&INK)
}

/// Returns the width of the names beside the curves' ends, in pixels.
fn names_width(series: &[Series]) -> u32 {
    let drawn = series.iter().filter(|series| !series.points.is_empty());
    let longest = drawn.map(|series| width(&series.name)).max().unwrap_or_default();
    longest.min(NAMES) + 26
}

/// Returns the approximate width of a text, in pixels; a non-ASCII character is taken for a wide one.
fn width(text: &str) -> u32 {
    let wide = text.chars().filter(|c| !c.is_ascii()).count();
    let characters = u32::try_from(text.chars().count() + wide).unwrap_or(NAMES);
    characters.saturating_mul(CHARACTER)
}

/// Returns places for names beside these heights, each at least a line below the previous one, and none
/// below `lowest` as long as there is room.
fn apart(heights: &[i32], lowest: i32) -> Vec<i32> {
    let mut order: Vec<usize> = (0..heights.len()).collect();
    order.sort_by_key(|at| heights.get(*at).copied());
    let mut places = heights.to_vec();
    let mut least = i32::MIN;
    for at in &order {
        if let Some(place) = places.get_mut(*at) {
            *place = (*place).max(least);
            least = *place + LINE;
        }
    }
    let mut most = lowest;
    for at in order.iter().rev() {
        if let Some(place) = places.get_mut(*at) {
            *place = (*place).min(most);
            most = *place - LINE;
        }
    }
    places
}

/// Returns the ends of an axis that holds all values.
fn ends(values: impl Iterator<Item = f64>, log: bool) -> Result<(f64, f64), BenchError> {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in values {
        low = low.min(value);
        high = high.max(value);
    }
    if low > high {
        return Err(BenchError::Picture("there is nothing to draw".to_owned()));
    }
    if log {
        return Ok(if high > low { (low / 1.1, high * 1.1) } else { (low / 2.0, low * 5.0) });
    }
    let low = low.min(0.0);
    Ok((low, if high > low { high + (high - low) * 0.04 } else { low + 1.0 }))
}

/// Returns the numbers that a logarithmic axis labels: powers of ten, and if these are few, their
/// doubles and halves too.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let steps: &[f64] = if last - first > 4 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let all = (first..=last).flat_map(|power| steps.iter().map(move |step| (power, step)));
    // For a power below 1, divide: 2 / 10 gives 0.2, while 2 * 0.1 does not.
    let all = all.map(|(power, step)| match power < 0 {
        true => step / 10_f64.powi(-power),
        false => step * 10_f64.powi(power),
    });
    all.filter(|tick| (low..=high).contains(tick)).collect()
}

/// Returns the label of a number on an axis: `120k`, `1.5M`, `0.25`.
pub(super) fn short(value: f64) -> String {
    let (value, unit) = match value.abs() {
        size if size >= 1e6 => (value / 1e6, "M"),
        size if size >= 1e3 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let digits = match value.abs() {
        size if size >= 100.0 || size.fract() < 1e-9 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    format!("{text}{unit}")
}

pub(super) fn failed(error: impl Display) -> BenchError {
    BenchError::Picture(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (value, expected) in [
            (0.0, "0"),
            (0.25, "0.25"),
            (0.1414, "0.141"),
            (12.5, "12.5"),
            (1_500.0, "1.5k"),
            (120_000.0, "120k"),
            (2e6, "2M"),
        ] {
            assert_eq!(short(value), expected);
        }
    }

    #[test]
    fn names_stand_apart() {
        assert_eq!(apart(&[100, 10, 100, 104], 400), [100, 10, 116, 132]);
        assert_eq!(apart(&[400, 395, 400], 400), [384, 368, 400]);
        assert_eq!(apart(&[], 400), [0; 0]);
    }

    #[test]
    fn a_logarithmic_axis_names_round_numbers() {
        assert_eq!(ticks(0.15, 3.0), [0.2, 0.5, 1.0, 2.0]);
        assert_eq!(ticks(1_700.0, 9_000.0), [2_000.0, 5_000.0]);
        assert_eq!(ticks(1.0, 1e6), [1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6]);
    }

    #[test]
    fn every_pair_of_axes_draws_every_curve() {
        for (x, y) in [(false, false), (true, false), (false, true), (true, true)] {
            let axis = |log| Axis { label: "n".to_owned(), log };
            let one = Series {
                name: "one".to_owned(),
                points: vec![(0.0, 1.0), (1.0, 2.0), (10.0, 30.0)],
                strong: true,
                dashed: false,
            };
            let two = Series { name: "two".to_owned(), dashed: true, strong: false, ..one.clone() };
            let marks = vec![Mark { x: 2.0, label: "even".to_owned() }];
            let lines = Lines { x: axis(x), y: axis(y), series: vec![one, two], marks };
            let svg = lines.svg().unwrap();
            assert!(svg.contains("#0A6F6A") && svg.contains("#4CA89F"), "{svg}");
            assert!(svg.contains("even") && svg.ends_with("</svg>\n"), "{svg}");
            // Each curve is named at its end.
            assert!(svg.contains("\none\n") && svg.contains("\ntwo\n"), "{svg}");
            assert_eq!(svg, lines.svg().unwrap());
        }
    }

    #[test]
    fn nothing_cannot_be_drawn() {
        let error = Lines::default().svg().unwrap_err();
        assert!(error.to_string().contains("nothing to draw"));
    }
}
