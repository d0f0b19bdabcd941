import { afterAll, describe, expect, test } from "bun:test";
import { createKey } from "../src/auth/keys.ts";
import { findPerson } from "../src/auth/people.ts";
import { deleteTrust } from "../src/trusts/trusts.ts";
import { testApp } from "./support/app.ts";
import { newKey, startCiIssuer } from "./support/ci-issuer.ts";
import { signedIn } from "./support/people.ts";

const base = "http://localhost:3000";
const minuteMs = 60_000;
const firstKey = newKey("1");
/** Claims of a job on GitLab after a push to `main`. */
const pushed = {
  repository: undefined,
  project_path: "acme/docs",
  ref: "main",
  ref_type: "branch",
  pipeline_source: "push",
};

/** An issuer, and an app with the organizations A and B; A trusts `acme/docs` of the issuer. */
async function setUp(pinned: Record<string, unknown> = {}, settings: Record<string, string> = {}) {
  let at = Date.parse("2026-11-21T09:00:00Z");
  const ci = startCiIssuer({ now: () => at, firstKey });
  afterAll(ci.close);
  const env = { EVALD_ALLOW_PRIVATE: "127.0.0.1", ...settings };
  const app = testApp({ now: () => at, env });
  const input = { provider: "github", issuer: ci.issuer, repository: "acme/docs", ...pinned };
  const made = await app.send("POST", "/api/v1/oidc/trusts", { body: input });
  expect(made.status).toBe(201);
  /** Exchanges without an API key. */
  const exchange = async (token: string, organization: string | undefined = "A") => {
    const body = { token, organization };
    return await app.send("POST", "/api/v1/oidc/exchange", { body, headers: { authorization: "" } });
  };
  const using = async (key: string, method = "GET", path = "/api/v1/whoami", body?: unknown) =>
    await app.send(method, path, { body, headers: { authorization: `Bearer ${key}` } });
  return {
    ...{ app, ci, exchange, using },
    trust: made.body,
    /** A valid token, changed by `claims`. */
    token: (claims: Record<string, unknown> = {}) => ci.token({ aud: base, ...claims }),
    wait: (ms: number) => {
      at += ms;
    },
  };
}

