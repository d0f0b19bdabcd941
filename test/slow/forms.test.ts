import { afterAll, expect, test } from "bun:test";
import { demo } from "../support/demo.ts";
import { everyPage } from "../support/every-page.ts";
import { password } from "../support/people.ts";

const app = await demo();
afterAll(async () => {
  await app.stop();
});

type Form = {
  path: string;
  cookie: string;
  method: string;
  action: string;
  enctype: string;
  fields: [name: string, value: string][];
  /** Boxes that are not checked. */
  boxes: [name: string, value: string][];
  hasButton: boolean;
};

const decode = (text: string | null) =>
  (text ?? "").replaceAll("&quot;", '"').replaceAll("&#39;", "'").replaceAll("&lt;", "<").replaceAll("&amp;", "&");

/** What a person without JavaScript types into a required field. */
const typed: Record<string, string> = {
  url: "https://docs.notes.example/",
  email: "new@example.com",
  number: "1",
  password: "correct-horse-battery",
  checkbox: "on",
};

/** Values for fields that accept only some, by the action of the form. */
const known: Record<string, Record<string, string>> = {
  "/sign-in": { email: "ada@acme.example", password },
  "/setup/:id": { email: "ada@acme.example", password },
  "/invite/:id": { email: "finn@acme.example" },
  "/account/password": { currentPassword: password },
  "/settings/notifications": { url: "https://hooks.acme.example/other" },
  "/bisects/new": { urlTemplate: "https://{commit}.preview.example", commits: "a1b2c3d\nc7d8e9f" },
  "/experiments/new": { llmsTxtOf: "https://docs.notes.example/" },
  "/settings/ci": { repository: "acme/docs" },
};

/** The forms of a page as a browser without JavaScript sends them, with required fields filled in. */
function formsOf(html: string, shown: { path: string; cookie: string }): Form[] {
  const forms: Form[] = [];
  const byId = new Map<string, Form>();
  let open: Form | null = null;
  let select: { of: Form; name: string; first: string | null; isSet: boolean } | null = null;
  const fieldsOf = (element: HTMLRewriterTypes.Element) => byId.get(element.getAttribute("form") ?? "") ?? open;
  new HTMLRewriter()
    .on("form", {
      element(element) {
        const [method = "", action = "", enctype = ""] = ["method", "action", "enctype"].map((name) =>
          decode(element.getAttribute(name)),
        );
        open = {
          ...shown,
          method: method || "get",
          action: action || shown.path,
          enctype,
          fields: [],
          boxes: [],
          hasButton: false,
        };
        forms.push(open);
        byId.set(element.getAttribute("id") ?? "none", open);
        element.onEndTag(() => {
          open = null;
        });
      },
    })
    .on("input[name]", {
      element(element) {
        const [name, value, type] = ["name", "value", "type"].map((each) => decode(element.getAttribute(each)));
        const isRequired = element.hasAttribute("required");
        const form = fieldsOf(element);
        if (form === null || type === "file") return;
        if ((type === "checkbox" || type === "radio") && !element.hasAttribute("checked") && !isRequired) {
          if (type === "checkbox") form.boxes.push([name ?? "", value || "on"]);
          return;
        }
        const text = value || (isRequired ? (typed[type || "text"] ?? "Example") : type === "checkbox" ? "on" : "");
        form.fields.push([name ?? "", text]);
        if (form.method === "get" && (type === "search" || type === "text" || type === "")) form.hasButton = true;
      },
    })
    .on("textarea[name]", {
      element(element) {
        const form = fieldsOf(element);
        const text = element.hasAttribute("required") ? "See https://docs.notes.example/" : "";
        form?.fields.push([decode(element.getAttribute("name")), text]);
      },
    })
    .on("select[name]", {
      element(element) {
        const of = fieldsOf(element);
        if (of === null) return;
        select = { of, name: decode(element.getAttribute("name")), first: null, isSet: false };
        element.onEndTag(() => {
          if (select && !select.isSet) select.of.fields.push([select.name, select.first ?? ""]);
          select = null;
        });
      },
    })
    .on("select[name] option", {
      element(element) {
        if (select === null) return;
        const value = decode(element.getAttribute("value"));
        select.first ??= value;
        if (element.hasAttribute("selected")) {
          select.of.fields.push([select.name, value]);
          select.isSet = true;
        }
      },
    })
    .on("button", {
      element(element) {
        const form = fieldsOf(element);
        if (
          form === null ||
          element.hasAttribute("disabled") ||
          (element.getAttribute("type") ?? "submit") !== "submit" ||
          form.hasButton
        )
          return;
        form.hasButton = true;
        form.method = decode(element.getAttribute("formmethod")) || form.method;
        form.action = decode(element.getAttribute("formaction")) || form.action;
        const name = decode(element.getAttribute("name"));
        if (name) form.fields.push([name, decode(element.getAttribute("value"))]);
      },
    })
    .transform(html);
  return forms;
}

