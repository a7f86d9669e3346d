//! A conversation that is replayed through the gateway.

use super::client::Client;
use crate::Case;
use crate::savings::Group;
use foldback_gateway::{Api, Taped};
use serde_json::Value;

/// A conversation that is replayed through the gateway.
pub struct Talk {
    /// Its name.
    pub id: String,
    /// The file or folder from which it came.
    pub file: String,
    /// The group in which it is summed up.
    pub group: Group,
    played: Played,
}

enum Played {
    /// As a client would have sent it.
    Recording(Client),
    /// As a client sent it.
    Traffic(Vec<Taped<'static>>),
}

impl Talk {
    /// Returns a recorded conversation as a client of Anthropic's API sends it; `None` if no model
    /// speaks in it.
    #[must_use]
    pub fn of(case: &Case) -> Option<Self> {
        let played = Played::Recording(Client::of(&case.id, &case.conversation)?);
        Some(Self { id: case.id.clone(), file: case.file.clone(), group: Group::of(case), played })
    }

    /// Returns the conversations in a folder of exchanges: exchanges of one session belong together; if
    /// a client names no session, those with the same beginning do.
    #[must_use]
    pub fn of_traffic(file: &str, exchanges: Vec<Taped<'static>>) -> Vec<Self> {
        let mut sessions: Vec<(String, Vec<Taped<'static>>)> = Vec::new();
        let is_sent = |exchange: &Taped<'_>| {
            exchange.api.has_conversation() && (200..300).contains(&exchange.status)
        };
        for exchange in exchanges.into_iter().filter(is_sent) {
            let known_by = exchange.session.clone().unwrap_or_else(|| opening(&exchange));
            match sessions.iter_mut().find(|(of, _)| *of == known_by) {
                Some((_, session)) => session.push(exchange),
                None => sessions.push((known_by, vec![exchange])),
            }
        }
        let talk = |(n, (_, exchanges)): (usize, (_, Vec<Taped<'static>>))| {
            let client = exchanges.first().map_or("agent", |first| &first.client);
            Self {
                id: format!("{client}-{}", n + 1),
                file: file.to_owned(),
                group: Group::Agent,
                played: Played::Traffic(exchanges),
            }
        };
        sessions.into_iter().enumerate().map(talk).collect()
    }

    /// Returns whether it has recorded times.
    pub(crate) fn has_times(&self) -> bool {
        matches!(self.played, Played::Traffic(_))
    }

    /// Returns the requests and answers.
    pub(crate) fn exchanges(&self) -> Box<dyn Iterator<Item = Taped<'_>> + '_> {
        match &self.played {
            Played::Recording(client) => Box::new(client.exchanges()),
            Played::Traffic(exchanges) => Box::new(exchanges.iter().cloned()),
        }
    }
}

/// Returns the beginning of a conversation, together with the program that sent it.
fn opening(exchange: &Taped<'_>) -> String {
    let body: Value = serde_json::from_str(&exchange.request).unwrap_or_default();
    let list = if exchange.api == Api::Responses { "input" } else { "messages" };
    format!("{} {}", exchange.client, body[list].get(0).unwrap_or(&body[list]))
}
