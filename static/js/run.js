// The run page: inserts what the server draws, shows the reply under way, and keeps the outline in step.
import { Draft } from "./draft.js";
import { Follow } from "./follow.js";
import { Stream } from "./stream.js";
import "./shots.js";

const byId = (id) => document.getElementById(id);
const page = byId("run");
const events = byId("events");
const draft = new Draft(byId("draft"), byId("draft-words"));
const follow = new Follow(byId("pill"));
const CONNECTION = {
  connected: "Connected",
  waiting: "Reconnecting…",
  offline: "Offline",
  refused: "You may not watch this run any more",
};

// --- what the server sends ---

const takes = {
  event({ kind, html }) {
    const fresh = insert(html);
    if (kind === "reply") draft.clear();
    byId("progress").hidden = true;
    byId("say").textContent = fresh.dataset.say;
    follow.grown("newRound" in fresh.dataset ? 1 : 0);
    mark(location.hash.slice(1) === fresh.id && fresh);
  },
  head({ html }) { replace("head", html); },
  tail({ html }) { replace("tail", html); follow.grown(); },
  outline({ html }) { replace("outline", html); spy(); },
  side({ html }) { replace("side", html); rescale(); },
  state({ status, stopping, round }) {
    if (status !== page.dataset.status) byId("say").textContent = `The run is ${status.replace("_", " ")}.`;
    page.dataset.status = status;
    byId("draft-round").textContent = round;
    const stop = byId("stop");
    if (stop) stop.hidden = stopping || !["queued", "running", "paused", "waiting"].includes(status);
  },
  draft({ offset, text }) {
    draft.take(offset, text);
    if (text) byId("progress").hidden = true;
    follow.grown();
  },
  progress({ what, done, total }) {
    const line = byId("progress");
    line.hidden = !what;
    line.querySelector(".what").textContent = what;
    line.querySelector(".of").textContent = total > 1 ? `${done} of ${total}` : "";
    const bar = line.querySelector("progress");
    if (total > 1) { bar.max = total; bar.value = done; } else bar.removeAttribute("value");
    follow.grown();
  },
};

// An element whose id is on the page already takes the old one's place; a program somebody is reading stays open.
function insert(html) {
  const fresh = element(html);
  const old = byId(fresh.id);
  if (!old) { events.append(fresh); return fresh; }
  const program = fresh.querySelector("details.program");
  const { top, bottom } = old.getBoundingClientRect();
  if (program && !follow.following && top < innerHeight && bottom > 0) program.open = old.querySelector("details.program").open;
  old.replaceWith(fresh);
  return fresh;
}

function element(html) {
  const box = document.createElement("template");
  box.innerHTML = html;
  return box.content.firstElementChild;
}

function replace(id, html) {
  const box = byId(id);
  const at = box.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  box.innerHTML = html;
  if (at) [...box.querySelectorAll("a")].find((link) => link.getAttribute("href") === at)?.focus({ preventScroll: true });
}

function mark(target) { if (target) target.scrollIntoView(); }

// Bars hold absolute activations: a stronger image only widens the window of all.
function rescale() {
  const box = byId("scale").dataset.viewBox;
  for (const bar of events.querySelectorAll(".bar")) bar.setAttribute("viewBox", box);
}

// --- the clock, while the run is worked on ---

let shown = 0;
setInterval(() => {
  const clock = document.querySelector("#head .clock");
  if (page.dataset.status !== "running" || !clock) return;
  shown = Math.max(shown + 1, Number(clock.dataset.seconds));
  clock.textContent = time(shown);
}, 1000);

function time(seconds) {
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, Math.floor(seconds) % 60];
  return (parts[0] ? parts : parts.slice(1)).map((part, place) => (place ? String(part).padStart(2, "0") : part)).join(":");
}

// --- where the reader is ---

function spy() {
  const line = innerHeight / 3;
  let here = null;
  for (const event of events.children) if (event.getBoundingClientRect().top < line) here = event.dataset.round;
  for (const link of byId("outline").querySelectorAll("a")) {
    link.classList.toggle("here", link.dataset.round === here);
    if (link.dataset.round === here) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}

function measure() {
  const head = document.querySelector(".run-head");
  const sticky = getComputedStyle(head).position === "sticky";
  document.documentElement.style.setProperty("--head-height", `${sticky ? head.offsetHeight : 0}px`);
}

addEventListener("scroll", () => requestAnimationFrame(spy), { passive: true });
new ResizeObserver(measure).observe(document.querySelector(".run-head"));
measure();
spy();

function report(state) {
  const box = byId("connection");
  box.className = `connection ${state}`;
  box.hidden = state === "ended";
  const words = box.querySelector(".words");
  if (words.textContent !== CONNECTION[state]) words.textContent = CONNECTION[state] || "";
}

if (!("complete" in page.dataset)) {
  new Stream(page.dataset.run, Number(page.dataset.last), (message) => takes[message.type]?.(message), report);
}
