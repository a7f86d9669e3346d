//! What a kind of task asks of its memory.

/// What becomes of the words that leave the prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Summed up and dropped: the model cannot get at them again. For tasks that go straight to a
    /// known end, where a later step does not need an earlier one's details.
    Compress,
    /// Summed up behind a pointer: the model has a tool that searches them and one that reads them.
    /// For tasks where an exact word may matter a hundred steps later: an error code, a coordinate.
    #[default]
    Offload,
}

/// How the memory of one kind of task is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scene {
    /// What the scene is called: `ppt`.
    pub name: String,
    /// What becomes of the words that leave the prompt.
    pub mode: Mode,
    /// Tools that are handed raw content whole, whatever the mode, while the model sees the
    /// summary of it: see [`StmLtm::hand_over`](super::StmLtm::hand_over).
    pub raw_readers: Vec<String>,
    /// Fields that every summary keeps, each as one line `field: value` of the latest value that was
    /// found, or `field: (not found)`.
    pub schema: Vec<String>,
}

impl Default for Scene {
    /// `general`: offload, no reader but the model, no schema.
    fn default() -> Self {
        Self {
            name: "general".to_owned(),
            mode: Mode::default(),
            raw_readers: Vec::new(),
            schema: Vec::new(),
        }
    }
}

impl Scene {
    /// `ppt`: the model works on summaries, and `renderer`, the tool that makes the slides, is
    /// handed the raw content, because layout needs every word.
    #[must_use]
    pub fn ppt(renderer: &str) -> Self {
        Self {
            name: "ppt".to_owned(),
            mode: Mode::Compress,
            raw_readers: vec![renderer.to_owned()],
            schema: Vec::new(),
        }
    }

    /// Whether the memory names each message, so that its words can be asked for.
    pub(crate) fn shows_ids(&self) -> bool {
        self.mode == Mode::Offload || !self.raw_readers.is_empty()
    }
}
