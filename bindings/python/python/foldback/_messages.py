"""Messages of LangChain as foldback records them, and prompts of foldback as messages of LangChain."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages.utils import convert_to_openai_messages

CALL_BLOCKS = frozenset({"tool_use", "tool_call", "function_call", "input_json_delta"})
"""Content blocks that say again what ``tool_calls`` says."""

BOUND_REASONING = frozenset({"thinking", "redacted_thinking", "reasoning_content"})
"""Content blocks that a provider takes back only behind what they were thought behind."""


@dataclass(frozen=True)
class Recorded:
    """A message, and how foldback records it."""

    message: BaseMessage
    value: dict[str, Any]
    """The message in the shape of chat completions, with its ``place``."""
    json: str
    identity: str
    """What it says, without ids that change from run to run."""

    @classmethod
    def of(cls, message: BaseMessage, place: int) -> Recorded:
        value = _value(message)
        identity = _dumped(value)
        if message.id is not None:
            value["id"] = message.id
        # With it a message that comes back in a prompt is known, also one that is shown in fewer tokens.
        value["place"] = place
        return cls(message, value, _dumped(value), identity)


def _dumped(value: dict[str, Any]) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text.encode("utf-8", "replace").decode("utf-8")


def _value(message: BaseMessage) -> dict[str, Any]:
    try:
        converted = convert_to_openai_messages([message])
        value: dict[str, Any] = dict(converted[0]) if len(converted) == 1 else _plain(message)
    except Exception:
        # Content blocks of a provider that nobody else knows are kept as they are.
        value = _plain(message)
    if isinstance(message, ToolMessage):
        value["tool_call_id"] = message.tool_call_id
        if message.status == "error":
            value["is_error"] = True
    return value


def _plain(message: BaseMessage) -> dict[str, Any]:
    roles = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
    value: dict[str, Any] = {"role": roles.get(message.type, "user")}
    if isinstance(message.content, str):
        value["content"] = message.content
    else:
        parts: list[dict[str, Any]] = []
        for part in message.content:
            if isinstance(part, str):
                parts.append({"type": "text", "text": part})
            elif part.get("type") not in CALL_BLOCKS:
                parts.append(part)
        value["content"] = parts
    if isinstance(message, AIMessage) and message.tool_calls:
        value["tool_calls"] = [
            {
                "type": "function",
                "id": call["id"],
                "function": {"name": call["name"], "arguments": json.dumps(call["args"], ensure_ascii=False)},
            }
            for call in message.tool_calls
        ]
    return value


def shown(
    prompt: Iterable[str], recorded: Sequence[Recorded], unbound: int
) -> tuple[list[str], list[AnyMessage]]:
    """The instructions of a prompt, and its other messages as LangChain has them.

    :param recorded: the conversation.
    :param unbound: reasoning of the first so many messages was thought behind other messages than those that are shown,
        and is left out.
    """
    instructions: list[str] = []
    messages: list[Any] = []
    for text in prompt:
        value: dict[str, Any] = json.loads(text)
        place = value.get("place")
        known = recorded[place] if isinstance(place, int) and place < len(recorded) else None
        if known is not None and known.value["role"] != value["role"]:
            known = None
        if value["role"] in ("system", "developer"):
            instructions.append(_text(value.get("content")))
        elif known is None:
            messages.append(_made(value))
        else:
            message = known.message if text == known.json else _changed(known, value)
            if isinstance(place, int) and place < unbound:
                message = _without_bound_reasoning(message)
            messages.append(message)
    return instructions, messages


def _changed(known: Recorded, value: dict[str, Any]) -> BaseMessage:
    """The message as it is shown in fewer tokens. Everything else of it stays."""
    message, changes = known.message, {}
    has_other_calls = value.get("tool_calls") != known.value.get("tool_calls")
    if value.get("content") != known.value.get("content"):
        changes["content"] = value.get("content") or ""
    elif has_other_calls and isinstance(message.content, list):
        blocks = message.content
        changes["content"] = [b for b in blocks if isinstance(b, str) or b.get("type") not in CALL_BLOCKS]
    if has_other_calls and isinstance(message, AIMessage):
        changes["tool_calls"] = _calls(value)
        extra = message.additional_kwargs
        changes["additional_kwargs"] = {key: extra[key] for key in extra if key not in ("tool_calls", "function_call")}
    return message.model_copy(update=changes)


def _made(value: dict[str, Any]) -> BaseMessage:
    """A message that the view wrote itself."""
    content = value.get("content") or ""
    match value["role"]:
        case "assistant":
            return AIMessage(content=content, tool_calls=_calls(value))
        case "tool":
            status = "error" if value.get("is_error") else "success"
            return ToolMessage(content=content, tool_call_id=value["tool_call_id"], status=status)
        case _:
            return HumanMessage(content=content)


def _calls(value: dict[str, Any]) -> list[Any]:
    calls = []
    for call in value.get("tool_calls") or []:
        function = call["function"]
        calls.append(
            {"type": "tool_call", "id": call["id"], "name": function["name"], "args": _arguments(function)}
        )
    return calls


def _arguments(function: dict[str, Any]) -> dict[str, Any]:
    try:
        arguments = json.loads(function.get("arguments") or "{}")
    except json.JSONDecodeError:
        arguments = None
    return arguments if isinstance(arguments, dict) else {"arguments": function["arguments"]}


def _without_bound_reasoning(message: BaseMessage) -> BaseMessage:
    if not isinstance(message, AIMessage) or not isinstance(message.content, list):
        return message
    kept = [b for b in message.content if isinstance(b, str) or b.get("type") not in BOUND_REASONING]
    return message if len(kept) == len(message.content) else message.model_copy(update={"content": kept})


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or [] if isinstance(part, dict))


def with_instructions(system: SystemMessage | None, added: Sequence[str]) -> SystemMessage | None:
    """The system message with further instructions behind it."""
    if not added:
        return system
    text = "\n\n".join(added)
    if system is None:
        return SystemMessage(content=text)
    if isinstance(system.content, str):
        return SystemMessage(content=f"{system.content}\n\n{text}")
    return SystemMessage(content=[*system.content, {"type": "text", "text": f"\n\n{text}"}])


def marked(messages: list[AnyMessage], at: int) -> list[AnyMessage]:
    """The same messages, with a mark of Anthropic's cache behind the one at this place."""
    message = messages[at]
    content: Any = message.content
    if isinstance(content, str):
        if not content:
            return messages
        content = [{"type": "text", "text": content}]
    last = content[-1] if content else None
    if not isinstance(last, dict) or last.get("type") not in ("text", "tool_result", "image", "tool_use"):
        return messages
    blocks = [*content[:-1], {**last, "cache_control": {"type": "ephemeral"}}]
    return [*messages[:at], message.model_copy(update={"content": blocks}), *messages[at + 1 :]]
