//! Which conversation a request belongs to.

use crate::headers::text;
use axum::http::HeaderMap;
use serde::Deserialize;
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Headers in which clients name their session, in order of precedence: foldback's own for programs that have
/// none, then those of Claude Code, Codex and OpenCode.
pub(crate) const SESSION: [&str; 4] =
    ["x-foldback-session", "x-claude-code-session-id", "session-id", "x-session-affinity"];

/// Headers in which clients name an agent of a session: foldback's own, then those of Claude Code and Codex.
pub(crate) const AGENT: [&str; 3] = ["x-foldback-agent", "x-claude-code-agent-id", "thread-id"];

/// The header that names the todo.
pub const TODO: &str = "x-foldback-todo";

/// Headers that name a client's account, or carry its key. An account comes first: it stays when tokens are renewed.
const CREDENTIALS: [&str; 4] = ["chatgpt-account-id", "authorization", "x-api-key", "api-key"];

/// Who sent a request, as far as its headers say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sender {
    /// The todo that the sender names.
    pub(crate) todo: Option<String>,
    /// The program, in a word.
    pub(crate) client: String,
    session: Option<String>,
    agent: Option<String>,
    /// A digest of the key that it sends, made with the store's secret: keys are not kept.
    credential: Option<blake3::Hash>,
}

impl Sender {
    pub(crate) fn of(headers: &HeaderMap, secret: &[u8; 32]) -> Self {
        let first = |names: &[&str]| names.iter().find_map(|name| text(headers, name));
        let mut credential = None;
        for name in CREDENTIALS {
            if let Some(key) = headers.get(name) {
                credential = Some(blake3::keyed_hash(secret, key.as_bytes()));
                break;
            }
        }
        Self {
            todo: text(headers, TODO).map(str::to_owned),
            client: client_of(text(headers, "user-agent").unwrap_or_default()),
            session: first(&SESSION).map(str::to_owned),
            agent: first(&AGENT).map(str::to_owned),
            credential,
        }
    }

    /// Adds what the body says, if the headers do not.
    pub(crate) fn or_in(mut self, body: &Hints<'_>, secret: &[u8; 32]) -> Self {
        let (session, account) = body.session_and_account();
        self.session = self.session.or(session);
        // An account stays when its tokens are renewed.
        let account = account.map(|account| blake3::keyed_hash(secret, account.as_bytes()));
        self.credential = account.or(self.credential);
        self
    }

    /// Marks it as working for another agent: the todo that is named is that agent's.
    pub(crate) fn of_sub_agent(self) -> Self {
        Self { todo: None, ..self }
    }

    /// Returns a digest of its session and its agent; `None` if it names no session.
    pub(crate) fn session(&self, secret: &[u8; 32]) -> Option<blake3::Hash> {
        // No header holds a line break.
        let named = [self.session.as_deref()?, self.agent.as_deref().unwrap_or_default()];
        Some(blake3::keyed_hash(secret, named.join("\n").as_bytes()))
    }

    /// Returns a number that all requests of a conversation share: made from its todo, or its session and agent, as the
    /// headers name them, otherwise from the sender's key.
    pub(crate) fn number(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        match (&self.todo, &self.session) {
            (Some(todo), _) => todo.hash(&mut hasher),
            (None, Some(session)) => (session, &self.agent).hash(&mut hasher),
            (None, None) => self.credential.as_ref().map(blake3::Hash::as_bytes).hash(&mut hasher),
        }
        hasher.finish()
    }

    /// Returns what identifies the conversation that a request belongs to.
    pub(crate) fn known_by(&self) -> KnownBy {
        match (&self.todo, &self.session) {
            (Some(_), _) => KnownBy::Todo,
            (None, Some(_)) => KnownBy::Session,
            (None, None) => KnownBy::Beginning,
        }
    }

