//! What a kind of task requires of its memory.

/// What happens to the words that leave the prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Summed up and dropped: the model cannot access them again. For tasks that lead straight to a
    /// known goal, where a later step does not need an earlier one's details.
    Compress,
    /// Summed up with a pointer: the model has a tool that searches them and one that reads them. For
    /// tasks in which an exact word may matter a hundred steps later: an error code, a coordinate.
    #[default]
    Offload,
}

/// How the memory of one kind of task is kept. The default is to offload, without a schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scene {
    /// What happens to the words that leave the prompt.
    pub mode: Mode,
    /// Fields that every summary keeps, each as one line `field: value` of the latest value that was
    /// found, or `field: (not found)`.
    pub schema: Vec<String>,
}
