//! The tenants that a store lets in, by their tokens.

use crate::error::Failure;
use crate::memory::Shared;
use crate::{Error, Memory};
use data_encoding::HEXLOWER;
use foldback_core::{TenantId, Timestamp};
use foldback_kv::{Batch, Expect, Key, Space, retry};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The record of all tenants, which is one of the store itself.
const TENANTS: Key = Key { space: Space::Meta, todo: 0, n: 8 };

/// No todo has this number. Its head counts the changes of the record, so that of two that are made at once the second
/// one reads again.
const MAKER: u32 = Key::TODO_END - 6;

/// How many bytes of a token are random.
const RANDOM: usize = 32;

/// The tenants that a store lets in, by their tokens.
///
/// A tenant's own todos are not in this store. They are in one of its own: in another folder, or in the same database
/// ([`Server::with_tenant`](crate::Server::with_tenant)). This store knows which tenants there are, and a digest of each
/// token, so that any process that opens it can decide whose a request is.
///
/// ```
/// use foldback::core::TenantId;
/// use foldback::{Memory, Options};
///
/// let memory = Memory::in_memory(Options::default())?;
/// let token = memory.tenants().let_in(&TenantId::new("acme")?)?;
/// let tenants = memory.tenants().list()?;
/// assert!(tenants[0].has_token(token.as_bytes()) && !tenants[0].has_token(b"another"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct Tenants<'a> {
    memory: &'a Arc<Shared>,
}

/// A tenant that a store knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Tenant {
    /// Its name.
    pub id: TenantId,
    /// When it got its present token, by the memory's clock.
    pub since: Timestamp,
    /// The digest of its token; `None` if it is no longer let in.
    token: Option<[u8; 32]>,
}

impl Tenant {
    /// Returns whether this is the tenant's token, in a time that does not depend on it.
    #[must_use]
    pub fn has_token(&self, token: &[u8]) -> bool {
        self.token.is_some_and(|own| blake3::hash(token) == blake3::Hash::from(own))
    }

    /// Returns whether it is let in. One that is not is being forgotten.
    #[must_use]
    pub fn is_let_in(&self) -> bool {
        self.token.is_some()
    }
}

impl Memory {
    /// Returns the tenants that this store lets in.
    #[must_use]
    pub fn tenants(&self) -> Tenants<'_> {
        Tenants { memory: &self.shared }
    }
}

