//! Finds secrets in text: keys, tokens and passwords, by their shape.
//!
//! [`find`] returns the places. One table, `shapes.rs`, describes each kind of secret: its prefix, its form, and a
//! check of what is found. Two kinds of places have rules of their own: named values (`password = ..`,
//! `"apiKey": ".."`) in `assignment.rs`, and private keys with something around each line in `shown.rs`. A text
//! may be escaped once or more, as the arguments of a tool call in JSON are. Secrets are found under escapes, too, and
//! the places are those in the text as given.
//!
//! ```
//! use foldback_redaction::{find, mark};
//!
//! let text = r#"{"密码": "Kx7\u0021mQ2zP", "bucket": "logs"}"#;
//! let found = find(text);
//! assert_eq!(found[0].kind, "password");
//! assert_eq!(found[0].secret, "Kx7!mQ2zP");
//! assert_eq!(&text[found[0].range.clone()], r"Kx7\u0021mQ2zP");
//! assert_eq!(mark(found[0].kind, 1), "[redacted password 1]");
//! ```
//!
//! It never reads a clock, a file or the environment, and the same text always gives the same answer.

mod finding;
mod mark;
mod shapes;

mod assignment;
mod checks;
mod patience;
mod shape;
mod shown;
mod unescaped;

pub use finding::{Finding, find, kinds, replaced};
pub use mark::{has_marks, highest_number, mark, plain, without_numbers};
