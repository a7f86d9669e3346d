"""PY2, PY3 and PY4: the memory in DeepAgents' own stack, with the real packages."""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from scripted_model import Script, ScriptedModel, Sent

from foldback import FoldbackError, Memory
from foldback.langchain import BlockMemory, _is_overflow, with_memory

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


@pytest.mark.parametrize(("policy", "per_step"), [("strict", 1), ("cache-aware", 1), ("strict", 4)])
def test_py4_every_file_is_recalled_word_for_word_at_a_tenth_of_the_tokens(
    policy: Any, per_step: int, tmp_path: Path
) -> None:
    calls = 200
    steps = [AIMessage("", tool_calls=[read(n + m) for m in range(per_step)]) for n in range(0, calls, per_step)]
    stock = ScriptedModel(scripts={"NEEDLES": Script(steps)})
    agent(stock).invoke(asked("Report the NEEDLES.", calls), thread("t"))
    model = ScriptedModel(scripts={"NEEDLES": Script(steps)})
    memory = BlockMemory(tmp_path, policy=policy)
    state = agent(model, memory).invoke(asked("Report the NEEDLES.", calls), thread("t"))
    fewer = sum(sent.tokens for sent in stock.sent) / sum(sent.tokens for sent in model.sent)
    cheaper = sum(sent.cost for sent in stock.sent) / sum(sent.cost for sent in model.sent)
    # Four files at a time are four times as many tokens in each view.
    assert (fewer, cheaper) > ((10, 3) if per_step == 1 else (3, 1.5)), (fewer, cheaper)
    assert not model.summaries and not any(sent.orphans for sent in model.sent)
    # The state is whole, and so is the record.
    assert len(state["messages"]) == len(steps) + calls + 2
    assert recorded(memory, "t") == said(state)
    results = [str(m.content) for m in state["messages"] if m.type == "tool"]
    for n in range(calls):
        # As a model looks: the block that is found first, and what it names.
        found = memory.memory.call("t", "search_block", {"query": f"the NEEDLE in /data/f{n}.log"})
        block = memory.memory.call("t", "load", {"ref": found.references[0]})
        stored = re.findall(r"store://\S+?(?=[,\]])", block.text)
        assert results[n] in [memory.memory.payload("t", reference).decode() for reference in stored], n


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
    theirs, inner = (next(one for one in stack if one.name == "SubAgentMiddleware")._subagents for stack in stacks)
    for before, spec in zip(theirs, inner, strict=True):
        assert {key: before[key] for key in before if key != "middleware"} == {
            key: spec[key] for key in spec if key != "middleware"
        }
        kinds = [
            (type(a).__name__, b is memory)
            for a, b in zip(before["middleware"], spec["middleware"], strict=True)
            if type(a) is not type(b)
        ]
        assert kinds == [("_DeepAgentsSummarizationMiddleware", True)], spec["name"]


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
    # Of long arguments of earlier calls the view shows the beginning; the record has the whole call.
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

    tried: list[int] = []

    def answer(sent: Sent) -> AIMessage:
        tried.append(sent.tokens)
        if len(tried) == 1:
            raise Full("prompt is too long")
        return AIMessage("It fits.")

    big = AIMessage("", tool_calls=[read(n) for n in range(5)])
    model = ScriptedModel(scripts={"NEEDLES": Script([*reading(4), big, answer, answer])})
    state = agent(model, BlockMemory(policy="strict")).invoke(asked("Report the NEEDLES.", 5), thread("t"))
    assert state["messages"][-1].content == "It fits."
    refused, smaller = tried
    assert smaller < 0.7 * refused


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


@pytest.mark.parametrize("id", ["functions.ls:0", "call_0|fc_0", "呼0", "x" * 91, "call_0"])
@pytest.mark.parametrize("policy", ["strict", "cache-aware"])
def test_py2_whatever_ids_a_provider_gives_no_call_is_an_orphan(id: str, policy: Any) -> None:
    # The last of them is given to every call.
    calls = [{**read(n), "id": id if id == "call_0" else f"{id}{n}"} for n in range(12)]
    model = ScriptedModel(scripts={"NEEDLES": Script([AIMessage("", tool_calls=[call]) for call in calls])})
    agent(model, BlockMemory(policy=policy)).invoke(asked("Report the NEEDLES.", 12), thread("t"))
    assert len(model.sent) == 13 and not any(sent.orphans for sent in model.sent)


