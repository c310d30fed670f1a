// SPDX-License-Identifier: Apache-2.0
// Screenshots of the page on the recorded profile, light and dark, wide and narrow:
//   FARFLAME_BUILD=build node tests/browser/look.mjs DIR 'page=graph&colour=module' …
// URL=http://… looks at a running server instead; FAKE=1 at answers written for tests.

import { fake, openPage, run, startRecorded } from "./page.mjs";

const [folder, ...states] = process.argv.slice(2);
process.env.SHOTS = folder;
const server = process.env.URL ? { url: process.env.URL } : process.env.FAKE ? await fake() : await startRecorded();
const page = await openPage(server.url);
for (const text of states.length > 0 ? states : ["page=graph"]) {
  await page.open({ ...server.range, ...Object.fromEntries(new URLSearchParams(text)) });
  await page.shots(text.replace(/[^\w=.-]+/g, "_").slice(0, 80));
  page.complaints.forEach((line) => console.log(`${text}: ${line}`));
}
await run();
