import { lowerThreadPriority } from "../agents/priority.ts";
import { serveCalls, threadData } from "../jobs/thread.ts";

/** A thread of the service: grades sessions or writes exports, as it was started. */
export async function runThread(): Promise<void> {
  lowerThreadPriority();
  const data = threadData<{ work: "grade"; file: string } | { work: "export"; file: string; baseUrl: string }>();
  if (data.work === "grade") {
    const { createTaskRunner } = await import("../reports/grader.ts");
    serveCalls(() => createTaskRunner(data.file));
  } else {
    const { createExportHandler } = await import("../exchange/export-thread.ts");
    serveCalls(() => createExportHandler(data, Date.now));
  }
}
