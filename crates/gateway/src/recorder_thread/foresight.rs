//! What would be sent of a request that is only counted.

use super::{Folded, Keeper, Recalling, SHORTEST, Unkept, laid_out};
use crate::RecallBy;
use crate::conversation::Conversation;
use crate::exchange::Asked;
use foldback::Error;

impl Keeper {
    /// Returns what would be sent of a conversation whose tokens are counted. Nothing is recorded, and nothing changes
    /// in what is sent later.
    ///
    /// # Errors
    /// As [`keep`](Self::keep).
    pub(crate) fn foresee(&mut self, asked: &Asked) -> Result<Folded, Unkept> {
        let conversation = self.read(asked)?;
        if conversation.terms.load.is_none() {
            return Ok(Folded::default());
        }
        self.tried(&conversation, Self::foreseen)
    }

    /// Returns what would be sent of a conversation.
    fn foreseen(&mut self, name: &str, conversation: &Conversation) -> Result<Folded, Error> {
        let (memory, now) = (self.memory.clone(), self.memory.now());
        self.open(name, conversation)?;
        let digests: Vec<_> = conversation.messages.iter().map(|message| message.digest).collect();
        let Some(family) = self.families.get_mut(name) else { return Ok(Folded::default()) };
        let found = family.find(&memory, &digests, conversation.agent.as_ref())?;
        let found = found.filter(|(_, known)| known.messages > 0);
        let member = found.and_then(|(n, known)| Some((family.members.get_mut(n)?, known)));
        let Some((member, known)) = member else { return Ok(Folded::default()) };
        let session = &member.session;
        let looks_up = self.recalls.peek(session.todo()).copied().unwrap_or(session.blocks() > 0);
        let looks_up =
            looks_up && conversation.terms.is_unseen && self.reach.by == RecallBy::Always;
        let found = looks_up.then(|| Recalling::new(session.todo().clone(), conversation));
        if conversation.terms.place.len() < SHORTEST {
            return Ok(Folded { recall: found, ..Folded::default() });
        }
        let (arrangement, standing) = member.foreseen(conversation, &known, now)?;
        let folded = laid_out(&memory, member, conversation, &standing, arrangement);
        Ok(Folded { recall: found.or(folded.recall), ..folded })
    }
}
