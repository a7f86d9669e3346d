"""A memory without a framework: sessions, prompts and the calls of the memory tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from os.path import abspath
from typing import Any, Literal, NoReturn, Protocol, TypeAlias, runtime_checkable

from foldback import _foldback

Policy: TypeAlias = Literal["auto", "strict", "cache-aware"]
"""When blocks leave the view.

``strict`` has the smallest view at any time. ``cache-aware`` folds when that costs less than reading on from the
provider's cache. ``auto`` takes ``cache-aware`` where a cached token has another price, and ``strict`` otherwise.
"""

Format: TypeAlias = Literal["openai", "anthropic"]
"""The API whose messages are meant: OpenAI's chat completions or Anthropic's Messages."""


@runtime_checkable
class _Dumps(Protocol):
    """What the SDKs of OpenAI and Anthropic return."""

    def model_dump(self, *, mode: Literal["json"], exclude_none: bool) -> dict[str, Any]: ...


MessageLike: TypeAlias = "Mapping[str, Any] | _Dumps"
"""A message: a mapping in the API's shape, or the message object of an SDK."""


class Prompt(dict[str, Any]):
    """The request to send to a model now: pass it on with ``**prompt``.

    Its keys are those of the API: ``messages`` and, where there are any, ``tools``; for Anthropic also ``system``.
    """

    tokens: int
    """The estimated tokens of messages and tools."""
    unfit: list[str]
    """What did not fit into the budget, in sentences."""

    def __init__(self, prompt: _foldback.Prompt) -> None:
        super().__init__(json.loads(prompt.body))
        self.tokens = prompt.tokens
        self.unfit = prompt.unfit


@dataclass(frozen=True)
class Answer:
    """What a memory tool answers."""

    text: str
    """What the model reads. Record it as the result of the call."""
    is_error: bool
    """Whether the call failed: a mistake of the model. The text says how to mend it."""
    references: list[str]
    """The blocks and stored parts that the answer shows, in their order."""
    next: dict[str, Any] | None
    """The arguments of the call that goes on where this answer ends; ``None`` at the end."""

    @classmethod
    def _of(cls, answer: _foldback.Answer) -> Answer:
        following = json.loads(answer.next) if answer.next else None
        return cls(answer.text, answer.is_error, answer.references, following)


@dataclass(frozen=True)
class Hit:
    """A block that a search found."""

    block: str
    """Its id, as ``load`` takes it."""
    summary: str
    """Its first line: a sentence that was made without a model."""
    score: float
    """What hits are ordered by; comparable within one answer only."""
    messages: range
    """The numbers of its messages."""


