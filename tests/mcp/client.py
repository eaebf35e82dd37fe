"""usage: client.py legacy|modern stdio COMMAND ARGS… | http URL

One task from `ready` to `complete` by Python's SDK, in either era of the protocol. Prints what it saw as one line of
JSON.
"""

import asyncio
import json
import os
import sys

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

era, kind, *rest = sys.argv[1:]
mode = "auto" if era == "modern" else "legacy"


def transport():
    if kind == "stdio":
        where = os.environ["ONUS_TEST_DIR"]
        return stdio_client(StdioServerParameters(command=rest[0], args=rest[1:], env=dict(os.environ), cwd=where))
    headers = {"Authorization": f"Bearer {os.environ['ONUS_TOKEN']}"}
    return streamable_http_client(rest[0], http_client=httpx2.AsyncClient(headers=headers))


async def main():
    async with Client(transport(), mode=mode) as client:

        async def call(name, **arguments):
            result = await client.call_tool(name, arguments)
            assert not result.is_error, f"{name}: {result.structured_content}"
            return result.structured_content

        tools = (await client.list_tools()).tools
        prompts = (await client.list_prompts()).prompts
        templates = (await client.list_resource_templates()).resource_templates
        ready = await call("ready")
        claimed = await call("claim", workstation="ws-1")
        task, lease = claimed["task"]["id"], claimed["lease"]["token"]
        await call("note", task=task, text="half done", lease=lease)
        read = await client.read_resource(f"onus://task/{task}")
        stale = "1.1." + "0" * 32
        refused = await client.call_tool("note", {"task": task, "text": "x", "lease": stale})
        done = await call("complete", task=task, resolution="done", lease=lease)
        seen = {
            "server": client.server_info.name,
            "tools": " ".join(tool.name for tool in tools),
            "prompts": len(prompts),
            "templates": len(templates),
            "ready": ready["tasks"][0]["id"] == task,
            "resource": json.loads(read.contents[0].text)["task"]["id"] == task,
            "refused": refused.structured_content["error"]["code"],
            "state": done["task"]["state"],
        }
    print(json.dumps(seen))


asyncio.run(main())
