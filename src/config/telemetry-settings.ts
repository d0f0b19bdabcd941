import { ConfigError } from "../errors.ts";
import { httpUrl } from "../schema.ts";

/** Where a server listens. `port` 0: a free one. */
export type Address = Readonly<{ host: string; port: number }>;

/** What operators can observe. */
export type TelemetrySettings = Readonly<{
  /** Where Prometheus can scrape metrics; null: nowhere. */
  metrics: Address | null;
  /** Where traces are sent; null: nowhere. */
  otlp: OtlpSettings | null;
}>;

/** `url`: the endpoint of traces; `withContent`: tasks, arguments, results and answers are included. */
export type OtlpSettings = Readonly<{ url: string; headers: Record<string, string>; withContent: boolean }>;

const bad = (expected: string): never => {
  throw new ConfigError(expected);
};

/** Telemetry settings, in the order of the documentation. */
export const telemetrySettings = {
  EVALD_METRICS_ADDRESS: {
    default: "",
    description:
      "Address that serves metrics for Prometheus at /metrics, such as 127.0.0.1:9464; they need no API key; default: none",
    parse(value: string): Address | null {
      if (value === "") return null;
      const [, host = "", port = ""] = /^(\[[0-9a-fA-F:]+\]|[^:\s]+):(\d{1,5})$/.exec(value) ?? [];
      if (host === "" || Number(port) > 65_535) return bad("a host and a port, such as 127.0.0.1:9464");
      return { host, port: Number(port) };
    },
  },
  EVALD_OTLP_URL: {
    default: "",
    description:
      "Endpoint of an OpenTelemetry collector that receives a trace of each session as OTLP over HTTP with JSON, such as http://127.0.0.1:4318/v1/traces; default: none",
    parse: (value: string): string =>
      value === "" || httpUrl(value) ? value : bad("an http or https URL, such as http://127.0.0.1:4318/v1/traces"),
  },
  EVALD_OTLP_HEADERS: {
    default: "",
    description: "Comma-separated list of headers for the collector, such as authorization=Bearer abc",
    parse: (value: string): Record<string, string> =>
      Object.fromEntries(
        value.split(",").flatMap((item): [string, string][] => {
          const [, name = "", content = ""] = /^([A-Za-z0-9-]+)=([\x20-\x7e]+)$/.exec(item.trim()) ?? [];
          if (name === "" && item.trim() !== "") return bad("headers such as authorization=Bearer abc");
          return name === "" ? [] : [[name.toLowerCase(), content]];
        }),
      ),
    secret: true,
  },
  EVALD_OTLP_CONTENT: {
    default: "0",
    description: "1: traces include tasks, arguments and results of tools, and final answers; 0: they don't",
    parse: (value: string): boolean => (value === "1" ? true : value === "0" ? false : bad("0 or 1")),
  },
};

type Read = <N extends keyof typeof telemetrySettings>(name: N) => ReturnType<(typeof telemetrySettings)[N]["parse"]>;

/** Combines the settings. */
export function readTelemetrySettings(read: Read): TelemetrySettings {
  const url = read("EVALD_OTLP_URL");
  const otlp = { url, headers: read("EVALD_OTLP_HEADERS"), withContent: read("EVALD_OTLP_CONTENT") };
  return { metrics: read("EVALD_METRICS_ADDRESS"), otlp: url === "" ? null : otlp };
}
