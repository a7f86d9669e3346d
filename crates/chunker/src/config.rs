//! The settings of a chunker.

/// The sizes of blocks and the conditions under which they close. Checked on construction: every value of this type is
/// usable.
#[derive(Clone, Debug, PartialEq)]
pub struct ChunkerConfig {
    min: u32,
    max: u32,
    gap_ms: i64,
    look_ahead: u32,
    topic_threshold: f32,
    same_topic: f32,
    merge_over: f32,
}

impl ChunkerConfig {
    /// Sets blocks of `min` to `max` messages; the open tail holds at most `max` as well.
    ///
    /// # Errors
    /// When `min` is 0 or greater than `max`, or `max` is greater than 8: the live view shows the
    /// tail whole, so that a greater block would break its bound.
    pub fn with_sizes(self, min: u32, max: u32) -> Result<Self, Error> {
        if min == 0 || min > max || max > 8 {
            return Err(Error::Sizes { min, max });
        }
        Ok(Self { min, max, ..self })
    }

    /// Sets the silence, in seconds, that ends a block (300 in the design), between messages that carry a time.
    ///
    /// # Errors
    /// When it is 0.
    pub fn with_gap_seconds(self, seconds: u32) -> Result<Self, Error> {
        if seconds == 0 {
            return Err(Error::Gap);
        }
        Ok(Self { gap_ms: i64::from(seconds) * 1000, ..self })
    }

    /// Sets the score at or above which a change of topic is a cut; -1.0 suits dialogues, service sessions and tool use
    /// alike, -0.5 cuts more surely and -1.25 more often.
    ///
    /// # Errors
    /// When it is not a finite number.
    pub fn with_topic_threshold(self, score: f32) -> Result<Self, Error> {
        if !score.is_finite() {
            return Err(Error::Threshold(score));
        }
        Ok(Self { topic_threshold: score, ..self })
    }

    /// Sets how many newer messages a change of topic waits for, 0 to 3.
    ///
    /// # Errors
    /// When it is greater than 3: the tail would have no room for the block that waits.
    pub fn with_look_ahead(self, messages: u32) -> Result<Self, Error> {
        if messages > 3 {
            return Err(Error::LookAhead(messages));
        }
        Ok(Self { look_ahead: messages, ..self })
    }

    /// Sets the cosine that means "same topic" on the scale of the embedder whose vectors are pushed:
    /// `Embedder::same_topic`. It is a weak sign: the built-in embedder's best cosine distinguishes neighbouring runs of
    /// messages of one topic from runs across a change with a balanced accuracy of .66. Changes of topic are therefore
    /// found by words, cues and roles, and vectors only merge.
    ///
    /// # Errors
    /// When it is not strictly between 0 and 1.
    pub fn with_same_topic(self, cosine: f32) -> Result<Self, Error> {
        if !(cosine > 0.0 && cosine < 1.0) {
            return Err(Error::Cosine(cosine));
        }
        Ok(Self { same_topic: cosine, ..self })
    }

    /// Sets the calibrated similarity above which neighbouring rough blocks are merged: 0.70 to 0.75 in the design,
    /// where 0.72 is "same topic" for every embedder.
    ///
    /// # Errors
    /// When it is not strictly between 0 and 1.
    pub fn with_merge_over(self, calibrated: f32) -> Result<Self, Error> {
        if !(calibrated > 0.0 && calibrated < 1.0) {
            return Err(Error::Cosine(calibrated));
        }
        Ok(Self { merge_over: calibrated, ..self })
    }

    /// Returns the fewest messages of a block that has neither an end of the conversation nor a hard signal beside it.
    #[must_use]
    pub fn min(&self) -> u32 {
        self.min
    }

    /// Returns the greatest number of messages in the open tail, and in a block that is not one larger unit.
    #[must_use]
    pub fn max(&self) -> u32 {
        self.max
    }

    pub(crate) fn gap_ms(&self) -> i64 {
        self.gap_ms
    }

    pub(crate) fn look_ahead(&self) -> u32 {
        self.look_ahead
    }

    pub(crate) fn topic_threshold(&self) -> f32 {
        self.topic_threshold
    }