describe("the ID token of a CI job", () => {
  test("is refused if its trust is removed while the issuer responds", async () => {
    const { app, ci, exchange, token, trust } = await setUp();
    ci.publish((own) => {
      deleteTrust(app.service.ctx, app.a.org, trust.id);
      return { keys: [own] };
    });
    expect((await exchange(token())).status).toBe(401);
  });

  test("is exchanged for a key with the scopes of the trust, until it expires or the trust is removed", async () => {
    const { app, exchange, using, token, trust, wait } = await setUp({ scopes: ["read"], minutes: 10 });
    const { status, body } = await exchange(token());
    expect([status, body]).toEqual([
      200,
      {
        key: expect.stringMatching(/^evals_[0-9A-Za-z]{36}$/),
        expiresAt: "2026-11-21T09:10:00.000Z",
        scopes: ["read"],
        organization: { id: app.a.org, name: "A" },
      },
    ]);
    expect((await using(body.key)).body).toMatchObject({ organization: { name: "A" }, key: { scopes: ["read"] } });
    expect((await using(body.key, "POST", "/api/v1/prompts", { text: "x" })).status).toBe(403);
    wait(10 * minuteMs);
    expect((await using(body.key)).status).toBe(401);

    const second = (await exchange(token())).body.key;
    expect((await using(second)).status).toBe(200);
    const removed = await app.send("DELETE", `/api/v1/oidc/trusts/${trust.id}`);
    expect([removed.status, removed.body]).toEqual([200, trust]);
    expect((await using(second)).status).toBe(401);
    expect((await exchange(token())).status).toBe(401);
    expect((await app.send("DELETE", `/api/v1/oidc/trusts/${trust.id}`)).status).toBe(404);
  });

  test("is refused for another audience, issuer, repository, ref or environment, and names what is wrong", async () => {
    const { exchange, token, ci } = await setUp({ ref: "refs/heads/main", environment: "Preview" });
    const environment = "preview";
    expect((await exchange(token({ environment, repository: "ACME/docs" }))).status).toBe(200);
    const other = startCiIssuer();
    afterAll(other.close);
    const refusals: [string, string][] = [
      [token({ environment, aud: "https://elsewhere.example" }), base],
      [token({ environment, aud: undefined }), base],
      [other.token({ environment, aud: base }), other.issuer],
      // The token claims to be from the trusted issuer.
      [other.token({ environment, aud: base, iss: ci.issuer }), ci.issuer],
      [token({ environment, repository: "acme/other" }), "acme/other"],
      [token({ environment, repository: undefined }), ci.issuer],
      [token({ environment, ref: "refs/heads/mainly" }), "refs/heads/mainly"],
      [token({ environment: "production" }), "production"],
      [token({}), ci.issuer],
    ];
    for (const [refused, named] of refusals) {
      const { status, body } = await exchange(refused);
      expect([status, body.error, body.detail]).toEqual([401, "unauthorized", expect.stringContaining(named)]);
    }
    // evald reads no keys of an issuer that nobody trusts.
    expect(other.seen).toEqual([]);
  });

  test("is refused if it is unsigned, signed by another key, expired, changed or no token", async () => {
    const { exchange, token, ci, wait } = await setUp();
    const aud = base;
    const [head, payload, signature] = token().split(".");
    const forged = Buffer.from(JSON.stringify({ iss: ci.issuer, aud, repository: "acme/docs" })).toString("base64url");
    const expiring = token();
    for (const refused of [
      ci.token({ aud }, { alg: "none" }),
      ci.token({ aud }, { signer: ci.foreignKey() }),
      // With the public key as the secret of a symmetric signature.
      ci.token({ aud }, { alg: "HS256" }),
      `${head}.${forged}.${signature}`,
      `${head}.${payload}.`,
      token({ exp: undefined }),
      token({ jti: undefined }),
      token({ nbf: Date.parse("2026-11-21T10:00:00Z") / 1000 }),
      "evals_no.token.here",
      "x",
    ]) {
      const { status, body } = await exchange(refused);
      expect([refused, status, body.error]).toEqual([refused, 401, "unauthorized"]);
    }
    wait(6 * minuteMs);
    expect((await exchange(expiring)).body.detail).toContain("expired");
    for (const body of [{}, { token: "" }, { token: "x".repeat(10_001) }, { token: 1 }])
      expect((await exchange((body as { token: string }).token)).status).toBe(400);
  });

  test("works once", async () => {
    const { exchange, token, wait, app } = await setUp();
    const once = token();
    const [first, ...more] = await Promise.all([exchange(once), exchange(once), exchange(once)]);
    expect([first.status, ...more.map(({ status }) => status)].sort()).toEqual([200, 401, 401]);
    expect((await exchange(once)).body.detail).toContain("used before");
    wait(10 * minuteMs);
    expect((await exchange(token())).status).toBe(200);
    const { n } = app.db.$client.query<{ n: number }, []>("select count(*) n from used_tokens").get() ?? { n: -1 };
    expect(n).toBe(1);
  });

  test("is accepted after a rotation of the issuer's keys, which are kept in between", async () => {
    const { exchange, token, ci, wait } = await setUp();
    const reads = () => ci.seen.filter((path) => path === "/jwks").length;
    for (let i = 0; i < 3; i++) expect((await exchange(token())).status).toBe(200);
    expect(reads()).toBe(1);
    const old = token();
    ci.rotate();
    // Keys were read moments ago: tokens with unknown keys can't make evald read them each time.
    for (let i = 0; i < 3; i++) expect((await exchange(token())).status).toBe(401);
    expect(reads()).toBe(1);
    wait(31_000);
    expect((await exchange(token())).status).toBe(200);
    expect((await exchange(old)).status).toBe(401);
    expect(reads()).toBe(2);
    wait(61 * minuteMs);
    ci.goAway();
    // An issuer that fails is asked once, not for every token.
    const before = ci.seen.length;
    for (let i = 0; i < 3; i++) expect((await exchange(token())).status).toBe(401);
    expect(ci.seen.length - before).toBe(1);
    wait(31_000);
    expect((await exchange(token())).status).toBe(401);
    expect(ci.seen.length - before).toBe(2);
  });

  test.each([
    ["a key that is too short", () => ({ keys: [{ kty: "RSA", kid: "1", n: "AQAB", e: "AQAB" }] }), 401],
    ["a key without a modulus", () => ({ keys: [{ kty: "RSA", kid: "1", e: "AQAB" }] }), 401],
    ["a key that isn't base64", (own: object) => ({ keys: [{ ...own, n: "!", e: "?" }] }), 401],
    [
      "a point that isn't on its curve",
      () => ({ keys: [{ kty: "EC", kid: "1", crv: "P-256", x: "AQ", y: "AQ" }] }),
      401,
    ],
    ["a field of another type", (own: object) => ({ keys: [{ ...own, e: 65_537 }] }), 401],
    ["a key for other uses", (own: object) => ({ keys: [{ ...own, key_ops: ["encrypt"] }] }), 401],
    ["an exponent as long as the modulus", (own: object) => ({ keys: [{ ...own, e: (own as { n: string }).n }] }), 401],
    ["the same key twice", (own: object) => ({ keys: [own, own] }), 401],
    ["null among the keys", () => ({ keys: [null, 1, [], "x"] }), 401],
    ["no keys", () => ({ keys: {} }), 401],
    ["no object", () => null, 401],
    ["more than 50 keys", (own: object) => ({ keys: [own, ...Array(50).fill({ kty: "RSA" })] }), 401],
    ["more than 256 KiB", (own: object) => ({ keys: [own], more: "x".repeat(256 * 1024) }), 401],
    [
      "another key and unknown fields",
      (own: object) => ({
        keys: [
          { kty: "oct", k: "AQ" },
          { ...own, x5c: ["x"] },
        ],
      }),
      200,
    ],
  ])("gets the right status if its issuer publishes %s", async (_, published, status) => {
    const { exchange, token, ci } = await setUp();
    ci.publish(published);
    const { status: answered, body } = await exchange(token());
    const error = { 200: undefined, 401: "unauthorized" }[status];
    expect([answered, body.error]).toEqual([status, error]);
  });

  test("needs the keys of its issuer again after the last trust in it is removed", async () => {
    const { app, exchange, token, ci, trust } = await setUp();
    const reads = () => ci.seen.filter((path) => path === "/jwks").length;
    const headers = { authorization: `Bearer ${app.b.key}` };
    const body = { provider: "github", issuer: ci.issuer, repository: "acme/docs" };
    const other = (await app.send("POST", "/api/v1/oidc/trusts", { body, headers })).body;
    expect([(await exchange(token())).status, (await exchange(token(), "B")).status, reads()]).toEqual([200, 200, 1]);
    await app.send("DELETE", `/api/v1/oidc/trusts/${trust.id}`);
    expect([(await exchange(token(), "B")).status, reads()]).toEqual([200, 1]);
    await app.send("DELETE", `/api/v1/oidc/trusts/${other.id}`, { headers });
    await app.send("POST", "/api/v1/oidc/trusts", { body });
    expect([(await exchange(token())).status, reads()]).toEqual([200, 2]);
  });

  test("of one of many issuers with many keys takes little memory, because only the last hundred keys are kept", async () => {
    const { app, exchange, ci } = await setUp();
    ci.publish((own) => ({
      keys: [own, ...Array.from({ length: 49 }, (_, i) => ({ ...own, kid: `x${i}`, x5c: Array(400).fill("x") }))],
    }));
    const read = async (tenant: number, org: "a" | "b") => {
      const issuer = `${ci.issuer}/tenants/${tenant}`;
      const before = ci.seen.length;
      const body = { provider: "github", issuer, repository: "acme/docs" };
      const headers = { authorization: `Bearer ${app[org].key}` };
      await app.send("POST", "/api/v1/oidc/trusts", { body, headers });
      const { status } = await exchange(ci.token({ aud: base, iss: issuer }), app[org].org);
      expect(status).toBe(200);
      return ci.seen.length > before;
    };
    for (let tenant = 0; tenant < 20; tenant++) await read(tenant, "a");
    Bun.gc(true);
    const before = process.memoryUsage().rss;
    for (let tenant = 20; tenant < 99; tenant++) await read(tenant, "a");
    for (let tenant = 99; tenant < 150; tenant++) await read(tenant, "b");
    Bun.gc(true);
    expect(process.memoryUsage().rss - before).toBeLessThan(96 * 1024 ** 2);
    expect([await read(149, "b"), await read(50, "b"), await read(51, "b"), await read(50, "b")]).toEqual([
      false,
      false,
      false,
      false,
    ]);
    expect([await read(0, "b"), await read(52, "b"), await read(50, "b")]).toEqual([true, true, false]);
  }, 60_000);

  test("of GitLab names its project", async () => {
    const { exchange, token } = await setUp({ provider: "gitlab", repository: "acme/docs/site", ref: "mr-*" });
    const claims = { ...pushed, project_path: "acme/docs/site" };
    expect((await exchange(token({ ...claims, ref: "mr-42" }))).status).toBe(200);
    expect((await exchange(token({ ...claims, ref: "main" }))).status).toBe(401);
    expect((await exchange(token({ ...claims, ref: "mr-42", project_path: undefined }))).status).toBe(401);
  });

  test.each([
    ["main", "a push to the branch", {}, 200],
    ["refs/heads/main", "a push to the branch", {}, 200],
    ["main", "a tag of that name", { ref_type: "tag" }, 401],
    ["*", "a tag", { ref_type: "tag" }, 401],
    ["refs/tags/v*", "a tag", { ref_type: "tag", ref: "v1" }, 200],
    ["refs/tags/v*", "a branch of that name", { ref: "v1" }, 401],
    ["refs/tags/v*", "a branch that is named like a full ref", { ref: "refs/tags/v1" }, 401],
    ["main", "a merge request of a fork", { pipeline_source: "merge_request_event" }, 401],
    ["main", "a child pipeline, perhaps of a merge request", { pipeline_source: "parent_pipeline" }, 401],
    [
      "main",
      "a child pipeline on a protected branch",
      { pipeline_source: "parent_pipeline", ref_protected: "true" },
      200,
    ],
    [null, "a merge request", { pipeline_source: "merge_request_event" }, 200],
    ["main", "an unknown type of ref", { ref_type: undefined }, 401],
    ["main", "an unknown source", { pipeline_source: undefined }, 401],
  ])("of GitLab for the ref %s and %s", async (ref, _, claims, status) => {
    const { exchange, token } = await setUp({ provider: "gitlab", ref });
    expect((await exchange(token({ ...pushed, ...claims }))).status).toBe(status);
  });

  test.each([
    ["refs/heads/main", {}, 200],
    ["refs/heads/main", { ref: "refs/tags/main", ref_type: "tag" }, 401],
    ["refs/heads/main", { ref: "main" }, 401],
    ["refs/heads/main", { ref: "refs/pull/7/merge", head_ref: "main", base_ref: "main" }, 401],
    // The ref of these events is a branch of the repository, and what they are about may be a fork.
    ["refs/heads/main", { event_name: "pull_request_target", head_ref: "main" }, 401],
    ["refs/*", { event_name: "workflow_run" }, 401],
    [null, { event_name: "workflow_run" }, 200],
  ])("of GitHub for the ref %s with %o", async (ref, claims, status) => {
    const { exchange, token } = await setUp({ ref });
    expect((await exchange(token(claims))).status).toBe(status);
  });

  test("with a claim of another type is refused", async () => {
    const { exchange, token, ci, app } = await setUp({ environment: null });
    const values = [{ a: 1 }, [1], ["x"], 1e300, -1, 1.5, true, null, "", "x"];
    for (const claim of ["iss", "aud", "exp", "iat", "nbf", "jti", "repository"])
      for (const value of values) {
        const { status } = await exchange(token({ [claim]: value }));
        const isTime = ["iat", "nbf"].includes(claim) && [-1, 1.5].includes(value as number);
        const isText = claim === "jti" && value === "x";
        expect([claim, value, status]).toEqual([claim, value, isTime || isText ? 200 : 401]);
      }
    // Claims that no trust pins may be anything.
    for (const claim of ["ref", "environment", "event_name", "sub"])
      for (const value of values) expect((await exchange(token({ [claim]: value }))).status).toBe(200);
    const fraction = token({ exp: Math.floor(app.service.ctx.now() / 1000) + 60.0005 });
    expect((await exchange(fraction)).status).toBe(200);
    for (const value of ["null", "1", '"x"', "[]", '{"aud":{}}']) {
      const payload = Buffer.from(value).toString("base64url");
      const [head, , signature] = token().split(".");
      expect((await exchange(`${head}.${payload}.${signature}`)).status).toBe(401);
    }
    expect(ci.seen.length).toBe(2);
  });

  test("tells strangers nothing about organizations, trusts and issuers", async () => {
    const { app, ci, exchange, token } = await setUp({ repositoryId: "1" });
    const failing = startCiIssuer();
    afterAll(failing.close);
    failing.goAway();
    const trusted = { provider: "github", issuer: failing.issuer, repository: "acme/docs" };
    await app.send("POST", "/api/v1/oidc/trusts", { body: trusted });
    const answerOf = async (sent: string, organization?: string) => {
      const { status, body, headers } = await exchange(sent, organization);
      return [status, body, headers.get("retry-after")];
    };
    const unsigned = ci.token({ aud: base }, { signer: ci.foreignKey() });
    const unnamed = await answerOf(unsigned, "Nobody");
    // Names and IDs of organizations, with and without trusts.
    for (const organization of ["A", "B", app.a.org, app.b.org])
      expect(await answerOf(unsigned, organization)).toEqual(unnamed);
    // A job of another repository that its own CI provider signed, and one that took the name of the trusted repository.
    for (const job of [token({ repository: "evil/docs" }), token({ repository_id: "2" })])
      expect(await answerOf(job, "A")).toEqual(await answerOf(job, "Nobody"));
    // An issuer that is trusted and works, one that fails, and one that nobody trusts.
    const detailOf = async (issuer: string) =>
      JSON.stringify(await answerOf(ci.token({ aud: base, iss: issuer }, { signer: ci.foreignKey() }), "A")).replaceAll(
        issuer,
        "ISSUER",
      );
    const strange = await detailOf("https://gitlab.acme.example");
    expect([await detailOf(ci.issuer), await detailOf(failing.issuer)]).toEqual([strange, strange]);
  });

  test("is limited per network if it is refused", async () => {
    const { app, token } = await setUp({}, { EVALD_TRUST_PROXY: "1" });
    const from = async (address: string, sent: string) => {
      const headers = { authorization: "", "x-forwarded-for": address };
      const body = { token: sent, organization: "A" };
      return (await app.send("POST", "/api/v1/oidc/exchange", { body, headers })).status;
    };
    // Those that succeed don't count.
    for (let i = 0; i < 55; i++) expect(await from("192.0.2.7", token())).toBe(200);
    for (let i = 0; i < 50; i++) expect(await from("192.0.2.7", i % 2 ? token({ aud: "x" }) : "x")).toBe(401);
    expect([await from("192.0.2.7", "x"), await from("192.0.2.7", token())]).toEqual([429, 429]);
    expect(await from("192.0.2.8", token())).toBe(200);
  });

  test.each([
    ["github", "repository", "repository_id"],
    ["gitlab", "project_path", "project_id"],
  ])("of %s is refused for another repository with the trusted name", async (provider, name, id) => {
    const { app, exchange, token, trust } = await setUp({ provider });
    const of = (value: unknown) => token({ repository: undefined, [name]: "acme/docs", [id]: value });
    const pinned = async () => (await app.send("GET", "/api/v1/oidc/trusts")).body.at(-1).repositoryId;
    // The first job with a repository ID pins it.
    expect((await exchange(of(undefined))).status).toBe(200);
    expect([trust.repositoryId, await pinned()]).toEqual([null, null]);
    expect((await exchange(of("74321905"))).status).toBe(200);
    expect(await pinned()).toBe("74321905");
    expect((await exchange(of(74_321_905))).status).toBe(200);
    for (const other of ["8", undefined, "", null]) {
      const { status, body } = await exchange(of(other));
      expect([status, body.detail.includes("74321905")]).toEqual([401, false]);
    }
    // An owner who knows the ID pins it from the start. Neither trust accepts the other's tokens.
    const body = { provider, issuer: trust.issuer, repository: "acme/docs", repositoryId: "9" };
    expect((await app.send("POST", "/api/v1/oidc/trusts", { body })).body.repositoryId).toBe("9");
    expect((await exchange(of("9"))).status).toBe(200);
    expect((await exchange(of("8"))).status).toBe(401);
  });

  test("gives a key of the named organization only, which is required where there are several", async () => {
    const { app, exchange, token } = await setUp();
    const asked = await app.send("POST", "/api/v1/oidc/exchange", { body: { token: token() } });
    expect([asked.status, asked.body.detail]).toEqual([400, expect.stringContaining("organization")]);
    for (const other of ["B", "Nobody", app.b.org]) expect((await exchange(token(), other)).status).toBe(401);
    expect((await exchange(token(), app.a.org)).body.organization.name).toBe("A");
  });
});

