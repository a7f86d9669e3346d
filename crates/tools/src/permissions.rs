//! What the tools may do.

use foldback_tool::ToolError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What the tools may do: nothing, unless it is permitted here.
///
/// Folders are absolute, or relative to the [workspace](Self::workspace).
///
/// ```
/// use foldback_tools::Permissions;
///
/// let permissions = Permissions::in_workspace("/home/me/project").with_shell().with_host("docs.rs");
/// assert!(permissions.web.permits("docs.rs").is_ok());
/// let refused = permissions.web.permits("example.org").unwrap_err();
/// assert_eq!(refused.to_string(), "fetching from example.org is not permitted; permitted: docs.rs");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Permissions {
    /// The folder that relative paths start from and commands run in. By itself it permits nothing.
    pub workspace: Option<PathBuf>,
    /// What `file_*` may do.
    pub files: FilePermissions,
    /// What `shell_run` may do.
    pub shell: ShellPermissions,
    /// What `web_fetch` may do.
    pub web: WebPermissions,
}

/// What `file_*` may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FilePermissions {
    /// The folders whose files may be read. If folders are nested, the innermost one decides.
    pub read: Vec<PathBuf>,
    /// The folders whose files may be written, and read.
    pub write: Vec<PathBuf>,
    /// How long a call may take, in seconds. It then answers with what it has found.
    pub time_s: u64,
    /// The most bytes of an answer; a longer one is cut and says how to read on.
    pub output_bytes: usize,
    /// The most bytes of a file that is written or edited.
    pub file_bytes: u64,
}

/// What `shell_run` may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShellPermissions {
    /// Whether commands may be run at all.
    pub allow: bool,
    /// The folders that commands may read, in addition to the system's programs and libraries. None of them
    /// lies in a folder that commands may write, unless it is such a folder itself.
    pub read: Vec<PathBuf>,
    /// The folders that commands may write, and read. That includes programs that others run from there
    /// later, such as those that git runs from `.git/hooks`.
    pub write: Vec<PathBuf>,
    /// Whether commands may reach the network.
    pub network: bool,
    /// The environment variables that are passed to commands.
    pub environment: BTreeSet<String>,
    /// How long a command may take, in seconds.
    pub time_s: u64,
    /// How much memory the processes of a command may take together, in MiB.
    pub memory_mib: u64,
    /// How many processes and threads a command may run at once.
    pub processes: u32,
    /// The largest size of a file that a command writes, in MiB.
    pub file_mib: u64,
    /// How much space must remain free on each disk that a command may write, in MiB; 0 sets no minimum.
    pub free_mib: u64,
    /// How many bytes of output are kept, from its beginning and its end.
    pub output_bytes: usize,
}

/// What `web_fetch` may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebPermissions {
    /// The hosts that pages may be fetched from: `docs.rs`, `*.example.org` (that host and all below
    /// it), or `*` for every host.
    pub hosts: BTreeSet<String>,
    /// Whether the permitted hosts may have addresses of this machine or of a private network.
    pub private_addresses: bool,
    /// How long a call may take, in seconds.
    pub time_s: u64,
    /// The most bytes of a page that are read.
    pub output_bytes: usize,
}

/// The refusal of something that a tool was asked for and may not do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} is not permitted; permitted: {permitted}")]
pub struct Refused {
    /// What was asked for: "writing /etc/passwd".
    pub what: String,
    /// What is permitted instead.
    pub permitted: String,
}

