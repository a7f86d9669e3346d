//! The names of tools.

use foldback_tool::ToolSpec;

/// The longest name that providers accept.
const LONGEST: usize = 64;

/// How many characters distinguish two names that otherwise look the same.
const CHECK: usize = 6;

/// The beginnings of the names of the agent's own tools, and of tools that reach the machine; a server
/// may have such a name, but its tools may not.
const FAMILIES: [&str; 15] = [
    "ask",
    "delegate",
    "file",
    "list",
    "load",
    "memory",
    "observation",
    "planning",
    "research",
    "search",
    "shell",
    "terminate",
    "think",
    "todo",
    "web",
];

/// Names a server's tool: `<server>_<tool>` in the letters that providers accept. If letters had to be
/// changed or left out, the name ends with a checksum of both.
pub(crate) fn tool_name(server: &str, tool: &str) -> String {
    let is_legal = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    let family = server.split(['_', '-']).next().unwrap_or_default().to_ascii_lowercase();
    let prefix = if FAMILIES.contains(&family.as_str()) { "mcp_" } else { "" };
    let whole = format!("{prefix}{server}_{tool}");
    if whole.len() <= LONGEST && whole.chars().all(is_legal) {
        return whole;
    }
    let legal: String =
        whole.chars().map(|letter| if is_legal(letter) { letter } else { '_' }).collect();
    checked(&legal, server, tool)
}

/// Returns whether a tool is the one that this server knows by this name.
#[must_use]
pub fn is_tool_of(spec: &ToolSpec, server: &str, tool: &str) -> bool {
    let name = tool_name(server, tool);
    let is_named = spec.name() == name || spec.name() == checked(&name, server, tool);
    spec.server.as_deref() == Some(server) && is_named
}

/// Ends a name with the checksum of a server's tool.
pub(crate) fn checked(name: &str, server: &str, tool: &str) -> String {
    let hash = blake3::hash(format!("{server}\0{tool}").as_bytes()).to_hex();
    // All of it is ASCII.
    let beginning: String = name.chars().take(LONGEST - CHECK - 1).collect();
    format!("{beginning}_{}", &hash.as_str()[..CHECK])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_legal_name_stays_as_it_is() {
        assert_eq!(tool_name("git", "log-oneline_2"), "git_log-oneline_2");
    }

    /// MC18: a name that providers refuse is mapped to one that they accept, and to no other
    /// tool's.
    #[test]
    fn mc18_other_names_are_mapped_apart() {
        let names = [
            tool_name("浏览器", "查询订单"),
            tool_name("浏览器", "查询订率"),
            tool_name("git", "a.b"),
            tool_name("git", "a b"),
            tool_name("git", "a_b"),
            tool_name("git", &"x".repeat(100)),
            tool_name("git", &"x".repeat(101)),
            tool_name("", ""),
        ];
        for name in &names {
            assert!(!name.is_empty() && name.len() <= LONGEST, "{name}");
            assert!(
                name.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-".contains(letter))
            );
        }
        let apart: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(apart.len(), names.len());
    }

    #[test]
    fn no_server_puts_a_tool_into_the_agents_own_families() {
        assert_eq!(tool_name("shell", "run"), "mcp_shell_run");
        assert_eq!(tool_name("File", "read"), "mcp_File_read");
        assert_eq!(tool_name("web_fetch", "x"), "mcp_web_fetch_x");
        assert_eq!(tool_name("evil", "shell_run"), "evil_shell_run");
        assert_eq!(tool_name("todo", "write"), "mcp_todo_write");
        assert_eq!(tool_name("memory", "share"), "mcp_memory_share");
        assert_eq!(tool_name("filesystem", "read"), "filesystem_read");
    }
}
