import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { ListToolsResultSchema } from "@modelcontextprotocol/sdk/types.js";
import { type Fetcher, fetchUrl, type Log } from "./fetching.ts";
import { cut } from "./session.ts";

/** A tool of an MCP server. */
export type ListedTool = { name: string; description: string; isReadOnly: boolean };

const maxTools = 100;
const maxNameChars = 100;
const maxDescriptionChars = 2000;

/**
 * The tools of an MCP server, listed with requests of the explorer; null if no MCP server answers at the URL. No tool is called. Throws only the
 * signal's reason.
 */
export async function listMcpTools(
  fetcher: Fetcher,
  url: string,
  version: string,
  log: Log,
): Promise<ListedTool[] | null> {
  const { signal } = fetcher.context;
  const client = new Client({ name: "evald", version });
  try {
    await client.connect(toTransport(fetcher, url, log), { signal });
    const tools: ListedTool[] = [];
    let cursor: string | undefined;
    do {
      const params = cursor === undefined ? {} : { cursor };
      const page = await client.request({ method: "tools/list", params }, ListToolsResultSchema, { signal });
      for (const { name, description = "", annotations } of page.tools)
        tools.push({
          name: cut(name, maxNameChars),
          description: cut(description, maxDescriptionChars),
          isReadOnly: annotations?.readOnlyHint === true,
        });
      cursor = page.nextCursor;
    } while (cursor !== undefined && tools.length < maxTools);
    return tools.slice(0, maxTools);
  } catch {
    signal.throwIfAborted();
    return null;
  } finally {
    await client.close().catch(() => {});
  }
}

/** Sends each message in one request, and reads the response to its end. It doesn't open a stream for the server's own messages. */
const toTransport = (fetcher: Fetcher, url: string, log: Log): Transport =>
  new StreamableHTTPClientTransport(new URL(url), {
    fetch: async (address, { method = "GET", headers, body } = {}) => {
      if (method !== "POST") return new Response(null, { status: 405 });
      const answer = await fetchUrl(
        fetcher,
        {
          url: String(address),
          method,
          headers: Object.fromEntries(new Headers(headers)),
          body: String(body),
          provenance: "given",
          foundOn: null,
          purpose: "task",
          follow: "same_origin",
        },
        log,
      );
      if (!answer.ok) throw new Error(answer.message);
      const { status } = answer.response;
      const isEmpty = [202, 204, 205, 304].includes(status);
      return new Response(isEmpty ? null : answer.text(), { status, headers: answer.response.headers });
    },
  }) as Transport;
