/** The CPU milliseconds that this process spends on `work`: other processes on a busy machine do not add to them. */
export async function cpuMsOf(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
