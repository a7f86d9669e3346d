//! The model calls that a context policy makes for its own ends.

/// The account of a policy that asks a model itself, a summary for instance. The loop bills these calls
/// beside its own.
pub trait SideCalls: Send {
    /// The calls that the policy made, or that its stand-in for a model stood for, since they were last
    /// taken, in order.
    fn take(&mut self) -> Vec<SideCall>;
}

/// A call to a model that a policy made for its own ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SideCall {
    /// What it is for, in one word: `summary`.
    pub purpose: &'static str,
    /// The tokens that the model is sent.
    pub input_tokens: usize,
    /// The tokens that it writes.
    pub output_tokens: usize,
    /// What it cost, where it was made and that is known: another model than the loop's may have been
    /// asked.
    pub cost: Option<f64>,
}
