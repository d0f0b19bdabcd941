import { fingerprint } from "../grading/findings/finding.ts";
import type { Friction } from "../grading/grade.ts";
import { frictionCategories } from "../grading/kinds.ts";
import { line, sameAddress } from "../grading/text.ts";
import { httpUrl } from "../schema.ts";

/** Prefixes of the subjects of friction at a URL: found by a rule, by an agent in a run, or by a judge. */
const finders = ["", "agent ", "judge "];

/** The place of field friction: a URL without credentials and fragment, or a text on one line. */
export const toPlace = (where: string): string =>
  httpUrl(where.trim()) ? line(sameAddress(where.trim()), 1000) : line(where, 500);

/**
 * The fingerprint of field friction, then those that friction of a run at the same place may have. Without a category, those of every
 * category. Numbers in a text that is not a URL don't matter.
 */
export function fingerprintsAt(place: string, category: Friction["category"] | undefined): [string, ...string[]] {
  if (!httpUrl(place)) return [fingerprint(category ?? "other", place.toLowerCase().replace(/\d+/g, "#"))];
  const own = fingerprint(category ?? "other", place);
  const all = (category ? [category] : frictionCategories).flatMap((each) =>
    finders.map((finder) => fingerprint(each, finder + place)),
  );
  return [own, ...all.filter((each) => each !== own)];
}
