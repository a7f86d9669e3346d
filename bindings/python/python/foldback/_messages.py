"""Messages of LangChain as foldback records them, and prompts of foldback as messages of LangChain."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
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

from foldback import _foldback
from foldback.memory import _json, _no_form

CALL_BLOCKS = frozenset({"tool_use", "tool_call", "invalid_tool_call", "function_call", "input_json_delta"})
"""Content blocks that repeat what ``tool_calls`` and ``invalid_tool_calls`` say."""

REASONING = frozenset({"thinking", "redacted_thinking", "reasoning_content"})
"""Content blocks of reasoning in the formats of Anthropic and Bedrock."""

BYTES = (bytes, bytearray, memoryview)
"""What some providers take in content and JSON has no form for."""

ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
"""The roles of chat completions by LangChain's types of messages."""

REQUEST_CHARACTERS = 8_000
"""The longest part of a user's request that is repeated after the request has left the view."""

LEAST_REQUEST_CHARACTERS = 200
"""A part of a request of this length is repeated however few tokens a prompt may have."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A message at its place in a conversation. Its text is made when it is needed, so that only the message is kept."""

    message: BaseMessage
    place: int
    digest: bytes
    """Of the message as foldback records it."""
    content: object
    calls: object

    @classmethod
    def of(cls, message: BaseMessage, place: int) -> Recorded:
        digest = _digest(_dumped(_placed(message, place)))
        return cls(message, place, digest, message.content, message.__dict__.get("tool_calls"))

    def is_of(self, message: BaseMessage) -> bool:
        """Whether it is of this message, whose content and calls were not replaced since."""
        # This is asked of every message with each call, and ``getattr`` takes long where there are no calls.
        fields = message.__dict__
        return self.message is message and self.content is fields["content"] and self.calls is fields.get("tool_calls")

    @property
    def value(self) -> dict[str, Any]:
        """The message in the shape of chat completions, with its place."""
        return _placed(self.message, self.place)

    @property
    def given(self) -> tuple[str, str]:
        """The message as JSON, and what it says without ids that change from run to run."""
        return _dumped(self.value), _dumped(_value(self.message, self.place))


def _placed(message: BaseMessage, place: int) -> dict[str, Any]:
    value = _value(message, place)
    if message.id is not None:
        value["id"] = message.id
    # A message that comes back in a prompt is identified by it, even if it is shown in fewer tokens.
    value["place"] = place
    return value


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _dumped(value: dict[str, Any]) -> str:
    return _json("the message", value, _bytes_form)


def _bytes_form(value: object) -> dict[str, str]:
    """Raw bytes in a form that JSON has."""
    if isinstance(value, BYTES):
        return {"base64": base64.b64encode(value).decode("ascii")}
    _no_form(value)


def _value(message: BaseMessage, place: int) -> dict[str, Any]:
    try:
        converted = convert_to_openai_messages([message])
        value: dict[str, Any] = dict(converted[0]) if len(converted) == 1 else _plain(message)
    except Exception:
        # Content blocks that only their provider knows are kept as they are.
        value = _plain(message)
    if isinstance(message, ToolMessage):
        value["tool_call_id"] = message.tool_call_id
        if message.status == "error":
            value["is_error"] = True
    if isinstance(message, AIMessage) and message.invalid_tool_calls:
        _add_invalid_calls(value, message)
    for n, call in enumerate(value.get("tool_calls") or ()):
        if call.get("id") is None:
            call["id"] = _call_id(place, n)
    return value


def _add_invalid_calls(value: dict[str, Any], message: AIMessage) -> None:
    """Adds the calls whose arguments cannot be read: agents answer them, and providers are sent them as any other."""
    others: list[dict[str, Any]] = []
    valid = {call["id"] for call in message.tool_calls}
    calls: dict[str, dict[str, Any]] = {}
    for call in message.invalid_tool_calls:
        id, name = call.get("id"), call.get("name")
        if not id or not name:
            others.append(dict(call))
        elif id not in valid:
            function = {"name": name, "arguments": call.get("args") or ""}
            calls[id] = {"type": "function", "id": id, "function": function}
    # A content block may have repeated such a call, without its arguments.
    known = [call for call in value.get("tool_calls") or () if call.get("id") not in calls]
    if known or calls:
        value["tool_calls"] = [*known, *calls.values()]
    if others:
        value["invalid_tool_calls"] = others


