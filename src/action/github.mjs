/** Most characters of a comment. */
const maxComment = 65_536;
const maxAttempts = 3;
const maxWaitMs = 60_000;

/**
 * The GitHub API for one repository. Every function throws Error with GitHub's message.
 * @param {Record<string, string | undefined>} env
 */
export function createGitHub(env) {
  const base = `${env.GITHUB_API_URL ?? "https://api.github.com"}/repos/${env.GITHUB_REPOSITORY}`;

  /** @param {string} method @param {string} path @param {unknown} [body] */
  async function request(method, path, body) {
    for (let attempt = 1; ; attempt++) {
      const response = await fetch(base + path, {
        method,
        headers: {
          accept: "application/vnd.github+json",
          authorization: `Bearer ${env.GITHUB_TOKEN}`,
          "x-github-api-version": "2022-11-28",
          "user-agent": "evald-action",
          ...(body === undefined ? {} : { "content-type": "application/json" }),
        },
        body: body === undefined ? undefined : JSON.stringify(body),
      });
      if (response.ok) return await response.json();
      const { message = "" } = await response.json().catch(() => ({}));
      // The secondary rate limit.
      const waitMs = Number(response.headers.get("retry-after") ?? Number.NaN) * 1000;
      const mayRetry = [403, 429, 502, 503].includes(response.status) && waitMs <= maxWaitMs;
      if (!mayRetry || attempt === maxAttempts)
        throw new Error(
          `GitHub returned status ${response.status} for ${method} ${path.replace(/\?.*/, "")}: ${message}`,
        );
      await new Promise((resolve) => setTimeout(resolve, waitMs));
    }
  }

  return {
    /** @param {number} number */
    getPull: (number) => request("GET", `/pulls/${number}`),
    /** The number of the open pull request with this head; null: none. @param {string} owner @param {string} branch */
    async findPull(owner, branch) {
      const [first] = await request("GET", `/pulls?state=open&head=${encodeURIComponent(`${owner}:${branch}`)}`);
      return first?.number ?? null;
    },
    /** The number of the open pull request that contains a commit; null: none. @param {string} sha */
    async findPullOf(sha) {
      const all = await request("GET", `/commits/${sha}/pulls`);
      return all.find((each) => each.state === "open")?.number ?? null;
    },
    /** Creates or updates the comment with this marker, and returns its URL. @param {number} number @param {string} marker @param {string} text */
    async upsertComment(number, marker, text) {
      const body = `${marker}\n${text}`;
      for (let page = 1; ; page++) {
        const all = await request("GET", `/issues/${number}/comments?per_page=100&page=${page}`);
        const mine = all.find((each) => each.body?.startsWith(marker) && isOurs(each));
        if (mine) return (await request("PATCH", `/issues/comments/${mine.id}`, { body })).html_url;
        if (all.length < 100) break;
      }
      return (await request("POST", `/issues/${number}/comments`, { body })).html_url;
    },
    /** @param {string} sha @param {{ state: string, context: string, description: string, target_url?: string }} status */
    setStatus: (sha, status) => request("POST", `/statuses/${sha}`, status),
  };
}

/** Whether a comment is by an app or by a member of the project: anyone can write a comment with the marker, and edit their own later. */
const isOurs = ({ user, author_association: role }) =>
  user?.type === "Bot" || ["OWNER", "MEMBER", "COLLABORATOR"].includes(role);

/** A comment within GitHub's limit: cut after a line, with a link to the rest. @param {string} text @param {string} rest */
export function fitComment(text, rest, max = maxComment - 200) {
  if (text.length <= max) return text;
  const note = `\n\n**This comment is cut.** ${rest}\n`;
  const cut = text.slice(0, max - note.length);
  return cut.slice(0, cut.lastIndexOf("\n")) + note;
}
