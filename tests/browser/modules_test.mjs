// SPDX-License-Identifier: Apache-2.0
// The list of modules on the recorded profile, at a server that has none of their files: names come by
// upload, while one watches. Build-ids are readelf's, shares the server's own.

import { spawnSync } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { check, cleanUp, equal, fake, openBrowser, openPage, ROOT, run, Server, waitFor, WORK } from "./page.mjs";

const RECORDED = path.join(ROOT, "deploy/recorded");
const DEMO = path.join(RECORDED, "debug/farflame-demo");
const LOOP = path.join(RECORDED, "debug/syscall_loop");
const [since, until] = fs.readFileSync(path.join(RECORDED, "time"), "utf8").trim().split(/\s+/);
const RANGE = { from: since + "000", until: until + "000" };
const STATE = { ...RANGE, page: "modules" };

const server = await Server.start({ args: ["--import", path.join(RECORDED, "profile.otlp.gz"), "--retention", "0s"] });
const browser = await openBrowser();
const page = await openPage(server.url, browser);

function buildId(file) {
  return /Build ID: ([0-9a-f]+)/.exec(spawnSync("readelf", ["--notes", file], { encoding: "utf8" }).stdout)[1];
}

const rowOf = (id) => `.modules-page tr[data-id="${id}"]`;

async function worklist() {
  check(await page.open(STATE), "opens", page.complaints);
  const { modules } = await server.json("modules", RANGE);
  const nameless = modules.filter((m) => m.unsymbolized > 0);
  check(nameless.length > 3, "the server lacks names", nameless.length);
  equal(await page.count(".modules-page tbody:not([aria-hidden]) tr"), nameless.length, "every module without names has a row");
  equal(await page.run("document.querySelector('.modules-page tr[data-id]').dataset.id"), nameless[0].build_id, "the worst first");
  const share = (await page.text(`${rowOf(nameless[0].build_id)} .col-share`)).trim();
  const percent = 100 * nameless[0].nameless_share;
  check(Math.abs(parseFloat(share) - percent) < 0.06, "its share is the server's", [share, percent]);
  const { accounting } = await server.json("top", { ...RANGE, limit: "1" });
  const whole = parseFloat(/([\d.]+) %/.exec(await page.text("#stat-unsymbolized"))[1]);
  check(Math.abs(whole - (100 * accounting.nameless_value) / accounting.value) < 0.06, "so is that of all", whole);
  await page.shots("modules");
}

async function finds_and_orders() {
  await page.open(STATE);
  await page.key("/");
  await page.type("farflame-demo");
  check(await page.wait(`document.querySelectorAll('.modules-page tr[data-id]').length === 1`), "words find it");
  check(await page.run("location.hash.includes('module_find=farflame-demo')"), "and are in the address");
  await page.key("Escape");
  await page.key("ArrowDown");
  check(await page.waitText(".list-details h2", "farflame-demo"), "the arrow shows its details");
  const text = await page.text(".list-details");
  check(text.includes(buildId(DEMO)) && text.includes(`curl`) && text.includes(server.url), "build-id and what to do are there", text);
  await page.page.reload();
  check(await page.waitText(".list-details h2", "farflame-demo"), "after a reload it is all there again");
  await page.shots("modules-details");
  await page.key("Escape");
  check(await page.wait("document.querySelector('.list-details').hidden"), "Escape closes them");
  await page.open(STATE);
  await page.click(".modules-page th.col-name button");
  const names = (await page.texts(".modules-page tr[data-id] .col-name")).map((name) => name.trim());
  equal(names, [...names].sort((a, b) => (a < b ? -1 : 1)), "a head orders by its column");
  await page.click(".modules-page th.col-name button");
  equal((await page.texts(".modules-page tr[data-id] .col-name")).map((name) => name.trim()), names.reverse(), "again: the other way round");
  await page.key("b");
  check(await page.wait("location.hash.includes('modules=used')"), "b: all of this picture");
  const used = (await server.json("modules", RANGE)).modules.filter((m) => m.samples > 0);
  equal(await page.run("document.querySelector('.modules-page [data-shown=used]').innerText"), `in this picture (${used.length})`, "counted");
}

