//! Tools that an agent works with.
