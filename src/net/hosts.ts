/** Where package managers get their packages: npm, PyPI, crates.io, Go, Maven, RubyGems, Debian. */
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

/** The hosts that one run may ask for. */
export type HostList = {
  permits(hostname: string): boolean;
  /** Why a host is not permitted, and what would help. */
  objection(hostname: string): string;
};

export type HostListOptions = {
  /** Their hosts are permitted, and no others beside them. */
  addresses: readonly string[];
  /** Their hosts are permitted, and every host below these. */
  docsAddresses: readonly string[];
  /** Host names, or `*.example.com` for all below one. */
  operatorHosts: readonly string[];
};

/** Compiles what a run may reach: the hosts of its own addresses, the package registries and the operator's list. */
export function createHostList({ addresses, docsAddresses, operatorHosts }: HostListOptions): HostList {
  const own = [...docsAddresses, ...addresses].flatMap((address) => hostOf(address) ?? []);
  const docs = docsAddresses.flatMap((address) => hostOf(address) ?? []);
  const exact = new Set([...own, ...registries, ...operatorHosts.map(plain)]);
  const above = [
    ...docs.map((host) => `.${host}`),
    ...operatorHosts.filter((host) => host.startsWith("*.")).map((host) => plain(host.slice(1))),
  ];
  return {
    permits(hostname) {
      const host = plain(hostname);
      return exact.has(host) || above.some((end) => host.endsWith(end));
    },
    objection: (hostname) =>
      `${plain(hostname)} is not among the hosts that this run may reach: ${[...new Set(own)].join(", ") || "none of its own"} and the package registries; the operator can add hosts with EVALD_EGRESS_ALLOW`,
  };
}

const plain = (hostname: string) =>
  hostname
    .toLowerCase()
    .replace(/^\[|\]$/g, "")
    .replace(/\.$/, "");

const hostOf = (address: string): string | null => (URL.canParse(address) ? plain(new URL(address).hostname) : null);
