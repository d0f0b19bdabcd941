import { lowerThreadPriority } from "../agents/priority.ts";
import { serveCalls, threadData } from "../jobs/thread.ts";

/** The main function of a thread of the service. The thread grades sessions or writes exports, depending on how it was started. */
export async function runThread(): Promise<void> {
  lowerThreadPriority();
  const data = threadData<{ thread: "grading"; file: string } | { thread: "export"; file: string; baseUrl: string }>();
  if (data.thread === "grading") {
    const { createTaskRunner } = await import("../reports/grader.ts");
    serveCalls(() => createTaskRunner(data.file));
  } else {
    const { createExportHandler } = await import("../exchange/export-thread.ts");
    serveCalls(() => createExportHandler(data, Date.now));
  }
}