describe("trusts", () => {
  test("are created and removed by owners, and over REST by keys with the scopes that aren't of CI jobs", async () => {
    const { app, exchange, token, using, ci } = await setUp({ scopes: ["read", "run", "write"] });
    const path = "/api/v1/oidc/trusts";
    const input = { provider: "github", repository: "acme/site" };
    const { key } = (await exchange(token())).body;
    expect((await using(key, "POST", path, input)).status).toBe(403);
    expect((await using(key, "GET", path)).body).toMatchObject([{ repository: "acme/docs", issuer: ci.issuer }]);
    const { email } = await signedIn(app, { role: "admin" });
    const createdBy = findPerson(app.service.ctx, email)?.id;
    const own = createKey(app.service.ctx, app.a.org, "own", { createdBy }).key;
    expect((await using(own, "POST", path, input)).status).toBe(403);
    const writer = createKey(app.service.ctx, app.a.org, "writer", { scopes: ["write"] }).key;
    expect((await using(writer, "POST", path, input)).status).toBe(403);
    expect((await using(writer, "POST", path, { ...input, scopes: ["write"] })).body).toMatchObject({
      issuer: "https://token.actions.githubusercontent.com",
      ref: null,
      environment: null,
      minutes: 60,
    });
    for (const wrong of [
      { repository: "acme/site" },
      { ...input, provider: "jenkins" },
      { ...input, repository: "a b" },
      { ...input, issuer: "ftp://x" },
      { ...input, minutes: 361 },
      { ...input, scopes: [] },
    ])
      expect((await app.send("POST", path, { body: wrong })).status).toBe(400);
  });

  test.each([
    [
      "github",
      "repository",
      ["acme", "https://github.com/acme/docs", "github.com/acme/docs", "acme/docs.git", "acme/*"],
    ],
    ["github", "ref", ["main", "pull/*", "m*"]],
    [
      "gitlab",
      "repository",
      ["acme", "https://gitlab.com/acme/docs", "acme/docs.git", "/acme/docs", "acme//docs", "acme/*"],
    ],
    ["gitlab", "ref", ["refs/merge-requests/*", "refs/environments/x"]],
  ])("of %s can't have a %s that no ID token has", async (provider, field, values) => {
    const app = testApp();
    for (const value of values) {
      const body = { provider, repository: "acme/docs", [field]: value };
      const { status, body: answer } = await app.send("POST", "/api/v1/oidc/trusts", { body });
      expect([value, status, answer.detail]).toEqual([value, 400, expect.stringContaining(`Invalid ${field}: `)]);
    }
  });

  test.each([
    ["github", "Acme-1/docs.js_2", "refs/heads/main"],
    ["github", "acme_corp/docs", "*"],
    ["gitlab", "acme/docs/site.io", "release-*"],
    ["gitlab", "acme/docs", "refs/tags/v*"],
    ["gitlab", "acme/docs", "refs/*"],
    ["gitlab", "acme/docs", null],
  ])("of %s can have the repository %s and the ref %s", async (provider, repository, ref) => {
    const body = { provider, repository, ref };
    const { status, body: made } = await testApp().send("POST", "/api/v1/oidc/trusts", { body });
    expect([status, made]).toMatchObject([201, body]);
  });

  test("are created and removed by owners on their settings page", async () => {
    const { app } = await setUp();
    const [owner, admin] = [await signedIn(app), await signedIn(app, { role: "admin" })];
    const form = { provider: "gitlab", repository: "acme/site", ref: "main", scopes: ["read"], minutes: "5" };
    expect((await admin.post("/settings/ci", form)).status).toBe(403);
    expect((await admin.get("/settings/ci")).body).not.toContain("Trust repository");
    const wrongs: Record<string, string | string[]>[] = [
      { minutes: "0" },
      { repository: "https://gitlab.com/acme/site" },
      { repository: "" },
      { scopes: [] },
      { issuer: "x" },
      { repositoryId: "4 711" },
    ];
    for (const wrong of wrongs) {
      const { status, body } = await owner.post("/settings/ci", { ...form, ...wrong });
      expect([status, body.includes('role="alert"')]).toEqual([400, true]);
    }
    const done = (await owner.post("/settings/ci", { ...form, repositoryId: "4711" })).body;
    expect([done.includes("acme/site"), done.includes("ID 4711")]).toEqual([true, true]);
    const listed = await app.send("GET", "/api/v1/oidc/trusts");
    const { id, createdAt: _, ...made } = listed.body[0];
    expect(made).toEqual({
      ...{ provider: "gitlab", issuer: "https://gitlab.com", repository: "acme/site", ref: "main" },
      ...{ environment: null, repositoryId: "4711", scopes: ["read"], minutes: 5 },
    });
    const remove = `/settings/ci/${id}/remove`;
    expect((await admin.post(remove, { confirmed: "1" })).status).toBe(403);
    const asked = await owner.post(remove);
    const [, name = ""] = /name="(confirm\w*)"/.exec(asked.body) ?? [];
    expect((await owner.post(remove, { [name]: "1" })).status).toBe(200);
    expect((await app.send("GET", "/api/v1/oidc/trusts")).body).toHaveLength(1);
  });
});
