import { renderToString } from "preact-render-to-string";
import { humanize } from "../../reports/labels.ts";
import type { Trace } from "../../reports/trace-schema.ts";
import { toEventHref } from "../components/figures.tsx";
import { Layout } from "../components/layout.tsx";
import { Payload } from "../components/payload.tsx";
import { Time } from "../components/when.tsx";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";

type Event = Trace["events"][number];

type Props = { site: Site; viewer?: Viewer; path: string; event: Event; publisher?: string };

/** The page of one event with all its fields. `publisher`: set on a shared page. */
export function EventPage({ site, viewer, path, event, publisher }: Props) {
  const { seq, at, tMs, type, source, ...fields } = event;
  return (
    <Layout
      {...{ site, viewer, publisher }}
      path={`${path}/session/${seq}`}
      title={`Event ${seq}`}
      crumbs={[
        { name: "Report", path },
        { name: "Session", path: toEventHref(`${path}/session`, seq) },
        { name: `Event ${seq}` },
      ]}
    >
      <header class="head">
        <h1>
          Event {seq}: {humanize(type)}
        </h1>
        <p class="muted">
          <Time at={at} /> · {(tMs / 1000).toFixed(2)} s after start · source: {source}
        </p>
      </header>
      <Payload fields={fields} />
    </Layout>
  );
}

/** The fields of an event as a fragment, which is inserted into the row of the event. */
export function renderPayload({
  seq: _seq,
  at: _at,
  tMs: _tMs,
  type: _type,
  source: _source,
  ...fields
}: Event): string {
  return renderToString(<Payload fields={fields} />);
}
