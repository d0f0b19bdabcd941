import { join } from "node:path";
import type { load } from "./load.ts";

type Shot = Parameters<typeof load>[1];

/** What the bench lends: how it starts a program, compares two, and adds a row. */
type Bench = {
  start: (command: string[], env: Record<string, string>) => Promise<{ url: string; stop: () => Promise<void> }>;
  compare: (
    what: string,
    aim: string,
    urls: { ours: string; floor: string },
    shot: Shot,
    connections: number,
  ) => Promise<number>;
  row: (what: string, ours: string, floor: string, ratio: string, aim: string) => void;
};

type Answer = { content?: unknown; structuredContent?: unknown };

const envelope = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "bench", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};

/**
 * get_report over MCP beside the bare SDKs, once with a tool that answers the same reports from memory and once with one that says one word,
 * and what the list of tools costs a conversation. `floorDir`: a copy of the database.
 */
export async function mcp({ start, compare, row }: Bench, url: string, key: string, floorDir: string): Promise<void> {
  const authorization = { authorization: `Bearer ${key}` };
  const listed = await fetch(`${url}/api/v1/reports?limit=1000`, { headers: authorization });
  const slugs = ((await listed.json()) as { slug: string }[]).map(({ slug }) => slug);
  const headers = {
    ...authorization,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
  };
  const post = (method: string, params: object, more: Record<string, string> = {}) => ({
    method: "POST",
    path: "/api/mcp",
    headers: { ...headers, ...more },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  const get = (i: number) => ({ name: "get_report", arguments: { slug: slugs[(i * 7919) % slugs.length] } });
  const legacy: Shot = (i) => post("tools/call", get(i), { "mcp-protocol-version": "2025-11-25" });
  const modern: Shot = (i) =>
    post(
      "tools/call",
      { ...get(i), _meta: envelope },
      { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "get_report" },
    );
  const reports: Record<string, unknown> = {};
  for (const slug of slugs)
    reports[slug] = await (await fetch(`${url}/api/v1/reports/${slug}`, { headers: authorization })).json();
  await Bun.write(join(floorDir, "reports.json"), JSON.stringify(reports));
  const program = [process.execPath, join(import.meta.dir, "mcp-floor.ts")];
  const same = await start([...program, floorDir], {});
  const word = await start(program, {});
  for (const shot of [legacy, modern]) {
    const { path, ...request } = shot(0);
    const [a, b] = await Promise.all(
      [url, same.url].map(async (each) => {
        const { result } = (await (await fetch(each + path, request)).json()) as { result?: Answer };
        return JSON.stringify([result?.content, result?.structuredContent]);
      }),
    );
    if (a !== b || !a?.includes("slug"))
      throw new Error(`the floor does not answer get_report as evald does:\n${a}\n${b}`);
  }
  for (const [name, floor] of [
    ["MCP get_report", word],
    ["MCP get_report (floor: the same report)", same],
  ] as const) {
    const urls = { ours: url, floor: floor.url };
    await compare(`${name}, 2025-11-25`, "≥ 85%, p99 ≤ 30 ms", urls, legacy, 16);
    await compare(`${name}, 2026-07-28`, "≥ 65%, p99 ≤ 30 ms", urls, modern, 16);
    await floor.stop();
  }
  const { path, ...request } = post("tools/list", {});
  const { result } = (await (await fetch(url + path, request)).json()) as { result: object };
  const tokens = Math.round(JSON.stringify(result).length / 4);
  row("MCP tools/list (4 characters per token)", `${tokens} tokens`, "", "", "< 6000");
}
