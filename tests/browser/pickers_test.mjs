// SPDX-License-Identifier: Apache-2.0
// Pickers of labels: search, shares, several, not; on answers written for tests.

import { check, equal, fake, openPage, run } from "./page.mjs";
import { NS_PER_SAMPLE } from "./fake_answers.mjs";

const server = await fake();
const page = await openPage(server.url);
const VALUES = Array.from({ length: 1500 }, (_, i) => [`worker-${i}`, 3000 - i]);
const rows = () => page.texts("#picker li");
const hash = () => page.run("decodeURIComponent(location.hash.replaceAll('+', ' '))");
const matches = () => server.questions("flamegraph").map(({ match }) => match);
const settled = async (action) => {
  const before = Number(await page.data("settled"));
  await action();
  check(await page.wait(`document.body.dataset.settled > ${before}`), "the picture follows");
};
const openPicker = async (label) => {
  await page.click(`[id="pick-${label}"]`);
  check(await page.wait("document.querySelector('#picker[open] li') !== null"), `${label}: opens`);
};
const row = (name) => `#picker li[data-value="${name}"]`;

async function shares() {
  await page.open({ page: "graph" });
  check(await page.waitText("#pick-process", "all (3)"), "the button says how many there are");
  await openPicker("process");
  const all = 828 + 115 + 71;
  const want = [["api-server", 828], ["python3", 115], ["worker;odd\\name", 71]].map(([name, samples]) => [name, ((100 * samples) / all).toPrecision(3) + " %"]);
  equal((await rows()).map((text) => [text.split("\n")[0], text.split("\n")[2]]), want, "the largest share first");
  equal((await rows())[0].split("\n")[1], `${((828 * NS_PER_SAMPLE) / 1e9).toFixed(2)} s`, "with its value");
  equal(server.questions("timeline").at(-1).match, undefined, "of everything");
  equal(server.questions("timeline").filter(({ group_by }) => group_by === "process").length, 1, "asked for when it is opened, not before");
  await page.axe("picker");
  await page.shot("picker");
  await page.key("Escape");
  check(!(await page.visible("#picker")), "Escape closes it");
  equal(await page.run("document.activeElement.id"), "pick-process", "and gives the focus back");
}

async function several() {
  await page.open({ page: "graph" });
  await openPicker("process");
  server.asked.length = 0;
  await settled(() => page.click(row("api-server")));
  await settled(() => page.click(row("python3")));
  equal(matches(), ['{process="api-server"}', '{process=~"api-server|python3"}'], "two are one expression");
  equal(await page.count("#picker li input:checked"), 2, "both are ticked");
  await page.mouse(1200, 700, "left");
  check(await page.wait("!document.getElementById('picker').open"), "a click beside it closes it");
  equal(await page.text("#pick-process .picked"), "api-server, python3", "the button says what is picked");
  check((await page.run("document.title")).startsWith("api-server, python3 · "), "and the title");
  await openPicker("process");
  equal(server.questions("timeline").filter(({ group_by }) => group_by === "process").at(-1).match, undefined, "a picker is not narrowed by itself");
  await page.key("Escape");
  await page.page.reload();
  check(await page.waitText("#pick-process .picked", "api-server, python3"), "they are there after a reload");
  await page.wait("document.body.dataset.settled >= 1");
  await settled(() => page.page.goBack());
  check(await page.waitText("#pick-process .picked", "all (3)"), "back undoes what was picked in one go", await page.text("#pick-process .picked"));
  await settled(() => page.page.goForward());
  server.asked.length = 0;
  await settled(() => page.click("[data-label=process] [aria-label='All of process']"));
  equal(matches(), [undefined], "× takes them away");
  equal(await hash(), "#page=graph", "without a trace in the address");
}

async function not_these() {
  await page.open({ page: "graph", host: "web-1" });
  await openPicker("process");
  equal(server.questions("timeline").at(-1).match, '{host="web-1"}', "shares are of what is chosen otherwise");
  server.asked.length = 0;
  await settled(() => page.click(row("api-server") + " button"));
  await settled(() => page.click(row("python3") + " button"));
  equal(matches(), ['{host="web-1",process!="api-server"}', '{host="web-1",process!~"api-server|python3"}'], "all but these");
  equal(await page.count("#picker li.out"), 2, "rows show what is out");
  await page.axe("picker with picks");
  await settled(() => page.click(row("python3") + " label"));
  equal(matches().at(-1), '{process="python3",host="web-1",process!="api-server"}', "ticked, it is not out any more");
  await page.key("Escape");
  equal(await page.text("#pick-process .picked"), "python3, not api-server", "the button says both");
}

async function keys() {
  await page.open({ page: "graph" });
  await page.page.focus("#pick-process");
  await page.key("Enter");
  check(await page.wait("document.querySelector('#picker li') !== null && document.activeElement.placeholder === 'Search'"), "Enter opens it, at the search");
  await page.key("ArrowDown");
  await page.key("ArrowDown");
  server.asked.length = 0;
  await settled(() => page.key("Space"));
  equal(matches().at(-1), '{process="python3"}', "Space ticks a row");
  await page.key("ArrowUp");
  await page.key("ArrowRight");
  await settled(() => page.key("Space"));
  equal(matches().at(-1), '{process="python3",process!="api-server"}', "→ and Space: not this one");
  await page.key("ArrowLeft");
  await settled(() => page.key("Enter"));
  equal(matches().at(-1), '{process="api-server"}', "Enter: this one alone");
  check(!(await page.visible("#picker")), "and it is closed");
  await openPicker("process");
  await page.type("ODD\\n");
  equal((await rows()).length, 1, "a search looks for parts of names, as they are written");
  await settled(() => page.key("Enter"));
  equal(matches().at(-1), '{process="worker;odd\\\\name"}', "Enter takes the first one found");
}

