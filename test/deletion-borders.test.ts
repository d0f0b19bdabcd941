import { expect, test } from "bun:test";
import { testApp } from "./support/app.ts";

test("an organization sees, restores and erases only its own deletions, and sets only its own retention", async () => {
  const app = testApp();
  const asB = { headers: { authorization: `Bearer ${app.b.key}` } };
  const { id } = (await app.send("POST", "/api/v1/prompts", { body: { text: "Read https://docs.test/" } })).body;
  expect((await app.send("DELETE", `/api/v1/prompts/${id}`)).status).toBe(200);
  const { body: deletions } = await app.send("GET", "/api/v1/deletions");
  const [deletion] = deletions;
  expect((await app.send("GET", "/api/v1/deletions", asB)).body).toEqual([]);
  for (const [method, path] of [
    ["GET", ""],
    ["POST", "/restore"],
    ["POST", "/erase"],
  ])
    expect([path, (await app.send(method as string, `/api/v1/deletions/${deletion.id}${path}`, asB)).status]).toEqual([
      path as string,
      404,
    ]);
  expect((await app.send("GET", "/api/v1/deletions")).body).toEqual(deletions);

  const before = (await app.send("GET", "/api/v1/retention")).body;
  const changed = await app.send("PATCH", "/api/v1/retention", { ...asB, body: { sessions: 7 } });
  expect(changed.status).toBe(200);
  expect((await app.send("GET", "/api/v1/retention", asB)).body).not.toEqual(before);
  expect((await app.send("GET", "/api/v1/retention")).body).toEqual(before);
  expect((await app.send("POST", `/api/v1/deletions/${deletion.id}/restore`)).status).toBe(200);
  expect((await app.send("GET", `/api/v1/prompts/${id}`)).status).toBe(200);
});