def _plain(message: BaseMessage) -> dict[str, Any]:
    value: dict[str, Any] = {"role": ROLES.get(message.type, "user")}
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
                "function": {"name": call["name"], "arguments": _arguments_text(call["args"])},
            }
            for call in message.tool_calls
        ]
    return value


def _arguments_text(arguments: dict[str, Any]) -> str:
    # As LangChain writes them for other messages. A text of arguments need not be JSON.
    return _json("the arguments", arguments, _bytes_form, allow_nan=True)


def made_up_id(call: Mapping[str, Any], messages: Sequence[BaseMessage]) -> str:
    """The id under which a call of the model's last message that has none is recorded."""
    place = next((n for n in reversed(range(len(messages))) if isinstance(messages[n], AIMessage)), 0)
    calls = getattr(messages[place], "tool_calls", ()) if messages else ()
    answered = {message.tool_call_id for message in messages[place + 1 :] if isinstance(message, ToolMessage)}

    def fit(n: int) -> tuple[bool, bool, bool]:
        # Of equal calls, a copy stands for the first that has no answer yet.
        return calls[n] is call, calls[n] == call, _call_id(place, n) not in answered

    return _call_id(place, max(range(len(calls)), key=fit, default=0))


def _call_id(place: int, n: int) -> str:
    return f"call-{place}-{n}"


def _lacks_ids(message: BaseMessage) -> bool:
    return isinstance(message, AIMessage) and any(call.get("id") is None for call in message.tool_calls)


def shown(
    prompt: Iterable[str],
    recorded: Sequence[Recorded],
    others: Mapping[int, AnyMessage],
    unbound: int,
) -> tuple[list[str], list[AnyMessage], set[int]]:
    """The instructions of a prompt, its other messages as LangChain has them, and the places of recorded ones.

    :param recorded: the conversation.
    :param others: by place, messages to send instead of recorded ones that are shown whole.
    :param unbound: the first this many messages lose reasoning that their provider binds to what came before it.
    """
    instructions: list[str] = []
    messages: list[Any] = []
    places: set[int] = set()
    for text in prompt:
        value: dict[str, Any] = json.loads(text)
        place = value.get("place")
        known = recorded[place] if isinstance(place, int) and place < len(recorded) else None
        if value["role"] in ("system", "developer"):
            instructions.append(_text(value.get("content")))
        elif known is None or ROLES.get(known.message.type, "user") != value["role"]:
            messages.append(_made(value, (one.message for one in recorded)))
        else:
            places.add(known.place)
            is_same = known.digest == _digest(text) and not _lacks_ids(known.message)
            message = known.message if is_same else _changed(known, value)
            if message is known.message:
                message = others.get(known.place, message)
            messages.append(_without_bound_reasoning(message) if known.place < unbound else message)
    return instructions, messages, places


def hidden_request(recorded: Sequence[Recorded], places: set[int]) -> Recorded | None:
    """The user's latest request, if it has left the view. The first one never does."""
    asked = [one for one in recorded if isinstance(one.message, HumanMessage)]
    return asked[-1] if len(asked) > 1 and asked[-1].place not in places else None


