import { describe, expect, test } from "bun:test";
import { browse, signedIn } from "./support/people.ts";
import { scheduledApp } from "./support/schedules.ts";

const problemsOf = async (app: ReturnType<typeof scheduledApp>) =>
  (await app.send("GET", "/api/v1/inbox")).body.problems.length;

describe("a frequency in words", () => {
  test("becomes a cron expression, over REST and from the form", async () => {
    const app = scheduledApp("2027-01-01T00:00:00Z");
    const frequencyOf = async (frequency: string) => {
      const id = await app.create({ frequency });
      return id && (await app.send("GET", `/api/v1/prompts/${id}`)).body.frequency;
    };
    expect(await frequencyOf("daily at 06:30")).toBe("30 6 * * *");
    expect(await frequencyOf("Weekdays at 9:05")).toBe("5 9 * * 1-5");
    expect(await frequencyOf("monday at 23:59")).toBe("59 23 * * 1");
    expect(await frequencyOf("weekly on Sunday at 00:00")).toBe("0 0 * * 0");
    expect(await frequencyOf("daily at 24:00")).toBe(undefined);
    const owner = await signedIn(app);
    const fields = { text: "See https://docs.test/", frequency: "weekly-at", weekday: "friday", time: "17:45" };
    const { location } = await owner.post("/prompts", { ...fields, catchUp: "window", catchUpHours: "36" });
    const stored = (await app.send("GET", `/api/v1${location?.replace(/\?.*/, "")}`)).body;
    expect([stored.frequency, stored.catchUp, stored.catchUpHours]).toEqual(["45 17 * * 5", "window", 36]);
    // The form shows what it stored, and the page says it in words.
    const form = (await owner.get(`${location}/edit`)).body;
    expect(form).toMatch(/value="weekly-at" selected/);
    expect(form).toMatch(/value="friday" selected/);
    expect(form).toContain('value="17:45"');
    expect((await owner.get(`${location}`)).body).toContain("Weekly on Friday at 17:45");
  });
});

describe("a schedule", () => {
  test("has its next 20 times, in the time zone of the organization", async () => {
    const app = scheduledApp("2027-03-27T12:00:00Z", { zone: "Europe/Berlin" });
    const id = await app.create({ frequency: "daily at 06:30", overlap: "queue" });
    const { body } = await app.send("GET", `/api/v1/prompts/${id}/schedule`);
    expect(body).toMatchObject({ timeZone: "Europe/Berlin", overlap: "queue", catchUp: "automatic", pausedBy: null });
    // Clocks go forward on the 28th.
    expect(body.nextTimes.slice(0, 2)).toEqual(["2027-03-28T04:30:00.000Z", "2027-03-29T04:30:00.000Z"]);
    expect(body.nextTimes.length).toBe(20);
    const page = (await (await signedIn(app)).get(`/prompts/${id}/schedule`)).body;
    expect([...page.matchAll(/class="to-come"/g)].length).toBe(20);
    expect((await app.send("GET", `/api/v1/prompts/${crypto.randomUUID()}/schedule`)).status).toBe(404);
  });

  test("that waits for the previous evaluation starts when it ends, and only one waits", async () => {
    const app = scheduledApp("2027-01-01T00:00:00Z");
    const id = await app.create({ frequency: "0 * * * *", overlap: "queue" });
    for (const hour of ["01", "02", "03"]) await app.tickAt(`2027-01-01T${hour}:00:00Z`);
    expect(await app.outcomes(id)).toEqual([
      "2027-01-01T01:00 ran",
      "2027-01-01T02:00 waiting",
      "2027-01-01T03:00 skipped_overlap",
    ]);
    await app.finish(id);
    await app.tickAt("2027-01-01T03:10:00Z");
    expect((await app.outcomes(id)).slice(1, 2)).toEqual(["2027-01-01T02:00 ran"]);
    const late = (await app.send("GET", "/api/v1/schedules/exceptions")).body;
    expect(late.map(({ outcome, createdAt }: Record<string, string>) => [outcome, createdAt])).toEqual([
      ["skipped_overlap", "2027-01-01T03:00:00.000Z"],
      ["ran", "2027-01-01T03:10:00.000Z"],
    ]);
    // It no longer waits for anything once the prompt is paused.
    await app.tickAt("2027-01-01T04:00:00Z");
    await app.change(id, { status: "paused" });
    await app.tickAt("2027-01-01T04:01:00Z");
    expect((await app.outcomes(id)).at(-1)).toBe("2027-01-01T04:00 skipped_overlap");
  });

  test("refuses hours without their policy, and the policy without hours", async () => {
    const app = scheduledApp("2027-01-01T00:00:00Z");
    const status = async (body: object) =>
      (await app.send("POST", "/api/v1/prompts", { body: { text: "See https://docs.test/", ...body } })).body.detail;
    expect(await status({ catchUp: "window" })).toContain("catchUpHours");
    expect(await status({ catchUp: "latest", catchUpHours: 3 })).toContain("catchUpHours");
  });
});

