//! The sealing of an index, if the store is encrypted.

use foldback_kv::Cipher;
use std::fmt;

/// The key of the files of one folder, which are bound to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sealing {
    /// `None` if the todo was forgotten, with its key: then nothing is opened or written.
    cipher: Option<Cipher>,
    folder: Indexed,
}

/// The subject of a folder's index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Indexed {
    /// The todo with this number.
    Todo(u32),
    /// Blocks of many todos: the volume with this number, or the catalogue of the volumes.
    Volume(u64),
    Catalogue,
}

impl Sealing {
    pub(crate) fn new(cipher: Option<Cipher>, folder: Indexed) -> Self {
        Self { cipher, folder }
    }

    /// Returns the same key for another folder.
    pub(crate) fn of(&self, folder: Indexed) -> Self {
        Self { cipher: self.cipher.clone(), folder }
    }

    pub(crate) fn seal(&self, name: &dyn fmt::Display, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
        let gone = || std::io::Error::other("the key of the todo is gone");
        let cipher = self.cipher.as_ref().ok_or_else(gone)?;
        cipher.seal(&self.place(name), bytes).map_err(std::io::Error::other)
    }

    pub(crate) fn open(&self, name: &dyn fmt::Display, sealed: &[u8]) -> Option<Vec<u8>> {
        self.cipher.as_ref()?.open(&self.place(name), sealed)
    }

    fn place(&self, name: &dyn fmt::Display) -> Vec<u8> {
        let folder = match self.folder {
            Indexed::Todo(no) => format!("todo {no}"),
            Indexed::Volume(number) => format!("volume {number}"),
            Indexed::Catalogue => "catalogue".to_owned(),
        };
        format!("{folder}/{name}").into_bytes()
    }
}