// A debuginfod server that has files only after the profile was first looked at.
async function fetches() {
  const files = new Map();
  const debuginfod = http.createServer((request, response) => {
    const file = files.get(/buildid\/(\w+)\/debuginfo/.exec(request.url)?.[1]);
    response.writeHead(file === undefined ? 404 : 200);
    response.end(file);
  });
  await new Promise((done) => debuginfod.listen(0, "127.0.0.1", done));
  cleanUp(() => debuginfod.close());
  const source = `http://127.0.0.1:${debuginfod.address().port}`;
  const args = ["--import", path.join(RECORDED, "profile.otlp.gz"), "--retention", "0s", "--debuginfod", source];
  const asking = await Server.start({ args, data: "asking" });
  const other = await openPage(asking.url, browser);
  const stateOf = async (id) => (await asking.json("modules", RANGE)).modules.find((m) => m.build_id === id);
  const [demo, loop] = [buildId(DEMO), buildId(LOOP)];
  check(await waitFor(async () => (await stateOf(demo))?.state === "missing" && (await stateOf(loop))?.state === "missing"), "no source has it");
  await other.open(STATE);
  check((await other.text(`${rowOf(demo)} .cure code`)).startsWith("curl"), "whom the distribution's server does not know: upload", await other.text(rowOf(demo)));
  equal(await other.text(`${rowOf(demo)} .sign`), "!", "no tick");
  await other.click(`${rowOf(loop)} .cure button`);
  check(await other.waitText("#notice", source), "it is said who is asked", await other.text("#notice"));
  check(await other.waitText("#notice", "nothing new"), "and what came of it", await other.text("#notice"));
  files.set(demo, fs.readFileSync(DEMO));
  files.set(loop, fs.readFileSync(LOOP));
  await other.click(`${rowOf(demo)} .cure button`);
  check(await other.wait(`document.querySelector('${rowOf(demo)}') === null`, 40), "one click: its names have come", await stateOf(demo));
  await other.open({ ...RANGE, page: "graph" });
  const isNameless = `document.querySelector("#top-body").innerText.includes("syscall_loop+0x")`;
  await other.page.fill("#top-filter", "syscall_loop");
  check(await other.wait(isNameless), "addresses for names", await other.text("#top-body"));
  const shown = await other.run("document.body.dataset.shown");
  await other.click("#stat-unsymbolized");
  check(await other.wait(`document.querySelector('#modules-dialog tr[data-id="${loop}"] .cure button') !== null`), "the picture's own list has it too");
  await other.shot("modules-dialog");
  await other.axe("the dialog");
  await other.click(`#modules-dialog tr[data-id="${loop}"] .cure button`);
  check(await other.waitText("#modules-dialog .said", "its names are here", 40), "it says so", await other.text("#modules-dialog"));
  check(await other.wait(`Number(document.body.dataset.shown) > ${shown}`), "the picture is drawn anew");
  check(await other.wait(`!(${isNameless})`), "with the names", await other.text("#top-body"));
}

async function uploads() {
  await page.open(STATE);
  const id = buildId(DEMO);
  const lacking = async () => (await server.json("modules", RANGE)).modules.find((m) => m.build_id === id).unsymbolized;
  const before = await lacking();
  check(await page.visible(rowOf(id)), "the program has no names yet");
  await page.page.setInputFiles(".modules-page input[type=file]", [DEMO, path.join(RECORDED, "time")]);
  check(await page.waitText(".uploads .sent", "farflame-demo"), "a file goes to its own build-id", await page.text(".uploads"));
  check(await page.waitText(".uploads .tools", "1 no ELF files"), "what is none is counted and not sent", await page.text(".uploads .tools"));
  check(await page.wait(`document.querySelector('${rowOf(id)}') === null`, 40), "its names come while one watches");
  const after = (await server.json("top", { ...RANGE, limit: "1" })).accounting;
  check(before > 0 && (await lacking()) === 0, "past samples have names now", before);
  const share = ((100 * after.nameless_value) / after.value).toFixed(1);
  check(await page.waitText("#stat-unsymbolized", share.slice(0, 3)), "the accounting follows", [share, await page.text("#stat-unsymbolized")]);
  await page.page.setInputFiles(".modules-page input[type=file]", [DEMO]);
  check(await page.waitText(".uploads .kept", "already"), "once more: it is asked before it is sent");
  await page.shots("modules-uploads");
}

