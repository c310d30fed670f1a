// SPDX-License-Identifier: Apache-2.0
// A farflame-server, an agent, of our own on loopback, for tests in JavaScript.

import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { cleanUp, waitFor } from "./tap.mjs";

export const ROOT = path.resolve(import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname), "../..");
export const BUILD = path.resolve(process.env.FARFLAME_BUILD ?? "build");
export const PAGE = path.join(BUILD, "embed/page.html.gz");
export const WORK = path.join(BUILD, "system", path.basename(process.argv[1] ?? "node", ".mjs"));

fs.rmSync(WORK, { recursive: true, force: true });
fs.mkdirSync(WORK, { recursive: true });

// Of those that no connection is given (ip_local_port_range begins above).
function freePort() {
  return new Promise((done) => {
    const port = 11000 + Math.floor(Math.random() * 21000);
    const probe = net.createServer();
    probe.on("error", () => done(freePort()));
    probe.listen(port, "127.0.0.1", () => probe.close(() => done(port)));
  });
}

// A child that is gone when the test is. log: the name of a file in WORK.
export function start(command, args, log) {
  const out = fs.openSync(path.join(WORK, log), "a");
  const child = spawn(command, args, { cwd: ROOT, stdio: ["ignore", out, out] });
  fs.closeSync(out);
  child.on("error", () => undefined); // it has no pid then, and exitCode stays null
  cleanUp(() => child.exitCode === null && child.signalCode === null && child.kill("SIGKILL"));
  return child;
}

export async function end(child, how = "SIGTERM") {
  if (child.exitCode !== null || child.signalCode !== null) {
    return;
  }
  const gone = new Promise((done) => child.once("exit", done));
  child.kill(how);
  const late = setTimeout(() => child.kill("SIGKILL"), 20_000);
  await gone;
  clearTimeout(late);
}

export class Server {
  // args: further options; data: the store's folder in WORK.
  static async start({ args = [], data = "data" } = {}) {
    const server = new Server();
    server.port = await freePort();
    server.url = `http://127.0.0.1:${server.port}`;
    server.args = ["--listen", `127.0.0.1:${server.port}`, "--data", path.join(WORK, data), ...args];
    await server.again();
    return server;
  }

  // After stop() or kill(): the same address, the same data.
  async again() {
    this.child = start(path.join(BUILD, "farflame-server"), this.args, "server.log");
    const ready = await waitFor(async () => {
      const gone = this.child.exitCode !== null || this.child.pid === undefined;
      return gone ? "gone" : (await this.ask("/readyz").catch(() => ({}))).ok;
    });
    if (ready !== true) {
      throw new Error("the server is not ready:\n" + fs.readFileSync(path.join(WORK, "server.log"), "utf8").slice(-1500));
    }
  }

  ask(where, options) {
    return fetch(this.url + where, options);
  }

  // GET /api/v1/RESOURCE, from its JSON
  async json(resource, parameters = {}) {
    const answer = await this.ask(`/api/v1/${resource}?${new URLSearchParams(parameters)}`);
    if (!answer.ok) {
      throw new Error(`${resource}: ${answer.status} ${await answer.text()}`);
    }
    return answer.json();
  }

  post(body) {
    const headers = { "Content-Type": "application/x-protobuf" };
    return this.ask("/v1development/profiles", { method: "POST", headers, body });
  }

  stop() {
    return end(this.child);
  }

  kill() {
    return end(this.child, "SIGKILL");
  }
}

// With the profile that the repository holds: C, C++, Rust, Go, Python and a kernel, of 2026.
// range: part of the page's state that shows it.
export async function startRecorded(options = {}) {
  const from = path.join(ROOT, "deploy/recorded");
  const args = ["--import", path.join(from, "profile.otlp.gz"), "--symbol-dir", path.join(from, "debug"), "--retention", "0s"];
  const server = await Server.start({ ...options, args: [...args, ...(options.args ?? [])] });
  for (const name of fs.readdirSync(path.join(from, "kallsyms"))) {
    await server.ask("/api/v1/modules/" + name, { method: "PUT", body: fs.readFileSync(path.join(from, "kallsyms", name)) });
  }
  const [since, until] = fs.readFileSync(path.join(from, "time"), "utf8").trim().split(/\s+/);
  server.range = { from: since + "000", until: until + "000" };
  return server;
}

// "" or why no agent can sample here.
export function whyNoBpf() {
  if (process.getuid() !== 0) {
    return "needs root";
  }
  const args = ["--output", path.join(WORK, "probe.otlp"), "--duration", "100ms"];
  const tried = spawnSync(path.join(BUILD, "farflame-agent"), args, { encoding: "utf8" });
  return tried.status === 3 ? "eBPF is not permitted here: " + tried.stderr.trim() : "";
}
