"""A context of constant size that loses nothing.

A :class:`Memory` is a store of conversations. A :class:`Session` is one of them: it takes messages as they arrive, cuts
them into closed blocks, keeps large inputs and outputs outside, and gives a prompt of constant size. The model
brings anything back, word for word, with the tools ``search_block``, ``list_blocks`` and ``load``.

>>> from foldback import Memory
>>> memory = Memory()
>>> session = memory.session("trip")
>>> session.record({"role": "user", "content": "Which port does the staging server use?"})
[]
>>> session.record({"role": "assistant", "content": "It listens on 8443."})
[]
>>> prompt = session.prompt()
>>> prompt["messages"][-1]["content"]
'It listens on 8443.'
>>> "8443" in session.call("search_block", {"query": "staging server port"}).text
False
>>> "8443" in memory.call("trip", "search_block", {"query": "staging server port"}).text
True

The first search finds nothing, because the open messages are in view. The second asks for a caller who sees nothing of
the conversation.

For LangChain and DeepAgents see :mod:`foldback.langchain`.
"""

from foldback._foldback import FoldbackError
from foldback.memory import Answer, Hit, Memory, Prompt, Session

__all__ = ["Answer", "FoldbackError", "Hit", "Memory", "Prompt", "Session"]
