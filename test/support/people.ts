import { eq } from "drizzle-orm";
import { signIn } from "../../src/auth/people.ts";
import type { OrgId } from "../../src/context.ts";
import { accounts, members, people, type Role } from "../../src/db/tables/people.ts";
import type { testApp } from "./app.ts";

type App = ReturnType<typeof testApp>;
type Options = { org?: OrgId; role?: Role; email?: string };

/** A valid password. */
export const password = "correct horse battery";

/** The cookies that a response sets, as a browser sends them back. */
export const cookiesOf = (headers: Headers): string =>
  headers
    .getSetCookie()
    .map((cookie) => cookie.split(";")[0])
    .join("; ");

/** A browser for pages: it keeps its cookies, requests HTML, and sends forms with the origin of the page. */
export function browse(app: App, cookie = "") {
  const jar = new Map(cookie === "" ? [] : cookie.split("; ").map((each) => each.split("=", 2) as [string, string]));
  const ask = async (
    method: string,
    path: string,
    options: { body?: string | Uint8Array; headers?: Record<string, string> },
  ) => {
    const headers = { authorization: "", accept: "text/html", cookie: [...jar].map((e) => e.join("=")).join("; ") };
    const answer = await app.send(method, path, { body: options.body, headers: { ...headers, ...options.headers } });
    for (const set of answer.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(set) ?? [];
      if (value === "" || /max-age=0/i.test(set)) jar.delete(name);
      else jar.set(name, value);
    }
    return { ...answer, location: answer.headers.get("location") };
  };
  return {
    get: (path: string, headers: Record<string, string> = {}) => ask("GET", path, { headers }),
    post: (path: string, form: Record<string, string | string[]> = {}, headers: Record<string, string> = {}) =>
      ask("POST", path, {
        body: new URLSearchParams(
          Object.entries(form).flatMap(([k, v]) => [v].flat().map((each) => [k, each])),
        ).toString(),
        headers: {
          "content-type": "application/x-www-form-urlencoded",
          origin: new URL(app.baseUrl).origin,
          ...headers,
        },
      }),
    postBody: (path: string, body: Uint8Array, headers: Record<string, string>) => ask("POST", path, { body, headers }),
    cookie: () => [...jar].map((each) => each.join("=")).join("; "),
  };
}

// In the format of real hashes, but fast.
const hash = Bun.password.hashSync(password, { algorithm: "argon2id", memoryCost: 8, timeCost: 1 });

/** Creates a member who signs in with `password`, without using the pages, which people.test.ts and members.test.ts test. */
export function join(app: App, org: OrgId, role: Role, email: string): void {
  const { db, newId, now } = app.service.ctx;
  const at = new Date(now());
  const [known] = db.select().from(people).where(eq(people.email, email)).all();
  const personId = known?.id ?? newId(now());
  const times = { createdAt: at, updatedAt: at };
  if (!known) {
    db.insert(people)
      .values({ id: personId, name: `A ${role}`, email, emailVerified: true, ...times })
      .run();
    const account = { accountId: personId, providerId: "credential", password: hash };
    db.insert(accounts)
      .values({ id: newId(now()), personId, ...account, ...times })
      .run();
  }
  db.insert(members)
    .values({ id: newId(now()), orgId: org, personId, role, createdAt: at })
    .run();
}

/** A browser in which a new person is signed in: by default, an owner of A. */
export async function signedIn(app: App, { org = app.a.org, role = "owner", email }: Options = {}) {
  const address = email ?? `${role}-${crypto.randomUUID().slice(0, 8)}@example.com`;
  join(app, org, role, address);
  const cookies = await signIn(app.service.ctx, address, password, { cookie: "", userAgent: "test", address: "::1" });
  return { ...browse(app, cookies.map((cookie) => cookie.split(";")[0]).join("; ")), email: address };
}
