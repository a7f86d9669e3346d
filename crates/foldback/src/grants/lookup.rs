//! Resolves references as seen from a todo.

use super::record::lookup;
use crate::error::Failure;
use crate::memory::Shared;
use crate::{Error, ErrorKind};
use foldback_backend_store::{Error as PayloadError, Pending};
use foldback_blockstore::Error as BlockError;
use foldback_core::{BlockId, PayloadRef, Reference};
use foldback_disclosure::{Error as RecallError, Grants};
use foldback_kv::{Error as KvError, Todo};

impl Shared {
    /// See [`References::locate`](crate::References::locate).
    pub(crate) fn locate(&self, todo: &Todo, reference: &Reference) -> Result<Todo, Error> {
        let located = if reference.todo() == todo.id() {
            self.has(todo, reference)?.then(|| todo.clone())
        } else {
            self.granted(todo, reference)?
        };
        let missing =
            || Failure::NoReference { todo: todo.id().clone(), reference: reference.clone() };
        located.ok_or_else(|| missing().into())
    }

    /// Checks that the reference names something of this very todo.
    pub(crate) fn check_own(&self, todo: &Todo, reference: &Reference) -> Result<(), Error> {
        let (id, reference) = (todo.id().clone(), reference.clone());
        if reference.todo() != todo.id() {
            return Err(Failure::NotOwn { todo: id, reference }.into());
        }
        if self.has(todo, &reference)? {
            Ok(())
        } else {
            Err(Failure::NoReference { todo: id, reference }.into())
        }
    }

    /// Returns those of the names in a text that are of payloads which the todo may load, or will hold when what is
    /// pending is committed. Those of its own are read at once. What is damaged leads nowhere.
    pub(crate) fn leading_to_payloads<'a>(
        &self,
        todo: &Todo,
        pending: Option<&Pending>,
        names: &'a [String],
    ) -> Result<Vec<&'a str>, Error> {
        let (mut own, mut leading) = (Vec::new(), Vec::new());
        for name in names {
            let Ok(reference) = Reference::parse_in(todo.id(), name) else { continue };
            let Reference::Payload { n, check, .. } = &reference else { continue };
            if reference.todo() == todo.id() {
                own.push((name, *n, *check));
                continue;
            }
            match self.find_granted(todo, &reference) {
                Ok(None) => {}
                Err(error) if error.kind() == ErrorKind::Corrupt => {}
                found => leading.extend(found?.map(|_| name.as_str())),
            }
        }
        let stored = self.payloads.metas_of(todo, own.iter().map(|(_, n, _)| *n))?;
        leading.extend(own.iter().filter_map(|(name, n, check)| {
            let new = || pending.and_then(|new| new.meta(*n));
            let meta = stored.iter().find(|meta| meta.n == *n).or_else(new)?;
            (meta.check == *check).then_some(name.as_str())
        }));
        Ok(leading)
    }

    /// Returns whether the todo holds what a reference into it names.
    fn has(&self, todo: &Todo, reference: &Reference) -> Result<bool, Error> {
        match reference {
            Reference::Block(id) => Ok(self.blocks.block(todo, id.n())?.is_some()),
            Reference::Payload { n, check, .. } => {
                match self.payloads.resolve(todo, &PayloadRef::local(*n, *check)) {
                    Ok(_) => Ok(true),
                    Err(PayloadError::NotFound { .. } | PayloadError::WrongCheck { .. }) => {
                        Ok(false)
                    }
                    Err(error) => Err(error.into()),
                }
            }
        }
    }

    /// Returns the payloads of the messages of a block. A message that cannot be read yields none.
    pub(super) fn payloads_in(&self, todo: &Todo, n: u32) -> Result<Vec<Reference>, Error> {
        let stored = match self.blocks.block(todo, n) {
            Ok(Some(block)) => self.blocks.messages(todo, block.range.as_u64()),
            Ok(None) => Ok(Vec::new()),
            Err(error) => Err(error),
        };
        let stored = match stored {
            Err(BlockError::Corrupt { .. }) => Vec::new(),
            stored => stored?,
        };
        let offloads = stored.iter().flat_map(|message| &message.offloads);
        let named = offloads.map(|offload| Reference::Payload {
            todo: todo.id().clone(),
            n: offload.n,
            check: offload.check,
        });
        Ok(named.collect())
    }

    fn find_granted(&self, to: &Todo, reference: &Reference) -> Result<Option<Todo>, Error> {
        // For a todo that does not exist, the same is read as for one that does: no todo has the number 0.
        let from = self.registry.find(reference.todo())?;
        let is_granted = self.is_granted(from.as_ref().map_or(0, Todo::no), to, reference)?;
        let Some(from) = from.filter(|_| is_granted) else { return Ok(None) };
        let is_there = match self.has(&from, reference) {
            // A damaged record was there; reading it reports the damage.
            Err(error)
                if matches!(
                    error.failure(),
                    Failure::Blocks(BlockError::Corrupt { .. })
                        | Failure::Payloads(PayloadError::Corrupt { .. })
                ) =>
            {
                true
            }
            has => has?,
        };
        // A grant of something that does not exist leads nowhere.
        Ok(is_there.then_some(from))
    }

    /// Returns whether `to` may read what the reference names: it was granted by itself, or belongs
    /// to a block that was.
    fn is_granted(&self, from: u32, to: &Todo, reference: &Reference) -> Result<bool, Error> {
        let Some((_, record)) = lookup(self, to.no(), (from, to.no()), reference)? else {
            return Ok(false);
        };
        for n in &record.blocks {
            let block = Reference::Block(BlockId::new(reference.todo().clone(), *n));
            let block = lookup(self, to.no(), (from, to.no()), &block)?;
            if block.is_some_and(|(_, block)| block.direct) {
                return Ok(true);
            }
        }
        Ok(record.direct)
    }
}

impl Grants for Shared {
    fn granted(&self, to: &Todo, reference: &Reference) -> Result<Option<Todo>, RecallError> {
        self.find_granted(to, reference).map_err(|error| match error.into_failure() {
            Failure::Kv(error) => error.into(),
            Failure::Blocks(error) => error.into(),
            Failure::Payloads(error) => error.into(),
            Failure::Recall(error) => error,
            // Nothing else fails while something is looked up.
            other => RecallError::Grants(KvError::Io {
                doing: "look up a grant in",
                path: std::path::PathBuf::new(),
                source: std::io::Error::other(other),
            }),
        })
    }
}
