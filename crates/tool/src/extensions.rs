//! Values that a caller lends to its own tools, by type.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Values that a caller lends to its own tools: at most one of each type.
///
/// The caller inserts what its own tools need; other tools, which do not know the types, never see it.
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
    /// Inserts a value, and replaces the one of the same type.
    pub fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        self.values.insert(TypeId::of::<T>(), Arc::new(value));
    }

    /// Returns the value of a type.
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
