"""A chat model that plays a script and meters what it is sent, in place of a provider."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import PrivateAttr

READ = 0.1
"""What a token costs that the provider reads from its cache."""
WRITE = 1.25
"""What a token costs that the provider writes into its cache."""


@dataclass
class Sent:
    """A request as the model got it."""

    messages: list[BaseMessage]
    tools: list[dict[str, Any]]
    tokens: int
    cached: int
    """How many tokens it begins with that an earlier request of the same script began with."""

    @property
    def cost(self) -> float:
        """In ordinary tokens."""
        return READ * self.cached + WRITE * (self.tokens - self.cached)

    @property
    def orphans(self) -> set[str]:
        """Calls without a result, and results without a call, which no provider accepts."""
        said = [m for m in self.messages if isinstance(m, AIMessage)]
        # Providers are sent the calls whose arguments cannot be read, too.
        calls = [c["id"] for m in said for c in (*m.tool_calls, *m.invalid_tool_calls)]
        results = [m.tool_call_id for m in self.messages if isinstance(m, ToolMessage)]
        return {str(id) for id in set(calls) ^ set(results)}

    @property
    def text(self) -> str:
        """All that the model reads."""
        return "\n".join(str(m.content) for m in self.messages)


@dataclass
class Script:
    """What the model says, one answer a request."""

    answers: Sequence[AIMessage | Callable[[Sent], AIMessage]]
    sent: list[Sent] = field(default_factory=list)


class ScriptedModel(BaseChatModel):
    """Plays the script whose name comes first in a request's messages, and meters what that costs.

    A request without tools is one for a summary.
    """

    scripts: dict[str, Any]
    summary_words: int = 370
    kind: str = "scripted"
    _summaries: list[Sent] = PrivateAttr(default_factory=list)
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    @property
    def _llm_type(self) -> str:
        return self.kind

    @property
    def summaries(self) -> list[Sent]:
        """The requests for summaries."""
        return self._summaries

    @property
    def sent(self) -> list[Sent]:
        """All requests."""
        return [*self._summaries, *(sent for script in self.scripts.values() for sent in script.sent)]

    def bind_tools(self, tools: Sequence[Any], **settings: Any) -> Any:
        """Declares tools, as providers take them."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **settings)

    def _generate(self, messages: list[BaseMessage], *_: Any, **settings: Any) -> ChatResult:
        tools = settings.get("tools") or []
        with self._lock:
            if not tools:
                self._summaries.append(_metered(messages, tools, None))
                return _result(AIMessage("said " * self.summary_words))
            text = "\n".join(str(m.content) for m in messages if isinstance(m, HumanMessage | SystemMessage))
            places = {name: text.find(name) for name in self.scripts}
            found = [name for name in places if places[name] >= 0]
            # A summary may have dropped the name of an only script.
            name = min(found or self.scripts, key=lambda name: places[name])
            script = self.scripts[name]
            sent = _metered(messages, tools, script.sent[-1] if script.sent else None)
            answer = script.answers[len(script.sent)] if len(script.sent) < len(script.answers) else AIMessage("Done.")
            script.sent.append(sent)
            answer = answer(sent) if callable(answer) else answer.model_copy()
        answer.usage_metadata = {
            "input_tokens": sent.tokens,
            "output_tokens": 20,
            "total_tokens": sent.tokens + 20,
        }
        return _result(answer)


def _result(answer: AIMessage) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=answer)])


def _metered(messages: list[BaseMessage], tools: list[dict[str, Any]], before: Sent | None) -> Sent:
    tokens = count_tokens_approximately(messages, tools=tools)
    cached = 0
    if before is not None and json.dumps(before.tools) == json.dumps(tools):
        same = 0
        for ours, theirs in zip(messages, before.messages, strict=False):
            if (ours.type, ours.content, getattr(ours, "tool_calls", 0)) != (
                theirs.type,
                theirs.content,
                getattr(theirs, "tool_calls", 0),
            ):
                break
            same += 1
        cached = count_tokens_approximately(messages[:same], tools=tools)
    return Sent(list(messages), tools, tokens, min(cached, tokens))