class Memory:
    """A store of conversations, in a folder or, without one, in memory.

    It may be used by several threads. :meth:`close`, or the end of a ``with`` block, closes it.

    :param store: the folder, which is made where there is none; ``None`` keeps everything in memory.
    :param policy: when blocks leave the view.
    :param prices: what a token costs that is read from the provider's cache, and one that is written there, where an
        ordinary one costs 1. The default is that of Anthropic: ``(0.1, 1.25)``.
    :param least_cached: the shortest prefix, in tokens, that the provider caches.
    :param engine: ``sqlite``, ``redb``, ``sled`` or ``memory``.
    :param read_only: open a store that is there, and write nothing.
    :param key: 32 bytes with which everything in the folder is encrypted.
    :param redact: replace what looks like a secret by a mark before anything of it is stored.
    :raises FoldbackError: when the store cannot be opened. Its ``kind`` says why.

    >>> Memory(policy="loose")
    Traceback (most recent call last):
    ...
    foldback.FoldbackError: the policy is "auto", "strict" or "cache-aware", and not "loose"
    """

    def __init__(
        self,
        store: str | PathLike[str] | None = None,
        *,
        policy: Policy = "auto",
        prices: tuple[float, float] | None = None,
        least_cached: int | None = None,
        engine: str = "sqlite",
        read_only: bool = False,
        key: bytes | None = None,
        redact: bool = False,
    ) -> None:
        if store is not None and not fspath(store):
            raise _invalid("the store's folder is a path, and not an empty one; None keeps everything in memory")
        # The store stays where it is if the program goes to another folder.
        folder = None if store is None else abspath(store)
        self._memory = _foldback.Memory(folder, policy, prices, least_cached, engine, read_only, key, redact)

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the store, and waits until what it does in the background has ended.

        Its sessions are closed, too. A call of a session that is running in another thread ends first; one of the
        memory keeps the store open until it ends. Without this, a store closes with the last object that uses it.

        >>> with Memory() as memory:
        ...     session = memory.session("trip")
        >>> session.prompt()
        Traceback (most recent call last):
        ...
        foldback.FoldbackError: the session's memory is closed
        """
        self._memory.close()

    def session(self, id: str) -> Session:
        """The conversation of this name, which is begun where there is none.

        A name may be any text. What is not among ``A-Z a-z 0-9 . _ : -`` or longer than 128 characters is replaced in
        the store by a readable part of it and a hash: :attr:`Session.id` says by what.
        """
        return Session(self._memory.session(_named(id)))

    def sessions(self) -> Iterator[str]:
        """The names of all conversations, in the order in which they were begun.

        Conversations may be forgotten during the walk.

        >>> memory = Memory()
        >>> _ = memory.session("b"), memory.session("a")
        >>> list(memory.sessions())
        ['b', 'a']
        """
        after = 0
        while names := self._memory.names(after, 256):
            for after, name in names:
                yield name

    def messages(self, id: str) -> Iterator[dict[str, Any]]:
        """All messages of a conversation, exactly as they were recorded."""
        start, id = 0, _named(id)
        while messages := self._memory.messages(id, start, start + 256):
            yield from map(json.loads, messages)
            start += len(messages)

    def search(self, id: str, query: str, k: int = 5) -> list[Hit]:
        """The blocks of a conversation that answer a question best, the best first.

        >>> memory = Memory()
        >>> session = memory.session("trip")
        >>> _ = session.record({"role": "user", "content": "码头 8 号几点开门？"})
        >>> _ = session.record({"role": "assistant", "content": "06:12 开门。"})
        >>> [hit.block for hit in memory.search("trip", "开门时间")]
        ['b_trip_001']
        """
        hits = self._memory.search(_named(id), _utf8(query), k)
        return [Hit(block, summary, score, range(first, end)) for block, summary, score, first, end in hits]

    def call(self, id: str, tool: str, arguments: Mapping[str, Any] | str) -> Answer:
        """Answers a call of a memory tool for a caller who sees nothing of the conversation."""
        return Answer._of(self._memory.call(_named(id), _utf8(tool), _arguments(arguments)))

    def payload(self, id: str, reference: str) -> bytes:
        """The bytes of a stored part, such as ``store://1-k4qd``, of a conversation."""
        return self._memory.payload(_named(id), _utf8(reference))

    def forget(self, id: str) -> None:
        """Removes a conversation for good."""
        self._memory.forget(_named(id))

    @staticmethod
    def tools(format: Format = "openai") -> list[dict[str, Any]]:
        """The memory tools, as an API takes them.

        >>> [tool["function"]["name"] for tool in Memory.tools()]
        ['search_block', 'list_blocks', 'load']
        """
        return _declared(_foldback.Memory.tools(), format)