    /// Returns what all conversations of this sender share and no other sender's do: those of one agent of one
    /// session; if no session is named, those that begin with `opening`. The key counts, unless the session's name can
    /// be no other sender's: tokens are renewed while a session lasts.
    pub(crate) fn family(&self, opening: &blake3::Hash, secret: &[u8; 32]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(secret);
        let mut add = |part: Option<&[u8]>| {
            let part = part.unwrap_or_default();
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        };
        let credential = match self.session.as_deref().is_some_and(is_random) {
            true => None,
            false => self.credential.as_ref(),
        };
        add(credential.map(|digest| &digest.as_bytes()[..]));
        add(self.session.as_deref().map(str::as_bytes));
        add(self.agent.as_deref().map(str::as_bytes));
        add(self.session.is_none().then(|| &opening.as_bytes()[..]));
        hasher.finalize()
    }
}

/// UUIDs of version 4 or 7 that documents show as examples, and that people copy: those of RFC 9562, Wikipedia, MDN, and
/// the libraries of JavaScript, Python, Rust and .NET.
const EXAMPLES: [&str; 13] = [
    "919108f7-52d1-4320-9bac-f847db4148a8",
    "017f22e2-79b0-7cc3-98c4-dc0c0c07398f",
    "550e8400-e29b-41d4-a716-446655440000",
    "f47ac10b-58cc-4372-a567-0e02b2c3d479",
    "123e4567-e89b-42d3-a456-556642440000",
    "36b8f84d-df4e-4d49-b662-bcde71a8764f",
    "9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d",
    "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed",
    "109156be-c4fb-41ea-b1b4-efe1671c5836",
    "16fd2706-8baf-433b-82eb-8c7fada847da",
    "67e55044-10b1-426f-9247-bb680e5fe0c8",
    "936da01f-9abd-4d9d-80c7-02af85c822a8",
    "f9168c5e-ceb2-4faa-b6bf-329bf39fa1e4",
];

/// Returns whether a session's name has so much randomness that no other sender has it and none can guess it: a UUID of
/// version 4 or 7, or a name as OpenCode makes it. Every other name, also a UUID that is made from a name, typed or
/// copied from a document, may be used by several people.
fn is_random(session: &str) -> bool {
    is_random_uuid(session) || session.strip_prefix("ses_").is_some_and(is_opencodes)
}

fn is_random_uuid(session: &str) -> bool {
    let mut parts = session.split('-');
    let mut hex = |len: usize| {
        let is_hex = |part: &&str| part.len() == len && part.bytes().all(|b| b.is_ascii_hexdigit());
        parts.next().filter(is_hex)
    };
    let (Some(_), Some(_), Some(version), Some(variant), Some(_)) =
        (hex(8), hex(4), hex(4), hex(4), hex(12))
    else {
        return false;
    };
    parts.next().is_none()
        && version.starts_with(['4', '7'])
        && variant.starts_with(['8', '9', 'a', 'b', 'A', 'B'])
        && has_chance(session)
        && !EXAMPLES.iter().any(|example| example.eq_ignore_ascii_case(session))
}

/// Returns whether this is a time in 12 hexadecimal digits, followed by 14 random letters and digits.
fn is_opencodes(name: &str) -> bool {
    let Some((time, chance)) = name.split_at_checked(12) else { return false };
    let is_time = time.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    let is_chance = chance.len() == 14 && chance.bytes().all(|b| b.is_ascii_alphanumeric());
    is_time && is_chance && has_chance(chance)
}

/// Returns whether a name has as many different characters as a random one has, and no run of four that a keyboard or an
/// alphabet has: one that was typed, such as `00000000-0000-4000-8000-000000000001` or
/// `12345678-1234-4234-8234-123456789abc`, has few, or such a run.
fn has_chance(name: &str) -> bool {
    let mut seen = [false; 128];
    let bytes: Vec<u8> = name.bytes().filter(|byte| *byte != b'-').collect();
    for byte in &bytes {
        if let Some(at) = seen.get_mut(usize::from(*byte)) {
            *at = true;
        }
    }
    let is_run = |four: &[u8]| {
        let rises = |pair: &[u8]| matches!(pair, [a, b] if a.checked_add(1) == Some(*b));
        let falls = |pair: &[u8]| matches!(pair, [a, b] if b.checked_add(1) == Some(*a));
        four.windows(2).all(rises) || four.windows(2).all(falls)
    };
    seen.iter().filter(|is_there| **is_there).count() >= 7 && !bytes.windows(4).any(is_run)
}

