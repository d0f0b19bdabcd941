import type { ComponentChildren } from "preact";

type PageLink = { rel?: "prev" | "next"; href: string; text: string };

type Props = {
  /** Accessible name, needed if a page has two pagers. */
  label?: string;
  /** Describes which part of the list is shown. */
  range?: string;
  links: (PageLink | false | null)[];
  children?: ComponentChildren;
};

/** Links to the other pages of a list. They follow other content on the same line. */
export function Pager({ label = "Pages", range, links, children }: Props) {
  const pageLinks = links.filter((link) => link !== false && link !== null);
  return (
    <div class="pager">
      <span>{children}</span>
      {(range !== undefined || pageLinks.length > 0) && (
        <nav class="end" aria-label={label}>
          {range !== undefined && <span class="muted">{range}</span>}
          {pageLinks.map(({ rel, href, text }) => (
            <a key={text} class="button" rel={rel} href={href}>
              {text}
            </a>
          ))}
        </nav>
      )}
    </div>
  );
}

/** The range of items that a page of a list shows. */
export type ListRange = { offset: number; perPage: number; total: number };

type Offsets = ListRange & { toPage: (offset: number) => string };

/** The links of a list with an offset. The pair contains the texts of the link to the previous page and of the link to the next page. */
export const offsetLinks = (
  { offset, perPage, total, toPage }: Offsets,
  [previous, next]: [string, string] = ["Newer", "Older"],
): (PageLink | false)[] => [
  offset > 0 && { rel: "prev", href: toPage(Math.max(0, offset - perPage)), text: previous },
  offset + perPage < total && { rel: "next", href: toPage(offset + perPage), text: next },
];

/** A URL with its query; empty values and 0 are omitted. */
export function toHref(path: string, query: object): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value) params.set(name, String(value));
  return params.size === 0 ? path : `${path}?${params}`;
}
