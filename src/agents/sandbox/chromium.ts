import type { LimitHit } from "./bounds.ts";
import { toInstall } from "./problems.ts";
import { runSandboxed, type Sandbox } from "./sandbox.ts";

/** The command that starts this machine's browser in a sandbox, or what is missing and how to fix it. */
export type BrowserStatus = { program: string; detail: string } | { missing: string };

/** The proxy of a browser. `trustedKey`: SHA-256 of the public key of certificates that it trusts, in Base64. */
export type BrowserProxy = { path: string; token: string; trustedKey?: string };

export type ChromiumOptions = {
  program: string;
  egress: BrowserProxy;
  memoryBytes: number;
  /** Aborting it kills the browser. */
  signal: AbortSignal;
};

/** A running browser, controlled over its DevTools pipe with one JSON text per message. */
export type Chromium = {
  /** Messages to a browser that has exited are lost. */
  send(message: string): void;
  /** Set it before the first message is sent. */
  onMessage: (message: string) => void;
  kill(): void;
  /** Resolves after all its processes are gone, with the reason and the limit that it reached, if any. */
  ended: Promise<{ reason: string; limit: LimitHit | null }>;
};

const maxMessageBytes = 32 * 1024 * 1024;
const cacheBytes = 32 * 1024 * 1024;
const maxProcesses = 512;

const switches = [
  "--headless=new --no-sandbox --no-zygote --disable-gpu --mute-audio --hide-scrollbars --window-size=1280,800",
  "--user-data-dir=/tmp/profile --disable-dev-shm-usage --password-store=basic --force-color-profile=srgb --lang=en-US",
  `--disk-cache-size=${cacheBytes} --media-cache-size=${cacheBytes}`,
  // All traffic uses the proxy, even traffic to the browser's own loopback.
  "--proxy-server=http://127.0.0.1:3128 --proxy-bypass-list=<-loopback> --disable-quic",
  "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
  // The browser makes no requests besides those of the page. The updater stops only if its URL is invalid.
  "--disable-background-networking --disable-component-update --component-updater=url-source=http://127.0.0.1:9/",
  "--disable-default-apps --disable-extensions --disable-sync --disable-domain-reliability --disable-breakpad --no-pings",
  "--disable-crash-reporter --disable-client-side-phishing-detection --disable-field-trial-config --metrics-recording-only",
  "--disable-component-extensions-with-background-pages --disable-search-engine-choice-screen --no-default-browser-check",
  "--no-first-run --disable-hang-monitor --disable-prompt-on-repost --disable-background-timer-throttling",
  // One process per page, including its frames.
  "--disable-site-isolation-trials --renderer-process-limit=2",
].flatMap((line) => line.split(" "));

const disabledFeatures = [
  "Translate,MediaRouter,DialMediaRouteProvider,GlobalMediaControls,OptimizationHints,AutofillServerCommunication",
  "CertificateTransparencyComponentUpdater,InterestFeedContentSuggestions,NetworkTimeServiceQuerying,AsyncDns",
  "HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,IsolateOrigins,site-per-process",
].join(",");

/** No speculative connections, and no spell-check dictionaries. */
const preferences = JSON.stringify({
  net: { network_prediction_options: 2 },
  safebrowsing: { enabled: false },
  browser: { enable_spellchecking: false },
  spellcheck: { dictionaries: [], dictionary: "" },
});

/** Writes the preferences `$1`, and becomes the browser. Its DevTools pipe is on the descriptors 3 and 4, in place of stdin and stdout. */
const launchScript = `
mkdir -p /tmp/profile/Default
printf %s "$1" >/tmp/profile/Default/Preferences
shift
exec 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null
exec "$@"`;

/** Detects the browser by starting it in a sandbox, because a browser from a snap or flatpak doesn't work there. */
export async function detectBrowser(sandbox: Sandbox): Promise<BrowserStatus> {
  const program = ["chromium", "chromium-browser"].find((name) => Bun.which(name));
  if (sandbox.level === "none") return { missing: `the sandbox is not available: ${sandbox.detail}` };
  const remedy = toInstall("chromium");
  if (!program) return { missing: `chromium is not installed; ${remedy}` };
  const probe = runSandboxed({ argv: [program, "--no-sandbox", "--version"] });
  const [{ exitCode }, version, output] = await Promise.all([
    probe.ended,
    new Response(probe.stdout).text(),
    new Response(probe.stderr).text(),
  ]);
  if (exitCode === 0) return { program, detail: `${Bun.which(program)}, ${version.trim()}` };
  const reason = output.trim().split("\n").at(-1)?.slice(0, 200) || `it exited with code ${exitCode}`;
  return {
    missing: `${program} does not run in the sandbox (${reason}); snap and flatpak packages are not supported, ${remedy}`,
  };
}

/** Starts a browser in its own sandbox. It gets only the network proxy: no files of the run, and no listening port. Its profile is in memory. */
export function startChromium({ program, egress, memoryBytes, signal }: ChromiumOptions): Chromium {
  const browser = [program, ...switches, `--disable-features=${disabledFeatures}`, "--remote-debugging-pipe"];
  const { trustedKey, ...proxy } = egress;
  if (trustedKey !== undefined) browser.push(`--ignore-certificate-errors-spki-list=${trustedKey}`);
  const { stdin, stdout, stderr, kill, ended } = runSandboxed({
    argv: ["sh", "-c", launchScript, "sh", preferences, ...browser, "about:blank"],
    sockets: { egress: proxy },
    limits: { memoryBytes, processes: maxProcesses },
    signal,
  });
  let stopReason: string | null = null;
  const stop = (reason: string) => {
    stopReason ??= reason;
    kill();
  };
  const chromium: Chromium = {
    send(message) {
      try {
        stdin.write(`${message}\0`);
        Promise.resolve(stdin.flush()).catch(() => {});
      } catch {
        // `ended` reports it.
      }
    },
    onMessage: () => {},
    kill,
    ended: Promise.all([
      ended,
      new Response(stderr).text(),
      readMessages(stdout, (text) => chromium.onMessage(text), stop),
    ]).then(([{ exitCode, limit }, output]) => {
      const limitReason = limit && `it reached the limit of ${limit.value} ${limit.unit} (${limit.limit})`;
      const reason = stopReason ?? limitReason ?? (output.trim() || `it exited with code ${exitCode}`);
      return { reason: reason.slice(0, 300), limit };
    }),
  };
  return chromium;
}

/** Messages end with a null byte. */
async function readMessages(
  stream: ReadableStream<Uint8Array>,
  onMessage: (text: string) => void,
  stop: (reason: string) => void,
) {
  let partial: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    let from = 0;
    for (let end = chunk.indexOf(0); end >= 0; end = chunk.indexOf(0, from)) {
      const text = Buffer.concat([...partial, chunk.subarray(from, end)]).toString();
      try {
        onMessage(text);
      } catch {
        stop("it sent an invalid message");
      }
      partial = [];
      bytes = 0;
      from = end + 1;
    }
    partial.push(chunk.slice(from));
    bytes += chunk.length - from;
    if (bytes > maxMessageBytes) stop("the page is too large");
  }
}
