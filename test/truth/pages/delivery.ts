import { answer, filler, html, type PageCase } from "./case.ts";

const page = (title = "Keys", head = "") => html(title, `<main><h1>${title}</h1>${answer()}</main>`, head);
const target = { "/new/keys": page() };
const bytes = (text: string, encoding: "latin1" | "utf16le") => new Uint8Array(Buffer.from(text, encoding));
const markdown =
  "# Keys\n\n## Rotate an API key\n\nTo rotate an API key, pass its ID.\n\n```bash\nskiff keys rotate key_123\n```\n";
const accents = "<p>Über Größe, Maße und Füllung der Säcke äußert sich Jörg später ausführlich.</p>".repeat(3);

/** Redirects, encodings and content types. */
export const deliveryCases: PageCase[] = [
  {
    name: "meta refresh, as Docusaurus writes it",
    pages: {
      ...target,
      "/keys": `<!DOCTYPE html><html><head><meta charset="UTF-8"><meta http-equiv="refresh" content="0; url=/new/keys"><link rel="canonical" href="/new/keys"></head><script>window.location.href = '/new/keys' + window.location.search + window.location.hash</script></html>`,
    },
    reads: "/new/keys",
  },
  {
    name: "meta refresh without quotes and with capitals",
    pages: { ...target, "/keys": `<HTML><HEAD><META HTTP-EQUIV=Refresh CONTENT=0;URL=new/keys></HEAD></HTML>` },
    reads: "/new/keys",
  },
  {
    name: "meta refresh with a sentence, Jekyll",
    pages: {
      ...target,
      "/keys": html(
        "Redirecting…",
        `<h1>Redirecting…</h1><a href="/new/keys">Click here if you are not redirected.</a>`,
        `<link rel="canonical" href="/new/keys"><script>location="/new/keys"</script><meta http-equiv="refresh" content="0; url='/new/keys'"><meta name="robots" content="noindex">`,
      ),
    },
    reads: "/new/keys",
  },
  {
    name: "location.replace only",
    pages: { ...target, "/keys": html("", `<script>window.location.replace("/new/keys")</script>`) },
    reads: "/new/keys",
  },
  {
    name: "location.href only, single quotes",
    pages: { ...target, "/keys": `<script>document.location.href='new/keys';</script>` },
    reads: "/new/keys",
  },
  {
    name: "two client redirects",
    pages: {
      ...target,
      "/keys": `<meta http-equiv="refresh" content="0;url=/v2/keys">`,
      "/v2/keys": `<meta http-equiv="refresh" content="0;url=/new/keys">`,
    },
    reads: "/new/keys",
  },
  {
    name: "client redirect to itself",
    pages: { "/keys": `<!doctype html><title>Keys</title><meta http-equiv="refresh" content="0;url=/keys">` },
    finds: ["dead_link", "unreadable_page"],
  },
  {
    name: "client redirect to a page that is gone",
    pages: { "/keys": `<!doctype html><title>Keys</title><meta http-equiv="refresh" content="0;url=/gone">` },
    finds: ["dead_link"],
    at: "/gone",
  },
  {
    name: "a page that reloads every ten minutes",
    pages: { "/keys": page("Keys", `<meta http-equiv="refresh" content="600">`) },
    reads: "/keys",
  },
  {
    name: "a script that opens what its reader searches for",
    pages: {
      "/keys": html(
        "Keys",
        `<h1>Keys</h1>${answer()}${filler(4)}<script>const search = (word) => { location.href = "/search/" + word }</script><script>const leave = () => { location.href = "/left" }</script>`,
      ),
    },
    reads: "/keys",
  },
  {
    name: "a short page that its own script may load again",
    pages: {
      "/keys": page("Keys", `<p><a href="/boats">Boats</a></p>`),
      "/boats": html(
        "Boats",
        `<main><h1>Boats</h1><p>Boats leave at noon, and <a href="/keys">a key</a> opens each of them.</p></main><script>const again = () => { location.href = "/boats" }</script>`,
      ),
    },
    reads: "/keys",
  },
  {
    name: "a sample that sets location.href",
    pages: {
      "/keys": html(
        "Keys",
        `<h1>Keys</h1>${answer()}<script>if (location.hash === "#old") location.href = "/old"</script>`,
      ),
    },
    reads: "/keys",
  },
  {
    name: "status 302",
    pages: { ...target, "/keys": { status: 302, headers: { location: "/new/keys" }, body: "" } },
    reads: "/new/keys",
  },
  {
    name: "windows-1252 by its meta tag",
    pages: {
      "/keys": {
        type: "text/html",
        body: bytes(
          `<html><head><meta http-equiv=Content-Type content="text/html; charset=windows-1252"><title>Keys</title></head><body>${answer()}${accents}</body></html>`,
          "latin1",
        ),
      },
    },
    reads: "/keys",
  },
  {
    name: "declared UTF-8, sent in Latin-1",
    pages: { "/keys": { type: "text/html; charset=utf-8", body: bytes(html("Keys", answer() + accents), "latin1") } },
    finds: ["unreadable_page"],
  },
  {
    name: "UTF-8 that shows the replacement character",
    pages: {
      "/keys": html("Keys", `<h1>Keys</h1>${answer()}<p>A wrong encoding shows as \ufffd, \ufffd\ufffd or \ufffd.</p>`),
    },
    reads: "/keys",
  },
  {
    name: "declared Latin-1, sent in UTF-8",
    pages: { "/keys": { type: "text/html; charset=iso-8859-1", body: html("Keys", answer() + accents) } },
    finds: ["unreadable_page"],
  },
  {
    name: "UTF-16 with a byte order mark",
    pages: { "/keys": { type: "text/html", body: bytes(`\ufeff${page()}`, "utf16le") } },
    reads: "/keys",
  },
  {
    name: "Markdown as octet-stream",
    pages: { "/keys": { type: "application/octet-stream", body: markdown } },
    finds: ["unreadable_page"],
  },
  { name: "HTML as plain text", pages: { "/keys": { type: "text/plain", body: page() } }, finds: ["unreadable_page"] },
  { name: "HTML without a valid content type", pages: { "/keys": { type: "html", body: page() } }, reads: "/keys" },
  {
    name: "the instructions are a picture",
    pages: {
      "/keys": html(
        "Rotate an API key",
        `<main><h1>Rotate an API key</h1><p>Follow these steps:</p><img src="/img/steps.png" width="1200" height="900"></main>`,
      ),
      "/img/steps.png": { type: "image/png", body: "x" },
    },
    finds: ["missing_docs", "unreadable_page", "broken_sample"],
  },
  {
    name: "the needed page asks robots to stay away",
    pages: {
      "/keys": html(
        "Keys",
        `<main><h1>Keys</h1>${answer()}${filler(2)}</main>`,
        `<meta name="robots" content="noindex">`,
      ),
    },
    finds: ["missing_docs", "unreadable_page", "auth"],
  },
];
