import { formatNumber } from "../../reports/labels.ts";
import { ScrollArea } from "./figures.tsx";

/** The path and query of a page's URL. Text that isn't a URL is returned unchanged. */
export const pathOf = (url: string): string => {
  const { pathname, search } = URL.parse(url) ?? { pathname: url, search: "" };
  return pathname + search;
};

type Props = { title: string; text: string; total: number; items: { url: string; note: string }[] };

/** Pages of docs under a heading, each with a note. `total`: the number of pages, including pages that aren't listed. */
export const PageList = ({ title, text, total, items }: Props) => (
  <section>
    <h2>
      {title} <small>{formatNumber(total)}</small>
    </h2>
    <p class="muted">{text}</p>
    <ScrollArea label={title}>
      <ul class="addresses">
        {items.map(({ url, note }) => (
          <li key={`${url} ${note}`}>
            <code title={url}>{pathOf(url)}</code> <small>{note}</small>
          </li>
        ))}
      </ul>
    </ScrollArea>
  </section>
);