describe("all schedules of an organization", () => {
  test("can be paused and resumed, without making up for what was due in between", async () => {
    const app = scheduledApp("2027-01-01T00:00:00Z");
    const id = await app.create({ frequency: "0 * * * *" });
    await app.tickAt("2027-01-01T01:00:00Z");
    await app.finish(id);
    const pause = await app.send("POST", "/api/v1/schedules/pause");
    expect(pause.body).toEqual({ pausedAt: "2027-01-01T01:00:00.000Z", schedules: 1 });
    expect(await app.nextRuns(id)).toBe(null);
    // A new schedule is paused as well, also after a restart, a set clock and a changed frequency.
    const other = await app.create({ frequency: "30 * * * *" });
    await app.change(id, { frequency: "15 * * * *" });
    await app.restart();
    await app.tickAt("2027-01-01T00:10:00Z");
    await app.tickAt("2027-01-01T05:00:00Z");
    expect(await app.outcomes(id)).toEqual(["2027-01-01T01:00 ran"]);
    expect(await app.outcomes(other)).toEqual([]);
    expect((await app.send("GET", `/api/v1/prompts/${id}/schedule`)).body).toMatchObject({
      pausedBy: "organization",
      nextTimes: [],
    });
    expect((await app.send("POST", "/api/v1/schedules/resume")).body).toEqual({ pausedAt: null, schedules: 2 });
    expect((await app.nextRuns(id))?.[0]).toBe("2027-01-01T05:15:00.000Z");
    await app.tickAt("2027-01-01T05:30:00Z");
    expect([await app.outcomes(id), await app.outcomes(other)]).toEqual([
      ["2027-01-01T01:00 ran", "2027-01-01T05:15 ran"],
      ["2027-01-01T05:30 ran"],
    ]);
    expect(await problemsOf(app)).toBe(0);
  });

  test("are on a page with what did not run on time", async () => {
    const app = scheduledApp("2027-01-01T00:00:00Z");
    const id = await app.create({ title: "Nightly", frequency: "0 0 * * *", catchUp: "skip" });
    await app.tickAt("2027-01-02T00:05:00Z");
    expect(await app.outcomes(id)).toEqual(["2027-01-02T00:00 missed"]);
    const owner = await signedIn(app);
    const page = (await owner.get("/schedules")).body;
    expect(page).toContain("Missed");
    expect(page).toContain(`/prompts/${id}/schedule`);
    await owner.post("/schedules/pause", { confirmed: "1" });
    expect((await app.send("GET", "/api/v1/schedules")).body.pausedAt).not.toBe(null);
    await owner.post("/schedules/resume");
    expect((await app.send("GET", "/api/v1/schedules")).body.pausedAt).toBe(null);
    expect((await browse(app).get("/schedules")).status).toBe(303);
  });
});
