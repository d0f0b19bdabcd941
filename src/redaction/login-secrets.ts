/** Shorter texts of a login file are words, such as the kind of a subscription. */
const minTokenLength = 20;
/** Values that are no secrets, although they are long. */
const publicValue = /\s|:\/\/|^\d{4}-\d\d-\d\dT/;

/** The tokens of a login file, which must not appear in anything that is stored. */
export function secretsInLogin(content: string): string[] {
  try {
    return [...new Set(textsOf(JSON.parse(content)).filter(isSecret))];
  } catch {
    return [...new Set(content.split(/[\s"'=]+/).filter(isSecret))];
  }
}

const isSecret = (value: string): boolean => value.length >= minTokenLength && !publicValue.test(value);

/** Every text of a JSON value. */
function textsOf(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsOf) : [];
}
