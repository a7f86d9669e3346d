"""A client of `foldback mcp`: the Python package mcp, asked by a JSON document, answering by one.

In: {"url"} or {"command", "args", "cwd"}; "mode", as mcp.Client takes it; "root", a
folder, or null; "query", what is searched for.
"""

import asyncio
import json
import sys
import warnings
from pathlib import Path

from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import ListRootsResult, Root

warnings.simplefilter("ignore")


async def main():
    asked = json.loads(sys.argv[1])
    server = asked.get("url")
    if server is None:
        server = StdioServerParameters(command=asked["command"], args=asked["args"], cwd=asked["cwd"])

    async def roots(context):
        return ListRootsResult(roots=[Root(uri=Path(asked["root"]).as_uri())])

    callback = roots if asked.get("root") else None
    async with Client(server, mode=asked["mode"], list_roots_callback=callback) as client:
        tools = (await client.list_tools()).tools
        # The package checks structured content against the schema by itself.
        found = await client.call_tool("search_block", {"query": asked["query"]})
        templates = (await client.list_resource_templates()).resource_templates
        answer = {
            "tools": [tool.name for tool in tools],
            "hints": [tool.annotations.model_dump(exclude={"title"}) for tool in tools],
            "schemas": all(tool.output_schema and tool.input_schema for tool in tools),
            "is_error": found.is_error,
            "text": found.content[0].text,
            "structured": found.structured_content,
            "templates": [template.uri_template for template in templates],
            "read": [],
        }
        for block in found.content[1:]:
            contents = (await client.read_resource(block.uri)).contents
            answer["read"].append(contents[0].text)
        page = await client.call_tool("list_blocks", {"limit": 1})
        answer["next"] = page.structured_content.get("next")
        print(json.dumps(answer))


asyncio.run(main())