/// The reason why permissions cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PermissionsError {
    /// A folder is relative, and there is no workspace.
    #[error(
        "the folder {} is relative and no workspace is set; give an absolute folder, or a workspace",
        .0.display()
    )]
    Relative(PathBuf),
    /// A folder cannot be opened.
    #[error("the folder {} cannot be opened; a folder was expected", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// Commands could write a folder that they may only read: it lies in one that they may write.
    #[error(
        "the folder {} may only be read, but commands could write it, because they may write {} around it; \
         give commands a folder to write that does not hold it, let them write both, or permit no commands",
        inner.display(), outer.display()
    )]
    Nested {
        /// The folder that may only be read.
        inner: PathBuf,
        /// The folder around it that may be written.
        outer: PathBuf,
    },
    /// A limit leaves nothing to do.
    #[error("{0} is 0, which leaves nothing to do; give at least 1")]
    Zero(&'static str),
    /// An entry is not a host.
    #[error(
        "{0:?} in web.hosts is not a host; one like \"docs.rs\", \"*.example.org\" or \"*\" was expected"
    )]
    Host(String),
    /// A tool is not available.
    #[error("tool {tool} is not available: {reason}")]
    Unavailable {
        /// The name of the tool.
        tool: &'static str,
        /// Why, and what would help.
        reason: String,
    },
}

impl Permissions {
    /// Creates permissions for file tools to read and write in this folder, and for nothing else.
    #[must_use]
    pub fn in_workspace(folder: impl Into<PathBuf>) -> Self {
        Self::default().workspace(folder).with_read(".").with_write(".")
    }

    /// Sets the folder that relative paths start from.
    #[must_use]
    pub fn workspace(mut self, folder: impl Into<PathBuf>) -> Self {
        self.workspace = Some(folder.into());
        self
    }

    /// Permits file tools to read in this folder.
    #[must_use]
    pub fn with_read(mut self, folder: impl Into<PathBuf>) -> Self {
        self.files.read.push(folder.into());
        self
    }

    /// Permits file tools to read and write in this folder.
    #[must_use]
    pub fn with_write(mut self, folder: impl Into<PathBuf>) -> Self {
        self.files.write.push(folder.into());
        self
    }

    /// Permits commands. They may read and write what the file tools may at this point.
    ///
    /// The sandbox cannot except a folder from one that commands may write. If a folder for reading lies in a
    /// folder for writing, [`toolset`](crate::toolset) returns [`PermissionsError::Nested`].
    #[must_use]
    pub fn with_shell(mut self) -> Self {
        self.shell.allow = true;
        self.shell.read.extend(self.files.read.iter().cloned());
        self.shell.write.extend(self.files.write.iter().cloned());
        self
    }

    /// Permits pages of this host to be fetched.
    #[must_use]
    pub fn with_host(mut self, host: impl Into<String>) -> Self {
        self.web.hosts.insert(host.into());
        self
    }

    /// Returns the absolute path of a folder that is named in these permissions.
    ///
    /// # Errors
    /// When it is relative and there is no workspace.
    pub fn folder(&self, folder: &Path) -> Result<PathBuf, PermissionsError> {
        match &self.workspace {
            _ if folder.is_absolute() => Ok(folder.to_owned()),
            Some(workspace) => {
                let workspace = std::path::absolute(workspace).map_err(|source| {
                    PermissionsError::Folder { path: workspace.clone(), source }
                })?;
                // ".." components are kept: only the file system knows where they lead.
                Ok(workspace.join(folder).components().collect())
            }
            None => Err(PermissionsError::Relative(folder.to_owned())),
        }
    }

    /// Checks that the limits leave something to do, and that the hosts are hosts.
    ///
    /// # Errors
    /// When one does not; the error names the first such limit or host.
    pub fn check(&self) -> Result<(), PermissionsError> {
        let (files, shell, web) = (&self.files, &self.shell, &self.web);
        let bounds = [
            ("files.time_s", files.time_s == 0),
            ("files.output_bytes", files.output_bytes == 0),
            ("files.file_bytes", files.file_bytes == 0),
            ("shell.time_s", shell.time_s == 0),
            ("shell.memory_mib", shell.memory_mib == 0),
            ("shell.processes", shell.processes == 0),
            ("shell.file_mib", shell.file_mib == 0),
            ("shell.output_bytes", shell.output_bytes == 0),
            ("web.time_s", web.time_s == 0),
            ("web.output_bytes", web.output_bytes == 0),
        ];
        if let Some((name, _)) = bounds.into_iter().find(|(_, is_zero)| *is_zero) {
            return Err(PermissionsError::Zero(name));
        }
        let is_host =
            |host: &str| host == "*" || one_form(host.strip_prefix("*.").unwrap_or(host)).is_some();
        match web.hosts.iter().find(|host| !is_host(host)) {
            Some(host) => Err(PermissionsError::Host(host.clone())),
            None => Ok(()),
        }
    }
}

