//! The content of a message.

/// The content of a message: nothing, one text, or parts.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// No content, as in an assistant message that only calls tools.
    Empty,
    /// One text.
    Text(String),
    /// Several parts, in order.
    Parts(Vec<Part>),
}

/// One part of a content.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// A text.
    Text(String),
    /// A part of a kind that the model of messages does not know (an image, audio, a document, a
    /// provider's own): its exact JSON, passed through unchanged.
    Other(Box<str>),
}

impl Content {
    /// Returns the texts, in order.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let (one, parts): (Option<&str>, &[Part]) = match self {
            Self::Empty => (None, &[]),
            Self::Text(text) => (Some(text), &[]),
            Self::Parts(parts) => (None, parts),
        };
        one.into_iter().chain(parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Other(_) => None,
        }))
    }

    /// Returns whether there is nothing to send: no part, and no text but white space.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Text(text) => text.trim().is_empty(),
            Self::Parts(parts) => parts.iter().all(|part| match part {
                Part::Text(text) => text.trim().is_empty(),
                Part::Other(_) => false,
            }),
        }
    }
}
