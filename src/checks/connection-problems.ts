import type { Problem } from "./problem.ts";

const trustAuthority =
  "If your own authority signed its certificate, set NODE_EXTRA_CA_CERTS to the file of that authority and restart evald. Otherwise renew the certificate.";

/** Problems with other servers. */
export const connectionProblems = {
  base_url_unreachable: {
    state: "warning",
    title: "The base URL can’t be reached from this machine",
    remedy:
      "Check the DNS name, the proxy in front of evald and the firewall. If other machines reach it, ignore this. Run the command on one of them.",
    command: "curl -sS {subject}/healthz",
  },
  base_url_elsewhere: {
    state: "failed",
    title: "The base URL leads to something else",
    remedy:
      "Set EVALD_BASE_URL to the public URL of this service, or make the proxy pass that URL, with its path, on to it. The command should print the status of this service.",
    command: "curl -sS {subject}/healthz",
  },
  smtp_unreachable: {
    state: "failed",
    title: "The SMTP server can’t be reached",
    remedy: "Check host, port and scheme of EVALD_SMTP_URL, and the firewall. Use smtps:// for port 465.",
  },
  smtp_certificate: { state: "failed", title: "The certificate of the SMTP server is invalid", remedy: trustAuthority },
  smtp_login_refused: {
    state: "failed",
    title: "The SMTP server refuses the login",
    remedy:
      "Correct user and password in EVALD_SMTP_URL. Characters such as @ and : in them must be encoded, as %40 and %3A.",
  },
  smtp_failed: {
    state: "failed",
    title: "The SMTP server doesn’t speak SMTP",
    remedy: "Check host, port and scheme of EVALD_SMTP_URL. Use smtps:// for port 465, smtp:// for others.",
  },
  oidc_unreachable: {
    state: "failed",
    title: "The identity provider can’t be reached",
    remedy: "Check EVALD_OIDC_ISSUER and the firewall. The command should print its metadata.",
    command: "curl -sS {subject}/.well-known/openid-configuration",
  },
  oidc_certificate: {
    state: "failed",
    title: "The certificate of the identity provider is invalid",
    remedy: trustAuthority,
  },
  oidc_invalid: {
    state: "failed",
    title: "EVALD_OIDC_ISSUER is not an identity provider",
    remedy: "Set EVALD_OIDC_ISSUER to the issuer of the provider. The command should print its metadata as JSON.",
    command: "curl -sS {subject}/.well-known/openid-configuration",
  },
  oidc_wrong_issuer: {
    state: "failed",
    title: "The identity provider has another issuer",
    remedy: "Set EVALD_OIDC_ISSUER to exactly the issuer that the command prints.",
    command: "curl -sS {subject}/.well-known/openid-configuration",
  },
  oidc_no_keys: {
    state: "failed",
    title: "The identity provider publishes no keys",
    remedy: "Check jwks_uri in its metadata, and whether this machine reaches it.",
    command: "curl -sS {subject}/.well-known/openid-configuration",
  },
  model_unreachable: {
    state: "failed",
    title: "The model server can’t be reached",
    remedy: "Check the base URL of the provider, such as OPENAI_COMPATIBLE_BASE_URL, the firewall and the proxy.",
    command: "curl -sS {subject}/models",
  },
  model_certificate: {
    state: "failed",
    title: "The certificate of the model server is invalid",
    remedy: trustAuthority,
  },
  model_key_refused: {
    state: "failed",
    title: "The model server refuses the key",
    remedy: "Set the variable of the key, such as OPENAI_API_KEY, to a valid one, and restart evald.",
  },
  model_failed: {
    state: "failed",
    title: "The model server fails",
    remedy: "Check the status of the provider. If it is your own server, read its log.",
    command: "curl -sS {subject}/models",
  },
  otlp_unreachable: {
    state: "failed",
    title: "The OpenTelemetry collector can’t be reached",
    remedy: "Start the collector, or correct host and port of EVALD_OTLP_URL.",
  },
  otlp_certificate: {
    state: "failed",
    title: "The certificate of the OpenTelemetry collector is invalid",
    remedy: trustAuthority,
  },
  otlp_refused: {
    state: "failed",
    title: "The OpenTelemetry collector refuses the credentials",
    remedy: "Correct EVALD_OTLP_HEADERS, and restart evald.",
  },
  otlp_failed: {
    state: "failed",
    title: "The OpenTelemetry collector doesn’t accept traces at this URL",
    remedy: "Set EVALD_OTLP_URL to its endpoint for traces, which usually ends in /v1/traces.",
  },
  gateway_unreachable: {
    state: "failed",
    title: "The gateway of the service can’t be reached",
    remedy: "Check EVALD_GATEWAY_URL, whether the service runs, and the firewall between this worker and the service.",
    command: "curl -sS -i {subject}",
  },
  gateway_certificate: { state: "failed", title: "The certificate of the gateway is invalid", remedy: trustAuthority },
  gateway_elsewhere: {
    state: "failed",
    title: "EVALD_GATEWAY_URL is not the gateway of an evald service",
    remedy:
      "Set EVALD_GATEWAY_URL to the public URL of the service with /gateway, and make the proxy pass that path on. The command should print status 401.",
    command: "curl -sS -i {subject}",
  },
  worker_not_ready: {
    state: "failed",
    title: "A worker can’t take sessions",
    remedy: "On the worker, run the command and do what it says.",
    command: "evald doctor",
  },
  worker_refused: {
    state: "failed",
    title: "A worker has another version than the service",
    remedy: "Install the same version on both, and restart the worker.",
    command: "evald --version",
  },
} as const satisfies Record<string, Problem>;

/** Problems with the Redis server between the service and its workers. */
export const redisProblems = {
  redis_unreachable: {
    state: "failed",
    title: "The Redis server can’t be used",
    remedy: "Start the server, or correct host, port and password in EVALD_REDIS_URL.",
  },
  redis_old: {
    state: "failed",
    title: "The Redis server is too old",
    remedy: "Install Redis 6.2 or later, or Valkey.",
    command: "redis-cli info server",
  },
  redis_open: {
    state: "failed",
    title: "The Redis server needs no password",
    remedy: "Its clients can run agents on your workers. Set a password, and add it to EVALD_REDIS_URL.",
    command: "redis-cli config set requirepass PASSWORD",
  },
  redis_no_users: {
    state: "warning",
    title: "The Redis server refuses ACL SETUSER",
    remedy:
      "Credentials that evald workers add creates don’t work. Use a server that allows it, or give workers the URL of the service, with which each can read what all others do.",
  },
  redis_not_persistent: {
    state: "warning",
    title: "A restart of the Redis server loses its messages",
    remedy: "They are sent again, which costs time. Set appendonly, also in redis.conf.",
    command: "redis-cli config set appendonly yes",
  },
  redis_evicts: {
    state: "failed",
    title: "The Redis server deletes orders when its memory is full",
    remedy: "Set maxmemory-policy, also in redis.conf.",
    command: "redis-cli config set maxmemory-policy noeviction",
  },
  redis_memory_low: {
    state: "warning",
    title: "The memory of the Redis server is nearly full",
    remedy: "Raise maxmemory, also in redis.conf. When it is full, no session starts.",
    command: "redis-cli config set maxmemory 1gb",
  },
  redis_settings_hidden: {
    state: "warning",
    title: "The Redis server forbids CONFIG GET",
    remedy: "At its provider, check that appendonly is yes and maxmemory-policy is noeviction.",
    isForInbox: false,
  },
} as const satisfies Record<string, Problem>;
