//! Finds the lines of a text on which its parts begin.

/// A counter of the lines of a text, which takes a single pass if its parts are asked for in order.
pub(crate) struct Lines<'t> {
    text: &'t str,
    /// The line on which the text begins.
    first: u64,
    /// How far line breaks were counted, in bytes.
    at: usize,
    breaks: u64,
}

impl<'t> Lines<'t> {
    /// Creates a counter for a text that begins on line `first`.
    pub(crate) fn new(text: &'t str, first: u64) -> Self {
        Self { text, first, at: 0, breaks: 0 }
    }

    /// Returns the line on which `part`, a slice of the text, begins.
    pub(crate) fn of(&mut self, part: &str) -> u64 {
        let at = (part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        if at < self.at {
            (self.at, self.breaks) = (0, 0);
        }
        let passed = self.text.as_bytes().get(self.at..at).unwrap_or_default();
        self.breaks += passed.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.at = at;
        self.first + self.breaks
    }
}

#[cfg(test)]
mod tests {
    use super::Lines;

    #[test]
    fn parts_are_found_in_any_order() {
        let text = "一\n二 b\nc\n\nd";
        let mut lines = Lines::new(text, 10);
        let line = |part: &str, lines: &mut Lines<'_>| {
            let at = text.find(part).unwrap_or(text.len());
            lines.of(text.get(at..).unwrap_or_default())
        };
        for (part, expected) in [("一", 10), ("二", 11), ("b", 11), ("d", 14), ("c", 12), ("d", 14)]
        {
            assert_eq!(line(part, &mut lines), expected, "{part}");
        }
    }
}
