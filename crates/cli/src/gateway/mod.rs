//! A gateway in this process, for the commands that run one.

mod client;
mod hosted;
mod recall;
mod tenants;

pub(crate) use client::{Client, Pointer};
pub(crate) use hosted::{Hosted, LAST_ANSWERS, Providers, RecallArg, notes, runtime};
pub(crate) use recall::Recall;
pub(crate) use tenants::KnownTenants;
