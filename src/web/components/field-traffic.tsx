import { count } from "../../grading/text.ts";
import { formatNumber } from "../../reports/labels.ts";
import type { FieldTraffic } from "../../traffic/schema.ts";
import { List } from "./figures.tsx";
import { PageList, pathOf } from "./page-list.tsx";

/** With fewer reads than this, a page could identify a single customer. */
const minShown = 3;
const toTimes = (times: number): string => (times > 0 && times < minShown ? "few" : formatNumber(times));

const kindLabels: Record<FieldTraffic["visitors"][number]["kind"], string> = {
  coding: "Coding agent",
  answer: "Assistant",
  search: "Search index",
  training: "Training crawler",
  program: "Program",
};

type Props = { base: string; traffic: FieldTraffic; docsUrl: string; mayPropose: boolean };

/** The pages that agents read outside of runs, compared with the pages that runs read. */
export const FieldTrafficSection = ({ base, traffic, docsUrl, mayPropose }: Props) => (
  <>
    <h2 id="outside">Agents outside</h2>
    {traffic.visitors.length === 0 ? (
      <p class="empty">
        No access log was imported for these months. <code>evald field import access.log --docs {docsUrl}</code> counts
        on your machine what agents read, and sends only the counts.
      </p>
    ) : (
      <>
        <p class="muted">From access logs. Agents say who they are, and nobody checks it. {summaryOf(traffic)}</p>
        <List
          label="Pages read outside"
          isStacked
          labels={["Page"]}
          numbers={["Coding agents", "Assistants", "As Markdown", "Runs"]}
        >
          {traffic.pages.map(({ url, coding, answer, markdown, runs }) => (
            <tr key={url}>
              <th scope="row" title={url}>
                {pathOf(url)}
              </th>
              <td class="number" data-label="Coding agents">
                {toTimes(coding)}
              </td>
              <td class="number" data-label="Assistants">
                {toTimes(answer)}
              </td>
              <td class="number" data-label="As Markdown">
                {toTimes(markdown)}
              </td>
              <td class="number" data-label="Runs">
                {formatNumber(runs)}
              </td>
            </tr>
          ))}
        </List>
        <div class="pair">
          <PageList
            title="Read outside, tested by no run"
            text="Agents read these pages, and no prompt leads a run to them."
            total={traffic.untested.length}
            items={traffic.untested.map(({ url, reads }) => ({ url, note: readsText(reads) }))}
          />
          <PageList
            title="Asked for and missing"
            text="Agents asked for these URLs, and got 404 or 410, or a page that says that it doesn’t exist."
            total={traffic.missing.length}
            items={traffic.missing.map(({ url, requests, guesses }) => ({
              url,
              note: `${timesText(requests)}${guesses > 0 ? `, guessed ${count(guesses, "time")} in runs` : ""}`,
            }))}
          />
          <PageList
            title="Read by runs, never outside"
            text="Runs read these pages, and no coding agent or assistant outside."
            total={traffic.unread.length}
            items={traffic.unread.map(({ url, runs }) => ({ url, note: count(runs, "run") }))}
          />
          <PageList
            title="Who fetches llms.txt"
            text="Requests for llms.txt by agent."
            total={traffic.llmsTxt.length}
            items={traffic.llmsTxt.map(({ url, name, kind, reads, missing }) => ({
              url,
              note: `${name} (${kindLabels[kind]}): ${missing > 0 && reads === 0 ? "missing, " : ""}${timesText(reads + missing)}`,
            }))}
          />
        </div>
        {mayPropose && traffic.untested.length > 0 && (
          <p>
            <a class="button" href={`${base}/prompts/propose?docsUrl=${encodeURIComponent(docsUrl)}`}>
              Propose prompts for what agents read
            </a>
          </p>
        )}
      </>
    )}
  </>
);

const timesText = (times: number) => (times < minShown ? "few times" : count(times, "time"));
const readsText = (reads: number) => (reads < minShown ? "few reads" : count(reads, "read"));

/** The agents with the most requests. */
const summaryOf = ({ visitors }: FieldTraffic): string =>
  `${visitors
    .slice(0, 6)
    .map(({ name, reads, missing }) => `${name}\u00a0${toTimes(reads + missing)}`)
    .join(", ")}.`;
