import { redactedText } from "../redaction/private-keys.ts";

export const hidden = "…";
const email = /[\w.+-]+@[\w-]+(?:\.[\w-]+)+/g;
const anyUrl = /\b[a-z][a-z+.-]{1,15}:\/\/(?:\[redacted\]|[^\s"'<>)\]}])+/gi;
/** A path in one of the folders that systems and containers have. */
const absolutePath =
  /(?:~|[A-Za-z]:\\|\/(?:home|Users|root|tmp|var|etc|opt|usr|workspace|mnt|srv|private|app|data|repo|builds?)\b)[\w./\\@+-]*/g;
/** The path of a file, with an ending, below a folder of any name. */
const relativePath = /(?<![\w:/.])(?:\.{0,2}\/)?(?:[\w@.-]+\/)+[\w.-]+\.[A-Za-z]{1,5}\b/g;
const ipAddress = /\b\d{1,3}(?:\.\d{1,3}){3}\b/g;
/** A host with one of the usual top-level domains, or of an internal network. */
const hostName =
  /\b(?:[a-z0-9-]+\.)+(?:com|net|org|io|dev|app|ai|co|cloud|internal|intern|local|corp|lan|home|example|test|de|eu|uk|fr)\b/gi;
/** Lines in which a program quotes the code that failed: `12 | code`, `> 12 | code` and `^^^^`. */
const quotedCode = /^(?:[ \t]*\d+[ \t]*\|.*|[ \t]*>[ \t]*\d+[ \t]*\|.*|[ \t]*[\^~]+[ \t]*)$/gm;
/** The line of code below `File "main.py", line 12`, with the marks below it. */
const pythonCode = /^([ \t]*File [^\n]*\n)[ \t]+[^\n]*(?:\n[ \t]+[\^~]+)?/gm;
/** The line of code below `/app/main.js:12`, with the marks below it. */
const nodeCode = /^([^\n]*:\d+\n)[^\n]+\n[ \t]*\^+/gm;
/** 16 characters or more, with letters and digits. */
const longToken = /(?<![\w/])(?=[\w+/=-]*\d)(?=[\w+/=-]*[A-Za-z])[\w+/=-]{16,}/g;
const longNumber = /(?<![\w.])\d[\d -]{2,}\d(?!\w)/g;

/**
 * A text without what looks private: `values`, quoted code, mail addresses, paths, hosts and URLs for which `isPublic` is false, long tokens, and
 * numbers of four or more digits. Names of people and customers in prose stay, so a person has to look.
 */
export function withoutPrivateText(text: string, values: readonly string[], isPublic: (url: URL) => boolean): string {
  const withPublicUrls = text
    .replace(nodeCode, `$1${hidden}`)
    .replace(pythonCode, `$1  ${hidden}`)
    .replace(quotedCode, hidden)
    .replace(anyUrl, (match) => {
      const url = URL.parse(match);
      return url !== null && isPublic(url) ? `${url.origin}${url.pathname}` : "[url]";
    });
  // The pattern has a group, so every second part is a URL. URLs stay as they are here.
  const parts = withPublicUrls.split(new RegExp(`(${anyUrl.source})`, anyUrl.flags));
  return parts.map((part, i) => (i % 2 === 1 ? part : withoutPrivateWords(part, values, isPublic))).join("");
}

function withoutPrivateWords(text: string, values: readonly string[], isPublic: (url: URL) => boolean): string {
  const withoutShapes = text
    .replace(email, "[mail]")
    .replace(absolutePath, "[path]")
    .replace(relativePath, "[path]")
    .replace(ipAddress, "[address]")
    .replace(hostName, (name) => {
      const url = URL.parse(`https://${name}`);
      return url !== null && isPublic(url) ? name : "[host]";
    })
    .replace(longToken, redactedText)
    .replace(longNumber, "####");
  // Values come last, because a value may be only a part of a text that a shape hides.
  const longestFirst = [...new Set(values)].filter((value) => value.length >= 3).sort((a, b) => b.length - a.length);
  return longestFirst.reduce((rest, value) => rest.replaceAll(value, hidden), withoutShapes);
}
