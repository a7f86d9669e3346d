"""PY2: the user's latest request once it has left the view."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from foldback import Memory, _foldback
from foldback._messages import Recorded, repeated
from foldback.langchain import BlockMemory, View

POLICIES = pytest.mark.parametrize("policy", ["strict", "cache-aware"])
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo" + "QUJD" * 900}}


def views(memory: BlockMemory, request: Any, most: int | None = None) -> list[View]:
    """What a model is sent while it works on a request that another one came before."""
    messages: list[AnyMessage] = [HumanMessage("Hello."), AIMessage("Hi."), HumanMessage(request)]
    seen = []
    for n in range(40):
        call = {"name": "read", "args": {"page": n}, "id": f"c{n}"}
        text = f"{n} 日志 text about logs " * 60
        messages += [AIMessage("", tool_calls=[call]), ToolMessage(text, tool_call_id=f"c{n}")]
        seen.append(memory.view(messages, "t", max_tokens=most))
    return seen


def repeats(view: View) -> list[AnyMessage]:
    return [message for message in view.messages if str(message.text).startswith("[memory] The user's current request")]


@POLICIES
def test_py2_a_request_is_repeated_as_it_was_redacted(policy: Any) -> None:
    memory = BlockMemory(Memory(policy=policy, redact=True))
    for request in (f"用 {TOKEN} 部署。", [{"type": "text", "text": f"用 {TOKEN} 部署。"}, PICTURE]):
        seen = views(memory, request)
        assert all(TOKEN not in str(view.messages) for view in seen)
        last = repeats(seen[-1])
        assert len(last) == 1 and "部署。" in last[0].text and "redacted" in last[0].text, last
        memory.memory.forget("t")


@POLICIES
def test_py2_a_picture_of_a_request_is_repeated_with_it(policy: Any) -> None:
    seen = views(BlockMemory(policy=policy), [{"type": "text", "text": "What does this chart show, 图表?"}, PICTURE])
    assert repeats(seen[-1]) and all(PICTURE in view.messages[-1].content for view in seen if repeats(view))
    assert "图表?" in repeats(seen[-1])[0].text and "left the view" not in repeats(seen[-1])[0].text


def tokens(view: View) -> int:
    return sum(_foldback.Memory.tokens(Recorded.of(one, n).given[0]) for n, one in enumerate(view.messages))


@POLICIES
@pytest.mark.parametrize("request_", ["要求" * 3900, " ".join(f"requirement {n} holds" for n in range(350))])
def test_py2_a_repeated_request_has_its_share_of_the_tokens(policy: Any, request_: str) -> None:
    for most in (2_000, 6_000):
        # As long as the request is among the newest messages it is shown as it is.
        seen = [view for view in views(BlockMemory(policy=policy), request_, most) if repeats(view)]
        assert len(seen) > 20 and max(view.tokens for view in seen) <= most
        # Tools are counted, too.
        assert all(tokens(view) <= view.tokens for view in seen)
    whole = views(BlockMemory(policy=policy), request_)[-1]
    assert repeats(whole)[0].text.endswith(request_) and tokens(whole) <= whole.tokens


def test_py2_a_picture_that_takes_too_many_tokens_is_left_out_of_a_repeated_request() -> None:
    seen = views(BlockMemory(policy="strict"), [{"type": "text", "text": "看图。"}, PICTURE], 1_400)
    last = repeats(seen[-1])[0]
    assert seen[-1].tokens <= 1_400 and last.content.endswith("看图。 … (the rest has left the view)")


@pytest.mark.parametrize("said", ["把测试改好。", "Fix the tests of the parser, please."])
def test_py2_a_short_request_is_repeated_whole_in_few_tokens(said: str) -> None:
    request = Recorded.of(HumanMessage(said), 2)
    assert str(repeated(request, request.given[0], 1)[0].text).endswith(f":\n{said}")
    long = Recorded.of(HumanMessage(said * 60), 2)
    shown = str(repeated(long, long.given[0], 1)[0].text)
    assert f":\n{(said * 60)[:200]} … " in shown
