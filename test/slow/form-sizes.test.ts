import { afterAll, beforeAll, expect, test } from "bun:test";
import { demo } from "../support/demo.ts";
import { everyPage } from "../support/every-page.ts";
import { browse, signedIn } from "../support/people.ts";
import { idsOf } from "../support/probes.ts";

// Forms have as many fields as fit into them. The response must not grow with the request.

const mib = 1024 * 1024;
/** The maximum number of fields of a form. */
const most = 2000;
const encoded = "application/x-www-form-urlencoded";
const parts = "multipart/form-data; boundary=x";

let app: Awaited<ReturnType<typeof demo>>;
/** Each form route with the names of its fields on the pages. */
let forms: { path: string; names: string[] }[];
let openedForm: string;

beforeAll(async () => {
  app = await demo();
  const ids = idsOf(app, app.a.org, 1);
  const routes = (await app.app.loadRoutes()).filter(
    ({ method, path }) => method === "POST" && !path.startsWith("/api/"),
  );
  const named = await namesOnPages();
  forms = routes.map(({ path: route }) => {
    const shape = new RegExp(`^${route.replace(/:\w+/g, "[^/]+")}$`);
    const found = [...named].flatMap(([action, names]) => (shape.test(action) ? [...names] : []));
    const path = route.replace(/:(\w+)/g, (_, name: string) => ids[name]?.[0] ?? "x");
    return { path, names: [...new Set(["a", ...found])] };
  });
  const owner = await signedIn(app);
  openedForm = await actionOf(owner);
}, 300_000);
afterAll(() => app.stop());

/** The names of the fields of all forms, by action. */
async function namesOnPages(): Promise<Map<string, Set<string>>> {
  const found = new Map<string, Set<string>>();
  for (const { path, cookie } of await everyPage(app)) {
    let names = new Set<string>();
    new HTMLRewriter()
      .on("form", {
        element(form) {
          const { pathname } = new URL(form.getAttribute("action") ?? "", new URL(path, app.baseUrl));
          names = found.get(pathname) ?? new Set();
          if (form.getAttribute("method") === "post") found.set(pathname, names);
        },
      })
      .on("form [name]", { element: (field) => void names.add(field.getAttribute("name") ?? "") })
      .transform((await browse(app, cookie).get(path)).body);
  }
  return found;
}

/** The action of the form for a new prompt, which takes files. */
const actionOf = async (person: ReturnType<typeof browse>) =>
  /action="(\/prompts\?upload=[^"]+)"/.exec((await person.get("/prompts/new")).body)?.[1] ?? "";

type Person = ReturnType<typeof browse>;

async function send(person: Person, path: string, type: string, body: string) {
  const headers = { origin: new URL(app.baseUrl).origin, "content-type": type };
  const answer = await person.postBody(path, Buffer.from(body), headers);
  // Downloads are not pages.
  const text = typeof answer.body === "string" ? answer.body : JSON.stringify(answer.body);
  return {
    status: answer.status,
    bytes: text.length,
    hasMenu: text.includes('<nav aria-label="Organization"'),
  };
}

/** The same field many times, in both encodings. */
function bodiesOf(name: string, count: number): [type: string, body: string][] {
  const part = `--x\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n1\r\n`;
  return [
    [
      encoded,
      Array(count)
        .fill(`${encodeURIComponent(name)}=1`)
        .join("&"),
    ],
    [parts, `${part.repeat(count)}--x--\r\n`],
  ];
}

test("forms with more than 2,000 fields are rejected for members and strangers", async () => {
  expect(forms.length).toBeGreaterThan(50);
  const wrong: unknown[] = [];
  for (const { path } of forms) {
    const owner = await signedIn(app);
    for (const [type, body] of bodiesOf("a", most + 1)) {
      const answer = await send(owner, path, type, body);
      const stranger = await send(browse(app), path, type, body);
      if (answer.status !== 413 || !answer.hasMenu || answer.bytes > 64 * 1024) wrong.push({ path, type, answer });
      // Forms of an account are not read, but lead to signing in.
      const isRead = !path.startsWith("/account/");
      if (stranger.status !== (isRead ? 413 : 303) || stranger.bytes > 64 * 1024) wrong.push({ path, type, stranger });
    }
  }
  expect(wrong).toEqual([]);
}, 300_000);

test("the response to a form with 2,000 fields is not much larger than the form", async () => {
  const wrong: unknown[] = [];
  let sent = 0;
  let owner = await signedIn(app);
  for (const { path, names } of forms)
    for (const name of names) {
      // Some forms end the session. A new person for each form would make the list of members long.
      if ((await owner.get("/settings/members")).status !== 200) owner = await signedIn(app);
      for (const [type, body] of bodiesOf(name, most)) {
        const answer = await send(owner, path, type, body);
        const stranger = await send(browse(app), path, type, body);
        for (const { status, bytes } of [answer, stranger])
          if (status >= 500 || bytes > 0.5 * mib || (status === 413 && body.length < 64 * 1024))
            wrong.push({ path, name, type, status, bytes });
        sent += 2;
      }
    }
  expect(sent).toBeGreaterThan(600);
  expect(wrong).toEqual([]);
}, 600_000);

test.each([
  ["a&", 7_500_000],
  ["a&", 500_000],
  ["url.url=x&", 1_500_000],
  ["url.url=x&", 100_000],
  ["furtherAgent.agent=llm&furtherAgent.model=a&", 500_000],
  ["check.target=a&", 60_000],
  ["templateDefaults.a=b&", 80_000],
])("a prompt form with %j %i times is rejected", async (piece, count) => {
  const owner = await signedIn(app);
  const body = piece.repeat(count);
  for (const [person, path] of [
    [owner, await actionOf(owner)],
    [owner, "/prompts/derived-fields"],
    [browse(app), openedForm],
    [browse(app), "/prompts"],
  ] as const) {
    const { status, bytes } = await send(person, path, encoded, body);
    expect([path, status, bytes < 64 * 1024]).toEqual([path, 413, true]);
  }
});

test("a part of a prompt form that is not one of its files counts as text", async () => {
  const owner = await signedIn(app);
  const sized = (disposition: string, size: number, content = "x") =>
    `--x\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n${content.repeat(size)}\r\n--x--\r\n`;
  for (const [disposition, content] of [
    ['name="text"', "x"],
    ['name="text"; filename="a"', "x"],
    [`name="${"n".repeat(mib)}"`, "x"],
    // A file that is sent again is in base64.
    ['name="upload.archive"', '"'],
  ] as const)
    for (const person of [owner, browse(app)]) {
      const { status, bytes } = await send(person, openedForm, parts, sized(disposition, 1.1 * mib, content));
      expect([disposition.slice(0, 40), status, bytes < 64 * 1024]).toEqual([disposition.slice(0, 40), 413, true]);
    }
  for (const type of ["multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=\u00e9"])
    expect([type, (await send(owner, openedForm, type, sized('name="text"', 1))).status]).toEqual([type, 400]);
});

test("a task with many variables is rejected, and its form shows few of them", async () => {
  const owner = await signedIn(app);
  const text = Array.from({ length: 45_000 }, (_, i) => `{{v${i}}}`).join("");
  for (const [path, status] of [
    ["/prompts", 400],
    ["/prompts/derived-fields", 200],
  ] as const) {
    const answer = await send(owner, path, encoded, new URLSearchParams({ text }).toString());
    expect([path, answer.status, answer.bytes < 1.5 * mib]).toEqual([path, status, true]);
  }
});
