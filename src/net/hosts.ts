/** Package registries: npm, PyPI, crates.io, Go, Maven, RubyGems, Debian. */
const registries = [
  "registry.npmjs.org",
  "pypi.org",
  "files.pythonhosted.org",
  "index.crates.io",
  "static.crates.io",
  "crates.io",
  "proxy.golang.org",
  "sum.golang.org",
  "repo.maven.apache.org",
  "repo1.maven.org",
  "rubygems.org",
  "index.rubygems.org",
  "deb.debian.org",
  "security.debian.org",
];

/** The hosts that a run may reach. */
export type HostList = {
  permits(hostname: string): boolean;
  /** Whether the host is one of the run's own URLs, or below one of its docs. */
  isOwn(hostname: string): boolean;
  /** The error message for a host that is not permitted. */
  objection(hostname: string): string;
};

export const everyHost: HostList = { permits: () => true, isOwn: () => false, objection: () => "" };

/**
 * Compiles the hosts that a run may reach: those of its own URLs (of `docsAddresses` with all subdomains), the package registries and
 * the operator's list of host names, or `*.example.com` for all subdomains.
 */
export function createHostList({
  addresses,
  docsAddresses,
  operatorHosts,
}: Record<"addresses" | "docsAddresses" | "operatorHosts", readonly string[]>): HostList {
  const own = [...docsAddresses, ...addresses].flatMap((address) => hostOf(address) ?? []);
  const docs = docsAddresses.flatMap((address) => hostOf(address) ?? []);
  const exact = new Set([...registries, ...operatorHosts.map(plain)]);
  const above = [...operatorHosts.filter((host) => host.startsWith("*.")).map((host) => plain(host.slice(1)))];
  const isOwn = (host: string) => own.includes(host) || docs.some((above) => host.endsWith(`.${above}`));
  return {
    permits(hostname) {
      const host = plain(hostname);
      return isOwn(host) || exact.has(host) || above.some((end) => host.endsWith(end));
    },
    isOwn: (hostname) => isOwn(plain(hostname)),
    objection: (hostname) =>
      `${plain(hostname)} is not allowed in this run. Allowed hosts: ${[...new Set(own)].join(", ") || "none of its own"} and the package registries; the operator can add hosts with EVALD_EGRESS_ALLOW`,
  };
}

const plain = (hostname: string) =>
  hostname
    .toLowerCase()
    .replace(/^\[|\]$/g, "")
    .replace(/\.$/, "");

const hostOf = (address: string): string | null => (URL.canParse(address) ? plain(new URL(address).hostname) : null);
