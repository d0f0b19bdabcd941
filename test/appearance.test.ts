import { describe, expect, test } from "bun:test";
import { testApp } from "./support/app.ts";
import { browse, signedIn } from "./support/people.ts";

const app = testApp({ env: { EVALD_BASE_URL: "https://evald.test/evals" } });
const none = { authorization: "" };

test("the font is served as one small file that browsers cache", async () => {
  const { body: css } = await app.send("GET", "/evals/style.css", { headers: none });
  const [, path = ""] = /@font-face[^}]*url\("([^"]+)"\)/.exec(css) ?? [];
  const url = new URL(path, "https://evald.test/evals/style.css");
  const answer = await app.app.handle(new Request(url));
  const bytes = await answer.bytes();
  expect([answer.status, new TextDecoder().decode(bytes.slice(0, 4))]).toEqual([200, "wOF2"]);
  expect(bytes.length).toBeLessThan(60 * 1024);
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    "content-type": "font/woff2",
    "cache-control": "public, max-age=31536000, immutable",
  });
  const page = await app.send("GET", "/evals/sign-in", { headers: none });
  expect(page.body).toContain(`<link rel="preload" href="${url.pathname}${url.search}"`);
  expect(page.headers.get("content-security-policy")).toContain("font-src 'self'");
});

describe("the color scheme", () => {
  const themeOf = (html: string) => /<html [^>]*data-theme="(\w+)"/.exec(html)?.[1];
  const metaOf = (html: string) => /<meta name="color-scheme" content="([^"]+)"/.exec(html)?.[1];
  const pressedOf = (html: string) => /value="(\w+)" aria-pressed="true"/.exec(html)?.[1];

  test("follows the system until one is chosen, and is set in the page itself", async () => {
    const ada = browse(app);
    const first = (await ada.get("/evals/sign-in")).body;
    expect([themeOf(first), metaOf(first), pressedOf(first)]).toEqual(["system", "light dark", "system"]);
    for (const [theme, meta] of [
      ["dark", "dark"],
      ["light", "light"],
      ["system", "light dark"],
    ] as const) {
      const { status, location } = await ada.post("/evals/theme", { theme, from: "/sign-in" });
      expect([status, location]).toEqual([303, "/evals/sign-in"]);
      const { body } = await ada.get("/evals/sign-in");
      expect([themeOf(body), metaOf(body), pressedOf(body)]).toEqual([theme, meta, theme]);
    }
  });

  test("applies to signed-in, public and error pages", async () => {
    const ada = browse(app, (await signedIn(app, { role: "viewer" })).cookie());
    await ada.post("/evals/theme", { theme: "dark", from: "/" });
    for (const path of ["", "runs", "docs/start", "docs/api", "nothing", "reports/nothing", "shared/nothing"])
      expect([path, themeOf((await ada.get(`/evals/${path}`)).body)]).toEqual([path, "dark"]);
    const visitor = browse(app, "evald.theme=light");
    expect(themeOf((await visitor.get("/evals/docs/start")).body)).toBe("light");
  });

  test("form returns to the page with its query, and to no other site", async () => {
    const ada = browse(app);
    const from = (from: string, referer: string) => ada.post("/evals/theme", { theme: "dark", from }, { referer });
    const query = "?status=failed";
    expect((await from("/runs", `https://evald.test/evals/runs${query}`)).location).toBe(`/evals/runs${query}`);
    expect((await from("/runs", "https://evald.test/evals/keys?a=b")).location).toBe("/evals/runs");
    expect((await from("/evals/nothing", "")).location).toBe("/evals/nothing");
    expect((await from("https://elsewhere.test/", "")).location).toBe("/evals/");
    expect((await from("//elsewhere.test/", "")).location).toBe("/evals/");
  });

  test("is system for any unknown value", async () => {
    for (const value of ["pink", 'x"><script>', "__proto__"]) {
      const { headers } = await browse(app).post("/evals/theme", { theme: value, from: "/" });
      expect(headers.get("set-cookie")).toStartWith("evald.theme=system; Path=/evals/; Max-Age=0");
      expect(themeOf((await browse(app, `evald.theme=${value}`).get("/evals/sign-in")).body)).toBe("system");
    }
  });
});
