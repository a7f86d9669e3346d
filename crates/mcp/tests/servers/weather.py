"""A server of the Python package `mcp`: over its standard input and output, or over HTTP at a port."""

import os
import subprocess
import sys
import time
from typing import TypedDict

from mcp.server.mcpserver import Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

server = MCPServer("weather")


class Forecast(TypedDict):
    """What the weather will be."""

    city: str
    sky: str
    degrees: float


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def forecast(city: str) -> Forecast:
    """The weather of a city."""
    return {"city": city, "sky": "小雨", "degrees": 12.5}


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def fail() -> str:
    """Fails."""
    raise ToolError("no station in 杭州 answers")


@server.tool()
def picture() -> Image:
    """A picture."""
    return Image(data=b"\x89PNG....", format="png")


@server.tool()
def variables() -> list[str]:
    """The names of the environment variables."""
    return sorted(os.environ)


@server.tool()
def die() -> str:
    """Ends the server."""
    print("out of order", file=sys.stderr, flush=True)
    os._exit(7)


@server.tool()
def helper() -> int:
    """Starts a program that does not end by itself."""
    return subprocess.Popen(["sleep", "1000"], stdout=subprocess.DEVNULL).pid


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        server.run()
