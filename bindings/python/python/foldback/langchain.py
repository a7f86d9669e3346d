"""Foldback as the memory of agents built with LangChain and DeepAgents.

``BlockMemory`` takes the place of DeepAgents' summarisation; everything else of the agent stays as it is::

    from deepagents import create_deep_agent
    from foldback.langchain import BlockMemory

    agent = create_deep_agent(model, middleware=[BlockMemory(store="memory")])
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import random
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, TypeVar, cast

from langchain.agents.middleware.types import (
    AgentMiddleware,
    AgentState,
    ModelRequest,
    ModelResponse,
    ToolCallRequest,
)
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.runtime import Runtime
from langgraph.types import Command

from foldback import _foldback
from foldback._messages import (
    Recorded,
    has_mark,
    hidden_request,
    made_up_id,
    marked,
    repeated,
    shown,
    with_instructions,
)
from foldback.memory import Memory, Policy, Session, _invalid

__all__ = ["BlockMemory", "View", "with_memory"]

logger = logging.getLogger(__name__)

SLOT = "SummarizationMiddleware"
"""The slot of DeepAgents' stack that the memory takes."""

MOST_SESSIONS = 64
"""How many conversations stay at hand; another is read from the store, which takes milliseconds."""

MOST_ATTEMPTS = 16
"""How often a conversation is recorded anew because another process has written to it."""

FIRST_PAUSE = 0.002
"""The longest pause before the second attempt, in seconds. It doubles up to a quarter of a second."""

PART_OF_WINDOW = 0.85
"""The part of a model's window that a request may fill, as in DeepAgents; the rest is for the answer."""

Spec = TypeVar("Spec", bound=Mapping[str, Any])


@dataclass(frozen=True)
class View:
    """What a model is sent of a conversation."""

    messages: list[AnyMessage]
    """The messages. Instructions are not among them."""
    instructions: list[str]
    """System messages that were found in the conversation."""
    tools: list[BaseTool]
    """The memory tools that the messages need."""
    tokens: int
    """The estimated tokens of messages and tools."""


