/**
 * How bad a problem is. `failed`: something that was set up doesn't work, or data is at risk. `warning`: it works, but less well or not for
 * long.
 */
type Severity = "failed" | "warning";

/** A cause of a finding that isn't ok. */
export type Problem = {
  state: Severity;
  title: string;
  remedy: string;
  /** A command that mends or examines it. `{subject}` stands for what the finding is about. */
  command?: string;
  /** False: the inbox doesn't show the problem, because not everyone needs what is missing or because another line of the inbox covers it. */
  isForInbox?: false;
};
