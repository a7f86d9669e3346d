#!/usr/bin/env python3
"""Runs plans through the scheduler of LLMCompiler, to set it beside foldback's executor.

    foldback bench plans --dags DAGS.json [FILE...]
    python3 llmcompiler.py CHECKOUT DAGS.json OUT.json
    foldback bench plans --peer OUT.json [FILE...]

CHECKOUT is a checkout of https://github.com/SqueezeAILab/LLMCompiler; its
src/llm_compiler/task_fetching_unit.py is imported as it is. Python's standard library is enough:
what the scheduler imports beside it (numpy, for its log) is replaced by an empty module where it is
missing.
"""

import argparse
import asyncio
import importlib
import json
import statistics
import subprocess
import sys
import time
import types

# A plan that has not ended so many seconds after its critical path never ends.
BOUND = 5.0


def scheduler(checkout):
    """The module with LLMCompiler's scheduler, its log switched off."""
    sys.path.insert(0, checkout)
    try:
        import numpy  # noqa: F401
    except ImportError:
        sys.modules["numpy"] = types.ModuleType("numpy")
    importlib.import_module("src.utils.logger_utils").enable_logging(False)
    return importlib.import_module("src.llm_compiler.task_fetching_unit")


def commit(checkout):
    """The commit of the checkout; None where git cannot tell."""
    asked = subprocess.run(
        ["git", "-C", checkout, "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    )
    return asked.stdout.strip() or None


def tasks(module, steps, begun, clock):
    """The steps as tasks whose tools wait, fail and answer as the steps say."""

    def tool(step):
        async def call(*arguments):
            begun[step["id"]] = {"at_ms": clock(), "arguments": list(arguments)}
            if step["ms"] > 0:
                await asyncio.sleep(step["ms"] / 1000)
            if step["fails"]:
                raise RuntimeError("the tool failed")
            return step["result"]

        return call

    return {
        step["id"]: module.Task(
            idx=step["id"],
            name="work",
            tool=tool(step),
            args=step["arguments"],
            dependencies=step["after"],
        )
        for step in steps
    }


async def run(module, dag):
    """Runs a plan once: how long it took, whether it ended, what it raised, when its steps began."""
    begun, error = {}, None
    unit = module.TaskFetchingUnit()
    # A tool that fails is an exception that nobody fetches.
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    start = time.perf_counter()

    def clock():
        return (time.perf_counter() - start) * 1000

    made = tasks(module, dag["steps"], begun, clock)
    if any(step["planned_ms"] > 0 for step in dag["steps"]):
        queue = asyncio.Queue()

        async def plan():
            for step in dag["steps"]:
                await asyncio.sleep(max(0.0, step["planned_ms"] - clock()) / 1000)
                await queue.put(made[step["id"]])
            await queue.put(None)

        planner = asyncio.create_task(plan())
        scheduled = unit.aschedule(task_queue=queue, func=None)
    else:
        planner = None
        unit.set_tasks(made)
        scheduled = unit.schedule()
    try:
        await asyncio.wait_for(scheduled, BOUND + dag["critical_path_ms"] / 1000)
        ended = True
    except asyncio.TimeoutError:
        ended = False
    except Exception as raised:  # Whatever a scheduler raises is a result.
        ended, error = False, f"{type(raised).__name__}: {raised}"
    took = clock()
    if planner is not None:
        planner.cancel()
    return {"ms": took, "ended": ended, "error": error, "begun": begun}


def measure(module, dag):
    """The median of several runs; one whose tools take their time, or that never ends, runs once."""
    runs = 1 if dag["critical_path_ms"] > 0 or dag["kind"] in ("error", "cycle") else 7
    made = [asyncio.run(run(module, dag)) for _ in range(runs)]
    last = made[-1]
    return {
        "name": dag["name"],
        "ms": statistics.median(one["ms"] for one in made),
        "ended": all(one["ended"] for one in made),
        "error": last["error"],
        "begun": {str(step): one for step, one in sorted(last["begun"].items())},
    }


def main():
    formatter = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("checkout")
    parser.add_argument("dags")
    parser.add_argument("out")
    asked = parser.parse_args()
    with open(asked.dags, encoding="utf-8") as file:
        dags = json.load(file)["dags"]
    module = scheduler(asked.checkout)
    rows = []
    for dag in dags:
        rows.append(measure(module, dag))
        row = rows[-1]
        took = f"{row['ms']:9.2f} ms" if row["ended"] else row["error"] or "never ended"
        print(f"{dag['name']:<44} {took:>14}   critical path {dag['critical_path_ms']:9.2f} ms")
    with open(asked.out, "w", encoding="utf-8") as file:
        found = {"peer": "LLMCompiler", "commit": commit(asked.checkout), "rows": rows}
        json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
