// Loaded by Node.js before a program. Most programs before version 24, and all with a connection pool of their own, use no proxy: this sends their
// connections to hosts of the run to the bridge.
const net = require("node:net");
const routes = JSON.parse(process.env.EVALD_ROUTES || "{}");
const { connect } = net.Socket.prototype;
net.Socket.prototype.connect = function (...args) {
  const normalized = Array.isArray(args[0]) ? args[0] : null;
  const options = normalized ? normalized[0] : args[0];
  if (options && typeof options === "object") {
    const port = routes[`${options.host}:${options.port}`];
    const routed = port && { ...options, host: "127.0.0.1", port };
    if (routed && normalized) normalized[0] = routed;
    else if (routed) args[0] = routed;
  } else {
    const port = routes[`${args[1]}:${args[0]}`];
    if (port) args.splice(0, 2, port, "127.0.0.1");
  }
  return connect.apply(this, args);
};