def repeated(request: Recorded, text: str, most: int | None) -> tuple[HumanMessage, int]:
    """The message that repeats a request of the user's, and its tokens: at most ``most``, if that is enough for a
    sentence.

    :param text: the request as it is recorded, which may have been redacted.
    """
    content: Any = request.message.content
    if request.digest != _digest(text):
        content = _with_bytes(json.loads(text).get("content") or "", [request.message])
    said = str(HumanMessage(content).text)
    others = [part for part in content if isinstance(part, dict) and part.get("type") != "text"]
    parts, length = others, REQUEST_CHARACTERS
    while True:
        words = f"[memory] The user's current request, word for word:\n{said[:length]}"
        if len(said) > length or len(parts) < len(others):
            words += " … (the rest has left the view)"
        message = HumanMessage([{"type": "text", "text": words}, *parts] if parts else words)
        tokens = _foldback.Memory.tokens(_dumped(_value(message, request.place)))
        if most is None or tokens <= most or not (parts or length > LEAST_REQUEST_CHARACTERS):
            return message, tokens
        if not parts:
            length = max(LEAST_REQUEST_CHARACTERS, min(length, len(said)) // 2)
        parts = []


def _changed(known: Recorded, value: dict[str, Any]) -> BaseMessage:
    """The message as it is shown in fewer tokens or under another id. Everything else of it stays."""
    message, was = known.message, json.loads(_dumped(known.value))
    content = value.get("content") or ""
    changes: dict[str, Any] = {}
    has_other_calls = value.get("tool_calls") != was.get("tool_calls") or _lacks_ids(message)
    if content != (was.get("content") or ""):
        changes["content"] = _with_bytes(content, [message])
    elif has_other_calls and isinstance(message.content, list):
        blocks = message.content
        changes["content"] = [b for b in blocks if isinstance(b, str) or b.get("type") not in CALL_BLOCKS]
    if has_other_calls and isinstance(message, AIMessage):
        changes["tool_calls"] = _calls(value)
        # They are among the others now.
        changes["invalid_tool_calls"] = []
        extra = message.additional_kwargs
        changes["additional_kwargs"] = {key: extra[key] for key in extra if key not in ("tool_calls", "function_call")}
    if isinstance(message, ToolMessage) and value.get("tool_call_id") != was.get("tool_call_id"):
        # No provider accepts every id; the view gives a call and its result the same other one.
        changes["tool_call_id"] = value.get("tool_call_id", message.tool_call_id)
    return message.model_copy(update=changes) if changes else message


def _with_bytes(content: Any, messages: Iterable[BaseMessage]) -> Any:
    """Content as it is shown, with raw bytes of these messages in the place of their form in JSON."""
    if not any(_is_bytes_form(part) for part in _parts(content)):
        return content
    parts = (part for message in messages for part in _parts(message.content))
    raw = {_bytes_form(part)["base64"]: part for part in parts if isinstance(part, BYTES)}

    def restored(part: Any) -> Any:
        if _is_bytes_form(part):
            return raw.get(part["base64"], part)
        if isinstance(part, dict):
            return {key: restored(part[key]) for key in part}
        return [restored(one) for one in part] if isinstance(part, list) else part

    return restored(content)


def _is_bytes_form(part: Any) -> bool:
    return isinstance(part, dict) and part.keys() == {"base64"} and isinstance(part["base64"], str)


def _parts(content: Any) -> Iterator[Any]:
    """The content, and everything in it."""
    yield content
    inner = content.values() if isinstance(content, Mapping) else content if isinstance(content, list | tuple) else ()
    for part in inner:
        yield from _parts(part)


def _made(value: dict[str, Any], messages: Iterable[BaseMessage]) -> BaseMessage:
    """A message that the view itself wrote, or put together with one of these."""
    content = _with_bytes(value.get("content") or "", messages)
    match value["role"]:
        case "assistant":
            return AIMessage(content=content, tool_calls=_calls(value))
        case "tool":
            status = "error" if value.get("is_error") else "success"
            return ToolMessage(content=content, tool_call_id=value.get("tool_call_id", ""), status=status)
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
    except (ValueError, RecursionError):
        arguments = None
    return arguments if isinstance(arguments, dict) else {"arguments": function["arguments"]}


def _without_bound_reasoning(message: BaseMessage) -> BaseMessage:
    """The message without reasoning that its provider binds to the conversation before it: that of Claude."""
    if not isinstance(message, AIMessage) or not isinstance(message.content, list):
        return message
    provider = message.response_metadata.get("model_provider")
    model = str(message.response_metadata.get("model_name", "")).lower()
    if provider is None:
        bound = REASONING
    elif provider == "anthropic" or (str(provider).startswith("bedrock") and "claude" in model):
        bound = REASONING | {"reasoning"}
    else:
        return message
    kept = [b for b in message.content if isinstance(b, str) or b.get("type") not in bound]
    return message if len(kept) == len(message.content) else message.model_copy(update={"content": kept})


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text") or "" for part in content or [] if isinstance(part, dict))


def with_instructions(system: SystemMessage | None, added: Sequence[str]) -> SystemMessage | None:
    """The system message, followed by further instructions."""
    if not added:
        return system
    text = "\n\n".join(added)
    if system is None:
        return SystemMessage(content=text)
    if isinstance(system.content, str):
        return SystemMessage(content=f"{system.content}\n\n{text}")
    return SystemMessage(content=[*system.content, {"type": "text", "text": f"\n\n{text}"}])


def marked(messages: list[AnyMessage], at: int) -> list[AnyMessage]:
    """The same messages, with a mark of Anthropic's cache at the end of the one at this index."""
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


def has_mark(value: Any) -> bool:
    """Whether a mark of Anthropic's cache is anywhere in content, tools or settings."""
    if isinstance(value, BaseMessage):
        return has_mark(value.content)
    if isinstance(value, Mapping):
        return "cache_control" in value or any(has_mark(one) for one in value.values())
    if isinstance(value, list | tuple):
        return any(has_mark(one) for one in value)
    return False
