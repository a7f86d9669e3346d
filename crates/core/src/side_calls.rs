//! The model calls that a context policy makes for its own purposes.

/// The account of a policy that calls a model itself, for a summary for instance. The loop bills these calls beside its
/// own.
pub trait SideCalls: Send {
    /// Returns the calls that the policy made, or that its stand-in for a model represents, since they were last taken,
    /// in order.
    fn take(&mut self) -> Vec<SideCall>;
}

/// A call to a model that a policy made for its own purposes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SideCall {
    /// What it is for, in one word: `summary`.
    pub purpose: &'static str,
    /// The tokens sent to the model.
    pub input_tokens: usize,
    /// The tokens that the model writes.
    pub output_tokens: usize,
    /// What it cost, if it was made and that is known: the model may be another than the loop's.
    pub cost: Option<f64>,
}
