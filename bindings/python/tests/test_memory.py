"""PY1 and PY5: the package by itself."""

from __future__ import annotations

import gc
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

import foldback
from foldback import FoldbackError, Memory


def talk(session: foldback.Session, turns: int) -> None:
    for turn in range(turns):
        session.record({"role": "user", "content": f"What is the code of room {turn}?"})
        session.record({"role": "assistant", "content": f"Room {turn} opens with K{turn * 7919 % 100003:06d}."})


def test_py5_a_prompt_stays_small_and_everything_comes_back(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "store", policy="strict")
    session = memory.session("rooms")
    talk(session, 60)
    assert len(session) == 120 and session.blocks > 10
    prompt = session.prompt()
    assert len(prompt["messages"]) < 20
    assert [tool["function"]["name"] for tool in prompt["tools"]] == ["search_block", "list_blocks", "load"]
    assert session.tools() == prompt["tools"] == Memory.tools()
    found = session.call("search_block", {"query": "code of room 7"})
    assert "K055433" in found.text and found.references and not found.is_error


def test_py5_both_apis_take_what_a_prompt_says(tmp_path: Path) -> None:
    session = Memory(policy="strict").session("weather")
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "东京"}'}}
    session.record_all(
        [
            {"role": "system", "content": "Answer briefly."},
            {"role": "user", "content": "东京天气？"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "小雨"},
        ]
    )
    openai, anthropic = session.prompt(), session.prompt("anthropic")
    assert [m["role"] for m in openai["messages"]] == ["system", "user", "assistant", "tool"]
    assert anthropic["system"][0]["text"] == "Answer briefly."
    assert anthropic["messages"][1]["content"][0]["input"] == {"city": "东京"}
    assert anthropic["messages"][2]["content"][0]["type"] == "tool_result"


def test_py5_anthropic_messages_are_recorded_as_they_are_said() -> None:
    session = Memory().session("x")
    use = {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}}
    session.record({"role": "user", "content": "Add."}, format="anthropic")
    session.record({"role": "assistant", "content": [use]}, format="anthropic")
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "2"}
    session.record({"role": "user", "content": [result]}, format="anthropic")
    assert session.prompt("anthropic")["messages"][1]["content"] == [use]


def test_py5_a_store_outlives_its_process(tmp_path: Path) -> None:
    talk(Memory(tmp_path).session("rooms"), 5)
    memory = Memory(tmp_path, read_only=True)
    assert list(memory.sessions()) == ["rooms"]
    messages = list(memory.messages("rooms"))
    assert len(messages) == 10 and messages[1]["content"].startswith("Room 0")
    for name, kind in (("rooms", "read_only"), ("another", "not_found")):
        with pytest.raises(FoldbackError) as refused:
            memory.session(name).record({"role": "user", "content": "no"})
        assert refused.value.kind == kind


def test_py5_conversations_may_be_forgotten_while_they_are_walked_over() -> None:
    memory = Memory()
    begun = [memory.session(f"t{n}").id for n in range(600)]
    walked = []
    for name in memory.sessions():
        memory.forget(name)
        walked.append(name)
    assert walked == begun and list(memory.sessions()) == []


def test_py5_a_store_stays_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    memory = Memory("store")
    monkeypatch.chdir(tmp_path / "other")
    talk(memory.session("rooms"), 40)
    memory.search("rooms", "the code of room 7")
    del memory
    assert list((tmp_path / "other").iterdir()) == []