@pytest.mark.parametrize("policy", ["strict", "cache-aware"])
def test_py2_the_current_request_is_in_every_prompt(policy: Any) -> None:
    model, memory = ScriptedModel(scripts={"NEEDLES": Script([AIMessage("Hi."), *reading(60)])}), BlockMemory(policy=policy)
    built = agent(model, memory)
    built.invoke(asked("Hello, NEEDLES.", 60), thread("t"))
    built.invoke(asked("Now report number 7, 七号."), thread("t"))
    assert len(model.sent) == 62
    assert all("Now report number 7, 七号." in sent.text for sent in model.sent[1:])


def test_py2_forks_have_conversations_of_their_own() -> None:
    tasks = [
        {"name": "task", "args": {"description": f"JOB-{n}", "subagent_type": "fork"}, "id": f"task{n}"} for n in range(3)
    ]
    jobs = {f"JOB-{n}": Script([AIMessage("", tool_calls=[read(m, f"j{n}-")]) for m in range(9)]) for n in range(3)}

    class Forks(ScriptedModel):
        def _generate(self, messages: list[BaseMessage], *args: Any, **settings: Any) -> Any:
            # A fork begins with the words of its parent, so the last name counts.
            names = [name for m in messages if m.type == "human" for name in self.scripts if name in str(m.content)]
            return ScriptedModel._generate(self, [HumanMessage(names[-1]), *messages], *args, **settings)

    model = Forks(scripts={**jobs, "NEEDLES": Script([AIMessage("", tool_calls=tasks)])})
    memory = BlockMemory(policy="strict")
    fork = with_memory({"name": "fork", "description": "A fork.", "mode": "fork"}, memory)
    state = agent(model, memory, subagents=[fork]).invoke(asked("Report the NEEDLES.", 9), thread("t"))
    assert recorded(memory, "t") == said(state)
    names = [name for name in memory.memory.sessions() if name != "t"]
    assert len(names) == 3
    for sent in (sent for n in range(3) for sent in jobs[f"JOB-{n}"].sent):
        found = set(re.findall(r"JOB-\d", "\n".join(str(m.content) for m in sent.messages[1:])))
        assert len(found) == 1


def test_py2_messages_that_other_middleware_replaces_do_not_begin_a_branch() -> None:
    search = AIMessage("", tool_calls=[{"name": "search_block", "args": {"query": "word7"}, "id": "s"}])
    model = ScriptedModel(scripts={"NEEDLES": Script([*reading(4), search, *reading(2)])})
    memory = BlockMemory(policy="strict")
    # DeepAgents moves a message of this size into its backend, and changes the request alone.
    large = "Report the NEEDLES. " + " ".join(f"word{n}" for n in range(60_000))
    state = agent(model, memory).invoke(asked(large, 5), thread("t"))
    assert recorded(memory, "t") == said(state)


def test_py2_an_edited_thread_begins_a_branch() -> None:
    model = ScriptedModel(scripts={"NEEDLES": Script([*reading(8), AIMessage("One."), AIMessage("Two.")])})
    memory = BlockMemory(policy="strict")
    built = agent(model, memory)
    state = built.invoke(asked("Report the NEEDLES.", 8), thread("t"))
    removed = [RemoveMessage(id=m.id) for m in state["messages"][5:]]
    built.update_state(thread("t"), {"messages": removed})
    state = built.invoke(asked("Something else."), thread("t"))
    assert said(state)[-2:] == ["Something else.", "Two."]
    assert "NEEDLE 6 " not in model.sent[-1].text and not any(sent.orphans for sent in model.sent)
    assert "One." in recorded(memory, "t") and recorded(memory, "t")[-1] == "Two."


