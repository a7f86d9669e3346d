//! S1: code that reads blocks without a todo does not compile. Each example is beside one that does.
//!
//! A search needs a todo, and there is no todo that means all of them, or none:
//!
//! ```
//! use foldback::{Memory, Options, SearchRequest, core::TodoId};
//! let memory = Memory::in_memory(Options::default())?;
//! let request = SearchRequest::new("port");
//! assert!(memory.search(&TodoId::new("a")?, &request).is_err(), "there is no such todo");
//! for text in ["", "*", " ", "%", "a b", "..", "a/b", "\0"] {
//!     assert!(TodoId::new(text).is_err(), "{text:?}");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//! ```compile_fail,E0061
//! use foldback::{Memory, Options, SearchRequest, core::TodoId};
//! let memory = Memory::in_memory(Options::default()).unwrap();
//! let _ = memory.search(&SearchRequest::new("port"));
//! ```
//! ```compile_fail,E0308
//! use foldback::{Memory, Options, SearchRequest, core::TodoId};
//! let memory = Memory::in_memory(Options::default()).unwrap();
//! let _ = memory.search(None, &SearchRequest::new("port"));
//! ```
//! ```compile_fail,E0308
//! use foldback::{Memory, Options, SearchRequest, core::TodoId};
//! let memory = Memory::in_memory(Options::default()).unwrap();
//! let _ = memory.search("*", &SearchRequest::new("port"));
//! ```
//! ```compile_fail,E0599
//! use foldback::core::TodoId;
//! let _ = TodoId::default();
//! ```
//!
//! Nor are blocks, messages or answers of tools available without one:
//!
//! ```
//! use foldback::{Memory, Options, core::TodoId};
//! let memory = Memory::in_memory(Options::default())?;
//! let todo = TodoId::new("a")?;
//! drop(memory.session(&todo)?);
//! assert!(memory.blocks(&todo, 0, 9)?.is_empty() && memory.messages(&todo, 0..0)?.is_empty());
//! assert!(memory.recall(&todo, "list_blocks", "{}").is_ok());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//! ```compile_fail,E0061
//! # let memory = foldback::Memory::in_memory(foldback::Options::default()).unwrap();
//! let _ = memory.blocks(0, 9);
//! ```
//! ```compile_fail,E0061
//! # let memory = foldback::Memory::in_memory(foldback::Options::default()).unwrap();
//! let _ = memory.messages(0..9);
//! ```
//! ```compile_fail,E0061
//! # let memory = foldback::Memory::in_memory(foldback::Options::default()).unwrap();
//! let _ = memory.recall("list_blocks", "{}");
//! ```
//!
//! The number by which the store knows a todo is found by the todo's id; no caller can make it up:
//!
//! ```
//! # let memory = foldback::Memory::in_memory(foldback::Options::default())?;
//! # let id = foldback::core::TodoId::new("a")?;
//! # drop(memory.session(&id)?);
//! let todo: foldback::Todo = memory.find(&id)?;
//! assert_eq!(todo.id(), &id);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//! ```compile_fail,E0451
//! let id = foldback::core::TodoId::new("a").unwrap();
//! let todo = foldback::Todo { id, no: 1 };
//! ```
//!
//! And nothing that a session or a tool works with leads to the owner's handle:
//!
//! ```
//! # let memory = foldback::Memory::in_memory(foldback::Options::default())?;
//! let owner = memory.owner();
//! # let _ = owner;
//! # Ok::<(), foldback::Error>(())
//! ```
//! ```compile_fail,E0599
//! # let memory = foldback::Memory::in_memory(foldback::Options::default()).unwrap();
//! let session = memory.session(&foldback::core::TodoId::new("a").unwrap()).unwrap();
//! let _ = session.owner();
//! ```
