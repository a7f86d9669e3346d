//! Runs a command with few rights.
//!
//! A [`Sandbox`] says what a command may read and write, whether it may reach the network, what
//! environment it is given and how much it may use. Nothing is granted that was not named. Where the
//! system cannot hold a command to that, nothing is run: see [`SandboxError::Unavailable`].
//!
//! It is **not** a container: it has no image, no file system of its own and no namespaces. Nor does it
//! decide what is granted; it holds a command to what its caller named.
//!
//! ```
//! use foldback_sandbox::{Command, Sandbox, SandboxError};
//!
//! let sandbox = Sandbox::new().read_system();
//! match sandbox.run(&Command::new("sh").args(["-c", "echo 你好; cat /etc/shadow"])) {
//!     Ok(finished) => {
//!         assert_eq!(finished.stdout.text(), "你好\n");
//!         assert!(finished.stderr.text().contains("Permission denied"));
//!     }
//!     Err(SandboxError::Unavailable(why)) => println!("{why}"),
//!     Err(error) => panic!("{error}"),
//! }
//! ```
//!
//! # How it holds
//! - **Files**: Landlock. What is not granted cannot be opened, made, renamed, linked, cut or removed.
//!   Landlock knows nothing of modes and times: those calls are carried out from outside, and only on
//!   what the command may write.
//!   What a file holds is kept, not that it is there: of a file whose path is known, its size, owner and
//!   times can be asked for anywhere, and a link read. What may be written may also be run by others
//!   later: a build script, or a hook in `.git/hooks`.
//! - **System calls**: seccomp. Those that ordinary programs need are listed; every other one fails.
//!   Without the network there are no sockets but connected pairs.
//! - **Processes** and threads are traced by a supervisor that is no part of the sandbox, from their first
//!   instruction on: it counts them, root's too. When the command ends, or has to, it kills what is left,
//!   daemons included, and so it does when the program that asked for the command dies.
//! - **Signals** reach nothing outside. Capabilities are dropped, no program brings new ones
//!   (`no_new_privs`), open files are not inherited.
//! - **Limits**: time, memory, processes, size of a file, room left on the disk, open files, output.
//!
//! It needs Linux 6.12 (Landlock ABI 6) on `x86_64` or `aarch64`, without root and without namespaces,
//! where tracing, seccomp and Landlock are not forbidden, as some containers do.

mod captured;
mod command;
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod elsewhere;
mod error;
mod finished;
mod limits;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod linux;
mod sandbox;

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
use elsewhere as system;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
use linux as system;

pub use captured::Captured;
pub use command::Command;
pub use error::SandboxError;
pub use finished::{Finished, KilledBy};
pub use limits::Limits;
pub use sandbox::Sandbox;
pub use system::Stop;
