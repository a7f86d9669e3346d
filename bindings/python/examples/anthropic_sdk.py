"""An agent with Anthropic's SDK and a memory: a loop of twenty lines.

    ANTHROPIC_API_KEY=... python examples/anthropic_sdk.py "Which of my files is about ports?"

``ANTHROPIC_BASE_URL`` names another server, ``ANTHROPIC_MODEL`` another model.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from anthropic import Anthropic

from foldback import Memory

READ_FILE = {
    "name": "read_file",
    "description": "Reads a text file of the working folder.",
    "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}


def run(task: str, store: str) -> str:
    """Has a model do a task, and returns what it says last."""
    client, model = Anthropic(), os.environ.get("ANTHROPIC_MODEL", "claude-haiku-4-5")
    session = Memory(store).session("anthropic-example")
    memory_tools = {tool["name"] for tool in Memory.tools("anthropic")}
    session.record({"role": "user", "content": task}, format="anthropic")
    while True:
        prompt = session.prompt("anthropic")
        prompt["tools"] = [READ_FILE, *prompt.get("tools", [])]
        answer = client.messages.create(model=model, max_tokens=4_000, **prompt)
        content = [block.model_dump(exclude_none=True) for block in answer.content]
        session.record({"role": "assistant", "content": content}, format="anthropic")
        results = []
        for block in answer.content:
            if block.type == "tool_use":
                if block.name in memory_tools:
                    text = session.call(block.name, block.input, id=block.id).text
                else:
                    text = read_file(**block.input)
                results.append({"type": "tool_result", "tool_use_id": block.id, "content": text})
        if not results:
            return "".join(block.text for block in answer.content if block.type == "text")
        session.record({"role": "user", "content": results}, format="anthropic")


def read_file(path: str) -> str:
    """The text of a file, or why there is none."""
    try:
        return Path(path).read_text()
    except OSError as error:
        return f"error: {error}"


if __name__ == "__main__":
    print(run(" ".join(sys.argv[1:]) or "List what you can do.", "memory"))
