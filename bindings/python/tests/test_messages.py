"""PY2: messages of LangChain that are not as most are, such as calls that cannot be read and raw bytes."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from scripted_model import Script, ScriptedModel

from foldback import FoldbackError
from foldback.langchain import BlockMemory

POLICIES = pytest.mark.parametrize("policy", ["strict", "cache-aware"])


@tool
def read(path: str) -> str:
    """Reads a file."""
    return f"{path} 服务 ok\n" * 600


def good(n: int) -> dict[str, Any]:
    return {"name": "read", "args": {"path": f"/{n}"}, "id": f"good{n}"}


def bad(n: int, arguments: str | None = '{"path": "/日志', id: str = "bad") -> dict[str, Any]:
    return {"name": "read", "args": arguments, "id": f"{id}{n}", "error": "it ends too early"}


def answers(message: AIMessage) -> list[AnyMessage]:
    """A result for each call, as agents give it."""
    calls = [(call["id"], "ok") for call in message.tool_calls]
    calls += [(call["id"], "could not be executed") for call in message.invalid_tool_calls]
    return [ToolMessage(text, tool_call_id=id or "") for id, text in calls]


def assert_pairs(messages: list[BaseMessage]) -> None:
    """Each call, also one that cannot be read, is followed by its result and by nothing else, as providers want it."""
    open_calls: set[str | None] = set()
    for message in messages:
        if isinstance(message, ToolMessage):
            assert message.tool_call_id in open_calls, messages
            open_calls.remove(message.tool_call_id)
            continue
        assert not open_calls, messages
        if isinstance(message, AIMessage):
            open_calls = {call["id"] for call in (*message.tool_calls, *message.invalid_tool_calls)}
    assert not open_calls, messages


@POLICIES
def test_py2_a_call_that_cannot_be_read_stays_with_its_result(policy: Any) -> None:
    steps = [AIMessage("", tool_calls=[good(n)], invalid_tool_calls=[bad(n)]) for n in range(12)]
    model = ScriptedModel(scripts={"LOGS": Script(steps)})
    memory = BlockMemory(policy=policy)
    built = create_agent(model, tools=[read], middleware=[memory], checkpointer=InMemorySaver())
    state = built.invoke({"messages": [HumanMessage("Read the LOGS.")]}, {"configurable": {"thread_id": "t"}})
    assert len(model.sent) == 13 and len(state["messages"]) == 38
    for sent in model.sent:
        assert not sent.orphans
        assert_pairs(sent.messages)
    # Its arguments are recorded as the model wrote them.
    (first, *_) = [m["tool_calls"] for m in memory.memory.messages("t") if m.get("tool_calls")]
    assert [(call["id"], call["function"]["arguments"]) for call in first] == [
        ("good0", '{"path": "/0"}'),
        ("bad0", '{"path": "/日志'),
    ]


@POLICIES
def test_py2_a_message_of_calls_that_cannot_be_read_alone_stays_with_its_results(policy: Any) -> None:
    deepagents = pytest.importorskip("deepagents")
    steps = [AIMessage("", invalid_tool_calls=[bad(n), bad(n, id="other")]) for n in range(8)]
    model = ScriptedModel(scripts={"LOGS": Script(steps)})
    built = deepagents.create_deep_agent(model, middleware=[BlockMemory(policy=policy)], checkpointer=InMemorySaver())
    for n in range(9):
        built.invoke({"messages": [HumanMessage(f"Read the LOGS, {n}.")]}, {"configurable": {"thread_id": "t"}})
    assert len(model.sent) == 9
    for sent in model.sent:
        assert not sent.orphans
        assert_pairs(sent.messages)
    assert "could not be executed" in model.sent[-1].text


@pytest.mark.parametrize("id", ["bad", "呼", "functions.ls:", "x" * 91])
@pytest.mark.parametrize("arguments", ['{"path": "' + "/日志" * 900, "", None, "[" * 20_000, "9" * 9_000])
def test_py2_a_call_that_cannot_be_read_is_shown_shorter_as_any_other(id: str, arguments: str | None) -> None:
    memory = BlockMemory(policy="strict")
    messages: list[AnyMessage] = [HumanMessage("Read the logs.")]
    for n in range(12):
        message = AIMessage("", invalid_tool_calls=[bad(n, arguments, id)])
        messages += [message, *answers(message)]
        seen = memory.view(messages, "t").messages
        assert_pairs(seen)
        assert any(isinstance(one, AIMessage) and (one.tool_calls or one.invalid_tool_calls) for one in seen)
        for one in seen:
            # A call is either as the model wrote it, in the message itself, or made from what the view shows.
            if isinstance(one, AIMessage) and one.invalid_tool_calls:
                assert not one.tool_calls and any(one is ours for ours in messages)
    if id == "bad":
        assert any(one is messages[-2] for one in seen)


def test_py2_a_block_of_a_call_that_cannot_be_read_does_not_repeat_it() -> None:
    memory = BlockMemory(policy="strict")
    blocks: list[Any] = [
        {"type": "text", "text": "I read."},
        {"type": "tool_use", "id": "呼0", "name": "read", "input": {}},
        {"type": "invalid_tool_call", "id": "呼0", "name": "read", "args": '{"path'},
    ]
    message = AIMessage(blocks, invalid_tool_calls=[bad(0, '{"path', "呼")])
    messages: list[AnyMessage] = [HumanMessage("Read the logs."), message, *answers(message)]
    seen = memory.view(messages, "t").messages
    assert_pairs(seen)
    (call,) = list(memory.memory.messages("t"))[1]["tool_calls"]
    assert call["function"]["arguments"] == '{"path'
    # No provider takes its id, so that it is shown under another one, and once.
    shown = seen[1]
    assert isinstance(shown, AIMessage) and shown.content in ("I read.", blocks[:1]), shown
    assert [call["name"] for call in shown.tool_calls] == ["read"] and not shown.invalid_tool_calls


def test_py2_a_call_without_an_id_or_a_name_is_recorded_beside_the_calls() -> None:
    memory = BlockMemory()
    nameless: list[Any] = [{**bad(0), "name": None}, {**bad(1), "id": None}]
    memory.view([HumanMessage("Read."), AIMessage("Yes.", invalid_tool_calls=nameless)], "t")
    kept = list(memory.memory.messages("t"))[1]
    assert "tool_calls" not in kept and [call["id"] for call in kept["invalid_tool_calls"]] == ["bad0", None]


@POLICIES
def test_py2_raw_bytes_are_recorded_and_sent_as_they_are(policy: Any) -> None:
    picture = bytes(range(256)) * 256
    parts: list[Any] = [
        {"type": "text", "text": "这是图片。 " * 2000},
        {
            "type": "document",
            "document": {"format": "png", "source": {"bytes": picture}},
            "more": [bytearray(picture), memoryview(b"end")],
        },
    ]
    model = ScriptedModel(scripts={"LOGS": Script([AIMessage("", tool_calls=[good(n)]) for n in range(8)])})
    memory = BlockMemory(policy=policy)
    built = create_agent(model, tools=[read], middleware=[memory])
    asked = HumanMessage([{"type": "text", "text": "Read the LOGS."}, parts[1]])
    built.invoke({"messages": [asked]})
    assert len(model.sent) == 9
    for sent in model.sent:
        assert next(m for m in sent.messages if isinstance(m, HumanMessage)).content[:2] == asked.content
    (name,) = memory.memory.sessions()
    kept = next(memory.memory.messages(name))["content"][1]
    assert set(kept["document"]["source"]["bytes"]) == {"base64"} and kept["more"][1] == {"base64": "ZW5k"}
    # And in a message that is shown in fewer tokens.
    messages: list[AnyMessage] = [HumanMessage("Read the logs.")]
    for n in range(8):
        call = AIMessage("", tool_calls=[good(n)])
        messages += [call, ToolMessage(parts, tool_call_id=f"good{n}")]
        for message in memory.view(messages, "bytes").messages:
            assert "base64" not in str(message.content), message
    last = HumanMessage(parts[1:])
    assert any(message is last for message in memory.view([*messages, last], "bytes").messages)
    shown = [m.content for m in memory.view(messages, "bytes").messages if isinstance(m, ToolMessage)]
    assert any(content[0] != parts[0] and content[1] == parts[1] for content in shown if len(content) == 2), shown


def test_py2_what_json_cannot_hold_is_an_error_of_the_memory() -> None:
    parts: list[Any] = [{"type": "set", "set": {1}}]
    with pytest.raises(FoldbackError, match="as JSON") as refused:
        BlockMemory().view([HumanMessage(parts)], "t")
    assert refused.value.kind == "invalid_input"


def test_py2_arguments_that_json_cannot_hold_do_not_stop_the_agent_unless_nothing_can() -> None:
    # Only their provider knows these blocks.
    blocks: list[Any] = [{"type": "thinking", "thinking": "嗯", "signature": "s"}]
    memory = BlockMemory()
    odd = {"path": b"/x", "limit": float("nan")}
    memory.view([HumanMessage("Read."), AIMessage(blocks, tool_calls=[{**good(0), "args": odd}])], "t")
    (call,) = list(memory.memory.messages("t"))[1]["tool_calls"]
    assert call["function"]["arguments"] == '{"path": {"base64": "L3g="}, "limit": NaN}'
    with pytest.raises(FoldbackError, match="as JSON"):
        memory.view([AIMessage(blocks, tool_calls=[{**good(0), "args": {"path": {1}}}])], "u")


def test_py2_instructions_without_a_text_are_empty() -> None:
    parts: list[Any] = [{"type": "text", "text": "Answer briefly."}, {"type": "note", "text": None}]
    seen = BlockMemory().view([SystemMessage(parts), HumanMessage("Hello.")], "t")
    assert [text.strip() for text in seen.instructions] == ["Answer briefly."]
