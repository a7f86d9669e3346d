"""PY2, PY3 and PY4: the memory in DeepAgents' own stack, with the real packages."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from scripted_model import Script, ScriptedModel, Sent

from foldback import Memory
from foldback.langchain import BlockMemory, with_memory

deepagents = pytest.importorskip("deepagents")
from deepagents.backends.utils import create_file_data  # noqa: E402

MEMORY_TOOLS = ("search_block", "list_blocks", "load")


def file(n: int, size: int = 8192) -> str:
    lines = (f"{line:04d} svc-{(n * 31 + line) % 97} ok id={(n * 7919 + line * 104729) % 10**9:09d}" for line in range(999))
    text = "\n".join("NEEDLE %d is K%06d" % (n, n * 7919 % 10**6) if at == 40 else line for at, line in enumerate(lines))
    return text[:size]


def files(count: int) -> dict[str, Any]:
    return {f"/data/f{n}.log": create_file_data(file(n)) for n in range(count)}


def read(n: int, prefix: str = "c") -> dict[str, Any]:
    return {"name": "read_file", "args": {"file_path": f"/data/f{n}.log"}, "id": f"{prefix}{n}"}


def reading(count: int) -> list[AIMessage]:
    return [AIMessage(f"Reading {n}.", tool_calls=[read(n)]) for n in range(count)]


def agent(model: ScriptedModel, *middleware: Any, **settings: Any) -> Any:
    settings.setdefault("checkpointer", InMemorySaver())
    return deepagents.create_deep_agent(model, middleware=list(middleware), **settings)


def thread(name: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": name}}


def asked(text: str, count: int = 0) -> dict[str, Any]:
    asked: dict[str, Any] = {"messages": [HumanMessage(text)]}
    return {**asked, "files": files(count)} if count else asked


def recorded(memory: BlockMemory, id: str) -> list[Any]:
    return [message.get("content") for message in memory.memory.messages(id)]


def said(state: dict[str, Any]) -> list[Any]:
    return [message.content for message in state["messages"]]


@pytest.mark.parametrize("policy", ["strict", "cache-aware"])
def test_py4_every_file_is_recalled_word_for_word_at_a_tenth_of_the_tokens(policy: Any, tmp_path: Path) -> None:
    calls = 200
    stock = ScriptedModel(scripts={"NEEDLES": Script(reading(calls))})
    agent(stock).invoke(asked("Report the NEEDLES.", calls), thread("t"))
    model = ScriptedModel(scripts={"NEEDLES": Script(reading(calls))})
    memory = BlockMemory(tmp_path, policy=policy)
    state = agent(model, memory).invoke(asked("Report the NEEDLES.", calls), thread("t"))
    assert sum(sent.tokens for sent in stock.sent) > 10 * sum(sent.tokens for sent in model.sent)
    assert sum(sent.cost for sent in stock.sent) > 3 * sum(sent.cost for sent in model.sent)
    assert not model.summaries and not any(sent.orphans for sent in model.sent)
    # The state is whole, and so is the record.
    assert len(state["messages"]) == 2 * calls + 2
    assert recorded(memory, "t") == said(state)
    for n in range(0, calls, 7):
        # As a model looks: the block that is found first, then what it names.
        found = memory.memory.call("t", "search_block", {"query": f"the NEEDLE in /data/f{n}.log"})
        block = memory.memory.call("t", "load", {"ref": found.references[0]})
        stored = re.findall(r"store://\S+?(?=[,\]])", block.text)
        parts = [memory.memory.call("t", "load", {"ref": ref}).text for ref in stored]
        assert any("NEEDLE %d is K%06d" % (n, n * 7919 % 10**6) in part for part in parts), n


def test_py2_every_other_slot_of_the_stack_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    stacks: list[list[Any]] = []

    def catch(*args: Any, **settings: Any) -> Any:
        stacks.append(settings["middleware"])
        return create_agent(*args, **settings)

    monkeypatch.setattr("deepagents.graph.create_agent", catch)
    model = ScriptedModel(scripts={})
    memory = BlockMemory()
    reader = {"name": "reader", "description": "Reads.", "system_prompt": "Read."}
    agent(model, subagents=[reader])
    agent(model, memory, subagents=[with_memory(reader, memory)])
    stock, ours = stacks
    assert [one.name for one in stock] == [one.name for one in ours]
    changed = [(type(a), b) for a, b in zip(stock, ours, strict=True) if type(a) is not type(b)]
    assert [(kind.__name__, ours) for kind, ours in changed] == [("_DeepAgentsSummarizationMiddleware", memory)]
    inner = next(one for one in ours if one.name == "SubAgentMiddleware")
    for spec in inner._subagents:
        names = [one.name for one in spec["middleware"]]
        assert names.count("SummarizationMiddleware") == 1 and memory in spec["middleware"], spec["name"]


def test_py2_the_model_calls_the_memory_tools_by_the_definitions_of_everywhere() -> None:
    answers: list[Any] = [
        *reading(12),
        AIMessage("", tool_calls=[{"name": "search_block", "args": {"query": "NEEDLE 2"}, "id": "s"}]),
        AIMessage("", tool_calls=[{"name": "load", "args": {"ref": "b_nowhere_999"}, "id": "l"}]),
    ]
    model = ScriptedModel(scripts={"NEEDLES": Script(answers)})
    memory = BlockMemory(policy="strict")
    state = agent(model, memory).invoke(asked("Report the NEEDLES.", 12), thread("t"))
    results = {m.tool_call_id: m for m in state["messages"] if m.type == "tool"}
    assert "K015838" in results["s"].content and results["s"].status == "success"
    assert results["l"].status == "error"
    last = model.sent[-1]
    offered = {t["function"]["name"]: t["function"] for t in last.tools}
    for name, declared in ((t["function"]["name"], t["function"]) for t in Memory.tools()):
        assert offered[name]["description"] == declared["description"]
        assert offered[name]["parameters"]["properties"] == declared["parameters"]["properties"]
    assert not any(sent.orphans for sent in model.sent)
    assert recorded(memory, "t") == said(state)


def test_py2_async_runs_and_streams_are_the_same() -> None:
    async def run() -> tuple[list[Any], list[Any], list[Sent]]:
        model = ScriptedModel(scripts={"NEEDLES": Script(reading(20))})
        memory = BlockMemory(policy="strict")
        built = agent(model, memory)
        steps = [step async for step in built.astream(asked("Report the NEEDLES.", 20), thread("t"), stream_mode="updates")]
        assert len(steps) > 40
        state = (await built.aget_state(thread("t"))).values
        return said(state), recorded(memory, "t"), model.sent

    state, kept, sent = asyncio.run(run())
    assert state == kept and len(kept) == 42
    assert max(one.tokens for one in sent) < 12_000 and not any(one.orphans for one in sent)


def test_py2_parallel_sub_agents_have_conversations_of_their_own() -> None:
    tasks = [
        {"name": "task", "args": {"description": f"JOB-{n}", "subagent_type": kind}, "id": f"task{n}"}
        for n, kind in enumerate(["general-purpose", "reader", "reader"])
    ]
    scripts = {
        "NEEDLES": Script([AIMessage("", tool_calls=tasks), *reading(3)]),
        **{
            f"JOB-{n}": Script([AIMessage("", tool_calls=[read(m, f"job{n}-")]) for m in range(n * 10, n * 10 + 9)])
            for n in range(3)
        },
    }
    model, memory = ScriptedModel(scripts=scripts), BlockMemory(policy="strict")
    reader = {"name": "reader", "description": "Reads.", "system_prompt": "You read files."}
    built = agent(model, memory, subagents=[with_memory(reader, memory)])
    asyncio.run(built.ainvoke(asked("Report the NEEDLES.", 40), thread("t")))
    names = sorted(memory.memory.sessions())
    assert len(names) == 4 and names[0] == "t" and all(name.startswith("t:") for name in names[1:])
    begins = {recorded(memory, name)[0] for name in names[1:]}
    assert begins == {"JOB-0", "JOB-1", "JOB-2"}
    for name in names[1:]:
        job = int(recorded(memory, name)[0].removeprefix("JOB-"))
        needles = set(re.findall(r"NEEDLE (\d+) ", "\n".join(map(str, recorded(memory, name)))))
        assert needles == {str(n) for n in range(job * 10, job * 10 + 9)}
    assert not any(sent.orphans for sent in model.sent)


@tool
def delete(path: str) -> str:
    """Deletes a file."""
    return f"{path} is gone"


def test_py2_an_interrupted_agent_goes_on_where_it_was(tmp_path: Path) -> None:
    asks = AIMessage("", tool_calls=[{"name": "delete", "args": {"path": "/data/f0.log"}, "id": "d"}])
    model = ScriptedModel(scripts={"NEEDLES": Script([*reading(9), asks])})
    saver = InMemorySaver()

    def build() -> tuple[Any, BlockMemory]:
        # As after a restart: nothing is at hand but the checkpoints and the store.
        memory = BlockMemory(tmp_path, policy="strict")
        return agent(model, memory, tools=[delete], interrupt_on={"delete": True}, checkpointer=saver), memory

    state = build()[0].invoke(asked("Report the NEEDLES.", 9), thread("t"))
    assert state["__interrupt__"]
    built, memory = build()
    state = built.invoke(Command(resume={"decisions": [{"type": "approve"}]}), thread("t"))
    assert any(m.content == "/data/f0.log is gone" for m in state["messages"])
    assert recorded(memory, "t") == said(state) and not any(sent.orphans for sent in model.sent)
    built, memory = build()
    state = built.invoke(asked("And now?"), thread("t"))
    assert recorded(memory, "t") == said(state)


def test_py2_going_back_to_a_checkpoint_begins_a_branch() -> None:
    first = [*reading(6), AIMessage("The first answer."), AIMessage("The second answer.")]
    model, memory = ScriptedModel(scripts={"NEEDLES": Script(first)}), BlockMemory(policy="strict")
    built = agent(model, memory)
    built.invoke(asked("Report the NEEDLES.", 6), thread("t"))
    # Back to where the model was about to give its last answer.
    past = [s for s in built.get_state_history(thread("t")) if s.next == ("model",)]
    state = built.invoke(None, past[0].config)
    assert state["messages"][-1].content == "The second answer."
    assert "The first answer." not in model.sent[-1].text
    kept = recorded(memory, "t")
    assert "The first answer." in kept and kept[-1] == "The second answer."
    assert kept.count("Report the NEEDLES.") == 1


def test_py3_a_checkpoint_is_loaded_without_the_memory_and_with_it() -> None:
    saver = InMemorySaver()
    model = ScriptedModel(scripts={"NEEDLES": Script(reading(6))})
    state = agent(model, BlockMemory(), checkpointer=saver).invoke(asked("Report the NEEDLES.", 6), thread("t"))
    # Nothing of foldback's is in the state.
    assert set(state) == {"messages", "files"}
    plain = ScriptedModel(scripts={"NEEDLES": Script([])})
    went_on = agent(plain, checkpointer=saver).invoke(asked("Go on."), thread("t"))
    assert said(went_on)[: len(state["messages"])] == said(state)
    # And an agent that began without it goes on with it.
    memory, later = BlockMemory(policy="strict"), ScriptedModel(scripts={"NEEDLES": Script([])})
    state = agent(later, memory, checkpointer=saver).invoke(asked("And on."), thread("t"))
    assert recorded(memory, "t") == said(state)


def test_py2_create_agent_without_deepagents_has_a_memory_too() -> None:
    model = ScriptedModel(scripts={"DELETE": Script([
        AIMessage("", tool_calls=[{"name": "delete", "args": {"path": f"/{n}" * 900}, "id": f"d{n}"}]) for n in range(30)
    ])})
    memory = BlockMemory(policy="strict")
    built = create_agent(model, tools=[delete], middleware=[memory])
    built.invoke({"messages": [{"role": "user", "content": "DELETE them all."}]})
    (name,) = memory.memory.sessions()
    assert len(recorded(memory, name)) == 62
    # Long arguments of earlier calls are told by their beginning; the call itself stays whole in the record.
    assert max(sent.tokens for sent in model.sent) < 8_000 and not any(sent.orphans for sent in model.sent)
    calls = [m["tool_calls"] for m in memory.memory.messages(name) if m.get("tool_calls")]
    assert "/29" * 900 in calls[29][0]["function"]["arguments"]


def test_py2_a_prefix_is_marked_for_anthropic_and_stays_the_same() -> None:
    model = ScriptedModel(kind="anthropic-chat", scripts={"NEEDLES": Script(reading(40))})
    agent(model, BlockMemory(policy="cache-aware")).invoke(asked("Report the NEEDLES.", 40), thread("t"))
    sent = model.sent
    assert sum(one.cached for one in sent) > 0.5 * sum(one.tokens for one in sent)

    def marks(messages: list[BaseMessage]) -> list[int]:
        return [n for n, m in enumerate(messages) if "cache_control" in str(m.content)]

    strict = ScriptedModel(kind="anthropic-chat", scripts={"NEEDLES": Script(reading(20))})
    agent(strict, BlockMemory(policy="strict")).invoke(asked("Report the NEEDLES.", 20), thread("t"))
    assert all(len(marks(one.messages)) <= 1 for one in strict.sent)
    assert any(marks(one.messages) for one in strict.sent)


def test_py2_a_request_that_does_not_fit_is_sent_smaller() -> None:
    class Full(Exception):
        status_code = 400

    limit = 9_000

    def answer(sent: Sent) -> AIMessage:
        if sent.tokens > limit:
            raise Full("prompt is too long")
        return AIMessage("It fits.")

    big = AIMessage("", tool_calls=[read(n) for n in range(5)])
    model = ScriptedModel(scripts={"NEEDLES": Script([*reading(4), big, answer, answer])})
    state = agent(model, BlockMemory(policy="strict")).invoke(asked("Report the NEEDLES.", 5), thread("t"))
    assert state["messages"][-1].content == "It fits."


def test_py2_a_tool_of_the_same_name_is_refused() -> None:
    @tool
    def load(path: str) -> str:
        """Loads."""
        return path

    model = ScriptedModel(scripts={"NEEDLES": Script([])})
    with pytest.raises(ValueError, match="load"):
        agent(model, BlockMemory(), tools=[load]).invoke(asked("Report the NEEDLES."), thread("t"))


def test_py2_images_and_unknown_blocks_pass_unchanged() -> None:
    model, memory = ScriptedModel(scripts={"NEEDLES": Script([])}), BlockMemory(policy="strict")
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    content = [{"type": "text", "text": "The NEEDLES are here."}, image]
    built = agent(model, memory)
    built.invoke({"messages": [HumanMessage(content)]}, thread("t"))
    assert model.sent[0].messages[-1].content[:2] == content
    thought = [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "Yes."}]
    built.update_state(thread("t"), {"messages": [AIMessage(thought)]})
    built.invoke(asked("And?"), thread("t"))
    assert any(m.content == thought for m in model.sent[-1].messages)