class BlockMemory(AgentMiddleware[AgentState[Any], Any, Any]):
    """The memory of an agent: a context of constant size that loses nothing.

    It records the conversation in the store, shows the model the view of it, and offers the tools ``search_block``,
    ``list_blocks`` and ``load``. The agent's state stays whole and is its own: nothing of foldback's is needed to load a
    checkpoint. One object may serve any number of threads and sub-agents at once.

    :param store: the folder of the store, or a :class:`~foldback.Memory`; ``None`` keeps everything in memory, and an
        agent that is resumed in another process records its conversation anew.
    :param policy: when blocks leave the view; see :data:`~foldback.memory.Policy`. The default is ``"auto"``.
    :param prices: what a token costs that is read from the provider's cache, and one that is written there, where an
        ordinary one costs 1.
    :param max_tokens: the most tokens of a request; ``None`` for 85 % of the model's window, if its profile gives one.
    :param agent: a name for the agent. Several main agents that work on threads of the same ids need one each.
    :raises ValueError: when ``policy`` or ``prices`` are given together with a memory, which has its own.
    :raises FoldbackError: when the store cannot be opened, or a setting makes no sense.
    """

    @property
    def name(self) -> str:
        """The name of DeepAgents' slot that it takes."""
        return SLOT

    def __init__(
        self,
        store: str | PathLike[str] | Memory | None = None,
        *,
        policy: Policy | None = None,
        prices: tuple[float, float] | None = None,
        max_tokens: int | None = None,
        agent: str = "",
    ) -> None:
        super().__init__()
        if max_tokens is not None and (not isinstance(max_tokens, int) or max_tokens < 0):
            raise _invalid(f"max_tokens is a whole number from 0 on, and not {max_tokens!r}")
        if isinstance(store, Memory):
            if policy is not None or prices is not None:
                raise ValueError("a Memory has its own policy and prices; give them to it")
            self.memory = store
        else:
            self.memory = Memory(store, policy=policy or "auto", prices=prices)
        self._max_tokens = max_tokens
        self._agent = agent
        self._lock = threading.Lock()
        # One object for each conversation in use, so that two threads never record it side by side.
        self._conversations: weakref.WeakValueDictionary[str, _Conversation] = weakref.WeakValueDictionary()
        self._at_hand: OrderedDict[str, _Conversation] = OrderedDict()
        self._fronts: OrderedDict[tuple[Any, ...], int] = OrderedDict()
        # A policy words the tools in its own way. The agent's graph must know them before the first prompt.
        self._declared: dict[tuple[str, str, str], BaseTool] = {}
        self.tools = [self._tool(*tool) for tool in _foldback.Memory.tools()]
        self._names = frozenset(tool.name for tool in self.tools)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Sends the view in place of the conversation."""
        try:
            return handler(self._view(request))
        except Exception as error:
            if not _is_overflow(error):
                raise
            return handler(self._view(request, is_smaller=True))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """As :meth:`wrap_model_call`. The store is worked on in another thread."""
        try:
            return await handler(await asyncio.to_thread(self._view, request))
        except Exception as error:
            if not _is_overflow(error):
                raise
            return await handler(await asyncio.to_thread(self._view, request, True))

    def wrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]],
    ) -> ToolMessage | Command[Any]:
        """Answers the calls of the memory tools."""
        return self._answer(request) if self._is_own(request.tool) else handler(request)

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """As :meth:`wrap_tool_call`."""
        if self._is_own(request.tool):
            return await asyncio.to_thread(self._answer, request)
        return await handler(request)

    def after_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Records what was said last. If that fails, the agent's answer is not lost: the next turn records it."""
        info = runtime.execution_info
        messages = state["messages"]
        if messages and info is not None:
            try:
                self._conversation(self._id(info.thread_id, info.checkpoint_ns, messages)).sync(messages)
            except _foldback.FoldbackError:
                logger.warning("the agent's last messages were not recorded", exc_info=True)

    async def aafter_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """As :meth:`after_agent`."""
        await asyncio.to_thread(self.after_agent, state, runtime)

    def view(
        self,
        messages: Sequence[AnyMessage],
        id: str,
        *,
        front_tokens: int = 0,
        max_tokens: int | None = None,
        has_cache_marks: bool = False,
    ) -> View:
        """Records what is new in a conversation, and returns what a model is sent of it: for graphs of your own.

        :param messages: the whole conversation so far.
        :param id: the conversation's name in the store.
        :param front_tokens: the tokens of instructions and tools that are sent with it.
        :param max_tokens: the most tokens that messages and memory tools may have.
        :param has_cache_marks: set a mark of Anthropic's cache at the end of what does not change from call to call.
        """
        return self._view_of(messages, id, {}, False, front_tokens, max_tokens, has_cache_marks)

    def call(self, call: Mapping[str, Any], messages: Sequence[AnyMessage], id: str) -> ToolMessage:
        """Answers a call of a memory tool that the model's last message makes: for graphs of your own.

        :param call: an entry of a message's ``tool_calls``.
        :param messages: the whole conversation so far.
        :param id: the conversation's name in the store.
        """
        conversation = self._conversation(id)
        call_id = call["id"] or made_up_id(call, messages)
        with conversation.lock:
            conversation.sync(messages)
            answer = Session(conversation.session).call(call["name"], call["args"], call_id)
        status = "error" if answer.is_error else "success"
        return ToolMessage(content=answer.text, tool_call_id=call_id, name=call["name"], status=status)

    def _view_of(
        self,
        messages: Sequence[AnyMessage],
        id: str,
        others: Mapping[int, AnyMessage],
        keeps_reasoning: bool,
        front_tokens: int,
        max_tokens: int | None,
        has_cache_marks: bool,
    ) -> View:
        """As :meth:`view`; ``others`` are sent, by index, instead of messages that are shown whole."""
        conversation = self._conversation(id)
        with conversation.lock:
            conversation.sync(messages, front_tokens)
            asked = [n for n, message in enumerate(messages) if isinstance(message, HumanMessage)]
            bound = asked[-1] if asked else 0

            def read(most: int | None) -> tuple[_foldback.Prompt, list[str], list[AnyMessage], set[int]]:
                prompt = conversation.session.prompt("openai", most)
                unbound = conversation.unbound(prompt)
                unbound = min(unbound, bound) if keeps_reasoning else unbound
                return prompt, *shown(prompt.messages, conversation.recorded, others, unbound)

            prompt, instructions, sent, places = read(max_tokens)
            tokens, volatile = prompt.tokens, prompt.volatile
            hidden = hidden_request(conversation.recorded, places)
            if hidden is not None:
                text = conversation.session.recorded(hidden.place)
                request, added = repeated(hidden, text, max_tokens // 2 if max_tokens is not None else None)
                if max_tokens is not None and tokens + added > max_tokens:
                    prompt, instructions, sent, _ = read(max_tokens - min(added, max_tokens))
                    # Some of a prompt cannot be made smaller, and the request has what is left.
                    request, added = repeated(hidden, text, min(added, max_tokens - prompt.tokens))
                sent = [*sent, request]
                tokens, volatile = prompt.tokens + added, prompt.volatile + 1
        if has_cache_marks and 0 < volatile < len(sent):
            # A provider finds an earlier prompt only up to where it changes.
            sent = marked(sent, len(sent) - volatile - 1)
        return View(sent, instructions, [self._tool(*tool) for tool in prompt.tools], tokens)

    def _view(self, request: ModelRequest[Any], is_smaller: bool = False) -> ModelRequest[Any]:
        """The request with the view in place of the conversation; with half its tokens if it was too long."""
        info = request.runtime.execution_info if request.runtime is not None else None
        thread, namespace = (info.thread_id, info.checkpoint_ns) if info is not None else (None, "")
        tools = [tool for tool in request.tools if not self._is_own(tool)]
        for tool in tools:
            if _name(tool) in self._names:
                raise ValueError(f"the agent has a tool named {_name(tool)!r}, as a memory tool is; rename it")
        messages, others = _state_of(request)
        id, front = self._id(thread, namespace, messages), self._front_tokens(request.system_message, tools)
        most = self._most_tokens(request, front)
        keeps = _must_return_reasoning(request.model)

        def view(most: int | None) -> View:
            return self._view_of(messages, id, others, keeps, front, most, self._marks_cache(request, tools))

        seen = view(most)
        if is_smaller:
            seen = view(seen.tokens // 2)
        return request.override(
            messages=seen.messages,
            system_message=with_instructions(request.system_message, seen.instructions),
            tools=[*tools, *seen.tools],
        )

    def _answer(self, request: ToolCallRequest) -> ToolMessage:
        config = cast("Mapping[str, Any]", request.runtime.config or {}).get("configurable", {})
        messages = request.state["messages"]
        id = self._id(config.get("thread_id"), config.get("checkpoint_ns", ""), messages)
        return self.call(request.tool_call, messages, id)

    def _id(self, thread: str | None, namespace: str, messages: Sequence[BaseMessage]) -> str:
        """The name of a conversation in the store.

        A thread has one main agent, whose conversation is named after it. Parent and sub-agents share a thread; a
        sub-agent's conversation is told apart by the message that it begins with. A fork begins with its parent's, and a
        message may have no id: then the place in the graph tells them apart.
        """
        first = messages[0] if messages else None
        begins = first.id if first is not None and first.id else None
        # The last part of a namespace is the node that asks.
        place = namespace.rpartition("|")[0]
        main = _joined(self._agent, str(thread)) if self._agent else _joined(str(thread))
        if thread is not None and not place:
            return main
        if begins is None or (thread is not None and self._begins(main) == begins):
            text = first.text if begins is None and first is not None else ""
            begins = hashlib.blake2b(f"{place}\n{text}".encode("utf-8", "replace"), digest_size=12).hexdigest()
        return f"{main if thread is not None else _joined(self._agent or 'run')}:{_joined(begins)}"

    def _begins(self, id: str) -> str | None:
        """The id of the message that a recorded conversation begins with."""
        try:
            first = next(self.memory.messages(id), None)
        except _foldback.FoldbackError as error:
            if error.kind != "not_found":
                raise
            return None
        return first.get("id") if first is not None else None

    def _marks_cache(self, request: ModelRequest[Any], tools: Sequence[BaseTool | dict[str, Any]]) -> bool:
        """Whether a mark of Anthropic's cache may be added: a request may have four, and DeepAgents sets three."""
        declared = [tool for tool in tools if isinstance(tool, dict)]
        has_others = "memory_contents" in request.state or has_mark([request.system_message, request.messages, declared])
        return _is_anthropic(request.model) and not has_others

    def _is_own(self, tool: BaseTool | dict[str, Any] | None) -> bool:
        return any(tool is own for own in list(self._declared.values()))

    def _conversation(self, id: str) -> _Conversation:
        with self._lock:
            conversation = self._conversations.get(id)
            if conversation is None:
                conversation = self._conversations[id] = _Conversation(self.memory, id)
            self._at_hand[id] = conversation
            self._at_hand.move_to_end(id)
            if len(self._at_hand) > MOST_SESSIONS:
                self._at_hand.popitem(last=False)
            return conversation

    def _tool(self, name: str, description: str, parameters: str) -> BaseTool:
        declared = (name, description, parameters)
        if declared not in self._declared:

            def call(**_arguments: Any) -> str:
                raise RuntimeError(f"{name} is answered by BlockMemory, which has to be among the agent's middleware")

            self._declared[declared] = StructuredTool(
                name=name, description=description, args_schema=json.loads(parameters), func=call
            )
        return self._declared[declared]

    def _front_tokens(self, system: SystemMessage | None, tools: Sequence[BaseTool | dict[str, Any]]) -> int:
        text = str(system.text) if system is not None else ""
        key = (text, *map(_identity, tools))
        with self._lock:
            known = self._fronts.get(key)
        if known is None:
            known = count_tokens_approximately([system] if system is not None else [], tools=list(tools) or None)
            with self._lock:
                self._fronts[key] = known
                if len(self._fronts) > MOST_SESSIONS:
                    self._fronts.popitem(last=False)
        return known

    def _most_tokens(self, request: ModelRequest[Any], front: int) -> int | None:
        most = self._max_tokens
        if most is None:
            profile = getattr(request.model, "profile", None) or {}
            window = profile.get("max_input_tokens")
            most = int(window * PART_OF_WINDOW) if isinstance(window, int) else None
        return None if most is None else max(most - front, 0)


def with_memory(spec: Spec, memory: BlockMemory) -> Spec:
    """A sub-agent's specification, with this memory in place of its summarisation.

    The sub-agent ``general-purpose`` shares its agent's memory. Other specifications do not inherit it.

    :raises ValueError: when the sub-agent is compiled or runs on a server, because its middleware is fixed.

    >>> from foldback.langchain import BlockMemory, with_memory
    >>> memory = BlockMemory()
    >>> spec = with_memory({"name": "reader", "description": "Reads files.", "system_prompt": "Read."}, memory)
    >>> spec["middleware"] == [memory]
    True
    """
    if "runnable" in spec:
        raise ValueError("a compiled sub-agent has its own middleware; give BlockMemory to the agent that you compile")
    if "graph_id" in spec:
        raise ValueError("a sub-agent on a server has its own middleware; give BlockMemory to the agent that runs there")
    others = [one for one in spec.get("middleware", ()) if one.name != memory.name]
    return cast("Spec", {**spec, "middleware": [*others, memory]})


class _Conversation:
    """A conversation at hand: its session, and the messages that it was given last."""

    def __init__(self, memory: Memory, id: str) -> None:
        self.lock = threading.RLock()
        self.recorded: list[Recorded] = []
        self._memory, self._id = memory, id
        self._session: _foldback.Session | None = None
        self._moves: int | None = None
        self._unbound = 0

    @property
    def session(self) -> _foldback.Session:
        """The session, which is opened when it is needed first."""
        if self._session is None:
            self._session = self._memory.session(self._id)._session
        return self._session

    def sync(self, messages: Sequence[BaseMessage], front_tokens: int | None = None) -> None:
        """Records what is new in the conversation. Messages are known by identity, so that a call costs what is new.

        :param front_tokens: the tokens of instructions and tools that are sent with it, if they are known.
        """
        with self.lock:
            if front_tokens is not None:
                self.session.set_front_tokens(front_tokens)
            pairs = zip(self.recorded, messages, strict=False)
            known = next((n for n, (ours, one) in enumerate(pairs) if not ours.is_of(one)), None)
            if known is None:
                known = min(len(self.recorded), len(messages))
            kept = self.recorded[:known]
            recorded = [*kept, *(Recorded.of(message, known + n) for n, message in enumerate(messages[known:]))]
            # Whatever fails, the next call begins from nothing, which is always right.
            self.recorded = []
            for attempt in range(MOST_ATTEMPTS):
                try:
                    self.session.sync(known, [one.given for one in recorded[known:]])
                    break
                except _foldback.FoldbackError as error:
                    self._recover(error, attempt)
                    known = 0
            self.recorded = recorded
            self._unbound = min(self._unbound, len(recorded))

    def _recover(self, error: _foldback.FoldbackError, attempt: int) -> None:
        """Makes another attempt possible, or raises the error."""
        if attempt + 1 < MOST_ATTEMPTS and error.kind == "conflict":
            # Another process has written to the conversation. It may do so again: the pause lets one of them be first.
            time.sleep(random.uniform(0, min(FIRST_PAUSE * 2**attempt, 0.25)))
            self.session.refresh()
        elif attempt + 1 < MOST_ATTEMPTS and error.kind == "not_found":
            # It was forgotten meanwhile, and begins anew.
            self._session = None
        else:
            self._session = None
            raise error

    def unbound(self, prompt: _foldback.Prompt) -> int:
        """How many of the first messages were written after another beginning of the conversation than is shown now."""
        if self._moves is None and prompt.moves == 0 and len(prompt.messages) == len(self.recorded):
            self._moves = 0
        if prompt.moves != self._moves:
            self._moves, self._unbound = prompt.moves, len(self.recorded)
        return self._unbound


def _state_of(request: ModelRequest[Any]) -> tuple[Sequence[AnyMessage], dict[int, AnyMessage]]:
    """The conversation as the agent's state has it, and by index what middleware has put in the place of a message.

    Middleware in front of the memory replaces large messages in the request alone. The record is of the state, unless
    messages were added or removed.
    """
    state = request.state.get("messages") or []
    pairs = list(zip(state, request.messages, strict=False))
    is_same = len(state) == len(request.messages) and all(a is b or (a.id and a.id == b.id) for a, b in pairs)
    if not is_same:
        return request.messages, {}
    return state, {n: theirs for n, (ours, theirs) in enumerate(pairs) if ours is not theirs}


def _joined(*parts: str) -> str:
    """These parts as one name. Their lengths follow if one of them has a colon, so that other parts have another name."""
    name = ":".join(parts)
    return f"{name}::{'-'.join(str(len(part)) for part in parts)}" if any(":" in part for part in parts) else name


def _name(tool: BaseTool | dict[str, Any]) -> str | None:
    if isinstance(tool, BaseTool):
        return tool.name
    name = tool.get("name") or tool.get("function", {}).get("name")
    return name if isinstance(name, str) else None


def _identity(tool: BaseTool | dict[str, Any]) -> Hashable:
    """What the tokens of a tool depend on. A class that is its schema is not written out, because that takes long."""
    if not isinstance(tool, BaseTool):
        return str(tool)
    schema = tool.args_schema
    return tool.name, tool.description, schema if isinstance(schema, type) else str(schema)


def _is_anthropic(model: Any) -> bool:
    return getattr(model, "_llm_type", None) == "anthropic-chat"


def _must_return_reasoning(model: Any) -> bool:
    """Whether the provider refuses the calls of the current turn without the reasoning that led to them."""
    thinking = getattr(model, "thinking", None)
    return _is_anthropic(model) and isinstance(thinking, Mapping) and thinking.get("type") == "enabled"


def _is_overflow(error: Exception) -> bool:
    """Whether a provider refused a request because it is too long."""
    if isinstance(error, ContextOverflowError):
        return True
    code = getattr(error, "status_code", None) or getattr(error, "code", None)
    response = getattr(error, "response", None)
    named = response.get("Error") if isinstance(response, Mapping) else None
    if isinstance(named, Mapping):
        # As botocore has it.
        code = named.get("Code")
    if code not in (400, 413, 422, "ValidationException"):
        return False
    text = str(error).lower()
    said = (
        "context_length_exceeded",
        "maximum context length",
        "context window",
        "prompt is too long",
        "input is too long",
        "input token count",
    )
    return any(words in text for words in said)
