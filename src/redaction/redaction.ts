import { redactKeys } from "../schema.ts";
import { createKeyStreams, redactedText, withoutPrivateKeys } from "./private-keys.ts";
import {
  bearerShape,
  commandShapes,
  cookieShape,
  isBareSecret,
  isMadeUp,
  isNamedSecret,
  isPlaceholder,
  isSecretProperty,
  looksSecret,
  maxValueLength,
  minValueLength,
  namedShape,
  netrcShape,
  optionShape,
  tokenShape,
  userShape,
  valueRest,
} from "./secret-shapes.ts";

/** Basic credentials, JSON Web Tokens and the secret keys of AWS, each with its replacement. */
const replacements: [RegExp, string][] = [
  [/(authorization["']?\s{0,9}[:=]\s{0,9}["']?basic)\s{1,9}[A-Za-z0-9._~+/=-]{8,}/gi, `$1 ${redactedText}`],
  [/(?<![A-Za-z0-9_-]{2})eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}/g, redactedText],
  [/(aws_?secret(?:_?access)?_?key["']?\s{0,9}[=:]\s{0,9}["']?)[A-Za-z0-9/+=]{40}/gi, `$1${redactedText}`],
];

/** Redacts the base64 of "name:password" after "Basic". The word alone is English, as in "Basic Statements". */
const withoutBasic = (text: string): string =>
  text.replace(/\b(basic)\s{1,9}([A-Za-z0-9+/_-]{4,}={0,2})/gi, (whole, scheme, value) => {
    const decoded = Buffer.from(value, "base64").toString("latin1");
    return /^[\x20-\x7e]*:[\x20-\x7e]*$/.test(decoded) ? `${scheme} ${redactedText}` : whole;
  });

/** The part of a value in a text that can be a secret: up to the next parameter, without punctuation of the text around it. */
const trimValue = (separator: string, value: string): string => {
  const end = findParameterEnd(separator, value);
  return (end < 0 ? value : value.slice(0, end)).replace(/[),.;:\]}]{1,9}$/, "");
};

/** Where the next parameter of a URL or form may begin; -1: nowhere. */
function findParameterEnd(separator: string, value: string): number {
  if (separator.startsWith("=")) return value.search(/[&;]/);
  return /^%3D/i.test(separator) ? value.search(/[&;#]|%26|%23/i) : -1;
}

/** Redacts the values of variables, settings, headers and parameters that are named as secrets. */
function withoutNamedSecrets(text: string): string {
  let output = "";
  let doneUntil = 0;
  namedShape.lastIndex = 0;
  for (let match = namedShape.exec(text); match !== null; match = namedShape.exec(text)) {
    const [, name = "", separator = "", rawValue = ""] = match;
    const from = match.index + name.length + separator.length;
    const value = trimValue(separator, rawValue);
    const end = from + value.length;
    const before = text.slice(Math.max(0, match.index - 30), match.index);
    const after = text.slice(end, end + 9);
    // A value that isn't redacted may contain another name.
    namedShape.lastIndex = from;
    if (value.length < minValueLength || !isNamedSecret({ before, name, separator, value, after })) continue;
    output += text.slice(doneUntil, from) + redactedText;
    // `namedShape` matches only the beginning of a long value; `valueRest` finds its end.
    valueRest.lastIndex = end;
    doneUntil = end + (value.length === maxValueLength ? (valueRest.exec(text)?.[0].length ?? 0) : 0);
    namedShape.lastIndex = doneUntil;
  }
  return output + text.slice(doneUntil);
}

type Replacer = (whole: string, before: string, value: string) => string;

/** Redacts credentials of known formats, and values that are named as secrets, unless docs write them as placeholders. */
function withoutTokens(text: string): string {
  const redactUnless =
    (isHarmless: (value: string, before: string) => boolean): Replacer =>
    (whole, before, value) =>
      isHarmless(value, before) ? whole : before + redactedText;
  let cleaned = text
    .replace(tokenShape, (token) => (isMadeUp(token) ? token : redactedText))
    .replace(bearerShape, redactUnless(isPlaceholder))
    .replace(userShape, (whole, before, user, password) => {
      if (password !== undefined) return isPlaceholder(password) ? whole : `${before}${user}:${redactedText}`;
      // A long user without a password may be a key, as in the URL of a Sentry project.
      return user.length >= 16 && looksSecret(user) ? before + redactedText : whole;
    })
    .replace(
      cookieShape,
      redactUnless((value) => !looksSecret(value.replace(/^[^=]*=/, ""))),
    )
    // Before the value, the option may end with a quote and a comma, as in a list of arguments.
    .replace(
      optionShape,
      redactUnless((value, before) => !isBareSecret(value, before.replace(/["',\s]{1,9}$/, ""))),
    )
    .replace(
      netrcShape,
      redactUnless((value) => !isBareSecret(value, "password")),
    );
  // A short number is a port, as in `mysql -p3306`.
  const redactPassword = redactUnless((value) => isPlaceholder(value) || /^\d{1,5}$/.test(value));
  for (const shape of commandShapes) cleaned = cleaned.replace(shape, redactPassword);
  return withoutNamedSecrets(cleaned);
}

/** Encodings of a secret: plain, base64 at each of three offsets, hex, URL-encoded and JSON. */
function encodingsOf(secret: string): string[] {
  const bytes = Buffer.from(secret);
  const inBase64 = [0, 1, 2].flatMap((offset) => {
    const text = Buffer.concat([Buffer.alloc(offset), bytes]).toString("base64");
    // A base64 character has 6 bits. The characters at both ends share bits with the neighboring text, so they are cut off.
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

/** Redacts these secrets and those registered later, in every usual encoding, and nothing else. */
export function createSecretFilter(secrets: readonly string[] = []) {
  let secretTexts: string[] = [];
  const hide = (more: readonly string[]) => {
    // Longest first, because one may contain another.
    secretTexts = [...new Set([...secretTexts, ...more.flatMap(encodingsOf)])].sort((a, b) => b.length - a.length);
  };
  hide(secrets);
  return {
    hide,
    redact: (text: string): string => secretTexts.reduce((rest, secret) => rest.replaceAll(secret, redactedText), text),
  };
}

/** Redacts secrets in texts: the given secrets, secrets that are registered later, API keys of this service, and anything sent as credentials. */
export function createRedaction(secrets: readonly string[] = []) {
  const withoutOpenKeys = createKeyStreams();
  const { hide, redact } = createSecretFilter(secrets);
  return {
    hide,
    /** `name`: the property that contains the text, if any. `stream`: identifies the texts that this one continues, if any. */
    clean(whole: string, name = "", stream?: string): string {
      if (isSecretProperty(name, whole)) return redactedText;
      const text = stream === undefined ? whole : withoutOpenKeys(stream, whole);
      let cleaned = withoutTokens(withoutBasic(withoutPrivateKeys(redactKeys(redact(text)))));
      for (const [shape, replacement] of replacements) cleaned = cleaned.replace(shape, replacement);
      return cleaned;
    },
  };
}
