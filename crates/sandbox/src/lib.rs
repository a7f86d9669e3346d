//! Runs a command with few rights.
//!
//! A [`Sandbox`] defines what a command may read and write, whether it may reach the network, its environment and its
//! limits. Nothing is granted that was not named. If the system cannot enforce that, nothing is run: see
//! [`SandboxError::Unavailable`].
//!
//! It is **not** a container: it has no image, no file system of its own and no namespaces. Nor does it decide what is
//! granted; it enforces what its caller named.
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
//! # How it is enforced
//! - **Files**: Landlock. What is not granted cannot be opened, created, renamed, linked, truncated or removed.
//!   Landlock does not cover modes and times: those calls are carried out from outside, and only on what the command
//!   may write. The contents of a file are protected, not its existence: the size, owner and times of a file with a
//!   known path can be read anywhere, and so can a link. What may be written may also be run by others later: a build
//!   script, or a hook in `.git/hooks`. What is granted counts for everything below it, and nothing inside can be taken
//!   back.
//! - **System calls**: seccomp. Those that ordinary programs need are listed; every other one fails. Without the
//!   network, the only sockets are connected pairs.
//! - **Processes** and threads are traced from their first instruction on by a supervisor outside the sandbox, which
//!   counts them, even root's. When the command ends, or has to, it kills what is left, daemons included; it does the
//!   same when the program that asked for the command dies.
//! - **Signals** reach nothing outside. Capabilities are dropped, no program brings new ones
//!   (`no_new_privs`), and open files are not inherited.
//! - **Limits**: time, memory, processes, file size, disk space left, open files, output.
//!
//! It needs Linux 6.12 (Landlock ABI 6) on `x86_64` or `aarch64`, without root and without namespaces, and does not
//! work where tracing, seccomp or Landlock is forbidden, as in some containers.

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