def test_py2_a_result_that_is_a_command_is_recorded() -> None:
    @tool
    def note(text: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Notes a text."""
        return Command(update={"messages": [ToolMessage(f"noted {text}", tool_call_id=tool_call_id)]})

    calls = [AIMessage("", tool_calls=[{"name": "note", "args": {"text": f"{n}"}, "id": f"n{n}"}]) for n in range(9)]
    model, memory = ScriptedModel(scripts={"NEEDLES": Script(calls)}), BlockMemory(policy="strict")
    state = agent(model, memory, tools=[note]).invoke(asked("NEEDLES"), thread("t"))
    assert recorded(memory, "t") == said(state) and "noted 8" in recorded(memory, "t")


def test_py2_an_interrupt_in_a_sub_agent_is_resumed(tmp_path: Path) -> None:
    task = {"name": "task", "args": {"description": "JOB-1", "subagent_type": "cleaner"}, "id": "t1"}
    asks = AIMessage("", tool_calls=[{"name": "delete", "args": {"path": "/f"}, "id": "d"}])
    scripts = {"NEEDLES": Script([AIMessage("", tool_calls=[task])]), "JOB-1": Script([*reading(6), asks])}
    model, saver = ScriptedModel(scripts=scripts), InMemorySaver()

    def build() -> tuple[Any, BlockMemory]:
        memory = BlockMemory(tmp_path, policy="strict")
        spec = {"name": "cleaner", "description": "Cleans.", "system_prompt": "Clean.", "interrupt_on": {"delete": True}}
        return agent(model, memory, tools=[delete], subagents=[with_memory(spec, memory)], checkpointer=saver), memory

    assert build()[0].invoke(asked("NEEDLES", 6), thread("t"))["__interrupt__"]
    built, memory = build()
    state = built.invoke(Command(resume={"decisions": [{"type": "approve"}]}), thread("t"))
    names = sorted(memory.memory.sessions())
    assert len(names) == 2 and recorded(memory, "t") == said(state)
    assert "/f is gone" in recorded(memory, names[1]) and recorded(memory, names[1]).count("JOB-1") == 1


def test_py2_several_processes_and_branches_of_one_thread_do_not_mix(tmp_path: Path) -> None:
    def talk(who: int) -> list[BaseMessage]:
        said: list[BaseMessage] = [HumanMessage("The same beginning.", id="h")]
        for n in range(12):
            call = {"name": "look", "args": {"n": n}, "id": f"w{who}-{n}"}
            said += [AIMessage("", tool_calls=[call], id=f"a{who}-{n}")]
            said += [ToolMessage(f"of {who}: {n} " + "and so on " * 40, tool_call_id=f"w{who}-{n}", id=f"r{who}-{n}")]
        return said

    # Two objects are as two processes: each has a session of its own.
    memories = [BlockMemory(tmp_path, policy="strict") for _ in range(2)]

    def run(who: int) -> list[str]:
        messages, wrong = talk(who), list[str]()
        for at in range(1, len(messages) + 1, 2):
            text = "\n".join(str(m.content) for m in memories[who % 2].view(messages[:at], "t").messages)
            wrong.extend(re.findall(rf"of (?!{who}:)\d: \d+ and", text))
        return wrong

    with ThreadPoolExecutor(4) as pool:
        # A thread that ends with an error raises it here.
        assert list(pool.map(run, range(4))) == [[]] * 4


def test_py2_a_forgotten_conversation_begins_anew() -> None:
    model, memory = ScriptedModel(scripts={"NEEDLES": Script(reading(3))}), BlockMemory()
    built = agent(model, memory)
    built.invoke(asked("NEEDLES", 3), thread("t"))
    memory.memory.forget("t")
    state = built.invoke(asked("Again."), thread("t"))
    assert recorded(memory, "t") == said(state)


@pytest.mark.parametrize("begun", [0, 1, 2, 3])
def test_py2_a_forgotten_conversation_begins_anew_without_a_new_message(begun: int) -> None:
    memory, messages = BlockMemory(), [HumanMessage("涨潮是几点？"), AIMessage("06:12.")]
    memory.view(messages, "t")
    memory.memory.forget("t")
    for n in range(begun):
        memory.memory.session("t").record({"role": "user", "content": f"Another beginning {n}."})
    assert said({"messages": memory.view(messages, "t").messages})[-2:] == said({"messages": messages})
    assert recorded(memory, "t")[-2:] == said({"messages": messages})


def test_py2_a_message_that_is_changed_in_place_is_recorded() -> None:
    memory, call = BlockMemory(), read(0)
    messages: list[Any] = [HumanMessage("一"), AIMessage("", tool_calls=[call])]
    memory.view(messages, "t")
    messages[1].tool_calls = [{**call, "args": {"file_path": "/二"}}]
    memory.view(messages, "t")
    last = list(memory.memory.messages("t"))[-1]
    assert "/二" in last["tool_calls"][0]["function"]["arguments"]
    messages[0].content = "二"
    assert "二" in said({"messages": memory.view(messages, "t").messages}) and recorded(memory, "t")[-2] == "二"


def test_py2_other_agents_and_threads_have_other_conversations() -> None:
    parts = ["", "a", "b", "a:b", "a:", ":b", "a:b::3", "3", "::3", "a::1-1", "1-1"]
    names: dict[str, tuple[str, str]] = {}
    for name in parts:
        memory = BlockMemory(agent=name)
        for thread_id in parts:
            id = memory._id(thread_id, "", [])
            assert names.setdefault(id, (name, thread_id)) == (name, thread_id)
            inner = memory._id(thread_id, "tools:1|model:2", [HumanMessage("JOB", id="m:1")])
            assert inner.startswith(f"{id}:") and inner not in names
            names[inner] = (name, f"{thread_id} inner")
    assert BlockMemory(agent="support")._id("42", "", []) == "support:42" and BlockMemory()._id("42", "", []) == "42"
    assert BlockMemory()._id("42", "tools:1|model:2", [HumanMessage("JOB", id="m")]) == "42:m"


def test_py2_tools_of_one_name_are_counted_by_their_schema() -> None:
    def asking(columns: int) -> StructuredTool:
        properties = {f"column{n}": {"type": "string", "description": "A filter. " * 9} for n in range(columns)}
        schema = {"type": "object", "properties": properties}
        return StructuredTool(name="query", description="Queries.", args_schema=schema, func=lambda **_: "1")

    memory = BlockMemory()
    assert memory._front_tokens(None, [asking(1)]) * 9 < memory._front_tokens(None, [asking(99)])


def test_py2_a_call_without_an_id_is_answered_under_the_id_of_its_record() -> None:
    memory = BlockMemory()
    calls: list[Any] = [{"name": "list_blocks", "args": {}, "id": None}, {**read(0), "id": "c"}]
    calls.append({"name": "search_block", "args": {"query": "潮"}, "id": None})
    messages: list[Any] = [HumanMessage("Look."), AIMessage("", tool_calls=calls)]
    answers = [memory.call(call, messages, "t") for call in messages[1].tool_calls if call["id"] is None]
    seen = memory.view([*messages, *answers, ToolMessage("ok", tool_call_id="c")], "t").messages
    ids = [call["id"] for call in seen[1].tool_calls]
    assert ids == ["call-1-0", "c", "call-1-2"] and [answer.tool_call_id for answer in answers] == ids[::2]
    (kept,) = [message["tool_calls"] for message in memory.memory.messages("t") if message.get("tool_calls")]
    assert [call["id"] for call in kept] == ids


def test_py2_equal_calls_without_ids_are_answered_one_by_one() -> None:
    memory = BlockMemory()
    calls: list[Any] = [{"name": "search_block", "args": {"query": "潮"}, "id": None} for _ in range(3)]
    messages: list[Any] = [HumanMessage("Look."), AIMessage("", tool_calls=calls)]
    calls = messages[1].tool_calls
    answers = [memory.call(call, messages, "t") for call in calls]
    assert [answer.tool_call_id for answer in answers] == ["call-1-0", "call-1-1", "call-1-2"]
    for call in calls:
        # Equal, and not the same, as after a copy of the state; and each answer is added before the next call.
        messages.append(memory.call(dict(call), messages, "t"))
    assert [answer.tool_call_id for answer in messages[2:]] == ["call-1-0", "call-1-1", "call-1-2"]
    assert len(memory.view(messages, "t").messages) == 5


@pytest.mark.parametrize("most", [-5, "x", 1.5])
def test_py2_a_number_of_tokens_is_a_whole_one(most: Any) -> None:
    with pytest.raises(FoldbackError, match="max_tokens is a whole number") as refused:
        BlockMemory(max_tokens=most)
    assert refused.value.kind == "invalid_input"
    with pytest.raises(FoldbackError) as refused:
        BlockMemory().view([HumanMessage("Hello.")], "t", front_tokens=-1)
    assert refused.value.kind == "invalid_input"


def test_py2_a_request_that_bedrock_refuses_as_too_long_is_known() -> None:
    class ClientError(Exception):
        def __init__(self, code: str, message: str) -> None:
            super().__init__(f"An error occurred ({code}) when calling the Converse operation: {message}")
            self.response = {"Error": {"Code": code, "Message": message}}

    assert _is_overflow(ClientError("ValidationException", "Input is too long for requested model."))
    assert not _is_overflow(ClientError("ValidationException", "The model id is invalid."))
    assert not _is_overflow(ClientError("ThrottlingException", "Input is too long for requested model."))


def test_py2_reasoning_of_claude_is_left_out_once_its_beginning_has_moved() -> None:
    def thought(n: int, provider: str) -> AIMessage:
        blocks: list[Any] = [{"type": "thinking", "thinking": f"hm {n}", "signature": "s"}, {"type": "text", "text": f"{n}"}]
        return AIMessage(blocks, tool_calls=[read(n)], response_metadata={"model_provider": provider})

    def thoughts(provider: str, policy: Any) -> list[list[str]]:
        script = Script([thought(n, provider) for n in range(12)])
        model = ScriptedModel(scripts={"NEEDLES": script})
        agent(model, BlockMemory(policy=policy)).invoke(asked("NEEDLES", 12), thread("t"))
        return [re.findall(r"'hm (\d+)'", sent.text) for sent in model.sent]

    strict = thoughts("anthropic", "strict")
    assert strict[1] == ["0"] and any(not kept for kept in strict[6:])
    # Other providers bind nothing.
    assert all(kept for kept in thoughts("google_genai", "strict")[1:])


def test_py2_a_memory_has_its_own_policy() -> None:
    with pytest.raises(ValueError, match="policy"):
        BlockMemory(Memory(), policy="strict")


def test_py2_half_a_surrogate_pair_in_a_call_of_a_memory_tool_does_not_stop_the_agent() -> None:
    call = {"name": "search_block", "args": {"query": "日志\ud800"}, "id": "s\ud800"}
    memory = BlockMemory()
    messages: list[Any] = [HumanMessage("Read the logs."), AIMessage("", tool_calls=[call])]
    answer = memory.call(call, messages, "t")
    assert answer.status == "success" and answer.tool_call_id == call["id"]


def test_py2_an_empty_path_is_no_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FoldbackError, match="an empty one") as refused:
        BlockMemory(store="")
    assert refused.value.kind == "invalid_input" and list(tmp_path.iterdir()) == []


def test_py2_a_sub_agent_whose_middleware_is_fixed_is_refused() -> None:
    spec = {"name": "reader", "description": "Reads."}
    with pytest.raises(ValueError, match="give BlockMemory to the agent that you compile"):
        with_memory({**spec, "runnable": create_agent(ScriptedModel(scripts={}))}, BlockMemory())
    with pytest.raises(ValueError, match="give BlockMemory to the agent that runs there"):
        with_memory({**spec, "graph_id": "reader"}, BlockMemory())
