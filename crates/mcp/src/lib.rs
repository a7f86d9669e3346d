//! The tools of Model Context Protocol servers, for an agent.
