import { redactKeys } from "../schema.ts";
import {
  assignmentShape,
  bearerShape,
  cookieShape,
  isMadeUp,
  isPlaceholder,
  looksSecret,
  parameterShape,
  secretName,
  tokenShape,
  urlPasswordShape,
} from "./secret-shapes.ts";

const gone = "[redacted]";
/** Credentials recognizable by their format. In JSON a letter may directly precede one, from an escape such as \\n. */
const shapes: [RegExp, string][] = [
  [/(authorization["']?\s{0,9}[:=]\s{0,9}["']?basic)\s{1,9}[A-Za-z0-9._~+/=-]{8,}/gi, `$1 ${gone}`],
  [/(?<![A-Za-z0-9_-]{2})eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}/g, gone],
  [/(aws_?secret(?:_?access)?_?key["']?\s{0,9}[=:]\s{0,9}["']?)[A-Za-z0-9/+=]{40}/gi, `$1${gone}`],
];

/** Headers whose value is always a secret. */
const isHeader = /^(?:proxy-)?authorization$|^(?:set-)?cookie$|^x-(?:goog-)?api-key$|^x-auth-token$/i;

/** "Basic" and the base64 of "name:password". The word alone is English, as in "Basic Statements". */
const withoutBasic = (text: string): string =>
  text.replace(/\b(basic)\s{1,9}([A-Za-z0-9+/_-]{4,}={0,2})/gi, (whole, scheme, value) => {
    const decoded = Buffer.from(value, "base64").toString("latin1");
    return /^[\x20-\x7e]*:[\x20-\x7e]*$/.test(decoded) ? `${scheme} ${gone}` : whole;
  });

/** Credentials of known formats, and values of parameters and variables that are named as secrets, unless docs write them as a placeholder. */
const withoutTokens = (text: string): string => {
  const unless =
    (isKept: (value: string) => boolean) =>
    (all: string, before: string, value: string, after = "") =>
      isKept(value) ? all : before + gone + (typeof after === "string" ? after : "");
  return text
    .replace(tokenShape, (token) => (isMadeUp(token) ? token : gone))
    .replace(bearerShape, unless(isPlaceholder))
    .replace(urlPasswordShape, unless(isPlaceholder))
    .replace(parameterShape, unless(isPlaceholder))
    .replace(
      assignmentShape,
      unless((value) => !looksSecret(value)),
    )
    .replace(
      cookieShape,
      unless((value) => !looksSecret(value.replace(/^[^=]*=/, ""))),
    );
};

const keyBlock = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|$)/g;
const keyEnd = /-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----/;

/** Removes private keys from a text, complete or truncated. */
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

/** Encodings of a secret: plain, base64 at each of three offsets, hex, URL-encoded and JSON. */
function spellings(secret: string): string[] {
  const bytes = Buffer.from(secret);
  const inBase64 = [0, 1, 2].flatMap((offset) => {
    const text = Buffer.concat([Buffer.alloc(offset), bytes]).toString("base64");
    // Drop characters that share bits with the neighboring text.
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

/** Redacts secrets in texts: these and those registered later, API keys of this service, and anything sent as credentials. */
export function createRedaction(secrets: readonly string[] = []) {
  let known: string[] = [];
  const hide = (more: readonly string[]) => {
    // Longest first, because one may contain another.
    known = [...new Set([...known, ...more.flatMap(spellings)])].sort((a, b) => b.length - a.length);
  };
  hide(secrets);
  return {
    hide,
    /** `name`: the property that contains the text, if any. */
    clean(text: string, name = ""): string {
      if (secretName.test(name) && (isHeader.test(name) || looksSecret(text))) return gone;
      const left = known.reduce((rest, secret) => rest.replaceAll(secret, gone), text);
      return shapes.reduce(
        (rest, [shape, instead]) => rest.replace(shape, instead),
        withoutTokens(withoutBasic(withoutPrivateKeys(redactKeys(left)))),
      );
    },
  };
}
