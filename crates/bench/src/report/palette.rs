//! The colours of pictures, and the size of their text. In dark mode, a page replaces colours by
//! matching their values.

use plotters::style::RGBColor;

/// Axes and text.
pub(super) const INK: RGBColor = RGBColor(0x62, 0x5e, 0x56);
/// Grid lines.
pub(super) const GRID: RGBColor = RGBColor(0xe5, 0xe1, 0xd8);

/// The text size as plotters takes it; in SVG it becomes 0.81 of that, in pixels.
pub(super) const FONT: u32 = 16;

/// The light and the dark variant of each colour. The first two are foldback's own; the last belongs to
/// the baseline of all comparisons.
pub(super) const COLOURS: [(RGBColor, &str); 10] = [
    (RGBColor(0x0a, 0x6f, 0x6a), "#55c7bc"),
    (RGBColor(0x4c, 0xa8, 0x9f), "#2f9e95"),
    (RGBColor(0xb4, 0x53, 0x09), "#e79a54"),
    (RGBColor(0x9d, 0x17, 0x4d), "#ee7fb0"),
    (RGBColor(0x5b, 0x4b, 0xb0), "#a99cf0"),
    (RGBColor(0x1d, 0x5f, 0xa8), "#79b4f0"),
    (RGBColor(0x8a, 0x7a, 0x12), "#d3c04a"),
    (RGBColor(0xa3, 0x3b, 0x2b), "#f08d7c"),
    (RGBColor(0x3f, 0x7d, 0x2c), "#8ccf75"),
    (RGBColor(0x6b, 0x72, 0x80), "#a3abb8"),
];

/// Returns the colour of the series at this place, starting again after the last.
pub(super) fn colour(at: usize) -> RGBColor {
    COLOURS.get(at % COLOURS.len()).map_or(INK, |(colour, _)| *colour)
}

/// Returns a colour as SVG writes it.
pub(super) fn hex(RGBColor(r, g, b): RGBColor) -> String {
    format!("#{r:02X}{g:02X}{b:02X}")
}

/// Returns the CSS rules for pictures in dark mode.
pub(super) fn dark_rules() -> String {
    let pairs = COLOURS.iter().map(|(light, dark)| (*light, *dark));
    pairs
        .chain([(INK, "#a5a198"), (GRID, "#2c2e33")])
        .map(|(light, dark)| {
            let light = hex(light);
            format!(
                "svg [stroke=\"{light}\"] {{ stroke: {dark}; }}\nsvg [fill=\"{light}\"] {{ fill: {dark}; }}\n\
                 .key i[data-colour=\"{light}\"] {{ background: {dark} !important; }}\n"
            )
        })
        .collect()
}