async function ask(path: string, cookie: string, init: RequestInit = {}): Promise<Response> {
  const url = new URL(path, app.baseUrl);
  const headers = { accept: "text/html", origin: url.origin, cookie, ...(init.headers as object) };
  return app.app.handle(new Request(url, { ...init, headers, redirect: "manual" }));
}

/** A form as its browser sends it. */
function send({ method, action, enctype, fields, path, cookie }: Form): Promise<Response> {
  const to = new URL(action, new URL(path, app.baseUrl));
  if (method === "get") return ask(`${to.pathname}?${new URLSearchParams(fields)}`, cookie);
  if (enctype !== "multipart/form-data")
    return ask(to.pathname + to.search, cookie, { method: "POST", body: new URLSearchParams(fields) });
  const body = new FormData();
  for (const [name, value] of fields) body.append(name, value);
  return ask(to.pathname + to.search, cookie, { method: "POST", body });
}

const ending = ["archive", "withdraw", "revoke", "remove", "delete", "cancel", "password", "leave", "sign-out"];

/** One form for each action, whatever the ID. Those that end a session or a membership come last. */
async function everyForm(): Promise<Map<string, Form>> {
  const forms = new Map<string, Form>();
  for (const shown of await everyPage(app))
    for (const form of formsOf(await (await ask(shown.path, shown.cookie)).text(), shown)) {
      // Closes a dialog that a script opened.
      if (form.method === "dialog") continue;
      const { pathname } = new URL(form.action, new URL(form.path, app.baseUrl));
      const place = pathname.replace(/[\da-f]{8}-[\da-f-]{27}|[\w-]+-[\da-f]{8}\b|[\w-]{30,}(\.[\w-]+)*/g, ":id");
      const name = `${form.method} ${place}`;
      const fields = form.fields.map(([field, value]): [string, string] => [field, known[place]?.[field] ?? value]);
      if (!forms.has(name)) forms.set(name, { ...form, fields });
    }
  const rank = (name: string) => ending.findIndex((each) => name.includes(each));
  return new Map([...forms].sort(([a], [b]) => rank(a) - rank(b)));
}

/** Forms that are refused with what this test fills in, and the status. Passkeys are made by a script of the browser. */
const refused: Record<string, number> = {
  "post /sign-in/passkey": 400,
  "post /account/passkeys": 400,
  // Asks for the password.
  "post /account/two-factor": 400,
  // The person is the only owner.
  "post /account/delete": 409,
};

test("every form of every page works without JavaScript", async () => {
  const forms = await everyForm();
  expect(forms.size).toBeGreaterThan(30);
  const wrong: string[] = [];
  for (const [name, form] of forms) {
    if (!form.hasButton) wrong.push(`${name} on ${form.path}: no button`);
    const first = await send(form);
    // Some forms need at least one of several boxes.
    const answer =
      first.status === 400 ? await send({ ...form, fields: [...form.fields, ...form.boxes.slice(0, 1)] }) : first;
    const type = answer.headers.get("content-type") ?? "";
    if (answer.status === refused[name]) await answer.body?.cancel();
    else if (answer.status >= 400) {
      const said = (await answer.text()).replace(/<head>.*<\/head>|<nav.*?<\/nav>|<[^>]+>/gs, " ").replace(/\s+/g, " ");
      wrong.push(`${name} on ${form.path}: ${answer.status} ${type} ${said.slice(0, 300)}`);
    } else await answer.body?.cancel();
  }
  expect(wrong).toEqual([]);
}, 300_000);
