//! `shell_run`: a shell command in the sandbox.

mod handed_files;

use crate::{Permissions, PermissionsError, Refused};
use foldback_core::ToolDefinition;
use foldback_sandbox::{Command, Finished, KilledBy, Limits, Sandbox, SandboxError, Stop};
use foldback_tool::{
    CallContext, Concurrency, Data, Effect, Language, Tool, ToolError, ToolFuture, ToolOutput,
    ToolSpec,
};
use handed_files::HandedFiles;
use serde::Deserialize;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The time that a call may take beyond that of the command, to end its processes and to read its output.
const GRACE: Duration = Duration::from_secs(15);

/// Returns the tool, if commands are permitted.
///
/// # Errors
/// When a folder cannot be found, a folder that may only be read lies in one that may be written, or no sandbox
/// is available here: then no command is run at all.
pub(crate) fn tool(permissions: &Permissions) -> Result<Option<Arc<dyn Tool>>, PermissionsError> {
    let shell = &permissions.shell;
    if !shell.allow {
        return Ok(None);
    }
    let real = |folder: &PathBuf| {
        let folder = permissions.folder(folder)?;
        folder
            .canonicalize()
            .map_err(|source| PermissionsError::Folder { path: folder.clone(), source })
    };
    let read = shell.read.iter().map(real).collect::<Result<Vec<_>, _>>()?;
    let write = shell.write.iter().map(real).collect::<Result<Vec<_>, _>>()?;
    kept_apart(&read, &write)?;
    Sandbox::available().map_err(|error| PermissionsError::Unavailable {
        tool: "shell_run",
        reason: error.to_string(),
    })?;
    let base = permissions.workspace.as_ref().map(|_| real(&PathBuf::from("."))).transpose()?;

    let limits = Limits {
        time: Duration::from_secs(shell.time_s),
        memory: shell.memory_mib.saturating_mul(1 << 20),
        processes: shell.processes as usize,
        file_bytes: shell.file_mib.saturating_mul(1 << 20),
        free_bytes: shell.free_mib.saturating_mul(1 << 20),
        output_bytes: shell.output_bytes,
        ..Limits::default()
    };
    let sandbox = Sandbox::new().read_system().allow_network(shell.network);
    let sandbox = read.iter().fold(sandbox, Sandbox::read);
    let sandbox = write.iter().fold(sandbox, Sandbox::write);
    let sandbox = shell.environment.iter().fold(sandbox, Sandbox::pass_env);
    let folders: Vec<_> = write.into_iter().chain(read).collect();
    let start = base.filter(|base| is_in(base, &folders)).or_else(|| folders.first().cloned());
    let start = start.unwrap_or_else(|| PathBuf::from("/"));
    Ok(Some(Arc::new(Shell { spec: spec(permissions), sandbox, start, folders, limits })))
}

/// Checks that no folder that may only be read lies in one that may be written. The sandbox grants everything
/// below a folder and takes nothing back, so a command could write both.
fn kept_apart(read: &[PathBuf], write: &[PathBuf]) -> Result<(), PermissionsError> {
    for inner in read.iter().filter(|inner| !write.contains(inner)) {
        if let Some(outer) = write.iter().find(|outer| inner.starts_with(outer)) {
            let (inner, outer) = (inner.clone(), outer.clone());
            return Err(PermissionsError::Nested { inner, outer });
        }
    }
    Ok(())
}

struct Shell {
    spec: ToolSpec,
    sandbox: Sandbox,
    /// Where commands run.
    start: PathBuf,
    /// The folders that commands may read, free of links.
    folders: Vec<PathBuf>,
    /// What a command may use; a call may ask for less time.
    limits: Limits,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    command: String,
    timeout_s: Option<u64>,
    cwd: Option<String>,
    #[serde(default)]
    files: Vec<String>,
}

/// The most files that are handed to one command.
const MOST_FILES: usize = 32;

fn spec(permissions: &Permissions) -> ToolSpec {
    let shell = &permissions.shell;
    let network = if shell.network { "" } else { " There is no network." };
    ToolSpec::new(ToolDefinition {
        name: "shell_run".to_owned(),
        description: format!(
            "Runs a command with `sh -c` in the workspace and returns its output, errors included, \
             and its exit code. Nothing outlives the command. Of a long output, the beginning and \
             the end are kept.{network}"
        ),
        parameters: json!({
            "type": "object",
            "properties": {
                "command": {"type": "string"},
                "timeout_s": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": shell.time_s,
                    "description": "How long it may take, in seconds."
                },
                "cwd": {"type": "string", "description": "The folder to run it in instead."},
                "files": {
                    "type": "array",
                    "items": {"type": "string"},
                    "maxItems": MOST_FILES,
                    "description": "References (store://2-k4qd) to read as the files \"$1\", \"$2\", ..."
                }
            },
            "required": ["command"],
            "additionalProperties": false
        })
        .to_string(),
    })
    .with_output(OUTPUT)
    .with_primary("command")
    .with_language("command", Language::Shell)
    .with_effect(Effect::Effectful)
    .with_answers_data(true)
    // It may write what another tool reads.
    .with_concurrency(Concurrency::Exclusive)
}

/// The exit code is that of a shell: 128 plus the signal, if a signal ended the command.
const OUTPUT: &str = r#"{"type":"object","properties":{"exit_code":{"type":"integer"},"output":{"type":"string"}},"required":["exit_code","output"]}"#;

impl Tool for Shell {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn timeout(&self, arguments: &str) -> Option<Duration> {
        let arguments = serde_json::from_str(arguments).ok();
        Some(arguments.map_or(self.limits.time, |arguments| self.time(&arguments)) + GRACE)
    }

