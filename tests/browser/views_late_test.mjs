// SPDX-License-Identifier: Apache-2.0
// Each view of the page when the server is late: only what was asked last is shown, and nobody has to wait.

import { check, openPage, run, startRecorded } from "./page.mjs";
import { calm, openView, sameWords, second, viewsOf, wordsOf } from "./views.mjs";

const server = await startRecorded();
const page = await openPage(server.url);
const views = await viewsOf(page);

// A first choice whose answers are late, then another: what is shown is the other one's, and nobody waits for
// the first any more.
async function stale() {
  const [one, two] = ["farflame-demo", "syscall_loop"];
  for (const view of views) {
    const own = await second(page);
    const aborted = [];
    let late = 0;
    own.page.on("requestfailed", (request) => aborted.push(request.failure()?.errorText));
    await openView(own, view, { ...server.range, process: two });
    const want = await wordsOf(own);
    await own.page.route("**/api/v1/**", async (route) => {
      if (decodeURIComponent(route.request().url()).includes(one)) {
        late++;
        await new Promise((done) => setTimeout(done, 700));
      }
      await route.continue().catch(() => undefined); // aborted meanwhile
    });
    const choose = (process) => own.run(`location.hash = ${JSON.stringify(own.link({ page: view.page, ...server.range, process }).split("#")[1])}`);
    await choose(one);
    await own.page.waitForTimeout(200);
    await choose(two);
    await own.page.waitForTimeout(800);
    check(await calm(own), `${view.title}: comes to rest`);
    await sameWords(own, want, `${view.title}: a late answer is not shown`);
    check(late === 0 || aborted.length >= late, `${view.title}: and its question was given up (${late})`, aborted);
    own.quiet(`${view.title}, late`);
    await own.page.close();
  }
}

async function cancelled() {
  for (const view of views) {
    const own = await second(page);
    // From before the page is loaded: what is asked just after a route is made may still pass it by.
    let isHeld = false;
    await own.page.route("**/api/v1/**", (route) => (isHeld ? undefined : route.continue().catch(() => undefined)));
    await openView(own, view, server.range);
    const before = await wordsOf(own);
    isHeld = true; // never answered
    own.requests.length = 0;
    await own.key("r");
    const isThere = await own.wait("getComputedStyle(document.getElementById('cancel')).visibility === 'visible'");
    check(isThere, `${view.title}: while it waits, Cancel is there`, [await own.run("[document.body.className, document.activeElement?.tagName, document.hasFocus()].join()"), own.waiting.size, ...own.requests]);
    await own.click("#cancel");
    check(await own.wait("!document.body.classList.contains('loading')"), `${view.title}: and ends the wait`);
    await sameWords(own, before, `${view.title}: what was there stays`);
    await own.page.close();
  }
}

await run(stale, cancelled);
