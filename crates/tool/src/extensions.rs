//! What a caller lends to the tools that know it, by type.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// What a caller lends to the tools that know it: at most one value of each type.
///
/// Whoever makes calls puts in what its own tools need; other tools never see it.
///
/// ```
/// use foldback_tool::Extensions;
///
/// #[derive(Debug, PartialEq)]
/// struct UserId(u64);
///
/// let mut extensions = Extensions::default();
/// extensions.insert(UserId(7));
/// assert_eq!(extensions.get::<UserId>(), Some(&UserId(7)));
/// assert_eq!(extensions.get::<String>(), None);
/// ```
#[derive(Clone, Default)]
pub struct Extensions {
    values: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
}

impl Extensions {
    /// Puts a value in, in place of the one of its type.
    pub fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        self.values.insert(TypeId::of::<T>(), Arc::new(value));
    }

    /// The value of a type.
    #[must_use]
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.values.get(&TypeId::of::<T>())?.downcast_ref()
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extensions").field("len", &self.values.len()).finish()
    }
}