impl Tenants<'_> {
    /// Returns all tenants, by their names.
    ///
    /// # Errors
    /// When the store fails, or the record of them is damaged.
    pub fn list(self) -> Result<Vec<Tenant>, Error> {
        let Some(bytes) = self.memory.kv.get(TENANTS)? else { return Ok(Vec::new()) };
        let detail = |error: rmp_serde::decode::Error| error.to_string();
        let read = rmp_serde::from_slice(&bytes).map_err(detail);
        Ok(read.map_err(|detail| foldback_kv::Error::Corrupt { key: TENANTS, detail })?)
    }

    /// Adds a tenant, and returns its token. Only a digest of it is stored: this is the one time that it is shown.
    ///
    /// # Errors
    /// With [`ErrorKind::AlreadyExists`](crate::ErrorKind::AlreadyExists) when the store knows a tenant of this name; when the
    /// store cannot be written.
    pub fn let_in(self, id: &TenantId) -> Result<String, Error> {
        self.with_token(id, |known| match known {
            Some(_) => Err(Failure::KnownTenant(id.clone())),
            None => Ok(()),
        })
    }

    /// Returns a new token of a tenant. The token that it had before is no longer good.
    ///
    /// # Errors
    /// With [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) when there is no such tenant, or it is no longer let in;
    /// when the store cannot be written.
    pub fn renew(self, id: &TenantId) -> Result<String, Error> {
        self.with_token(id, |known| match known.filter(|known| known.is_let_in()) {
            Some(_) => Ok(()),
            None => Err(Failure::NoTenant(id.clone())),
        })
    }

    /// No longer lets a tenant in. The store still knows its name, which cannot be added again until it is
    /// [removed](Self::remove).
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn shut_out(self, id: &TenantId) -> Result<(), Error> {
        self.change(|tenants| {
            for known in tenants.iter_mut().filter(|known| known.id == *id) {
                known.token = None;
            }
            Ok(())
        })
    }

    /// Removes a tenant from those that the store knows. Its own store stays as it is.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn remove(self, id: &TenantId) -> Result<(), Error> {
        self.change(|tenants| {
            tenants.retain(|known| known.id != *id);
            Ok(())
        })
    }

    /// Gives a tenant a new token, if it may have one.
    fn with_token(
        self,
        id: &TenantId,
        may: impl Fn(Option<&Tenant>) -> Result<(), Failure>,
    ) -> Result<String, Error> {
        let mut random = [0; RANDOM];
        getrandom::fill(&mut random).map_err(Failure::Random)?;
        let token = HEXLOWER.encode(&random);
        let digest = Some(*blake3::hash(token.as_bytes()).as_bytes());
        let tenant = Tenant { id: id.clone(), since: (self.memory.clock)(), token: digest };
        self.change(|tenants| {
            may(tenants.iter().find(|known| known.id == *id))?;
            tenants.retain(|known| known.id != *id);
            tenants.push(tenant.clone());
            tenants.sort_by(|a, b| a.id.cmp(&b.id));
            Ok(())
        })?;
        Ok(token)
    }

    fn change(self, change: impl Fn(&mut Vec<Tenant>) -> Result<(), Failure>) -> Result<(), Error> {
        retry(|| {
            let head = self.memory.kv.head(MAKER)?;
            let mut tenants = self.list()?;
            change(&mut tenants)?;
            let bytes = rmp_serde::to_vec_named(&tenants)
                .map_err(|_| Error::from(Failure::Internal("the tenants have no bytes")))?;
            let expect = Some(Expect { todo: MAKER, head, next: head + 1 });
            let put = vec![(TENANTS, bytes)];
            Ok::<_, Error>(self.memory.kv.commit(Batch { expect, put, ..Batch::default() })?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ErrorKind, Options};

    /// PG9: each tenant has one good token, the last that was made, until it is shut out; a name that is known is not added
    /// again, and changes that are made at once are all kept.
    #[test]
    fn pg9_the_last_token_of_a_tenant_is_the_good_one() {
        let memory = Memory::in_memory(Options::default()).unwrap();
        let tenants = memory.tenants();
        assert_eq!(tenants.list().unwrap(), []);
        let [acme, beta] = ["acme", "beta"].map(|name| TenantId::new(name).unwrap());
        assert_eq!(tenants.renew(&acme).unwrap_err().kind(), ErrorKind::NotFound);
        let of_beta = tenants.let_in(&beta).unwrap();
        let first = tenants.let_in(&acme).unwrap();
        assert_eq!(tenants.let_in(&acme).unwrap_err().kind(), ErrorKind::AlreadyExists);
        let second = tenants.renew(&acme).unwrap();
        let owner = |token: &str| {
            let all = tenants.list().unwrap();
            let mut owners = all.into_iter().filter(|tenant| tenant.has_token(token.as_bytes()));
            owners.next().map(|tenant| tenant.id)
        };
        assert_eq!(owner(&second), Some(acme.clone()));
        assert_eq!(owner(&of_beta), Some(beta));
        assert_eq!((owner(&first), owner("")), (None, None));
        tenants.shut_out(&acme).unwrap();
        assert_eq!(owner(&second), None);
        assert_eq!(tenants.renew(&acme).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(tenants.let_in(&acme).unwrap_err().kind(), ErrorKind::AlreadyExists);
        tenants.remove(&acme).unwrap();
        tenants.let_in(&acme).unwrap();
        let many: Vec<TenantId> =
            (0..8).map(|at| TenantId::new(&format!("t{at}")).unwrap()).collect();
        std::thread::scope(|scope| {
            for id in &many {
                scope.spawn(|| tenants.let_in(id).unwrap());
            }
        });
        assert_eq!(tenants.list().unwrap().len(), 10);
    }
}
