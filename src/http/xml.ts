/** Escapes text for the content of an XML 1.0 element. Replaces characters that XML cannot represent with U+FFFD. */
export const toXmlText = (text: string): string =>
  text
    .toWellFormed()
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to replace
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd")
    .replace(/[&<>"\r]/g, toReference);

/** Formats values as XML attributes, each after a space. */
export const toXmlAttributes = (values: Record<string, string | number>): string =>
  Object.entries(values)
    // A parser would turn an unescaped tab or line break in an attribute into a space.
    .map(([name, value]) => ` ${name}="${toXmlText(String(value)).replace(/[\t\n]/g, toReference)}"`)
    .join("");

function toReference(char: string): string {
  return `&#${char.charCodeAt(0)};`;
}
