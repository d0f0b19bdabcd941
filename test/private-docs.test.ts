import { expect, test } from "bun:test";
import { createKey } from "../src/auth/keys.ts";
import { createPrompt, updatePrompt } from "../src/prompts/prompts.ts";
import { testApp } from "./support/app.ts";
import { rpc } from "./support/mcp.ts";
import { signedIn } from "./support/people.ts";

const text = "Upload a file.";
const docs = (url: string) => ({ text, additionalUrls: [{ url, kind: "docs" }] });

test.each([
  ["http://127.0.0.1:4000/docs", "127.0.0.1:4000"],
  ["http://localhost:4000/", "localhost:4000"],
  ["https://docs.localhost/", "docs.localhost:443"],
  ["http://10.1.2.3/", "10.1.2.3:80"],
  ["http://[::1]:8080/", "[::1]:8080"],
  ["https://docs.example.com:8443/", "docs.example.com:8443"],
])("docs at %s are refused when they are saved, with the value that allows them", async (url, value) => {
  const { send } = testApp();
  const refused = await send("POST", "/api/v1/prompts", { body: docs(url) });
  expect([refused.status, refused.body.error]).toEqual([400, "bad_request"]);
  expect(refused.body.detail).toStartWith("Invalid additionalUrls.0.url: ");
  expect(refused.body.detail).toContain(`EVALD_ALLOW_PRIVATE=${value}`);
  const provider = await send("POST", "/api/v1/providers", { body: { name: "Acme", docsUrl: url } });
  expect([provider.status, provider.body.detail]).toEqual([400, expect.stringContaining(value)]);
  const allowed = testApp({ env: { EVALD_ALLOW_PRIVATE: value } });
  expect((await allowed.send("POST", "/api/v1/prompts", { body: docs(url) })).status).toBe(201);
});

test("docs on a private address are refused by the page and over MCP, and later changes are too", async () => {
  const app = testApp();
  const person = await signedIn(app);
  const url = "http://127.0.0.1:4000/";
  const page = await person.post("/prompts", { text, docsUrl: url, do: "run" });
  expect(page.status).toBe(400);
  expect(/id="docsUrl-wrong"[^>]*>([^<]*)/.exec(page.body)?.[1]).toContain("EVALD_ALLOW_PRIVATE=127.0.0.1:4000");
  const second = await person.post("/prompts", {
    ...{ text, docsUrl: "https://docs.example.com/" },
    ...{ "url.url": url, "url.name": "", "url.kind": "docs", "url.more": "" },
  });
  expect([second.status, second.body.includes('id="docsUrl-wrong"')]).toEqual([400, false]);
  expect(second.body).toContain("EVALD_ALLOW_PRIVATE=127.0.0.1:4000");

  const { key } = createKey(app.service.ctx, app.a.org, "agent", { scopes: ["write"] });
  expect((await rpc(app, key).call("create_prompt", docs(url))).detail).toContain("EVALD_ALLOW_PRIVATE=127.0.0.1:4000");

  const { id } = createPrompt(app.service.ctx, app.a.org, docs("https://docs.example.com/"));
  expect(
    (await app.send("PATCH", `/api/v1/prompts/${id}`, { body: { additionalUrls: docs(url).additionalUrls } })).status,
  ).toBe(400);
});

test("a private address in a task is refused only if agents would start nowhere else", async () => {
  const { send } = testApp();
  const body = { text: "Read http://localhost:4000/ and upload a file." };
  expect((await send("POST", "/api/v1/prompts", { body })).body.detail).toStartWith("Invalid text: ");
  const more = { ...docs("https://docs.example.com/"), ...body };
  expect((await send("POST", "/api/v1/prompts", { body: more })).status).toBe(201);
});

test("the docs of the service itself, MCP servers and unrelated changes are not refused", async () => {
  const { send, service, a, baseUrl } = testApp();
  expect((await send("POST", "/api/v1/prompts", { body: docs(`${baseUrl}/docs`) })).status).toBe(201);
  const mcp = { text: "See https://docs.example.com/", additionalUrls: [{ url: "http://127.0.0.1:9/", kind: "mcp" }] };
  expect((await send("POST", "/api/v1/prompts", { body: mcp })).status).toBe(201);

  // The operator may have allowed the address before.
  const { id } = createPrompt(
    { ...service.ctx, allow: () => [{ host: "10.0.0.1", port: null }] },
    a.org,
    docs("http://10.0.0.1/"),
  );
  expect(updatePrompt(service.ctx, a.org, id, { title: "Upload" }).title).toBe("Upload");
});
