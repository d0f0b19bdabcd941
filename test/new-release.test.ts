import { afterEach, expect, test } from "bun:test";
import { version } from "../package.json" with { type: "json" };
import { testApp } from "./support/app.ts";
import { signedIn } from "./support/people.ts";
import { until } from "./support/until.ts";

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

/** A server that answers with this text; `agents`: who asked. */
function releases(text: string) {
  const agents: string[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request) {
      agents.push(request.headers.get("user-agent") ?? "");
      return new Response(text);
    },
  });
  stops.push(() => server.stop(true));
  return { agents, url: `http://127.0.0.1:${server.port}/latest.json` };
}

/** The settings page of a person with this role, of a service that has asked for the newest release. */
async function settingsAfterCheck(text: string, role: "owner" | "member") {
  const { agents, url } = releases(text);
  const app = testApp({ env: { EVALD_LATEST_RELEASE_URL: url } });
  stops.push(() => app.service.telemetry.stop());
  app.service.telemetry.start();
  await until("the service asks", () => agents.length > 0);
  await app.service.telemetry.stop();
  expect(agents).toEqual([expect.stringContaining(`evald/${version}`)]);
  const { get } = await signedIn(app, { role });
  return (await get("/settings")).body as string;
}

const newer = '{"version":"99.1.0"}';

test("owners learn of a newer version if the operator turned that on", async () => {
  expect(await settingsAfterCheck(newer, "owner")).toContain("evald 99.1.0");
  expect(await settingsAfterCheck(newer, "member")).not.toContain("99.1.0");
});

test.each([
  ["this version", JSON.stringify({ version })],
  ["an older version", '{"version":"0.0.1"}'],
  ["another document", "<html>99.1.0</html>"],
  ["no version", '{"version":"<b>99.1.0</b>"}'],
  ["a document that is too large", JSON.stringify({ version: "99.1.0", more: "x".repeat(70_000) })],
])("nothing is shown for %s", async (_, text) => {
  expect(await settingsAfterCheck(text, "owner")).not.toContain("/docs/install");
});

test("without the setting, the service has nothing to ask", async () => {
  const app = testApp({});
  expect(app.service.ctx.config.telemetry.latestReleaseUrl).toBeNull();
  const { get } = await signedIn(app);
  expect((await get("/settings")).body).not.toContain("/docs/install");
});