def test_py5_stored_parts_come_back_byte_for_byte() -> None:
    memory = Memory()
    session = memory.session("log")
    log = "\n".join(f"{line} 服务 {line * line}" for line in range(2000))
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    session.record_all(
        [
            {"role": "user", "content": "Read the log."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": log},
        ]
    )
    assert list(memory.messages("log"))[2]["content"] == log
    (reference,) = re.findall(r"store://[\w-]+", str(session.prompt("openai", 1_000)["messages"]))
    assert memory.payload("log", reference).decode() == log
    memory.forget("log")
    assert list(memory.sessions()) == []


def nested(depth: int) -> dict[str, object]:
    value: dict[str, object] = {"role": "user", "content": "你好"}
    for _ in range(depth):
        value = {**value, "in": value}
    return value


@pytest.mark.parametrize(
    ("attempt", "kind", "words"),
    [
        (lambda m: m.session("x").record({"content": "no role"}), "invalid_input", "role"),
        (lambda m: m.session("x").record({"role": "user", "content": 7}), "invalid_input", "content"),
        (lambda m: m.session("x").prompt("xml"), "invalid_input", "xml"),
        (lambda m: m.tools("xml"), "invalid_input", '"anthropic", and not "xml"'),
        (lambda m: m.session("x").tools("xml"), "invalid_input", '"anthropic", and not "xml"'),
        (lambda m: m.session("x").pin(3), "not_found", "3"),
        (lambda m: m.search("nowhere", "x"), "not_found", "nowhere"),
        (lambda m: m.payload("nowhere", "store://1-k4qd"), "not_found", "nowhere"),
        (lambda m: m.payload("nowhere", "store://1"), "invalid_input", "store://<n>-<check>"),
        (lambda m: Memory(engine="paper"), "invalid_input", "paper"),
        (lambda m: Memory(prices=(-1.0, 1.0)), "invalid_input", "price"),
        (lambda m: m.session("x").record("hello"), "invalid_input", "and not str"),
        (lambda m: m.session("x").record(None), "invalid_input", "and not NoneType"),
        (lambda m: m.session("x").record({"role": "user", "content": {1}}), "invalid_input", "as JSON"),
        (lambda m: m.session("x").record_all("abc"), "invalid_input", "a message is a mapping"),
        (lambda m: m.session("x").record_all(7), "invalid_input", "and not int"),
        (lambda m: m.session("x").call("load", [1]), "invalid_input", "and not list"),
        (lambda m: m.session("x").pin(-1), "invalid_input", "-1"),
        (lambda m: m.session("x").prompt(max_tokens=-5), "invalid_input", "-5"),
        (lambda m: m.search("x", "y", k=-2), "invalid_input", "-2"),
        (lambda m: m.search("x", "y", k=0), "invalid_input", "at least 1, and not 0"),
        (lambda m: m.session("x").record({"role": "user", "content": "x", "at": float("nan")}), "invalid_input", "float"),
        (lambda m: m.session("x").call("load", {"ref": float("inf")}), "invalid_input", "float"),
        (lambda m: m.session("x")._session.set_front_tokens(-1), "invalid_input", "-1"),
        (lambda m: Memory(key=b"short"), "invalid_input", "32 bytes, and not 5 bytes"),
        (lambda m: Memory(key="a" * 32), "invalid_input", "32 bytes, and not str"),
        (lambda m: Memory(least_cached=-1), "invalid_input", "-1"),
        (lambda m: Memory("/proc/no/such/folder"), "io", "No such file or directory"),
        (lambda m: m.session("\ud800"), "invalid_input", "half a surrogate pair, and not '\\ud800'"),
        (lambda m: m.session("x").record(nested(100_000)), "invalid_input", "recursion"),
        (lambda m: m.session("x").call("load", nested(100_000)), "invalid_input", "recursion"),
    ],
)
def test_py1_errors_name_what_was_wrong(attempt: object, kind: str, words: str) -> None:
    with pytest.raises(FoldbackError) as refused:
        attempt(Memory())  # type: ignore[operator]
    assert refused.value.kind == kind and words in str(refused.value), str(refused.value)


def test_py1_half_a_surrogate_pair_is_replaced_and_the_rest_is_kept() -> None:
    memory = Memory()
    memory.session("x").record({"role": "user", "content": "a\ud800b"})
    assert list(memory.messages("x"))[0]["content"] == "a?b"


def test_py1_half_a_surrogate_pair_is_replaced_in_what_is_asked_for() -> None:
    memory = Memory()
    session = memory.session("旅行")
    session.record({"role": "user", "content": "码头 8 号几点开门？"})
    session.end()
    assert len(memory.search("旅行", "几点开门\ud800")) == 1
    assert "码头 8 号" in memory.call("旅行", "search_block", {"query": "几点开门\udfff"}).text
    assert not session.call("list_blocks", "{}", id="call\ud800").is_error
    assert session.call("load\ud800", '{"ref": "\ud800"}').is_error


@pytest.mark.parametrize("name", ["\ud800", "旅行\udfff"])
def test_py1_half_a_surrogate_pair_does_not_make_two_names_one(name: str) -> None:
    memory = Memory()
    for attempt in (
        lambda: memory.session(name),
        lambda: next(memory.messages(name)),
        lambda: memory.search(name, "x"),
        lambda: memory.call(name, "list_blocks", {}),
        lambda: memory.payload(name, "store://1-k4qd"),
        lambda: memory.forget(name),
    ):
        with pytest.raises(FoldbackError, match="half a surrogate pair") as refused:
            attempt()
        assert refused.value.kind == "invalid_input"
    assert list(memory.sessions()) == []


def test_py1_an_empty_path_is_no_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for attempt in (lambda: Memory(""), lambda: Memory("", read_only=True)):
        with pytest.raises(FoldbackError, match="an empty one") as refused:
            attempt()
        assert refused.value.kind == "invalid_input"
    assert list(tmp_path.iterdir()) == []


def test_py1_the_interpreter_runs_on_while_the_store_works(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    session = memory.session("big")
    text = " ".join(f"word{n}" for n in range(400_000))
    turns, done = 0, threading.Event()

    def record() -> None:
        session.record({"role": "user", "content": text})
        done.set()

    worker = threading.Thread(target=record)
    worker.start()
    while not done.is_set():
        turns += 1
        time.sleep(0)
    worker.join()
    # With the lock held, this thread would get no turn before the message is recorded.
    assert turns > 10


@pytest.mark.parametrize("end", ["closed", "dropped", "dropped with its session"])
def test_py1_the_interpreter_runs_on_while_a_store_closes(tmp_path: Path, end: str) -> None:
    memory = Memory(tmp_path)
    session = memory.session("rooms")
    # Enough for an index, which is built at the end.
    talk(session, 700)
    held = [session] if end == "dropped with its session" else [memory]
    close = memory.close if end == "closed" else held.clear
    del memory, session
    turns, begun, closing, done = 0, threading.Event(), threading.Event(), threading.Event()

    def finish() -> None:
        begun.wait()
        closing.set()
        close()
        done.set()

    worker = threading.Thread(target=finish)
    worker.start()
    while not done.is_set():
        turns += closing.is_set()
        begun.set()
        time.sleep(0)
    worker.join()
    # With the lock held, this thread would get no turn before the store is closed.
    assert turns > 2


def test_py1_a_closed_memory_closes_its_sessions() -> None:
    with Memory() as memory:
        session = memory.session("x")
        session.record({"role": "user", "content": "你好"})
    memory.close()
    for attempt in (session.prompt, lambda: memory.session("x"), lambda: list(memory.sessions())):
        with pytest.raises(FoldbackError, match="closed") as refused:
            attempt()
        assert refused.value.kind == "invalid_input"


def test_py1_a_key_opens_what_it_closed(tmp_path: Path) -> None:
    key = bytes(range(32))
    talk(Memory(tmp_path, key=key).session("x"), 2)
    assert len(list(Memory(tmp_path, key=key).messages("x"))) == 4
    with pytest.raises(FoldbackError) as refused:
        Memory(tmp_path)
    assert refused.value.kind == "key"


def test_py1_the_stubs_name_what_the_module_has() -> None:
    from foldback import _foldback

    stub = (Path(foldback.__file__).parent / "_foldback.pyi").read_text()
    for kind in (_foldback.Memory, _foldback.Session, _foldback.Prompt, _foldback.Answer):
        for name in vars(kind):
            if not name.startswith("_"):
                assert f"{name}(" in stub or f"{name}:" in stub, f"{kind.__name__}.{name}"


class Part:
    """As the SDKs have them."""

    def __init__(self, **fields: object) -> None:
        self.fields = fields

    def model_dump(self, *, mode: str, exclude_none: bool) -> dict[str, object]:
        assert mode == "json" and exclude_none
        return {key: value.isoformat() if isinstance(value, date) else value for key, value in self.fields.items()}


def test_py5_what_an_sdk_gives_is_taken() -> None:
    memory = Memory()
    session = memory.session("x")
    session.record(Part(role="assistant", content="潮", at=date(2026, 1, 2)))
    session.record({"role": "user", "content": [Part(type="text", text="几点？")]}, format="anthropic")
    call = Part(id="c", type="function", function={"name": "look", "arguments": "{}"})
    session.record({"role": "assistant", "content": None, "tool_calls": [call]})
    first, second, third = memory.messages("x")
    assert (first["content"], first["at"]) == ("潮", "2026-01-02")
    assert second["content"] in ("几点？", [{"type": "text", "text": "几点？"}])
    assert third["tool_calls"][0]["function"]["name"] == "look"


def test_py5_messages_of_the_sdks_are_taken() -> None:
    anthropic, openai = pytest.importorskip("anthropic"), pytest.importorskip("openai")
    memory = Memory()
    session = memory.session("x")
    block = anthropic.types.TextBlock(type="text", text="开门。", citations=None)
    session.record({"role": "assistant", "content": [block]}, format="anthropic")
    kind = openai.types.chat.ChatCompletionMessageFunctionToolCall
    call = kind.model_validate({"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}})
    session.record({"role": "assistant", "content": None, "tool_calls": [call]})
    assert "开门。" in str(next(memory.messages("x"))) and "look" in str(session.prompt()["messages"])


def test_py5_a_session_is_true_before_its_first_message() -> None:
    session = Memory().session("x")
    assert session and len(session) == 0


def test_py1_every_kind_of_error_is_listed() -> None:
    stub = (Path(foldback.__file__).parent / "_foldback.pyi").read_text()
    kinds = re.findall(r"``(\w+)``", stub.split("    ``not_found``")[1].split('"""')[0])
    listed = re.findall(r"^- ``(\w+)``:", FoldbackError.__doc__ or "", re.MULTILINE)
    source = Path(__file__).parents[3] / "crates/foldback/src/error/kind.rs"
    (variants,) = re.findall(r"pub enum ErrorKind \{(.*?)\n\}", source.read_text(), re.DOTALL)
    own = [re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower() for name in re.findall(r"^    (\w+),", variants, re.MULTILINE)]
    assert listed == ["not_found", *kinds] == own
    assert FoldbackError("x").kind == "internal"


def in_fork(work: Callable[[], object]) -> str:
    """What the work in a child comes to: its result, or its error with its kind."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        told = "nothing"
        try:
            told = str(work())
        except FoldbackError as error:
            told = f"{error.kind}: {error}"
        except BaseException as error:
            told = repr(error)
        finally:
            # The rest of the tests is the parent's.
            os.write(writing, told.encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as said:
        told = said.read()
    assert os.waitpid(child, 0)[1] == 0
    return told


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are forks on Unix alone")
def test_py5_a_memory_is_refused_in_a_fork(tmp_path: Path) -> None:
    message = {"role": "user", "content": "涨潮是几点？"}
    with Memory(tmp_path / "store") as memory:
        session = memory.session("潮汐")
        session.record(message)
        refused = f"invalid_input: the memory was opened by process {os.getpid()}, of which this process "
        advice = 'open the store only after the fork, or start the child with "spawn"'
        calls: list[Callable[[], object]] = [
            lambda: session.record(message),
            lambda: session.prompt(),
            lambda: memory.session("另一个"),
            lambda: memory.search("潮汐", "涨潮"),
            lambda: list(memory.sessions()),
        ]
        for call in calls:
            told = in_fork(call)
            assert told.startswith(refused) and told.endswith(advice), told

        def reopened() -> int:
            # What the parent has open is left alone, also where it is closed or dropped.
            nonlocal memory, session
            memory.close()
            del memory, session
            gc.collect()
            return len(Memory(tmp_path / "link").session("潮汐"))

        (tmp_path / "link").symlink_to(tmp_path / "store")
        told = in_fork(reopened)
        assert told.startswith(f"invalid_input: process {os.getpid()} had the store open when it forked"), told
        assert told.endswith(advice), told
        assert in_fork(lambda: len(Memory(tmp_path / "another").session("潮汐"))) == "0"
        session.record(message)
        assert len(session) == 2
    del session

    def alone() -> int:
        with Memory(tmp_path / "store") as own:
            return len(own.session("潮汐"))

    assert in_fork(alone) == "2"


def test_py1_a_wheel_has_its_licences(tmp_path: Path) -> None:
    maturin = Path(sys.executable).parent / "maturin"
    if not maturin.exists():
        pytest.skip("maturin is not beside this interpreter")
    package = Path(__file__).parents[1]
    write = [maturin, "pep517", "write-dist-info", "--metadata-directory", tmp_path, "--interpreter", sys.executable]
    subprocess.run(write, cwd=package, check=True, capture_output=True)
    [info] = tmp_path.glob("*.dist-info")
    texts = {file.name: file.read_text() for file in (info / "licenses").rglob("*") if file.is_file()}
    assert sorted(texts) == ["LICENSE", "LICENSE-APACHE-NOTICE.txt", "LICENSE-MIT-E5.txt"]
    assert texts["LICENSE"] == (package / "../../LICENSE").read_text()
    metadata = (info / "METADATA").read_text()
    assert "License-Expression: Apache-2.0\n" in metadata and metadata.count("\nLicense-File: ") == 3
