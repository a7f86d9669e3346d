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
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
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
from langchain_core.messages import AnyMessage, BaseMessage, SystemMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.runtime import Runtime
from langgraph.types import Command

from foldback import _foldback
from foldback._messages import Recorded, marked, shown, with_instructions
from foldback.memory import Memory, Policy

__all__ = ["BlockMemory", "View", "with_memory"]

SLOT = "SummarizationMiddleware"
"""The slot of DeepAgents' stack that the memory takes."""

MOST_SESSIONS = 64
"""How many conversations are at hand; another is read from the store, which takes milliseconds."""

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
    checkpoint. One object may serve any number of agents, threads and sub-agents at once.

    :param store: the folder of the store, or a :class:`~foldback.Memory`; ``None`` keeps everything in memory, and an
        agent that is resumed in another process records its conversation anew.
    :param policy: when blocks leave the view; see :data:`~foldback.memory.Policy`.
    :param prices: what a token costs that is read from the provider's cache, and one that is written there, where an
        ordinary one costs 1.
    :param max_tokens: the most tokens of a request; ``None`` for 85 % of the model's window, where its profile gives it.
    """

    @property
    def name(self) -> str:
        """The name of DeepAgents' slot that it takes."""
        return SLOT

    def __init__(
        self,
        store: str | PathLike[str] | Memory | None = None,
        *,
        policy: Policy = "auto",
        prices: tuple[float, float] | None = None,
        max_tokens: int | None = None,
    ) -> None:
        super().__init__()
        self.memory = store if isinstance(store, Memory) else Memory(store, policy=policy, prices=prices)
        self._max_tokens = max_tokens
        self._conversations: OrderedDict[str, _Conversation] = OrderedDict()
        self._lock = threading.Lock()
        self._fronts: OrderedDict[tuple[Any, ...], int] = OrderedDict()
        # They are declared in the words of each prompt; here they are known to the agent's graph.
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
        """Records what was said last."""
        info = runtime.execution_info
        messages = state["messages"]
        if messages and info is not None:
            id = _conversation_id(info.thread_id, info.checkpoint_ns, messages)
            self._conversation(id).sync(messages)

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
        """Records what is new of a conversation, and gives what a model is sent of it: for graphs of one's own.

        :param messages: the whole conversation as it stands.
        :param id: the conversation's name in the store.
        :param front_tokens: the tokens of instructions and tools that are sent with it.
        :param max_tokens: the most tokens that messages and memory tools may have.
        :param has_cache_marks: set a mark of Anthropic's cache behind what does not change from call to call.
        """
        conversation = self._conversation(id)
        with conversation.lock:
            prompt = conversation.prompt(messages, front_tokens, max_tokens)
            recorded, unbound = conversation.recorded, conversation.unbound(prompt)
        instructions, sent = shown(prompt.messages, recorded, unbound)
        if has_cache_marks and 0 < prompt.volatile < len(sent):
            # A provider looks for an earlier prompt in front of what changes from call to call.
            sent = marked(sent, len(sent) - prompt.volatile - 1)
        return View(sent, instructions, [self._tool(*tool) for tool in prompt.tools], prompt.tokens)

    def call(self, call: Mapping[str, Any], messages: Sequence[AnyMessage], id: str) -> ToolMessage:
        """Answers a call of a memory tool that is the last word of a conversation: for graphs of one's own.

        :param call: an entry of a message's ``tool_calls``.
        :param messages: the whole conversation as it stands.
        :param id: the conversation's name in the store.
        """
        conversation = self._conversation(id)
        with conversation.lock:
            conversation.sync(messages)
            arguments = json.dumps(call["args"], ensure_ascii=False)
            answer = conversation.session.call(call["name"], arguments, call["id"] or "call")
        status = "error" if answer.is_error else "success"
        return ToolMessage(content=answer.text, tool_call_id=call["id"], name=call["name"], status=status)

    def _view(self, request: ModelRequest[Any], is_smaller: bool = False) -> ModelRequest[Any]:
        """The request with the view in place of the conversation; of what did not fit into the window, half."""
        info = request.runtime.execution_info if request.runtime is not None else None
        thread, namespace = (info.thread_id, info.checkpoint_ns) if info is not None else (None, "")
        others = [tool for tool in request.tools if not self._is_own(tool)]
        for tool in others:
            if _name(tool) in self._names:
                raise ValueError(f"the agent has a tool named {_name(tool)!r}, as a memory tool is; rename it")
        front = self._front_tokens(request.system_message, others)
        id, marks = _conversation_id(thread, namespace, request.messages), _is_anthropic(request.model)
        most = self._most_tokens(request, front)
        if is_smaller:
            most = self.view(request.messages, id, front_tokens=front, max_tokens=most).tokens // 2
        view = self.view(
            request.messages, id, front_tokens=front, max_tokens=most, has_cache_marks=marks
        )
        return request.override(
            messages=view.messages,
            system_message=with_instructions(request.system_message, view.instructions),
            tools=[*others, *view.tools],
        )

    def _answer(self, request: ToolCallRequest) -> ToolMessage:
        config = cast("Mapping[str, Any]", request.runtime.config or {}).get("configurable", {})
        messages = request.state["messages"]
        id = _conversation_id(config.get("thread_id"), config.get("checkpoint_ns", ""), messages)
        return self.call(request.tool_call, messages, id)

    def _is_own(self, tool: BaseTool | dict[str, Any] | None) -> bool:
        return any(tool is own for own in self._declared.values())

    def _conversation(self, id: str) -> _Conversation:
        with self._lock:
            conversation = self._conversations.get(id)
            if conversation is None:
                conversation = _Conversation(self.memory.session(id)._session)
                self._conversations[id] = conversation
                if len(self._conversations) > MOST_SESSIONS:
                    self._conversations.popitem(last=False)
            self._conversations.move_to_end(id)
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
        text = system.text if system is not None else ""
        key = (text, *(id(tool) for tool in tools))
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

    >>> from foldback.langchain import BlockMemory, with_memory
    >>> memory = BlockMemory()
    >>> spec = with_memory({"name": "reader", "description": "Reads files.", "system_prompt": "Read."}, memory)
    >>> spec["middleware"] == [memory]
    True
    """
    others = [one for one in spec.get("middleware", ()) if one.name != memory.name]
    return cast("Spec", {**spec, "middleware": [*others, memory]})


class _Conversation:
    """A conversation at hand: its session, and the messages that it was given last."""

    def __init__(self, session: _foldback.Session) -> None:
        self.session = session
        self.lock = threading.RLock()
        self.recorded: list[Recorded] = []
        self._moves: int | None = None
        self._unbound = 0

    def sync(self, messages: Sequence[BaseMessage]) -> None:
        """Records what of the conversation is new. Messages are known by identity, so that a call costs what is new."""
        with self.lock:
            pairs = zip(self.recorded, messages, strict=False)
            known = next((n for n, (ours, one) in enumerate(pairs) if ours.message is not one), None)
            if known is None:
                known = min(len(self.recorded), len(messages))
            given = [Recorded.of(message, known + n) for n, message in enumerate(messages[known:])]
            try:
                self._give(known, given)
            except _foldback.FoldbackError as error:
                if error.kind != "conflict":
                    raise
                # Another process has written to the conversation.
                self.session.refresh()
                self._give(0, [*self.recorded[:known], *given])
            self.recorded[known:] = given

    def _give(self, known: int, given: Sequence[Recorded]) -> None:
        self.session.sync(known, [(one.json, one.identity) for one in given])

    def prompt(self, messages: Sequence[AnyMessage], front: int, most: int | None) -> _foldback.Prompt:
        self.session.set_front_tokens(front)
        self.sync(messages)
        return self.session.prompt("openai", most)

    def unbound(self, prompt: _foldback.Prompt) -> int:
        """How many of the first messages were written behind another beginning than the prompt has."""
        if self._moves is None and prompt.moves == 0 and len(prompt.messages) == len(self.recorded):
            self._moves = 0
        if prompt.moves != self._moves:
            self._moves, self._unbound = prompt.moves, len(self.recorded)
        return self._unbound


def _conversation_id(thread: str | None, namespace: str, messages: Sequence[BaseMessage]) -> str:
    """What a conversation is called in the store.

    A thread has one main agent, whose conversation is called as the thread. Parent and sub-agents share a thread; what
    a sub-agent works on is told apart by the message that it begins with, and where that has no id by the place of the
    graph that it runs in.
    """
    first = messages[0] if messages else None
    begins = first.id if first is not None and first.id else None
    # The last part of a namespace is the node that asks.
    place = namespace.rpartition("|")[0]
    if thread is not None and not place:
        return thread
    if begins is None:
        text = first.text if first is not None else ""
        begins = hashlib.blake2b(f"{place}\n{text}".encode("utf-8", "replace"), digest_size=12).hexdigest()
    return f"{thread or 'run'}:{begins}"


def _name(tool: BaseTool | dict[str, Any]) -> str | None:
    if isinstance(tool, BaseTool):
        return tool.name
    name = tool.get("name") or tool.get("function", {}).get("name")
    return name if isinstance(name, str) else None


def _is_anthropic(model: Any) -> bool:
    return getattr(model, "_llm_type", None) == "anthropic-chat"


def _is_overflow(error: Exception) -> bool:
    """Whether a provider refused a request because it is too long."""
    if isinstance(error, ContextOverflowError):
        return True
    if getattr(error, "status_code", None) not in (400, 413, 422):
        return False
    text = str(error).lower()
    said = ("context_length_exceeded", "maximum context length", "context window", "prompt is too long")
    return any(words in text for words in said)