async function many() {
  server.labels = { ...server.labels, process: VALUES };
  await page.open({ page: "graph" });
  await openPicker("process");
  check((await page.text("#picker [role=status]")).startsWith("1,500, the largest of them here"), "how many there are, listed or not", await page.text("#picker [role=status]"));
  check((await rows()).length <= 300, "a list of a length that browsers bear");
  await page.page.focus("#picker input");
  await page.type("ER-1499");
  check(await page.wait("document.querySelectorAll('#picker li').length === 1"), "the server finds what is not listed");
  equal((await rows())[0].split("\n")[0], "worker-1499", "by a part of its name");
  equal((await rows())[0].split("\n")[2], "0.04 %", "its share is of the whole");
  await page.run("document.querySelector('#picker input').select()");
  await page.type(".*");
  check(await page.waitText("#picker [role=status]", "Nothing matches"), "a text is no expression");
  await page.key("Escape");
  delete server.labels.process;
  server.labels = { process: [["api-server", 828], ["python3", 115], ["worker;odd\\name", 71]], ...server.labels };
}

async function other_labels() {
  server.labels = { ...server.labels, "unit.name": [["ssh.service", 5], ["", 3]] };
  await page.open({ page: "graph" });
  check(await page.wait("document.getElementById('labels') !== null"), "other labels stand behind a button");
  await page.click("#labels");
  equal((await page.texts("#frame-menu [role=menuitem] span")).sort(), ["pid", "unit.name"], "those that the server knows");
  await page.click("#frame-menu button:has-text('unit.name')");
  check(await page.wait("document.querySelectorAll('#picker[open] li').length === 2"), "each has a picker");
  equal((await rows())[1].split("\n")[0], "(no unit.name)", "also for what does not have it");
  server.asked.length = 0;
  await settled(() => page.click(row("")));
  equal(matches(), ['{unit.name=""}'], "which can be picked");
  await page.key("Escape");
  equal(await page.text('[id="pick-unit.name"] .picked'), "none", "what is picked has its button in the bar");
  const groups = await page.texts("#group_by option");
  equal(["pid", "unit.name"].filter((label) => !groups.includes(label)), [], "stacks are grouped by each of them", groups);
  server.asked.length = 0;
  await settled(() => page.set("#group_by", "pid"));
  equal(server.questions("flamegraph").at(-1).group_by, "pid", "and the server is asked for it");
  delete server.labels["unit.name"];
}

async function typed() {
  await page.open({ page: "graph", match: 'pod=~"x.*",process!="python3"' });
  equal(await page.text("#pick-process .picked"), "not python3", "a matcher that was typed is a pick");
  equal(await page.text("#pickers .filter"), 'pod=~"x.*" ×', "one that is none has a chip");
  server.asked.length = 0;
  await settled(() => page.click("#pickers .filter"));
  equal(matches(), ['{process!="python3"}'], "which takes it away");
}

async function services() {
  await page.open({ page: "graph", focus: "main", process: "api-server" });
  await page.wait("document.getElementById('pick-service') !== null");
  const { match, focus } = server.questions("timeline").at(-1);
  equal([match, focus], [undefined, undefined], "whether services are processes is asked of sums, whatever is chosen");
  await page.wait("document.getElementById('pick-service') !== null");
  check(await page.visible("#pick-service"), "services have a picker");
  const [own, labels] = [server.labels, { ...server.labels, service: server.labels.process }];
  server.labels = labels;
  await page.open({ page: "graph" });
  check(await page.waitText("#pick-process", "all (3)"), "the labels have come");
  check(!(await page.visible("#pick-service")), "none where each is called as its process is");
  await openPicker("process");
  check((await page.text("#picker [role=status]")).includes("Services are called as their processes are."), "which is said");
  await page.key("Escape");
  await page.open({ page: "graph", match: 'service=~"a|b"' });
  check(await page.visible("#pick-service"), "but where something is picked");
  server.labels = own;
}

async function failures() {
  await page.open({ page: "graph" });
  server.answers["/api/v1/timeline"] = () => ({ status: 422, body: { error: { message: "no pid is kept of that time" } } });
  await page.click("#pick-process");
  check(await page.waitText("#picker [role=status]", "no pid is kept of that time"), "what the server says against it is shown");
  await page.key("Escape");
  delete server.answers["/api/v1/timeline"];
}

async function telephone() {
  await page.resize(400, 800);
  await page.open({ page: "graph" });
  await openPicker("host");
  const box = await page.run("(({ left, right, bottom }) => [left, right, bottom])(document.getElementById('picker').getBoundingClientRect())");
  check(box[0] >= 0 && box[1] <= 400 && box[2] <= 800, "fits a telephone", box);
  check(await page.run("document.documentElement.scrollWidth <= window.innerWidth"), "nothing is too wide");
  await page.axe("picker on a telephone");
  server.asked.length = 0;
  await settled(() => page.click(row("web-2")));
  equal(matches(), ['{host="web-2"}'], "a touch picks");
  await page.shot("picker-narrow");
  await page.resize(1400, 850);
  page.quiet("pickers");
}

await run(shares, several, not_these, keys, many, other_labels, typed, services, failures, telephone);