async function refusals() {
  const { modules } = await server.json("modules", RANGE);
  const other = modules.find((m) => m.unsymbolized > 0 && m.name.includes(".so"));
  await page.open({ ...STATE, module: other.build_id });
  check(await page.waitText(".list-details h2", other.name), "another module");
  const [chooser] = await Promise.all([page.page.waitForEvent("filechooser"), page.page.getByText("Upload for this module").click()]);
  await chooser.setFiles(LOOP);
  check(await page.waitText(".uploads .failed", buildId(LOOP)), "a file of another build: the server's sentence", await page.text(".uploads"));
  const bare = path.join(WORK, "bare.elf");
  const made = spawnSync("objcopy", ["--remove-section=.note.gnu.build-id", "-O", "elf64-x86-64", LOOP, bare]);
  if (made.status === 0) {
    await page.page.setInputFiles(".modules-page input[type=file]", [bare]);
    check(await page.wait("document.querySelectorAll('.uploads .failed').length === 2"), "one without a build-id is not guessed", await page.text(".uploads"));
  }
}

async function drops() {
  await page.open(STATE);
  const bytes = fs.readFileSync(path.join(RECORDED, "debug/shapes_cc")).toString("base64");
  const drop = (type) =>
    page.page.evaluate(
      ([how, content]) => {
        const transfer = new window.DataTransfer();
        transfer.items.add(new window.File([Uint8Array.from(window.atob(content), (c) => c.charCodeAt(0))], "shapes_cc"));
        const options = { bubbles: true, cancelable: true, dataTransfer: transfer };
        document.querySelector(".modules-page").dispatchEvent(new window.DragEvent(how, options));
      },
      [type, bytes],
    );
  await drop("dragover");
  check(await page.run("document.querySelector('.modules-page').classList.contains('dropping')"), "a file above the page is welcome");
  await page.shot("modules-dropping");
  await drop("drop");
  check(await page.waitText(".uploads li", "shapes_cc"), "a dropped file is taken");
  check(await page.waitText(".uploads .sent", "shapes_cc"), "and sent", await page.text(".uploads"));
}

async function deletes() {
  const id = buildId(DEMO);
  const state = async () => (await server.json("modules", RANGE)).modules.find((m) => m.build_id === id);
  check((await state()).uploaded_files > 0, "the program was uploaded");
  await page.open({ ...STATE, modules: "used", module: id });
  check(await page.waitText(".list-details", "on the server's disk"), "its details say what it takes");
  page.page.once("dialog", (dialog) => void dialog.dismiss());
  await page.page.getByText("Delete what was uploaded").click();
  check((await state()).uploaded_files > 0, "nothing goes without a yes");
  let question = "";
  page.page.once("dialog", (dialog) => {
    question = dialog.message();
    void dialog.accept();
  });
  await page.page.getByText("Delete what was uploaded").click();
  check(await page.wait("!document.querySelector('.list-details').innerText.includes('on the server')"), "then it is gone");
  check(question.includes("farflame-demo"), "it was asked which", question);
  const { uploaded_files, uploaded_bytes } = await state();
  equal([uploaded_files, uploaded_bytes], [0, 0], "on the server too");
}

async function clean() {
  await page.open(STATE);
  await page.axe("the list");
  await page.key("ArrowDown");
  await page.axe("with details");
  page.quiet("modules");
}

async function away() {
  const stand = await fake();
  stand.answers["/api/v1/modules"] = () => ({ status: 500, body: { error: { code: "x", message: "The modules cannot be read." } } });
  const other = await openPage(stand.url, browser);
  await other.go(other.link({ page: "modules" }));
  check(await other.waitText("#message", "The modules cannot be read."), "an error is the server's sentence");
  delete stand.answers["/api/v1/modules"];
  await other.page.getByText("Try again").click();
  check(await other.waitText(".modules-page", "libstripped.so"), "and is tried again");
  stand.modules = [];
  await other.key("r");
  check(await other.waitText("#message", "sudo farflame-agent"), "none at all: how to start an agent");
  stand.stop();
  await other.page.setInputFiles(".modules-page input[type=file]", [LOOP]);
  check(await other.waitText(".uploads .failed", "syscall_loop"), "an upload to nobody fails");
}

await run(worklist, finds_and_orders, fetches, uploads, refusals, drops, deletes, clean, away);
