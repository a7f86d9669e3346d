"""The examples and the README's lines, run as a user runs them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

PACKAGE = Path(__file__).parent.parent
EXAMPLES = PACKAGE / "examples"


class Server(ThreadingHTTPServer):
    """A provider that reads eight files, asks the memory, and answers."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.bodies: list[dict[str, Any]] = []

    def calls(self) -> list[tuple[str, dict[str, Any]]]:
        steps: list[tuple[str, dict[str, Any]]] = [("read_file", {"path": f"f{n}.txt"}) for n in range(8)]
        steps.append(("search_block", {"query": "the code of f0.txt"}))
        n = len(self.bodies) - 1
        return steps[n : n + 1]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.bodies.append(body)
        calls = self.server.calls()
        is_anthropic = self.path.endswith("/messages")
        answer = anthropic(calls, len(self.server.bodies)) if is_anthropic else openai(calls, len(self.server.bodies))
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


def openai(calls: list[tuple[str, dict[str, Any]]], n: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None if calls else "The code is K0."}
    if calls:
        message["tool_calls"] = [
            {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for name, arguments in calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    return {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}


def anthropic(calls: list[tuple[str, dict[str, Any]]], n: int) -> dict[str, Any]:
    content: list[dict[str, Any]] = [
        {"type": "tool_use", "id": f"c{n}", "name": name, "input": arguments} for name, arguments in calls
    ]
    usage = {"input_tokens": 1, "output_tokens": 1}
    return {
        "id": "x",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "stop_reason": "tool_use" if calls else "end_turn",
        "content": content or [{"type": "text", "text": "The code is K0."}],
        "usage": usage,
    }


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(("sdk", "suffix"), [("openai", "/v1"), ("anthropic", "")])
def test_py5_an_agent_with_an_sdk_has_a_memory(sdk: str, suffix: str, server: Server, tmp_path: Path) -> None:
    pytest.importorskip(sdk)
    for n in range(8):
        (tmp_path / f"f{n}.txt").write_text(f"The code of f{n}.txt is K{n}. " + "and so on " * 1_500)
    base = f"http://127.0.0.1:{server.server_address[1]}{suffix}"
    keys = {f"{sdk.upper()}_BASE_URL": base, f"{sdk.upper()}_API_KEY": "none"}
    command = [sys.executable, str(EXAMPLES / f"{sdk}_sdk.py"), "Which code has f0.txt?"]
    done = subprocess.run(command, cwd=tmp_path, env={**os.environ, **keys}, capture_output=True, text=True, timeout=120)
    assert done.stdout == "The code is K0.\n", done.stderr
    last = json.dumps(server.bodies[-1])
    # The memory has brought back what was no longer shown.
    assert "The code of f0.txt is K0." in last and len(last) < 60_000
    assert len(server.bodies) == 10


@pytest.mark.parametrize("name", ["own_graph", "deepagents_savings"])
def test_py4_the_examples_without_a_provider_run(name: str) -> None:
    pytest.importorskip("deepagents")
    arguments, expected = {
        "own_graph": ([], "The code is found again: True"),
        "deepagents_savings": (["20"], "foldback strict"),
    }[name]
    command = [sys.executable, f"{name}.py", *arguments]
    done = subprocess.run(command, cwd=EXAMPLES, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout, done.stdout


def test_py5_the_lines_of_the_readme_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("deepagents")
    monkeypatch.chdir(tmp_path)
    from langchain_core.messages import AIMessage
    from scripted_model import Script, ScriptedModel

    blocks = re.findall(r"```python\n(.*?)```", (PACKAGE / "README.md").read_text(), re.DOTALL)
    assert len(blocks) >= 3
    for block in blocks:
        model = ScriptedModel(scripts={"": Script([AIMessage("Hello.")])})
        exec(compile(block, "README.md", "exec"), {"model": model})  # noqa: S102
