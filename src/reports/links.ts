/** The page of a report. */
export const reportUrl = (baseUrl: string, slug: string): string => `${baseUrl}/reports/${slug}`;

/** The page that explains the newest change of a prompt's score. */
export const whyUrl = (baseUrl: string, promptId: string): string => `${baseUrl}/prompts/${promptId}/why`;

/** The URLs of a run: its page, and its status in the API. */
export const runUrls = (baseUrl: string, runId: string) => ({
  statusUrl: `${baseUrl}/api/v1/runs/${runId}`,
  runUrl: `${baseUrl}/runs/${runId}`,
});
