"""A Model Context Protocol server over its standard input and output, without a library: slides, and a search."""

import json
import sys

TEXT = {"type": "string"}
TOOLS = {
    "make": ("Makes a deck of slides about a subject.", {"subject": TEXT}),
    "render": ("Counts the slides of a deck.", {"deck": TEXT}),
    "search": ("Searches the harbour's notices.", {"query": TEXT}),
}


def called(tool, arguments):
    """The text that a call answers, and what else stands in its result."""
    if tool == "make":
        slide = "<section><h1>" + arguments["subject"] + "</h1>" + "<p>潮</p>" * 40 + "</section>\n"
        return slide * 60, {}
    if tool == "render":
        return "%d slides, %d characters" % (arguments["deck"].count("</section>"), len(arguments["deck"])), {}
    found = [
        {"title": "Lease", "url": "https://notices.example/lease", "snippet": "The lease of a notice is thirty seconds."},
        {"title": "发送", "url": "https://notices.example/发送", "snippet": "发送一条通知最多需要四十五秒。"},
    ]
    if "broken" in arguments["query"]:
        return "the index is broken", {"isError": True}
    return json.dumps({"results": found}, ensure_ascii=False), {"structuredContent": {"results": found}}


def answer(method, params):
    """The result of a request."""
    if method == "initialize":
        server = {"name": "harbour", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}
    if method == "tools/list":
        return {
            "tools": [
                {
                    "name": name,
                    "description": description,
                    "inputSchema": {"type": "object", "properties": properties, "required": list(properties)},
                    "annotations": {"readOnlyHint": True},
                }
                for name, (description, properties) in TOOLS.items()
            ]
        }
    text, more = called(params["name"], params.get("arguments", {}))
    return {"content": [{"type": "text", "text": text}], **more}


for line in sys.stdin.buffer:
    message = json.loads(line)
    if "id" in message:
        result = answer(message["method"], message.get("params", {}))
        reply = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        sys.stdout.buffer.write(json.dumps(reply, ensure_ascii=False).encode() + b"\n")
        sys.stdout.buffer.flush()
