// usage: client.mjs v1|legacy|modern stdio COMMAND ARGS… | http URL
// One task from `ready` to `complete` by an SDK of TypeScript: v1 is @modelcontextprotocol/sdk, the others are
// @modelcontextprotocol/client in either era of the protocol. Prints what it saw as one line of JSON.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [era, transportKind, ...rest] = process.argv.slice(2);
// The packages lie where this is run, not where it is kept.
const require = createRequire(pathToFileURL(`${process.cwd()}/`));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);

const identity = { name: "onus-test", version: "1" };
let client, StdioClientTransport, StreamableHTTPClientTransport;
if (era === "v1") {
  const sdk = "@modelcontextprotocol/sdk/client";
  const { Client } = await load(`${sdk}/index.js`);
  ({ StdioClientTransport } = await load(`${sdk}/stdio.js`));
  ({ StreamableHTTPClientTransport } = await load(`${sdk}/streamableHttp.js`));
  client = new Client(identity);
} else {
  const { Client, ...others } = await load("@modelcontextprotocol/client");
  ({ StdioClientTransport } = await load("@modelcontextprotocol/client/stdio"));
  ({ StreamableHTTPClientTransport } = others);
  const mode = era === "modern" ? { pin: "2026-07-28" } : "legacy";
  client = new Client(identity, { versionNegotiation: { mode } });
}

const transport =
  transportKind === "stdio"
    ? new StdioClientTransport({ command: rest[0], args: rest.slice(1), env: process.env, cwd: process.env.ONUS_TEST_DIR })
    : new StreamableHTTPClientTransport(new URL(rest[0]), {
        requestInit: { headers: { Authorization: `Bearer ${process.env.ONUS_TOKEN}` } },
      });
await client.connect(transport);

const call = async (name, args = {}) => {
  const result = await client.callTool({ name, arguments: args });
  if (result.isError) throw new Error(`${name}: ${JSON.stringify(result.structuredContent)}`);
  return result.structuredContent;
};

const { tools } = await client.listTools();
const { prompts } = await client.listPrompts();
const { resourceTemplates } = await client.listResourceTemplates();
const ready = await call("ready");
const claimed = await call("claim", { workstation: "ws-1" });
const task = claimed.task.id;
const lease = claimed.lease.token;
await call("note", { task, text: "half done", lease });
const read = await client.readResource({ uri: `onus://task/${task}` });
const refused = await client.callTool({ name: "note", arguments: { task, text: "x", lease: "1.1." + "0".repeat(32) } });
const done = await call("complete", { task, resolution: "done", lease });
const server = client.getServerVersion().name;
await client.close();

console.log(
  JSON.stringify({
    server,
    tools: tools.map((tool) => tool.name).join(" "),
    prompts: prompts.length,
    templates: resourceTemplates.length,
    ready: ready.tasks[0].id === task,
    resource: JSON.parse(read.contents[0].text).task.id === task,
    refused: refused.structuredContent.error.code,
    state: done.task.state,
  }),
);