class Session:
    """One conversation while it goes on. :meth:`Memory.session` gives it.

    It holds a constant number of messages. It may be dropped at any time, and opened again it goes on where it was. It may
    be used by several threads.
    """

    def __init__(self, session: _foldback.Session) -> None:
        self._session = session

    @property
    def id(self) -> str:
        """The conversation's name in the store."""
        return self._session.name()

    @property
    def blocks(self) -> int:
        """How many blocks are closed."""
        return self._session.blocks()

    def __len__(self) -> int:
        """How many messages are recorded."""
        return self._session.length()

    def __bool__(self) -> bool:
        """A session is one before its first message, too."""
        return True

    def record(self, message: MessageLike, *, format: Format = "openai") -> list[str]:
        """Takes the next message. When this returns, it is durable.

        :returns: the ids of the blocks that it closed.
        :raises FoldbackError: when it cannot be kept; then nothing of it is.

        >>> session = Memory().session("trip")
        >>> session.record({"role": "nobody"}, format="letter")
        Traceback (most recent call last):
        ...
        foldback.FoldbackError: the format is "openai" or "anthropic", and not "letter"
        """
        return self.record_all([message], format=format)

    def record_all(self, messages: Iterable[MessageLike], *, format: Format = "openai") -> list[str]:
        """Takes several messages: all are durable when this returns, or none.

        :returns: the ids of the blocks that they closed.
        """
        if not isinstance(messages, Iterable):
            raise _invalid(f"the messages are an iterable of messages, and not {type(messages).__name__}")
        return self._session.record([_message(message) for message in messages], format)

    def prompt(self, format: Format = "openai", max_tokens: int | None = None) -> Prompt:
        """The request to send to the model now.

        :param max_tokens: the most estimated tokens that it may have; what does not fit is named in
            :attr:`Prompt.unfit`.
        """
        return Prompt(self._session.prompt(format, max_tokens))

    def tools(self, format: Format = "openai") -> list[dict[str, Any]]:
        """The memory tools that the policy offers, as an API takes them.

        A prompt has those that it needs among its own ``tools``.
        """
        return _declared(self._session.tools(), format)

    def call(self, name: str, arguments: Mapping[str, Any] | str, id: str = "call") -> Answer:
        """Answers a call of a memory tool. Record the text as the result of the call with this ``id``."""
        return Answer._of(self._session.call(_utf8(name), _arguments(arguments), _utf8(id)))

    def pin(self, message: int) -> None:
        """Keeps the message of this number in every prompt from now on."""
        self._session.pin(message)

    def end(self) -> list[str]:
        """Closes the open block, because the conversation is over. More may be recorded later.

        :returns: the ids of the blocks that this closed.
        """
        return self._session.close()


def _declared(tools: Iterable[tuple[str, str, str]], format: str) -> list[dict[str, Any]]:
    if format not in ("openai", "anthropic"):
        raise _invalid(f'the format is "openai" or "anthropic", and not {json.dumps(str(format))}')
    declared: list[dict[str, Any]] = []
    for name, description, parameters in tools:
        schema = json.loads(parameters)
        if format == "anthropic":
            declared.append({"name": name, "description": description, "input_schema": schema})
        else:
            function = {"name": name, "description": description, "parameters": schema}
            declared.append({"type": "function", "function": function})
    return declared


def _arguments(arguments: Mapping[str, Any] | str) -> str:
    if isinstance(arguments, str):
        return _utf8(arguments)
    if not isinstance(arguments, Mapping):
        raise _invalid(f"arguments are a mapping or their JSON, and not {type(arguments).__name__}")
    return _json("the arguments", arguments)


def _no_form(value: object) -> NoReturn:
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def _message(message: MessageLike) -> str:
    if not isinstance(message, Mapping) and (isinstance(message, type) or not isinstance(message, _Dumps)):
        raise _invalid(f"a message is a mapping or an SDK's message object, and not {type(message).__name__}")
    return _json("the message", message)


def _json(
    what: str,
    value: MessageLike,
    default: Callable[[object], object] = _no_form,
    *,
    allow_nan: bool = False,
) -> str:
    """The text of a mapping, in which half a surrogate pair, which no UTF-8 can hold, is replaced.

    Objects of an SDK, also within it, are written as the SDK writes them.

    :param default: gives what else JSON has no form for in one that it has, or raises ``TypeError``.
    :param allow_nan: write numbers that JSON has no form for as Python names them.
    """

    def form(value: object) -> object:
        if isinstance(value, _Dumps) and not isinstance(value, type):
            return value.model_dump(mode="json", exclude_none=True)
        return default(value)

    try:
        value = dict(value) if isinstance(value, Mapping) else value
        text = json.dumps(value, ensure_ascii=False, default=form, allow_nan=allow_nan)
    except (TypeError, ValueError, RecursionError) as error:
        raise _invalid(f"{what} cannot be written as JSON: {error}") from error
    return _utf8(text)


def _utf8(text: str) -> str:
    """The text, in which half a surrogate pair is replaced. What is no text is left for the module to refuse."""
    return text.encode("utf-8", "replace").decode("utf-8") if isinstance(text, str) else text


def _named(id: str) -> str:
    """The name of a conversation. A replacement in it would make two names one."""
    if _utf8(id) != id:
        raise _invalid(f"the name of a conversation is text without half a surrogate pair, and not {ascii(id)}")
    return id


def _invalid(what: str) -> _foldback.FoldbackError:
    error = _foldback.FoldbackError(what)
    error.kind = "invalid_input"
    return error
