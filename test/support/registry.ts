import { createHash } from "node:crypto";

type Manifest = { name: string; version: string };

/** A registry of npm on loopback that takes published packages and serves them. */
export function startRegistry() {
  const packages = new Map<string, { manifest: Manifest; tarball: Uint8Array<ArrayBuffer> }>();
  const published: string[] = [];
  const refused = new Set<string>();
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    maxRequestBodySize: 1 << 30,
    async fetch(request): Promise<Response> {
      const { origin, pathname } = new URL(request.url);
      const path = decodeURIComponent(pathname).slice(1);
      if (request.method === "PUT") {
        const { versions, _attachments } = (await request.json()) as {
          versions: Record<string, Manifest>;
          _attachments: Record<string, { data: string }>;
        };
        const [manifest] = Object.values(versions);
        const [attachment] = Object.values(_attachments);
        if (!manifest || !attachment) return new Response(null, { status: 400 });
        if (refused.has(manifest.name)) return Response.json({ error: "unavailable" }, { status: 403 });
        published.push(manifest.name);
        add(manifest, Buffer.from(attachment.data, "base64"));
        return Response.json({ ok: true });
      }
      const tarball = packages.get(path.replace(/^tarball\//, ""));
      if (path.startsWith("tarball/") && tarball) return new Response(tarball.tarball);
      const found = packages.get(path);
      return found ? Response.json(toDocument(found, origin)) : Response.json({ error: "not_found" }, { status: 404 });
    },
  });
  const add = (manifest: Manifest, tarball: Uint8Array<ArrayBuffer>) =>
    void packages.set(manifest.name, { manifest, tarball });
  const toDocument = ({ manifest, tarball }: { manifest: Manifest; tarball: Uint8Array }, origin: string) => {
    const integrity = `sha512-${createHash("sha512").update(tarball).digest("base64")}`;
    const dist = { tarball: `${origin}/tarball/${manifest.name}`, integrity };
    return {
      name: manifest.name,
      "dist-tags": { latest: manifest.version },
      versions: { [manifest.version]: { ...manifest, dist } },
    };
  };
  return {
    url: `http://127.0.0.1:${server.port}/`,
    /** The names of published packages, in order. */
    published,
    /** The names of packages that are not accepted. */
    refused,
    /** Adds the package in a tarball without publishing it. */
    async add(file: string) {
      const tarball = await Bun.file(file).bytes();
      const { stdout } = Bun.spawnSync(["tar", "-xzOf", file, "package/package.json"]);
      add(JSON.parse(stdout.toString()), tarball);
    },
    remove: (name: string) => packages.delete(name),
    stop: () => server.stop(true),
  };
}
