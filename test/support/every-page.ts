import { listInvitations } from "../../src/auth/invitations.ts";
import { listMembers } from "../../src/auth/members.ts";
import { setOperator } from "../../src/auth/operators.ts";
import { createOrg, updateOrg } from "../../src/auth/orgs.ts";
import { toResetPathByOwner } from "../../src/auth/resets.ts";
import { setupPath } from "../../src/auth/setup.ts";
import type { Demo } from "./demo.ts";
import { isFormAddress } from "./page-routes.ts";
import { signedIn } from "./people.ts";
import { idsOf } from "./probes.ts";

/** A page and the cookies of the person who sees it; empty for a stranger. */
export type Shown = { path: string; cookie: string };

/**
 * Every page of a service, as an owner and, without an account, as a stranger sees it: one for each route that answers with HTML.
 * A route with a new parameter fails until test/support/probes.ts has a query for it.
 */
export async function everyPage(app: Demo): Promise<Shown[]> {
  const { service, a, b, slug, sharedPath, compared, prompts } = app;
  const cookie = (await signedIn(app, { email: "ada@acme.example" })).cookie();
  setOperator(service.ctx, "ada@acme.example", true);
  const newcomer = (await signedIn(app, { org: b.org, email: "new@example.com" })).cookie();
  const people = listMembers(service.ctx, a.org);
  const ofRole = (role: string) => people.find((each) => each.role === role) ?? fail(`no ${role} is there`);
  const ids = idsOf(app, a.org, 1);
  const filled = { ...ids, slug: [slug], promptId: [prompts.search], token: [sharedPath.split("/").at(-1) ?? ""] };
  const special: Record<string, string[]> = {
    "/compare": [`/compare?slugs=${compared.join()}`],
    "/trends": ["/trends", `/trends?promptId=${prompts.search}`],
    "/search": ["/search?q=note"],
    "/docs/search": ["/docs/search?q=webhook"],
    "/setup/:token": [setupPath(service.ctx, createOrg(service.ctx, "Newcomers").id)],
    "/invite/:token": [listInvitations(service.ctx, a.org).at(-1)?.path ?? fail("nobody is invited")],
    "/reset/:token": [toResetPathByOwner(service.ctx, a.org, ofRole("member").memberId, ofRole("owner")).path],
    "/results/:token": [updateOrg(service.ctx, a.org, { hasResultsPage: true }).resultsPath ?? ""],
    "/runs/:runId": ["running", "failed"].map((status) => `/runs/${newestRun(app, status)}`),
  };
  const found: Shown[] = [];
  const routes = (await app.app.loadRoutes()).filter(
    ({ method, path, hooks }) => method === "GET" && !path.startsWith("/api/") && !isFormAddress(hooks),
  );
  for (const { path: route } of routes) {
    const plain = route.replace(/:(\w+)/g, (_, name: keyof typeof filled) => {
      const [value] = (filled as Record<string, string[]>)[name] ?? [];
      if (value === undefined) throw new Error(`add a query for ${String(name)} of ${route} to test/support/probes.ts`);
      return value;
    });
    for (const path of special[route] ?? [plain]) {
      const isOut = /^\/(sign-in|setup|reset|invite|shared|results)/.test(path);
      if (await isPage(app, path, isOut ? "" : cookie)) found.push({ path, cookie: isOut ? "" : cookie });
    }
  }
  const strangers = ["/", "/example-report"].map((path) => ({ path, cookie: "" }));
  const lists = ["/", "/prompts", "/reports", "/runs", "/trends", "/matrix", "/friction", "/gates", "/providers"];
  const settings = ["/spending", "/settings/keys", "/settings/models", "/settings/secrets", "/settings/notifications"];
  const ofNewcomer = [...lists, ...settings].map((path) => ({ path, cookie: newcomer }));
  return [...found, { path: "/no-such-page", cookie }, ...strangers, ...ofNewcomer];
}

const newestRun = ({ db, a }: Demo, status: string) =>
  db.$client
    .query("select id from runs where org_id = ? and status = ? order by id desc")
    .values(a.org, status)[0]?.[0];

/** Streams never end, so the body isn't read. */
async function isPage(app: Demo, path: string, cookie: string): Promise<boolean> {
  const request = new Request(new URL(path, app.baseUrl), { headers: { accept: "text/html", cookie } });
  const { headers, body } = await app.app.handle(request);
  await body?.cancel();
  return !headers.has("location") && (headers.get("content-type") ?? "").startsWith("text/html");
}

function fail(message: string): never {
  throw new Error(message);
}
