import type { LimitHit } from "./bounds.ts";
import { runSandboxed, type Sandbox } from "./sandbox.ts";

/** The browser of this machine, as it is called in a sandbox; else what is missing and what would help. */
export type FoundBrowser = { program: string; detail: string } | { missing: string };

type Options = {
  program: string;
  egress: { path: string; token: string };
  memoryBytes: number;
  /** Its abort kills everything of it. */
  signal: AbortSignal;
};

/** A browser under way, spoken to over its DevTools pipe: one JSON text a message. */
export type Chromium = {
  /** What is sent to one that is gone is lost. */
  send(message: string): void;
  /** Set it before the first message is sent. */
  hear: (message: string) => void;
  kill(): void;
  /** Why it is gone, in words, when nothing of it is left; and the bound that it reached, if one. */
  ended: Promise<{ why: string; limit: LimitHit | null }>;
};

const maxMessageBytes = 32 * 1024 * 1024;
const cacheBytes = 32 * 1024 * 1024;
const processes = 512;

const switches = [
  "--headless=new --no-sandbox --no-zygote --disable-gpu --mute-audio --hide-scrollbars --window-size=1280,800",
  "--user-data-dir=/tmp/profile --disable-dev-shm-usage --password-store=basic --force-color-profile=srgb --lang=en-US",
  `--disk-cache-size=${cacheBytes} --media-cache-size=${cacheBytes}`,
  // One way out, for its own loopback too.
  "--proxy-server=http://127.0.0.1:3128 --proxy-bypass-list=<-loopback> --disable-quic",
  "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
  // Nothing is asked for that no page asks for. The updater rests only where its address is one that it cannot take.
  "--disable-background-networking --disable-component-update --component-updater=url-source=http://127.0.0.1:9/",
  "--disable-default-apps --disable-extensions --disable-sync --disable-domain-reliability --disable-breakpad --no-pings",
  "--disable-crash-reporter --disable-client-side-phishing-detection --disable-field-trial-config --metrics-recording-only",
  "--disable-component-extensions-with-background-pages --disable-search-engine-choice-screen --no-default-browser-check",
  "--no-first-run --disable-hang-monitor --disable-prompt-on-repost --disable-background-timer-throttling",
  // One process for a page with all of its frames.
  "--disable-site-isolation-trials --renderer-process-limit=2",
].flatMap((line) => line.split(" "));

const withoutFeatures = [
  "Translate,MediaRouter,DialMediaRouteProvider,GlobalMediaControls,OptimizationHints,AutofillServerCommunication",
  "CertificateTransparencyComponentUpdater,InterestFeedContentSuggestions,NetworkTimeServiceQuerying,AsyncDns",
  "HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,IsolateOrigins,site-per-process",
].join(",");

/** No connections on a guess of what may be asked for next, and no dictionaries for what is typed. */
const preferences = JSON.stringify({
  net: { network_prediction_options: 2 },
  safebrowsing: { enabled: false },
  browser: { enable_spellchecking: false },
  spellcheck: { dictionaries: [], dictionary: "" },
});

/** Finds out by really running it, in a sandbox: a browser that comes as a snap or a flatpak does not work there. */
export async function detectBrowser(sandbox: Sandbox): Promise<FoundBrowser> {
  const program = ["chromium", "chromium-browser"].find((name) => Bun.which(name));
  const remedy = "install it (apt-get install chromium)";
  if (!program) return { missing: `chromium is not installed; ${remedy}` };
  if (sandbox.level === "none") return { missing: `the sandbox is not available: ${sandbox.detail}` };
  const probe = runSandboxed({ argv: [program, "--no-sandbox", "--version"] });
  const [{ exitCode }, version, said] = await Promise.all([
    probe.ended,
    new Response(probe.stdout).text(),
    new Response(probe.stderr).text(),
  ]);
  if (exitCode === 0) return { program, detail: `${Bun.which(program)}, ${version.trim()}` };
  const why = said.trim().split("\n").at(-1)?.slice(0, 200) || `it exited with code ${exitCode}`;
  return {
    missing: `${program} does not run in the sandbox (${why}); snap and flatpak packages are not supported, ${remedy}`,
  };
}

/**
 * Starts a browser in a sandbox of its own, in which it has nothing but the way out: no file of the run, no port that it listens on, and a
 * profile in memory.
 */
export function startChromium({ program, egress, memoryBytes, signal }: Options): Chromium {
  // It speaks on descriptors 3 and 4, a sandbox on its first two.
  const script =
    'mkdir -p /tmp/profile/Default; printf %s "$1" >/tmp/profile/Default/Preferences; shift; exec 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null; exec "$@"';
  const browser = [program, ...switches, `--disable-features=${withoutFeatures}`, "--remote-debugging-pipe"];
  const { stdin, stdout, stderr, kill, ended } = runSandboxed({
    argv: ["sh", "-c", script, "sh", preferences, ...browser, "about:blank"],
    sockets: { egress },
    limits: { memoryBytes, processes },
    signal,
  });
  let stopped: string | null = null;
  const stop = (why: string) => {
    stopped ??= why;
    kill();
  };
  const chromium: Chromium = {
    send(message) {
      try {
        stdin.write(`${message}\0`);
        Promise.resolve(stdin.flush()).catch(() => {});
      } catch {
        // `ended` tells of it.
      }
    },
    hear: () => {},
    kill,
    ended: Promise.all([ended, new Response(stderr).text(), listen(stdout, (text) => chromium.hear(text), stop)]).then(
      ([{ exitCode, limit }, said]) => {
        const reached = limit && `it reached the limit of ${limit.value} ${limit.unit} (${limit.limit})`;
        const why = stopped ?? reached ?? (said.trim() || `it exited with code ${exitCode}`);
        return { why: why.slice(0, 300), limit };
      },
    ),
  };
  return chromium;
}

/** Messages end with a zero byte. */
async function listen(stream: ReadableStream<Uint8Array>, hear: (text: string) => void, stop: (why: string) => void) {
  let begun: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    let from = 0;
    for (let at = chunk.indexOf(0); at >= 0; at = chunk.indexOf(0, from)) {
      const text = Buffer.concat([...begun, chunk.subarray(from, at)]).toString();
      try {
        hear(text);
      } catch {
        stop("it sent an invalid message");
      }
      begun = [];
      bytes = 0;
      from = at + 1;
    }
    begun.push(chunk.slice(from));
    bytes += chunk.length - from;
    if (bytes > maxMessageBytes) stop("the page is too large");
  }
}
