//! A gateway in this process, for the commands that run one.

mod client;
mod hosted;
mod recall;
mod tenants;

pub(crate) use client::{Client, Pointer};
pub(crate) use hosted::{Hosted, LAST_ANSWERS, Providers, RecallArg, notes, runtime};
pub(crate) use recall::Recall;
pub(crate) use tenants::KnownTenants;

use foldback_gateway::{GatewayError, Upstream};

/// Reads the address of a running gateway from the command line.
pub(crate) fn gateway_address(text: &str) -> Result<String, String> {
    match Upstream::new(text.trim()) {
        // A proxy in front of a gateway may ask for a name and a password.
        Ok(_) | Err(GatewayError::UpstreamKey) => Ok(text.trim().to_owned()),
        Err(_) => Err("expected an address such as http://127.0.0.1:8377".to_owned()),
    }
}
