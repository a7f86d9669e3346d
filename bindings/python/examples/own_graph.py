"""A graph of one's own with LangGraph, and a memory in it.

    python examples/own_graph.py

`model` may be any chat model of LangChain; here it is a scripted one, for which no key is needed.
"""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from scripted_model import Script, ScriptedModel

from foldback.langchain import BlockMemory


@tool
def read(page: int) -> str:
    """Reads a page."""
    return f"Page {page}: " + f"the code is {page * 7919}; " * 200


def build(model: Any, memory: BlockMemory, id: str) -> Any:
    """A graph of two nodes: the model is asked, and its calls are answered."""

    def ask(state: MessagesState) -> dict[str, Any]:
        view = memory.view(state["messages"], id)
        return {"messages": [model.bind_tools([read, *view.tools]).invoke(view.messages)]}

    def answer(state: MessagesState) -> dict[str, Any]:
        results = []
        for call in state["messages"][-1].tool_calls:  # type: ignore[union-attr]
            if call["name"] == read.name:
                results.append(ToolMessage(read.invoke(call["args"]), tool_call_id=call["id"]))
            else:
                results.append(memory.call(call, state["messages"], id))
        return {"messages": results}

    def is_done(state: MessagesState) -> str:
        return "answer" if state["messages"][-1].tool_calls else END  # type: ignore[union-attr]

    graph = StateGraph(MessagesState)
    graph.add_node("ask", ask)
    graph.add_node("answer", answer)
    graph.add_edge(START, "ask")
    graph.add_conditional_edges("ask", is_done, ["answer", END])
    graph.add_edge("answer", "ask")
    return graph.compile()


def main() -> None:
    """Reads forty pages, and asks for what stood on the third."""
    steps = [AIMessage("", tool_calls=[{"name": "read", "args": {"page": n}, "id": f"c{n}"}]) for n in range(40)]
    search = {"name": "search_block", "args": {"query": "the code on page 3"}, "id": "s"}
    model = ScriptedModel(scripts={"book": Script([*steps, AIMessage("", tool_calls=[search])])})
    graph = build(model, BlockMemory(policy="strict"), "book")
    state = graph.invoke({"messages": [HumanMessage("Read the book.")]}, {"recursion_limit": 200})
    found = next(m for m in state["messages"] if isinstance(m, ToolMessage) and m.tool_call_id == "s")
    print("The code is found again:", "23757" in found.content)
    print("The largest request has", max(sent.tokens for sent in model.sent), "tokens.")


if __name__ == "__main__":
    main()
