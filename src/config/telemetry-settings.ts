import { httpUrl } from "../schema.ts";
import { parseFlag, type SettingValues, setting, splitList, throwExpected } from "./setting.ts";

/** The address on which a server listens. `port` 0: any free port. */
export type Address = Readonly<{ host: string; port: number }>;

/** `url`: the endpoint for traces. `withContent`: whether traces include tasks, arguments, results and answers. */
export type OtlpSettings = Readonly<{ url: string; headers: Record<string, string>; withContent: boolean }>;

/** Parses a host and a port; null if empty. */
function parseAddress(value: string): Address | null {
  if (value === "") return null;
  const [, host = "", port = ""] = /^(\[[0-9a-fA-F:]+\]|[^:\s]+):(\d{1,5})$/.exec(value) ?? [];
  if (host === "" || Number(port) > 65_535) return throwExpected("a host and a port, such as 127.0.0.1:9464");
  return { host, port: Number(port) };
}

/** Parses an http or https URL, or an empty text. */
const parseUrl = (example: string) => (value: string) =>
  value === "" || httpUrl(value) ? value : throwExpected(`an http or https URL, such as ${example}`);

function toHeader(item: string): [string, string] {
  const [, name = "", content = ""] = /^([A-Za-z0-9-]+)=([\x20-\x7e]+)$/.exec(item) ?? [];
  return name === "" ? throwExpected("headers such as authorization=Bearer abc") : [name.toLowerCase(), content];
}

/** Telemetry settings, in the order of the documentation. */
export const telemetrySettings = {
  metrics: setting(
    "EVALD_METRICS_ADDRESS",
    "",
    "Address that serves metrics for Prometheus at /metrics, such as 127.0.0.1:9464; they need no API key; default: none",
    parseAddress,
  ),
  otlpUrl: setting(
    "EVALD_OTLP_URL",
    "",
    "Endpoint of an OpenTelemetry collector that receives a trace of each session as OTLP over HTTP with JSON, such as http://127.0.0.1:4318/v1/traces; default: none",
    parseUrl("http://127.0.0.1:4318/v1/traces"),
  ),
  otlpHeaders: setting(
    "EVALD_OTLP_HEADERS",
    "",
    "Comma-separated list of headers for the collector, such as authorization=Bearer abc",
    (value): Record<string, string> => Object.fromEntries(splitList(value).map(toHeader)),
    { isSecret: true },
  ),
  otlpContent: setting(
    "EVALD_OTLP_CONTENT",
    "0",
    "1: traces include tasks, arguments and results of tools, and final answers; 0: they don't",
    parseFlag,
  ),
  latestReleaseUrl: setting(
    "EVALD_LATEST_RELEASE_URL",
    "",
    "URL of the latest.json of a release, which evald reads once a day to tell owners of a newer version; default: none, evald never asks",
    parseUrl("https://example.com/evald/latest.json"),
  ),
};

/** Combines the settings. */
export const toTelemetrySettings = ({
  metrics,
  otlpUrl: url,
  otlpHeaders: headers,
  otlpContent: withContent,
  latestReleaseUrl,
}: SettingValues<typeof telemetrySettings>) => ({
  /** The address where Prometheus can scrape metrics; null: none. */
  metrics,
  /** The endpoint that traces are sent to; null: none. */
  otlp: url === "" ? null : ({ url, headers, withContent } satisfies OtlpSettings),
  /** The URL that names the newest version; null: none. */
  latestReleaseUrl: latestReleaseUrl || null,
});