    fn call<'a>(&'a self, arguments: &'a str, context: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(async move {
            let arguments: Arguments = serde_json::from_str(arguments).map_err(|error| {
                ToolError::arguments(format!("the arguments do not fit: {error}"))
            })?;
            if arguments.timeout_s == Some(0) {
                return Err(ToolError::arguments("timeout_s is 0; at least 1 was expected"));
            }
            let stop = Stop::new()
                .map_err(|error| ToolError::transient(format!("no command can be run: {error}")))?;
            let handed = self.handed(&arguments.files, context).await?;
            let command = Command::new("/bin/sh")
                // The files are $1 and so on; the argument before them is the name of the shell.
                .args(["-c", arguments.command.as_str(), "sh"])
                .args(handed.iter().flat_map(|handed| &handed.paths))
                .folder(self.folder(arguments.cwd.as_deref())?)
                .joined()
                .stopped_by(stop.clone());
            let time = self.time(&arguments);
            let limits = Limits { time, ..self.limits.clone() };
            let sandbox = self.sandbox.clone().limits(limits);
            let sandbox = match &handed {
                Some(handed) => sandbox.read(handed.folder.path()),
                None => sandbox,
            };
            // The call may be abandoned at any moment, and the command with it.
            let ends = EndsWithTheCall(stop);
            let mut running = tokio::task::spawn_blocking(move || {
                let finished = sandbox.run(&command);
                // The files exist as long as the command runs.
                drop(handed);
                finished
            });
            let finished = tokio::select! {
                finished = &mut running => finished,
                () = context.cancelled.cancelled() => {
                    ends.0.stop();
                    running.await
                }
            };
            match finished {
                Ok(Ok(finished)) => told(&finished, time),
                Ok(Err(error)) => Err(failed(&error)),
                Err(_) => Err(ToolError::permanent("the tool failed; try another way")),
            }
        })
    }
}

impl Shell {
    fn time(&self, arguments: &Arguments) -> Duration {
        let most = self.limits.time;
        arguments.timeout_s.map_or(most, |asked| Duration::from_secs(asked).min(most))
    }

    /// Writes the contents that these references name to files for a command to read.
    async fn handed(
        &self,
        references: &[String],
        context: &CallContext,
    ) -> Result<Option<HandedFiles>, ToolError> {
        if references.is_empty() {
            return Ok(None);
        }
        if references.len() > MOST_FILES {
            let given = references.len();
            let message = format!("{given} files are given, but at most {MOST_FILES} are accepted");
            return Err(ToolError::arguments(message));
        }
        let handing = context.hand_over().await?;
        let (references, most) = (references.to_vec(), self.limits.file_bytes);
        let work = move || HandedFiles::write(&*handing, &references, most);
        let written = tokio::task::spawn_blocking(work).await;
        let broke = |_| ToolError::permanent("the tool failed; try another way");
        Ok(Some(written.map_err(broke)??))
    }

    /// Returns the folder to run a command in.
    fn folder(&self, asked: Option<&str>) -> Result<PathBuf, ToolError> {
        let Some(asked) = asked else { return Ok(self.start.clone()) };
        let folder = self.start.join(asked).canonicalize().map_err(|error| {
            ToolError::permanent(format!("{asked} is not a folder to run a command in: {error}"))
        })?;
        if !is_in(&folder, &self.folders) {
            let folders = self.folders.iter().map(|folder| folder.display().to_string());
            let what = format!("running a command in {asked}");
            return Err(Refused { what, permitted: Refused::list(folders) }.into());
        }
        if !folder.is_dir() {
            return Err(ToolError::permanent(format!("{asked} is a file; a folder was expected")));
        }
        Ok(folder)
    }
}

struct EndsWithTheCall(Stop);

impl Drop for EndsWithTheCall {
    fn drop(&mut self) {
        self.0.stop();
    }
}

fn is_in(folder: &Path, folders: &[PathBuf]) -> bool {
    folders.iter().any(|outer| folder.starts_with(outer))
}

/// Returns the report for a model on a command that ran.
fn told(finished: &Finished, time: Duration) -> Result<ToolOutput, ToolError> {
    let output = finished.stdout.text();
    if let Some(by) = finished.killed_by {
        return Err(ToolError::permanent(killed(by, time, &output)));
    }
    let code = exit_code(finished.status);
    let break_ = if output.is_empty() || output.ends_with('\n') { "" } else { "\n" };
    Ok(ToolOutput {
        data: Data {
            text: format!("{output}{break_}[exit code {code}]"),
            structured: Some(json!({"exit_code": code, "output": output}).to_string()),
        },
    })
}

fn killed(by: KilledBy, time: Duration, output: &str) -> String {
    let next = match by {
        KilledBy::Time => format!(
            "; its limit was {} s. Give it a larger timeout_s if that is permitted, or do less at once",
            time.as_secs()
        ),
        KilledBy::Memory | KilledBy::Disk | KilledBy::Processes => "; do less at once".to_owned(),
        _ => String::new(),
    };
    let wrote = match output {
        "" => "It wrote nothing.".to_owned(),
        output => format!("It wrote:\n{output}"),
    };
    format!("the command was ended: {by}{next}. What it had done by then stays done. {wrote}")
}

/// Returns the exit code as a shell reports it.
fn exit_code(status: std::process::ExitStatus) -> i32 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return 128 + signal;
    }
    status.code().unwrap_or(-1)
}

fn failed(error: &SandboxError) -> ToolError {
    ToolError::permanent(format!("the command was not run: {error}"))
}
