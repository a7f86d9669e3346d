//! Marks that a model sets while it writes: `[citation:1]`, after what the first source says.

/// The marks of one request. Their name is in none of the texts that the model reads there, so that the author
/// of such a text cannot set a mark with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marks {
    name: String,
}

/// A text whose marks were taken out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marked {
    /// The text.
    pub text: String,
    /// The marks, in order.
    pub marks: Vec<Mark>,
    /// Marks that name no source at all, as they were written.
    pub unreadable: Vec<String>,
}

/// A mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Where the words that it belongs to begin, in bytes of the text: at its sentence, or after the mark before.
    pub start: usize,
    /// Where the mark was.
    pub end: usize,
    /// The numbers of the sources that it names, as written; the first is 1.
    pub numbers: Vec<usize>,
}

const NAME: &str = "citation";

/// The longest mark, in bytes between its brackets.
const MAX_MARK: usize = 160;

impl Default for Marks {
    /// `[citation:1]`.
    fn default() -> Self {
        Self { name: NAME.to_owned() }
    }
}

impl Marks {
    /// Creates marks for a reader of these texts: `[citation:1]`, unless one of them holds something like it.
    /// The name then has a part that is derived from all of them, which none of them can know.
    #[must_use]
    pub fn avoiding<'t>(texts: impl IntoIterator<Item = &'t str>) -> Self {
        let mut hasher = blake3::Hasher::new();
        let mut is_taken = false;
        for text in texts {
            is_taken |=
                ["citation:", "citation：", "citation-"].iter().any(|mark| text.contains(mark));
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        if !is_taken {
            return Self::default();
        }
        let hash = hasher.finalize().to_hex();
        Self { name: format!("{NAME}-{}", hash.get(..6).unwrap_or_default()) }
    }

    /// Returns the mark of a source.
    #[must_use]
    pub fn mark(&self, number: usize) -> String {
        format!("[{}:{number}]", self.name)
    }

    /// Takes the marks out of a text, each with one space before it. A mark may hold several numbers; brackets,
    /// colons and commas may be those of Chinese.
    #[must_use]
    pub fn take_out(&self, text: &str) -> Marked {
        let mut marked = Marked::default();
        let mut rest = text;
        while let Some((before, inner, after)) = self.next(rest) {
            marked.text.push_str(before.strip_suffix(' ').unwrap_or(before));
            rest = after;
            match self.numbers(inner) {
                Some(numbers) => {
                    let end = marked.text.len();
                    let behind = marked.marks.last().map_or(0, |mark| mark.end);
                    // Adjacent marks belong to the same words.
                    let start = match marked.marks.last() {
                        Some(last) if last.end == end => last.start,
                        _ => behind + marked.text.get(behind..).map_or(0, sentence_start),
                    };
                    marked.marks.push(Mark { start, end, numbers });
                }
                None => marked.unreadable.push(format!("[{inner}]")),
            }
        }
        marked.text.push_str(rest);
        marked
    }

    /// Returns the text before the next mark, between its brackets, and after it.
    fn next<'t>(&self, text: &'t str) -> Option<(&'t str, &'t str, &'t str)> {
        text.match_indices(self.name.as_str()).find_map(|(at, name)| {
            let (before, rest) = (text.get(..at)?, text.get(at + name.len()..)?);
            rest.starts_with([':', '：']).then_some(())?;
            let (before, close) = match before.strip_suffix('[') {
                Some(before) => (before, ']'),
                None => (before.strip_suffix('【')?, '】'),
            };
            let near = rest.get(..rest.floor_char_boundary(MAX_MARK))?;
            let end = near.find([close, '\n'])?;
            let inner = text.get(at..at + name.len() + end)?;
            let after = rest.get(end..)?.strip_prefix(close)?;
            Some((before, inner, after))
        })
    }

    /// Returns the numbers in a mark: `citation:1, 2` or `citation:1, citation:2`.
    fn numbers(&self, inner: &str) -> Option<Vec<usize>> {
        let parts = inner.split([',', '，', '、', ';', '；']);
        let numbers = parts.map(|part| {
            let part = part.trim();
            let part = part.strip_prefix(self.name.as_str()).unwrap_or(part);
            part.trim_start_matches([':', '：']).trim().parse().ok()
        });
        numbers.collect()
    }
}

/// Returns where the last sentence of a text begins.
fn sentence_start(text: &str) -> usize {
    let body = text.trim_end_matches(|c: char| c.is_whitespace() || ends_sentence(c) || closes(c));
    let mut chars = body.char_indices().rev().peekable();
    let mut behind = body.len();
    let mut next = None;
    for (at, c) in &mut chars {
        let is_end = match c {
            '\n' | '。' | '！' | '？' => true,
            '.' | '!' | '?' => next.is_none_or(char::is_whitespace),
            _ => false,
        };
        if is_end {
            let gap = text.get(behind..).unwrap_or_default();
            return behind + gap.len()
                - gap.trim_start_matches(|c: char| c.is_whitespace() || closes(c)).len();
        }
        (behind, next) = (at, Some(c));
    }
    text.len() - text.trim_start().len()
}

fn ends_sentence(c: char) -> bool {
    matches!(c, '.' | '!' | '?' | '。' | '！' | '？' | '…')
}

fn closes(c: char) -> bool {
    matches!(c, '"' | '\'' | ')' | ']' | '”' | '’' | '」' | '』' | '）' | '》')
}
