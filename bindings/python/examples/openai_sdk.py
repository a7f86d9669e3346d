"""An agent with OpenAI's SDK and a memory: a loop of twenty lines.

    OPENAI_API_KEY=... python examples/openai_sdk.py "Which of my files is about ports?"

``OPENAI_BASE_URL`` names another server, ``OPENAI_MODEL`` another model.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from openai import OpenAI

from foldback import Memory

READ_FILE = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Reads a text file of the working folder.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
}


def run(task: str, store: str) -> str:
    """Has a model do a task, and returns what it says last."""
    client, model = OpenAI(), os.environ.get("OPENAI_MODEL", "gpt-5.5-mini")
    session = Memory(store).session("openai-example")
    memory_tools = {tool["function"]["name"] for tool in Memory.tools()}
    session.record({"role": "user", "content": task})
    while True:
        prompt = session.prompt()
        prompt["tools"] = [READ_FILE, *prompt.get("tools", [])]
        answer = client.chat.completions.create(model=model, **prompt).choices[0].message
        session.record(answer)
        if not answer.tool_calls:
            return answer.content or ""
        for call in answer.tool_calls:
            name, arguments = call.function.name, call.function.arguments
            if name in memory_tools:
                text = session.call(name, arguments, id=call.id).text
            else:
                text = read_file(**json.loads(arguments))
            session.record({"role": "tool", "tool_call_id": call.id, "content": text})


def read_file(path: str) -> str:
    """The text of a file, or why there is none."""
    try:
        return Path(path).read_text()
    except OSError as error:
        return f"error: {error}"


if __name__ == "__main__":
    print(run(" ".join(sys.argv[1:]) or "List what you can do.", "memory"))
