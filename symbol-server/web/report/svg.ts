// SPDX-License-Identifier: Apache-2.0
// What makes the picture of format=svg zoom and search, where its viewer runs scripts. The picture
// itself says where everything is: each frame is a <g> with a title (its first line the label), a
// rectangle and perhaps a text. Numbers are those of formats/flame_svg.c.

import { formatPercent } from "../text/format";
import { compilePattern } from "../graph/search";

const CHARACTER = 6.63;
const TEXT_LEFT = 4;
const TEXT_MIN = 26;
const MIN_CHARACTERS = 3;
const WIDE = 4; // from here on frames have a line around them
const SVG = "http://www.w3.org/2000/svg";
const HTML = "http://www.w3.org/1999/xhtml";

interface Frame {
  group: SVGGElement;
  rect: SVGRectElement;
  text: SVGTextElement | null;
  title: string;
  label: string;
  x: number;
  width: number;
  y: number;
}

const root = document.documentElement as unknown as SVGSVGElement;
const frames: Frame[] = [];
const details = document.getElementById("details") as unknown as SVGTextElement;
let zoomed: Frame;

function read(group: SVGGElement): Frame {
  const rect = group.querySelector("rect") as SVGRectElement;
  const title = group.querySelector("title")?.textContent ?? "";
  const number = (name: string) => Number(rect.getAttribute(name));
  return {
    group,
    rect,
    text: group.querySelector("text"),
    title,
    label: title.split("\n")[0],
    x: number("x"),
    width: number("width"),
    y: number("y"),
  };
}

function fit(label: string, width: number): string {
  const room = Math.floor((width - 2 * TEXT_LEFT) / CHARACTER);
  if (label.length <= room) {
    return label;
  }
  return room <= MIN_CHARACTERS ? "" : label.slice(0, room - 1) + "…";
}

function put(frame: Frame, x: number, width: number): void {
  frame.rect.setAttribute("x", String(x));
  frame.rect.setAttribute("width", String(width));
  frame.group.classList.toggle("w", width >= WIDE);
  const shown = width < TEXT_MIN ? "" : fit(frame.label, width);
  if (frame.text === null) {
    if (shown === "") {
      return;
    }
    frame.text = document.createElementNS(SVG, "text");
    frame.text.setAttribute("y", String(frame.y + 13));
    frame.group.append(frame.text);
  }
  frame.text.setAttribute("x", String(x + TEXT_LEFT));
  frame.text.textContent = shown;
}

// The frame gets the whole width; its callers too, but pale.
function zoom(to: Frame): void {
  const all = frames[0];
  const scale = all.width / to.width;
  const right = to.x + to.width;
  const slack = to.width * 1e-6; // positions are rounded
  zoomed = to;
  for (const frame of frames) {
    const isCaller =
      frame.y < to.y && frame.x <= to.x + slack && frame.x + frame.width >= right - slack;
    const isInside =
      frame.y >= to.y && frame.x >= to.x - slack && frame.x + frame.width <= right + slack;
    frame.group.style.display = isCaller || isInside ? "" : "none";
    frame.group.classList.toggle("faded", isCaller);
    if (isCaller) {
      put(frame, all.x, all.width);
    } else if (isInside) {
      put(frame, all.x + (frame.x - to.x) * scale, frame.width * scale);
    }
  }
  root.dataset.zoom = to.label;
  tell();
}

let pattern: RegExp | null = null;

function isHit(frame: Frame): boolean {
  return pattern !== null && pattern.test(frame.label);
}

// The share of the zoomed frame that hits cover, each part once.
function covered(): { share: string; count: number } {
  const hits = frames.filter((frame) => frame.group.style.display !== "none" && isHit(frame));
  hits.sort((a, b) => a.x - b.x || b.width - a.width);
  const end = zoomed.x + zoomed.width;
  let until = zoomed.x;
  let sum = 0;
  for (const hit of hits) {
    const from = Math.max(hit.x, until);
    const to = Math.min(hit.x + hit.width, end);
    if (to > from) {
      sum += to - from;
      until = to;
    }
  }
  return { share: formatPercent(Math.min(sum, zoomed.width), zoomed.width), count: hits.length };
}

function tell(frame?: Frame): void {
  if (frame !== undefined) {
    details.textContent = frame.title.replaceAll("\n", " · ");
  } else if (pattern !== null) {
    const { share, count } = covered();
    details.textContent = `found: ${share} in ${count} ${count === 1 ? "frame" : "frames"}`;
  } else {
    details.textContent = "click: zoom, Escape: back, /: search";
  }
}

function search(text: string): void {
  pattern = compilePattern(text)?.expression ?? null;
  for (const frame of frames) {
    frame.group.classList.toggle("hit", isHit(frame));
  }
  tell();
}

// Static viewers know no foreign objects: the box is made here.
function searchBox(): HTMLInputElement {
  const place = document.createElementNS(SVG, "foreignObject");
  for (const [name, value] of [
    ["x", "950"],
    ["y", "8"],
    ["width", "240"],
    ["height", "24"],
  ]) {
    place.setAttribute(name, value);
  }
  const box = document.createElementNS(HTML, "input") as HTMLInputElement;
  box.type = "search";
  box.placeholder = "search (regular expression)";
  box.setAttribute("aria-label", "search");
  box.addEventListener("input", () => search(box.value));
  place.append(box);
  root.append(place);
  return box;
}

function start(): void {
  for (const group of document.querySelectorAll<SVGGElement>("#frames > g")) {
    frames.push(read(group));
  }
  if (frames.length === 0 || !(frames[0].width > 0)) {
    return;
  }
  const byGroup = new Map(frames.map((frame) => [frame.group, frame]));
  const frameOf = (event: Event) =>
    byGroup.get((event.target as Element).closest("#frames > g") as SVGGElement);
  const box = searchBox();
  root.addEventListener("click", (event) => {
    const frame = frameOf(event);
    if (frame !== undefined) {
      zoom(frame);
    }
  });
  root.addEventListener("mouseover", (event) => tell(frameOf(event)));
  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      box.value = "";
      search("");
      zoom(frames[0]);
      box.blur();
    } else if (event.key === "/" && document.activeElement !== box) {
      event.preventDefault();
      box.focus();
    }
  });
  zoomed = frames[0];
  tell();
}

start();
