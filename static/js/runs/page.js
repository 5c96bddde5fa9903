// The run page: its tabs, its socket, and the head with the run's state. The transcript is in transcript.js.
import { Socket } from "../display/socket.js";
import { Pace } from "./pace.js";
import { Transcript } from "./transcript.js";
import { answer } from "./links.js";
import "../display/images.js";

const REDRAW_AFTER = 1500; // ms between an event and a plot that shows it
const byId = (id) => document.getElementById(id);
const page = byId("run");
const panel = byId("panel");
const CONNECTION = {
  connected: "Connected",
  waiting: "Reconnecting…",
  offline: "Offline",
  refused: "You may not watch this run any more",
};
let transcript = null;
let socket = null;
let last = 0; // the newest event that the page has
let redraw = 0;

// --- what the server sends ---

const takes = {
  event(message) {
    last = message.seq;
    page.dataset.events = last;
    byId("say").textContent = transcript ? transcript.event(message) : "";
    if (!transcript) grow(message.kind);
    if (message.kind === "handover") page.dataset.backbone = message.html.includes('data-backbone="person"') ? "person" : "model";
    document.dispatchEvent(new CustomEvent("run:event", { detail: message.kind }));
  },
  head({ html }) {
    if (transcript) transcript.steady(() => replace("head", html));
    else replace("head", html);
    tick(0);
    for (const count of page.querySelectorAll("[data-count]"))
      count.textContent = byId("head").querySelector(".meters").dataset[count.dataset.count];
  },
  tail({ html }) { transcript?.tail(html); },
  outline({ html }) { transcript?.outline(html); },
  side({ html }) { transcript?.side(html); },
  answer({ html }) { transcript?.answer(html); },
  draft({ offset, text }) { transcript?.words(offset, text); },
  progress(report) { transcript?.progress(report); },
  state({ status, round, may }) {
    if (status !== page.dataset.status) byId("say").textContent = `The run is ${status.replace("_", " ")}.`;
    page.dataset.status = status;
    if ("steers" in page.dataset) page.dataset.may = may;
    transcript?.round(round);
  },
};

const pace = new Pace(
  (message) => takes[message.type]?.(message),
  () => transcript?.draft.text.length ?? Infinity,
  () => transcript?.follow.following,
);

export function replace(id, html) {
  const box = byId(id);
  const at = box.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  box.innerHTML = html;
  if (at) [...box.querySelectorAll("a")].find((link) => link.getAttribute("href") === at)?.focus({ preventScroll: true });
}

// --- tabs ---

// The tab that the panel shows now: loaded with the page, by a link, or by the browser's Back.
function mount() {
  const { tab } = panel.firstElementChild.dataset;
  const newest = Number(panel.firstElementChild.dataset.last);
  transcript?.leave();
  transcript = null;
  pace.rush(); // what waited was for the previous panel, except for its numbers
  transcript = tab === "transcript" ? new Transcript(page, newest, replace) : null;
  if (!transcript) byId("pill").hidden = true;
  for (const link of byId("tabs").querySelectorAll("a")) {
    if (link.dataset.tab === tab) { link.setAttribute("aria-current", "page"); inView(link, byId("tabs")); }
    else link.removeAttribute("aria-current");
  }
  if (transcript) resume(newest);
}

// The page has been drawn again: request the events after `from`.
function resume(from) {
  if (socket?.isOver && from >= last) return;
  last = from;
  socket?.restart();
}

// On a phone the row of tabs is longer than the screen.
function inView(link, row) {
  const [from, to] = [link.offsetLeft - row.offsetLeft, link.offsetLeft - row.offsetLeft + link.offsetWidth];
  if (from < row.scrollLeft || to > row.scrollLeft + row.clientWidth) row.scrollLeft = from - 16;
}

// A plot is redrawn; a list only offers to reload, so that readers keep their place.
function grow(kind) {
  const how = panel.querySelector(".empty") ? "redraw" : panel.firstElementChild.dataset.grows;
  if (how === "offer") byId("offer").hidden = false;
  if (how !== "redraw" || !["reply", "result"].includes(kind) || redraw) return;
  redraw = setTimeout(() => {
    redraw = 0;
    if ("grows" in panel.firstElementChild.dataset && !panel.contains(document.activeElement)) again();
  }, REDRAW_AFTER);
}

async function again() {
  const open = [...panel.querySelectorAll("details[id][open]")].map((each) => each.id);
  const off = [...panel.querySelectorAll("input[id]:not(:checked)")].map((each) => each.id);
  await htmx.ajax("GET", location.pathname + location.search, { target: "#panel", swap: "innerHTML" });
  for (const id of open) byId(id)?.setAttribute("open", "");
  for (const id of off) if (byId(id)) byId(id).checked = false;
}

document.addEventListener("htmx:afterSwap", (event) => { if (event.detail.target === panel) mount(); });
document.addEventListener("htmx:historyRestore", mount);

// --- the clock of an active run ---

let shown = 0;
// The clock never goes back: the time that the server drew is older than the visible one.
function tick(seconds) {
  const clock = document.querySelector("#head .clock");
  if (page.dataset.status !== "running" || !clock) return;
  shown = Math.max(shown + seconds, Number(clock.dataset.seconds));
  clock.textContent = time(shown);
}

setInterval(() => tick(1), 1000);

function time(seconds) {
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, Math.floor(seconds) % 60];
  return (parts[0] ? parts : parts.slice(1)).map((part, place) => (place ? String(part).padStart(2, "0") : part)).join(":");
}

// --- the frame of the page ---

function measure() {
  const head = document.querySelector(".run-head");
  const sticky = getComputedStyle(head).position === "sticky";
  document.documentElement.style.setProperty("--head-height", `${sticky ? head.offsetHeight : 0}px`);
}

function report(state) {
  const box = byId("connection");
  box.className = `connection ${state}`;
  box.hidden = state === "ended";
  const words = box.querySelector(".text-block");
  if (words.textContent !== CONNECTION[state]) words.textContent = CONNECTION[state] || "";
}

new ResizeObserver(measure).observe(document.querySelector(".run-head"));
measure();
mount();
answer(page);
if (!("complete" in page.dataset)) {
  last = Number(panel.firstElementChild.dataset.last);
  const address = () => {
    pace.rush(); // before the server is told what the page has
    return `/ws/runs/${page.dataset.run}/?after=${last}`;
  };
  socket = new Socket(address, (message) => pace.push(message), report);
}
