"""What DeepAgents sends with its own summarisation, and what it sends with foldback in its place.

    python examples/deepagents_savings.py 60 200

A scripted model, for which no key and no network is needed, reads so many log files of 8 KB, one a step. Tokens are
counted as DeepAgents counts them. `cost` takes a cached token at 0.1 and one that is written into the cache at 1.25.
"""

from __future__ import annotations

import random
import sys
import warnings
from typing import Any

from deepagents import create_deep_agent
from deepagents.backends import StateBackend
from deepagents.backends.utils import create_file_data
from deepagents.middleware.summarization import SummarizationMiddleware
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from scripted_model import Script, ScriptedModel

from foldback.langchain import BlockMemory

FILE_BYTES = 8_192
WORDS = "alpha beta retry timeout shard ledger invoice region cursor token header payload commit merge".split()


def log(n: int) -> str:
    """A log of 8 KB, with a number for its seed."""
    drawn = random.Random(n)
    lines = (f"{line:04d} svc-{drawn.randrange(99):02d} {' '.join(drawn.choices(WORDS, k=9))}" for line in range(999))
    return "\n".join(lines)[:FILE_BYTES]


def run(calls: int, policy: str) -> ScriptedModel:
    """Has the agent read so many files, and returns the model, which has metered what it was sent."""
    steps = [
        AIMessage(f"Reading {n}.", tool_calls=[{"name": "read_file", "args": {"file_path": f"/f{n}.log"}, "id": f"c{n}"}])
        for n in range(calls)
    ]
    model, backend = ScriptedModel(scripts={"logs": Script(steps)}), StateBackend()
    middleware: list[Any] = []
    if policy == "summary+topN":
        middleware = [
            SummarizationMiddleware(model=model, backend=backend, trigger=("tokens", 40_000), keep=("messages", 20))
        ]
    elif policy != "stock":
        middleware = [BlockMemory(policy=policy)]  # type: ignore[arg-type]
    agent = create_deep_agent(model, middleware=middleware, backend=backend, checkpointer=InMemorySaver())
    files = {f"/f{n}.log": create_file_data(log(n)) for n in range(calls)}
    task: Any = {"messages": [HumanMessage("Read the logs.")], "files": files}
    agent.invoke(task, {"configurable": {"thread_id": "t"}})
    return model


def main() -> None:
    """Prints the table."""
    warnings.simplefilter("ignore")
    print(f"{'calls':>5}  {'memory':<22}{'tokens':>12}{'largest':>9}{'cost':>11}{'orphans':>9}")
    for calls in [int(text) for text in sys.argv[1:]] or [60]:
        for policy in ("stock", "summary+topN", "strict", "cache-aware"):
            sent = run(calls, policy).sent
            name = policy if policy in ("stock", "summary+topN") else f"foldback {policy}"
            tokens, largest = sum(one.tokens for one in sent), max(one.tokens for one in sent)
            cost, orphans = sum(one.cost for one in sent), sum(len(one.orphans) for one in sent)
            print(f"{calls:>5}  {name:<22}{tokens:>12,}{largest:>9,}{cost:>11,.0f}{orphans:>9}")


if __name__ == "__main__":
    main()
