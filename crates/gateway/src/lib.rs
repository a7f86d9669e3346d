//! A gateway between any agent and its model provider.
//!
//! An agent is pointed at the gateway by its base URL, and needs no other change. A request goes to the provider byte
//! for byte as it came, as long as nothing is left out of it, and so does the answer on its way back. In addition, each
//! conversation is recorded in a todo of its own, where it can be searched and loaded.
//!
//! - [`Gateway`] answers clients; [`GatewayConfig`] names the providers that it passes requests on to.
//! - [`Upstream`] is a provider's address, and determines where a request goes.
//! - [`Recorder`] records what was said, in threads of its own: a client waits for it only if something may be left
//!   out of its request.
//! - [`self_test()`] and [`Check`] test whether all of this works here, and [`Running`] describes a gateway that runs
//!   elsewhere.
//! - [`Ledger`] records what each request cost, what it would have cost whole, and its [`Contents`].
//! - [`Traffic`] keeps each exchange as it passed, if that is enabled.
//! - [`Taped`] is an exchange that was kept, and [`Replay`] computes what a gateway would have sent of it;
//!   [`ProxyTrial`] does so for another proxy.
//! - [`Branches`] is what a store holds of one client's conversation: a tree, because clients rewind, edit,
//!   fork and compact.
//!
//! A gateway that cannot record says so in a header and in its log, and continues to pass requests on.

mod api;
mod body;
mod branches;
mod caching;
mod check;
mod checkup;
mod class;
mod client_message;
mod config;
mod contents;
mod conversation;
mod entries;
mod error;
mod exact;
mod exchange;
mod family;
mod finisher;
mod fold;
mod forward;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod gateway;
mod guard;
mod headers;
mod identity;
mod in_progress;
mod ledger;
mod member;
mod metrics;
mod model_answer;
mod operations;
mod own_answers;
mod proxy_trial;
mod reader;
mod recorder;
mod recorder_thread;
mod refusal;
mod replay;
mod replayed;
mod rest;
mod rewriting;
mod self_test;
mod session_todos;
mod spent;
mod sse;
mod taped;
mod tenants;
mod text_name;
mod traffic;
mod trail;
mod turn;
mod unkept;
mod upstream;
mod usage;
mod way;
mod whole_body;

pub use api::Api;
pub use branches::Branches;
pub use checkup::{Check, Running};
pub use config::{GatewayConfig, Keeping, Log, RecallBy};
pub use contents::{Contents, SentPart, WhyWhole};
pub use entries::Entries;
pub use error::GatewayError;
pub use finisher::Finisher;
pub use gateway::Gateway;
pub use guard::{TOKEN, is_this_machine};
pub use identity::TODO;
pub use ledger::{Bill, Checked, Entry, Ledger, Recalls, Sums};
pub use proxy_trial::ProxyTrial;
pub use recorder::Recorder;
pub use replay::Replay;
pub use self_test::self_test;
pub use session_todos::SessionTodos;
pub use taped::Taped;
pub use tenants::Tenants;
pub use text_name::TextName;
pub use traffic::Traffic;
pub use upstream::Upstream;
pub use usage::Tokens;