/// What identifies the conversation that a request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KnownBy {
    /// The client names the todo.
    Todo,
    /// The client names its session, and may have several conversations in it.
    Session,
    /// What was said, as far as it is recorded.
    Beginning,
}

/// What a body says of its session.
#[derive(Deserialize, Default)]
pub(crate) struct Hints<'b> {
    #[serde(borrow, default)]
    metadata: Option<Metadata<'b>>,
}

#[derive(Deserialize, Default)]
struct Metadata<'b> {
    #[serde(borrow, default)]
    user_id: Option<Cow<'b, str>>,
}

#[derive(Deserialize)]
struct UserId<'u> {
    #[serde(borrow)]
    session_id: Cow<'u, str>,
    #[serde(borrow, default)]
    account_uuid: Cow<'u, str>,
}

impl Hints<'_> {
    /// Returns the session and the account: Claude Code writes them into the user's id, as JSON or after `_session_`.
    fn session_and_account(&self) -> (Option<String>, Option<String>) {
        let user = self.metadata.as_ref().and_then(|metadata| metadata.user_id.as_deref());
        let Some(user) = user else { return (None, None) };
        let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        match serde_json::from_str::<UserId<'_>>(user) {
            Ok(user) => (given(&user.session_id), given(&user.account_uuid)),
            Err(_) => (user.split_once("_session_").and_then(|(_, session)| given(session)), None),
        }
    }
}

/// Returns the program that a `User-Agent` names, as part of a todo's id: `claude-cli/2.1 (external)` is
/// `claude-cli`.
fn client_of(user_agent: &str) -> String {
    let name = user_agent.split(['/', ' ']).next().unwrap_or_default();
    let name: String = name
        .chars()
        .take(24)
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .collect();
    match name.trim_matches('-') {
        "" => "agent".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::is_random;

    /// GW3: only names that one sender alone can have stand for themselves.
    #[test]
    fn gw3_a_session_is_known_without_its_key_only_by_a_random_name() {
        for random in [
            "7d3f2a91-c4d0-4b7e-9a15-0c2be86f41d3",
            "7D3F2A91-C4D0-4B7E-9A15-0C2BE86F41D3",
            "019ab3c4-5d6e-7f80-91a2-b3c4d5e6f708",
            "ses_6d3ea5ed1ffeTPZyk3IXcHGVyJ",
        ] {
            assert!(is_random(random), "{random}");
        }
        for shared in [
            "",
            "main",
            "s1",
            "会话一",
            "7d3f2a91c4d04b7e9a150c2be86f41d3",
            "7d3f2a91-c4d0-4b7e-9a15-0c2be86f41d3-2",
            "7d3f2a91-c4d0-4b7e-9a15-0c2be86f41dg",
            "7d3f2a91-c4d0-4b7e-ca15-0c2be86f41d3",
            // Made from the network card and the time, and from a name.
            "7d3f2a91-c4d0-1b7e-9a15-0c2be86f41d3",
            "7d3f2a91-c4d0-5b7e-9a15-0c2be86f41d3",
            "00000000-0000-0000-0000-000000000000",
            "00000000-0000-4000-8000-000000000001",
            "11111111-1111-4111-8111-111111111111",
            "12345678-1234-4234-8234-123456789abc",
            "87654321-4321-4321-8321-cba987654321",
            "3f81ABCD-52d1-4320-9bac-f847db4148a8",
            "f47ac10b-58cc-4372-a567-0e02b2c3d479",
            "F47AC10B-58CC-4372-A567-0E02B2C3D479",
            "550e8400-e29b-41d4-a716-446655440000",
            "919108f7-52d1-4320-9bac-f847db4148a8",
            "017F22E2-79B0-7CC3-98C4-DC0C0C07398F",
            "ses_6d3ea5ed1ffeTPZyk3IX1234yJ",
            "ses_6d3ea5ed1ffeTPZyk3IXcHGVy",
            "ses_6d3ea5ed1ffeaaaaaaaaaaaaaa",
            "ses_港口港口TPZyk3IXcHGVyJ",
        ] {
            assert!(!is_random(shared), "{shared}");
        }
    }
}
