const uuid7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** The id that a form was made with, for what it makes: sent twice it makes one thing. */
export function idIn(form: URLSearchParams): string | undefined {
  const id = form.get("id") ?? "";
  return uuid7.test(id) ? id : undefined;
}

/** Takes the fields of a form that were left blank out of a query, in place: a browser sends them all. For a route's `transform`. */
export function withoutBlanks({ query }: { query: Record<string, unknown> }): void {
  for (const [name, value] of Object.entries(query)) if (value === "") delete query[name];
}
