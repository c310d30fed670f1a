// SPDX-License-Identifier: Apache-2.0
// A stand-in for farflame-server that serves the built page and answers written for tests.
//
// The service label of the question chooses the answer, so that one server plays every part: "big" is a
// million frames, "error" a refusal, "slow" takes 1.5 s (fake_answers.mjs). A test adds what it needs:
// server.answers["/api/v1/series"] = (query) => ({ … }), or ({ status: 500, body: "text" }).
//
//   node tests/browser/fake_server.mjs PAGE    serves until it is ended

import crypto from "node:crypto";
import fs from "node:fs";
import http from "node:http";
import zlib from "node:zlib";
import { sandwichOf } from "./fake_sandwich.mjs";
import { cutDetail, foundIn, LABELS, MODULE_STATES, scene, sharesOf, topOf } from "./fake_answers.mjs";

// What design and server promise: the page has to work under it.
const hashes = (page, tag) => [...page.toString().matchAll(new RegExp(`<${tag}>([^]*?)</${tag}>`, "g"))]
  .map((match) => `'sha256-${crypto.createHash("sha256").update(match[1]).digest("base64")}'`).join(" ");
const policy = (page) =>
  `default-src 'none'; script-src ${hashes(page, "script")}; style-src ${hashes(page, "style")}; ` +
  "worker-src blob:; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'";

// What each resource takes, as the contract lists it; like the real server, another parameter is an error.
const CONTRACT = fs.readFileSync(new URL("../../schema/rest/openapi.yaml", import.meta.url), "utf8");
const SHARED = new Map([...CONTRACT.matchAll(/\n {4}(\w+):(?: \{|\n {5}) name: ([\w.]+),?\s+in: query/g)].map(([, key, name]) => [key, name]));

function knownAt(path) {
  const part = CONTRACT.split(`\n  ${path}:\n    get:\n`)[1]?.split(/\n {2}\/|\n {6}responses:/)[0];
  return part && [...part.matchAll(/components\/parameters\/(\w+)|name: ([\w.]+),?\s+in: query/g)].map(([, key, name]) => name ?? SHARED.get(key));
}

class Reply {
  constructor(status, body, headers = {}) {
    Object.assign(this, { status, body, headers });
  }
}

function refusal(status, code, message) {
  return new Reply(status, { error: { code, message } });
}

class FakeServer {
  asked = []; // { path, query }
  agents = [];
  modules = MODULE_STATES;
  labels = LABELS;
  broken = false; // true: questions for samples break off
  delay = 0; // milliseconds before each answer of samples
  answers = {}; // by path, before those below

  constructor(pageFile) {
    const page = fs.readFileSync(pageFile);
    this.page = pageFile.endsWith(".gz") ? page : zlib.gzipSync(page);
    this.server = http.createServer((request, response) => void this.serve(request, response));
  }

  listen(port = 0) {
    return new Promise((done) =>
      this.server.listen(port, "127.0.0.1", () => {
        this.port = this.server.address().port;
        this.url = `http://127.0.0.1:${this.port}`;
        done(this);
      }),
    );
  }

  // Nobody answers at its address from now on, until listen(port).
  stop() {
    this.server.closeAllConnections();
    this.server.close();
  }

  // Those for this resource, as their parameters.
  questions(resource) {
    return this.asked.filter(({ path }) => path === "/api/v1/" + resource).map(({ query }) => query);
  }

  async serve(request, response) {
    const url = new URL(request.url, "http://fake");
    const query = Object.fromEntries(url.searchParams);
    const reply = await this.reply(url.pathname, query).catch((error) => refusal(500, "fake", String(error.stack)));
    if (reply === null) {
      response.destroy();
      return;
    }
    const { status, body, headers } = reply;
    const isRaw = Buffer.isBuffer(body) || typeof body === "string";
    response.writeHead(status, { "Content-Type": "application/json", ...headers });
    response.end(isRaw ? body : JSON.stringify(body));
  }

  // null: the connection breaks off
  async reply(path, query) {
    this.asked.push({ path, query });
    if (path === "/") {
      const headers = { "Content-Type": "text/html; charset=utf-8", "Content-Encoding": "gzip", "Content-Security-Policy": policy(zlib.gunzipSync(this.page)) };
      return new Reply(200, this.page, headers);
    }
    if (path in this.answers) {
      const own = await this.answers[path](query);
      return own === null || own.status === undefined ? own && new Reply(200, own) : new Reply(own.status, own.body, own.headers);
    }
    const known = knownAt(path);
    const odd = Object.keys(query).filter((name) => known !== undefined && !known.includes(name));
    if (odd.length > 0) {
      return refusal(422, "bad_parameter", `unknown parameter ${odd}`);
    }
    return /(flamegraph|top|sandwich)$/.test(path) ? this.samples(path, query) : this.listing(path, query);
  }

  listing(path, query) {
    if (path === "/api/v1/types") {
      return new Reply(200, { types: [{ name: "on-cpu", unit: "nanoseconds", samples: 1014 }] });
    }
    if (path === "/api/v1/labels") {
      return new Reply(200, { labels: Object.entries(this.labels).map(([name, values]) => ({ name, values: values.length })) });
    }
    if (path === "/api/v1/timeline") {
      return new Reply(200, sharesOf(this.labels, query));
    }
    if (path === "/api/v1/modules") {
      return new Reply(200, { modules: this.modules, uploads: { files: 0, bytes: 0, limit_bytes: 0, evicted_files: 0 } });
    }
    if (path === "/api/v1/agents") {
      return new Reply(200, { agents: this.agents, now: Date.now() });
    }
    return refusal(404, "not_found", `There is nothing at ${path}.`);
  }

  async samples(path, query) {
    const name = /service="(\w+)"/.exec(query.match ?? "")?.[1] ?? "small";
    const isTop = path.endsWith("top");
    if (this.broken) {
      return null;
    }
    if (name === "error") {
      return refusal(422, "bad_parameter", "Parameter match: position 9: a quote is missing.");
    }
    if (name === "html") {
      return new Reply(502, "<html>502 Bad Gateway</html>", { "Content-Type": "text/html" });
    }
    const delay = name === "slow" ? 1500 : this.delay;
    if (delay > 0) {
      await new Promise((done) => setTimeout(done, delay));
    }
    if (name === "cut" && query.root && !isTop) {
      return new Reply(200, cutDetail(query.root));
    }
    const answer = scene(name);
    if (path.endsWith("sandwich")) {
      return new Reply(200, sandwichOf(answer, topOf(answer).functions, query.function));
    }
    if (query.search) {
      return new Reply(200, { ...topOf(answer), found: foundIn(answer, query.search) });
    }
    return new Reply(200, isTop ? topOf(answer) : answer);
  }
}

export function startFake(pageFile) {
  return new FakeServer(pageFile).listen();
}

if (process.argv[1]?.endsWith("fake_server.mjs")) {
  const { url } = await startFake(process.argv[2]);
  console.log(url + "/");
}