    /// Returns the cosine, on the embedder's own scale, above which rough blocks are merged. It is the inverse of
    /// `Embedder::calibrated`: linear on each side of "same topic".
    pub(crate) fn merge_cosine(&self) -> f32 {
        if self.merge_over <= CALIBRATED_SAME_TOPIC {
            self.merge_over / CALIBRATED_SAME_TOPIC * self.same_topic
        } else {
            let beyond = (self.merge_over - CALIBRATED_SAME_TOPIC) / (1.0 - CALIBRATED_SAME_TOPIC);
            self.same_topic + beyond * (1.0 - self.same_topic)
        }
    }
}

/// The position of "same topic" on the common scale of `Embedder::calibrated`.
const CALIBRATED_SAME_TOPIC: f32 = 0.72;

/// The design's values: a gap of five minutes, look-ahead 3, threshold -1.0. The design allows blocks of
/// 3 to 8 messages, and asks for 3 to 5 loose ones; blocks of 3 to 5 keep both, as the open tail is no longer than
/// a block. The cosine of "same topic" is a middling 0.5 until the embedder's own is set.
impl Default for ChunkerConfig {
    fn default() -> Self {
        Self {
            min: 3,
            max: 5,
            gap_ms: 5 * 60 * 1000,
            look_ahead: 3,
            topic_threshold: -1.0,
            same_topic: 0.5,
            merge_over: CALIBRATED_SAME_TOPIC,
        }
    }
}

/// An invalid setting.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The sizes of blocks do not fit together.
    #[error("blocks hold {min} to {max} messages, but 1 <= min <= max <= 8 is expected")]
    Sizes {
        /// The fewest messages.
        min: u32,
        /// The most messages.
        max: u32,
    },
    /// The gap is zero.
    #[error("the gap that ends a block is 0 seconds, but at least 1 is expected")]
    Gap,
    /// The threshold is not a number.
    #[error("the topic threshold is {0}, but a finite number is expected")]
    Threshold(f32),
    /// The look-ahead is too long.
    #[error("a topic change waits for {0} newer messages, but at most 3 fit into the tail")]
    LookAhead(u32),
    /// A similarity is out of range.
    #[error("the similarity is {0}, but a number between 0 and 1 is expected")]
    Cosine(f32),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bar for merging is the inverse of the common scale, on both sides of "same topic".
    #[test]
    fn the_bar_for_merging_is_on_the_embedder_s_scale() {
        let cosine = |calibrated| {
            let config = ChunkerConfig::default().with_same_topic(0.5).unwrap();
            config.with_merge_over(calibrated).unwrap().merge_cosine()
        };
        for (calibrated, expected) in [(0.36, 0.25), (0.72, 0.5), (0.86, 0.75), (0.93, 0.875)] {
            assert!((cosine(calibrated) - expected).abs() < 1e-6, "{calibrated}");
        }
    }

    #[test]
    fn nonsense_is_refused_with_a_sentence() {
        let config = ChunkerConfig::default;
        for error in [
            config().with_sizes(0, 8).unwrap_err(),
            config().with_sizes(5, 4).unwrap_err(),
            config().with_sizes(3, 9).unwrap_err(),
            config().with_gap_seconds(0).unwrap_err(),
            config().with_topic_threshold(f32::NAN).unwrap_err(),
            config().with_look_ahead(4).unwrap_err(),
            config().with_same_topic(1.0).unwrap_err(),
            config().with_merge_over(f32::NAN).unwrap_err(),
        ] {
            assert!(error.to_string().contains("expected") || error.to_string().contains("fit"));
        }
    }

    #[test]
    fn bl5_the_merge_threshold_lies_on_the_embedders_scale() {
        let config = ChunkerConfig::default().with_same_topic(0.4).unwrap();
        assert!((config.merge_cosine() - 0.4).abs() < 1e-6);
        let strict = config.clone().with_merge_over(0.75).unwrap();
        let loose = config.with_merge_over(0.70).unwrap();
        assert!(loose.merge_cosine() < 0.4 && 0.4 < strict.merge_cosine());
    }
}
