import { redactKeys } from "../schema.ts";

const secretNames = /^(proxy-)?authorization$|^(set-)?cookie$|^x-(goog-)?api-key$/i;
const gone = "[redacted]";
/** Credentials that are known by their looks alone, whosever they are. In JSON a letter may stand right before one: that of a \\n. */
const shapes: [RegExp, string][] = [
  [/(bearer|basic)\s{1,9}[A-Za-z0-9._~+/=-]{8,}/gi, `$1 ${gone}`],
  [/(?<![A-Za-z0-9_-]{2})eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}/g, gone],
  [/(?:AKIA|ASIA)[A-Z0-9]{16}/g, gone],
  [/(aws_?secret(?:_?access)?_?key["']?\s{0,9}[=:]\s{0,9}["']?)[A-Za-z0-9/+=]{40}/gi, `$1${gone}`],
  [/\b([a-z][a-z0-9+.-]{0,20}:\/\/[^\s/:@"']{0,200}:)[^\s/@"']{1,500}@/gi, `$1${gone}@`],
];

const keyBlock = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|$)/g;
const keyEnd = /-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----/;

/** A text without private keys, whole or cut off at either side. */
function withoutPrivateKeys(text: string): string {
  if (!text.includes("PRIVATE KEY-----")) return text;
  const parts = text.replace(keyBlock, gone).split(keyEnd);
  const kept = parts.slice(0, -1).map((part) => {
    let end = part.length;
    while (end > 0 && /[A-Za-z0-9+/=\s\\]/.test(part[end - 1] as string)) end--;
    return part.slice(0, end) + gone;
  });
  return [...kept, parts.at(-1)].join("");
}

/** Ways in which a secret may be written: plain, in base64 at each of its three offsets, in hex, encoded for an address or in JSON. */
function spellings(secret: string): string[] {
  const bytes = Buffer.from(secret);
  const inBase64 = [0, 1, 2].flatMap((offset) => {
    const text = Buffer.concat([Buffer.alloc(offset), bytes]).toString("base64");
    // Characters that hold bits of what stands before or after belong to no secret.
    const cut = text.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + bytes.length) * 8) / 6));
    return [cut, cut.replaceAll("+", "-").replaceAll("/", "_")];
  });
  const encoded = encodeURIComponent(secret);
  const inHex = bytes.toString("hex");
  const all = [
    secret,
    ...inBase64,
    encoded,
    encoded.toLowerCase(),
    inHex,
    inHex.toUpperCase(),
    JSON.stringify(secret).slice(1, -1),
  ];
  return [...new Set(all)].filter((text) => text.length >= 8);
}

/** Takes secrets out of texts: those it was told of, this service's own keys, and what is sent as credentials. */
export function createRedaction() {
  let known: string[] = [];
  return {
    hide(secrets: string[]): void {
      // The longest first: one may be a part of another.
      known = [...new Set([...known, ...secrets.flatMap(spellings)])].sort((a, b) => b.length - a.length);
    },
    /** `name`: under which the text stands, if under one. */
    clean(text: string, name = ""): string {
      if (secretNames.test(name)) return gone;
      const left = known.reduce((rest, secret) => rest.replaceAll(secret, gone), text);
      return shapes.reduce(
        (rest, [shape, instead]) => rest.replace(shape, instead),
        withoutPrivateKeys(redactKeys(left)),
      );
    },
  };
}