impl WebPermissions {
    /// Checks that pages of this host may be fetched.
    ///
    /// # Errors
    /// When they may not; the error names the host, and the hosts that are permitted.
    pub fn permits(&self, host: &str) -> Result<(), Refused> {
        let asked = one_form(host);
        let fits = |pattern: &String| {
            let Some(host) = &asked else { return false };
            match pattern.strip_prefix("*.") {
                Some(domain) => {
                    let below =
                        one_form(domain).and_then(|domain| host.strip_suffix(domain.as_str()));
                    below.is_some_and(|below| below.is_empty() || below.ends_with('.'))
                }
                None => pattern == "*" || one_form(pattern).as_ref() == Some(host),
            }
        };
        if self.hosts.iter().any(fits) {
            return Ok(());
        }
        Err(Refused {
            what: format!("fetching from {}", asked.as_deref().unwrap_or(host)),
            permitted: Refused::list(self.hosts.iter().cloned()),
        })
    }
}

/// Returns a host in the form that URLs have it in: lower case, with letters of other scripts written in
/// ASCII. `None` if the text is not just a host.
fn one_form(host: &str) -> Option<String> {
    let host = host.strip_suffix('.').unwrap_or(host);
    let is_other = |letter: char| letter.is_whitespace() || "*/\\?#@%".contains(letter);
    if host.is_empty() || host.contains(is_other) || (host.contains(':') && !host.starts_with('['))
    {
        return None;
    }
    let url = reqwest::Url::parse(&format!("http://{host}/")).ok()?;
    let is_alone = url.port().is_none() && url.path() == "/";
    url.host_str().filter(|_| is_alone).map(str::to_owned)
}

impl Refused {
    /// Lists what is permitted, for a sentence.
    pub(crate) fn list(permitted: impl IntoIterator<Item = String>) -> String {
        let listed = permitted.into_iter().collect::<Vec<_>>().join(", ");
        if listed.is_empty() { "nothing of this kind".to_owned() } else { listed }
    }
}

impl From<Refused> for ToolError {
    fn from(refused: Refused) -> Self {
        Self::permanent(refused.to_string())
    }
}

impl Default for FilePermissions {
    /// No folder; 20 seconds; 16 KiB per answer, which a context shows whole; files of up to 16 MiB.
    fn default() -> Self {
        Self {
            read: Vec::new(),
            write: Vec::new(),
            time_s: 20,
            output_bytes: 16 << 10,
            file_bytes: 16 << 20,
        }
    }
}

impl Default for ShellPermissions {
    /// No commands; two minutes, 4 GiB of memory, 256 processes and threads, files of up to 1 GiB while
    /// 256 MiB are free, 256 KiB of output, and the environment variables that give programs their search path,
    /// language, terminal and time zone.
    fn default() -> Self {
        Self {
            allow: false,
            read: Vec::new(),
            write: Vec::new(),
            network: false,
            environment: ["LANG", "LC_ALL", "PATH", "TERM", "TZ"].map(str::to_owned).into(),
            time_s: 120,
            memory_mib: 4_096,
            processes: 256,
            file_mib: 1_024,
            free_mib: 256,
            output_bytes: 256 << 10,
        }
    }
}

impl Default for WebPermissions {
    /// No host; 30 seconds; 4 MiB per page.
    fn default() -> Self {
        Self { hosts: BTreeSet::new(), private_addresses: false, time_s: 30, output_bytes: 4 << 20 }
    }
}
