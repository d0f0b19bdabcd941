import type { testApp } from "./app.ts";

/** Sends JSON-RPC to an app like a bare curl; `call` returns a tool's result, or its error. */
export function rpc({ send }: Pick<ReturnType<typeof testApp>, "send">, key?: string) {
  let id = 0;
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
  async function ask(method: string, params?: object) {
    const { body } = await send("POST", "/api/mcp", { body: { jsonrpc: "2.0", id: ++id, method, params }, headers });
    return body;
  }
  async function call(name: string, args: object = {}) {
    const { result, error } = await ask("tools/call", { name, arguments: args });
    if (error) throw new Error(JSON.stringify(error));
    const value = JSON.parse(result.content[0].text);
    if (!result.isError && !Bun.deepEquals(value, result.structuredContent))
      throw new Error(`${name} says one thing as text and another as structuredContent`);
    return value;
  }
  return { ask, call };
}

/** JSON that is identical in each test run: IDs and slugs are numbered, and the service's URL is replaced. */
export function stable(value: unknown, baseUrl: string): unknown {
  const names = new Map<string, string>();
  const name = (kind: string) => (match: string) => {
    if (!names.has(match)) names.set(match, `${kind}-${names.size + 1}`);
    return names.get(match) ?? "";
  };
  const text = JSON.stringify(value)
    .replaceAll(baseUrl, "BASE")
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g, name("id"))
    .replace(/(?<=[a-z]-)[0-9a-f]{8}\b/g, name("slug"));
  return JSON.parse(text);
}
