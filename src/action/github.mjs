/** Most characters of a comment. */
const maxComment = 65_536;
const maxAttempts = 3;
const maxWaitMs = 60_000;

/** `status`: 0 without a response. `waitMs`: null if the request would fail again. */
class GitHubError extends Error {
  /** @param {string} message @param {number} status @param {number | null} waitMs */
  constructor(message, status, waitMs) {
    super(message);
    this.status = status;
    this.waitMs = waitMs;
  }
}

/**
 * The GitHub API for one repository. Every function throws GitHubError with GitHub's message.
 * @param {Record<string, string | undefined>} env
 */
export function createGitHub(env) {
  const retryMs = Math.min(Number(env.EVALD_POLL_MS ?? 2000), 2000);
  const base = `${env.GITHUB_API_URL ?? "https://api.github.com"}/repos/${env.GITHUB_REPOSITORY}`;

  /** @param {string} method @param {string} path @param {unknown} [body] */
  async function send(method, path, body) {
    const where = `${method} ${path.replace(/\?.*/, "")}`;
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
    }).catch((error) => {
      const cause = error.cause?.message || error.cause?.code || error.message;
      throw new GitHubError(`GitHub could not be reached for ${where}: ${cause}`, 0, retryMs);
    });
    if (response.ok) return await response.json();
    const { message = "" } = await response.json().catch(() => ({}));
    const { status, headers } = response;
    const asked = headers.get("retry-after");
    // 403 and 429 with this header are the secondary rate limit.
    const waitMs =
      asked !== null && [403, 429].includes(status) ? Number(asked) * 1000 : status >= 500 ? retryMs : null;
    throw new GitHubError(`GitHub returned status ${status} for ${where}: ${message}`, status, waitMs);
  }

  /** Repeats `work` while GitHub fails for the time being. @template T @param {() => Promise<T>} work @returns {Promise<T>} */
  async function repeat(work) {
    for (let attempt = 1; ; attempt++) {
      try {
        return await work();
      } catch (error) {
        const { waitMs = null } = error;
        if (waitMs === null || !(waitMs <= maxWaitMs) || attempt === maxAttempts) throw error;
        await new Promise((resolve) => setTimeout(resolve, waitMs));
      }
    }
  }

  /** @param {string} method @param {string} path @param {unknown} [body] */
  const request = (method, path, body) => repeat(() => send(method, path, body));

  /** @param {number} number @param {string} marker @param {string} body */
  async function writeComment(number, marker, body) {
    for (let page = 1; ; page++) {
      const all = await send("GET", `/issues/${number}/comments?per_page=100&page=${page}`);
      const mine = all.find((each) => each.body?.startsWith(marker) && isOurs(each));
      if (mine) return (await send("PATCH", `/issues/comments/${mine.id}`, { body })).html_url;
      if (all.length < 100) break;
    }
    return (await send("POST", `/issues/${number}/comments`, { body })).html_url;
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
    // Looks again after a failure, because GitHub may have created the comment.
    upsertComment: (number, marker, text) => repeat(() => writeComment(number, marker, `${marker}\n${text}`)),
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
