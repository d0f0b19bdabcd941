import pino from "pino";
import { lowerThreadPriority } from "../agents/priority.ts";
import type { ExportThreadData } from "../exchange/export-thread.ts";
import { serveOrders, threadData } from "../jobs/thread.ts";

/** A thread of the service: grades sessions or writes exports, as it was started. */
export async function runThread(): Promise<void> {
  lowerThreadPriority();
  const data = threadData<{ work: "grade"; file: string } | ExportThreadData>();
  if (data.work === "grade") {
    const { createGradingAnswers } = await import("../reports/grader.ts");
    serveOrders(() => createGradingAnswers(data.file));
  } else {
    const [{ createExportAnswers }, { createContext }, { openReader }] = await Promise.all([
      import("../exchange/export-thread.ts"),
      import("../context.ts"),
      import("../db/open.ts"),
    ]);
    const { file, config, baseUrl } = data;
    const log = pino({ level: "silent" });
    serveOrders(() =>
      createExportAnswers(createContext({ db: openReader(file), config, log, agents: {}, baseUrl: () => baseUrl })),
    );
  }
}
