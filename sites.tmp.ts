import { corpora, serveCorpus } from "/work/m-samples/test/truth/corpora.ts";
import { explore } from "/work/m-samples/test/truth/session.ts";
import { serveFolder } from "/work/m-samples/test/support/site.ts";
const goals: [string, string, string[]][] = [
 ["flask","",["Upload a file with a form","Deploy behind a proxy"]],["requests","",["Send a POST request with JSON","Use a proxy"]],["click","",["Add a command with options"]],["peewee","",["Connect to PostgreSQL"]],["bun","",["Install a package","Start an HTTP server","Connect to a database with SQL","Deploy on AWS Lambda"]],["pino","",["Redact a field from logs","Log to a file"]],["attrs","",["Validate a value"]],["git","",["Clone a repository"]],
 ["/tmp/evald-corpora/python-celery-doc/usr/share/doc/python-celery-doc/html","/",["Retry a task", "Use Redis as a broker"]],["/tmp/evald-corpora/fastify/package","/README.md",["Add a plugin","Validate a request"]],["/tmp/evald-corpora/python-aiohttp-doc/usr/share/doc/python-aiohttp-doc/html","/",["Send a request with a client session"]],["/tmp/evald-corpora/python-pymongo-doc/usr/share/doc/python-pymongo-doc/html","/",["Connect with TLS and a password"]],["/tmp/evald-corpora/asciidoctor-doc/usr/share/doc/asciidoctor-doc","/",["Convert a document to PDF"]],
 ["/work/m-samples/node_modules/ai","/docs/index.mdx",["Generate text with a model","Call a tool"]],["/root/.rustup/toolchains/stable-x86_64-unknown-linux-gnu/share/doc/rust/html/cargo","/index.html",["Publish a crate to a registry"]],
];
for (const [name, start, gs] of goals) for (const goal of gs) { try {
  const c: any = start === "" ? serveCorpus(name as any) : (() => { const s = serveFolder(name); return { start: s.url + start, stop: s.stop }; })();
  const { events } = await explore(c.start, goal, { maxPages: 12 } as any).finally(c.stop);
  const checks: any[] = events.flatMap((e: any) => e.checks ?? []);
  console.log("==", name.split("/").at(-1), goal, "pages", events.filter((e: any) => e.type === "milestone" && e.name === "page_read").length);
  for (const x of checks.filter((x) => x.share < 1 && /prereq|place|command|sdk|matches-api/.test(x.id))) console.log("   ", x.id, x.status, x.url, x.line, x.message, "|", x.quote?.slice(0, 80));
} catch (e) { console.log("ERR", name, e); } }
