/** A mail server on loopback that keeps all email, or rejects every recipient. End it with `close()`. */
export function startSmtp({ refuses = false } = {}) {
  const mails: { to: string; text: string }[] = [];
  const listeners = new Set<() => void>();
  const server = Bun.listen<{ rest: string; to: string; text: string | null }>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(socket) {
        socket.data = { rest: "", to: "", text: null };
        socket.write("220 mail.test\r\n");
      },
      data(socket, bytes) {
        const { data } = socket;
        const lines = (data.rest + bytes.toString()).split("\r\n");
        data.rest = lines.pop() ?? "";
        for (const line of lines) {
          if (data.text !== null && line === ".") {
            mails.push({ to: data.to, text: data.text.replaceAll("=\n", "").replaceAll("=3D", "=") });
            data.text = null;
            socket.write("250 kept\r\n");
            for (const listener of listeners) listener();
          } else if (data.text !== null) data.text += `${line}\n`;
          else if (line === "DATA") {
            data.text = "";
            socket.write("354 go on\r\n");
          } else if (line.startsWith("RCPT")) {
            data.to = /<(.+)>/.exec(line)?.[1] ?? "";
            socket.write(refuses ? "550 nobody\r\n" : "250 ok\r\n");
          } else socket.write("250 ok\r\n");
        }
      },
    },
  });
  return {
    url: `smtp://127.0.0.1:${server.port}`,
    mails,
    /** The first email, once it arrives. */
    first: () =>
      new Promise<{ to: string; text: string }>((resolve) => {
        const look = () => mails[0] && resolve(mails[0]);
        listeners.add(look);
        look();
      }),
    close: () => server.stop(true),
  };
}
