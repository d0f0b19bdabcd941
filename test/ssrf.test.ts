import { afterAll, expect, test } from "bun:test";
import { createGuard, GuardError } from "../src/net/guarded.ts";
import { checkHttpUrl } from "../src/schema.ts";
import { serveSite } from "./support/site.ts";

/** Addresses that no request of a run may connect to, in every spelling that a URL can have. */
const written = [
  ...[
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "017700000001",
    "127.255.255.254",
  ],
  ...[
    "0.0.0.0",
    "0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "100.64.0.1",
  ],
  ...[
    "100.127.255.255",
    "169.254.0.1",
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "169.254.170.2",
    "168.63.129.16",
  ],
  ...[
    "192.0.0.1",
    "192.0.2.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
  ],
  ...["255.255.255.255", "[::]", "[::1]", "[0:0:0:0:0:0:0:1]", "[::7f00:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]"],
  ...[
    "[::ffff:0:127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b:1::1]",
    "[2002:7f00:1::]",
    "[2002:a9fe:a9fe::]",
  ],
  ...["[2001::1]", "[2001:db8::1]", "[100::1]", "[fc00::1]", "[fd00:ec2::254]", "[fe80::1]", "[fec0::1]", "[ff02::1]"],
  ...[
    "１２７.0.0.1",
    "①②⑦.⓪.⓪.①",
    "127。0。0。1",
    "127.0.0.1.",
    "localhost",
    "LOCALHOST.",
    "a.localhost",
    "%31%32%37.0.0.1",
  ],
];

const site = serveSite({
  "/": { body: "home" },
  ...Object.fromEntries(
    written.map((host, i) => [`/to/${i}`, { status: 302, headers: { location: `http://${host}/` } }]),
  ),
});
afterAll(site.stop);
const here = { host: "127.0.0.1", port: Number(new URL(site.url).port) };
const isIp = (host: string) => /^[0-9a-f.:]+$/.test(host);

/** A guard that may use only the site above. Names of the table resolve to `address`. Counts connections elsewhere. */
function guardOf(lookup: (name: string) => string[]) {
  const looked: string[] = [];
  const guard = createGuard({
    allow: [here],
    now: () => 0,
    lookup: async (name) => {
      looked.push(name);
      return lookup(name).map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
    },
  });
  const kindOf = (url: string, init = {}) =>
    guard.request(url, { timeoutMs: 2_000, ...init }).then(
      ({ status }) => String(status),
      (error) => (error instanceof GuardError ? error.kind : String(error)),
    );
  return { kindOf, looked };
}
const resolved = (host: string) => new URL(`http://${host}/`).hostname.replace(/^\[|\]$/g, "");

test.each(written)(
  "a run can't connect to %s: in a URL, by a redirect, as the address of a name, or after rebinding",
  async (host) => {
    const loopback = guardOf(() => ["127.0.0.1"]);
    const address = resolved(host);
    const direct = await loopback.kindOf(`http://${host}/`);
    const redirected = await loopback.kindOf(`${site.url}to/${written.indexOf(host)}`);
    const outcomes = { direct, redirected };
    if (!isIp(address)) return expect(outcomes).toEqual({ direct: "refused", redirected: "refused" });
    const named = await guardOf(() => [address]).kindOf("http://docs.test/");
    const amongPublic = await guardOf(() => ["93.184.216.34", address]).kindOf("http://docs.test/");
    let lookups = 0;
    const rebinding = guardOf(() => (lookups++ === 0 ? ["127.0.0.1"] : [address]));
    const first = await rebinding.kindOf(`http://docs.test:${here.port}/`);
    const second = await rebinding.kindOf("http://docs.test/");
    expect({ ...outcomes, named, amongPublic, first: first === "200" || first === "refused", second }).toEqual({
      ...{ direct: "refused", redirected: "refused", named: "refused", amongPublic: "refused" },
      ...{ first: true, second: "refused" },
    });
  },
);

test("the table has at least 60 addresses, and only absolute http URLs are accepted as URLs", () => {
  expect(new Set(written).size).toBeGreaterThanOrEqual(60);
  console.log(`ssrf: ${written.length} addresses in up to 5 ways`);
  for (const url of [
    "//127.0.0.1/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:70/",
    "http:127.0.0.1",
    "http:///x",
    "ftp://a/",
  ])
    expect(() => checkHttpUrl("url", url)).toThrow();
});
