//! The picture of a session: one HTML file that shows what a replay did, with everything in it.
//!
//! A [`Painter`] watches a replay and returns a [`Picture`], the data of one conversation: each
//! message once, what the model was sent at each call as numbers of messages, blocks, payloads,
//! searches. A [`Page`] collects pictures and writes the file, which loads nothing from anywhere.

mod drawing;
mod page;
mod painter;

mod picture;
mod recall;
mod text;
mod view;

pub(crate) use drawing::Replaying;
pub(crate) use page::{Page, can_be_written};
pub(crate) use painter::painted;
pub(crate) use picture::Picture;
