/** The source of a pattern that matches if any of these matches. */
export const anyOf = (...patterns: RegExp[]): string => `(?:${patterns.map(({ source }) => source).join("|")})`;

/** A pattern that finds any of these as whole words, in any case. */
export const anyWordOf = (...patterns: RegExp[]): RegExp => new RegExp(`\\b${anyOf(...patterns)}\\b`, "i");
