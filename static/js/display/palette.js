// Ctrl+K: a box that leads anywhere. What the server finds stands in #palette-found as elements with role "option";
// before anything is typed, the places visited recently and the pages there are. What can be done here are the page's own
// buttons and links with data-offer="Stop this run": the palette presses them. Those in the page itself stand before the pages.
import { toast } from "./notices.js";

const KEPT = 8; // places remembered in this browser
const RECENT = 4; // of them on show, so that what can be done here is seen without scrolling
const box = document.getElementById("palette");
const words = document.getElementById("palette-words");
const list = document.getElementById("palette-list");
const found = document.getElementById("palette-found");
const recent = document.getElementById("palette-recent");
const pages = document.getElementById("palette-pages");
const here = document.getElementById("palette-here");
const actions = document.getElementById("palette-actions");
let answered = ""; // the words that the options on show answer
let chosen = null;

function places() {
  try { return JSON.parse(localStorage.getItem("places")) || []; } catch { return []; }
}

function keep(all) {
  try { localStorage.setItem("places", JSON.stringify(all)); } catch { /* nothing is remembered */ }
}

function remember() {
  const here = { url: location.pathname, words: document.title.replace(/ · MAIA Web$/, "") };
  if (inRail(here.url)) return;
  keep([here, ...places().filter((each) => each.url !== here.url)].slice(0, KEPT));
}

const inRail = (url) => [...document.querySelectorAll("#palette-pages [role=option]")].some((each) => each.pathname === url);

function open() {
  if (document.querySelector("dialog[open]")) return;
  const links = places().filter((each) => each.url !== location.pathname).slice(0, RECENT).map(option);
  recent.replaceChildren(recent.firstElementChild, ...links);
  const [ours, others] = offers();
  here.replaceChildren(here.firstElementChild, ...ours.map(action));
  actions.replaceChildren(actions.firstElementChild, ...others.map(action));
  box.showModal();
  words.select();
  show();
}

function option({ url, words: text }) {
  const link = document.createElement("a");
  link.setAttribute("role", "option");
  // Only a path of this site is ever opened, whatever stands in the storage.
  link.href = location.origin + new URL(url, location.origin).pathname;
  link.textContent = text;
  return link;
}

// Those of the page, with a link to it, and those of the frame; what a run's state rules out is not offered.
function offers() {
  const shown = [...document.querySelectorAll("[data-offer]")].filter((each) => !each.hidden && !each.disabled && stands(each.closest("[data-do]")));
  const within = (main) => shown.filter((each) => !each.closest("main") === !main).map((each) => [each.dataset.offer, () => each.click()]);
  return [[["Copy link to this page", copyLink], ...within(true)], within(false)];
}

const stands = (part) => !part || getComputedStyle(part).display !== "none";

async function copyLink() {
  try {
    await navigator.clipboard.writeText(location.href);
    toast("The link is copied.", "success");
  } catch { // no clipboard without HTTPS, or not allowed
    toast(`The browser did not let it be copied: ${location.href}`);
  }
}

function action([text, act]) {
  const button = document.createElement("button");
  button.type = "button";
  button.setAttribute("role", "option");
  button.textContent = text;
  button.addEventListener("click", () => { box.close(); act(); });
  return button;
}

// Pages stand in for answers where nothing is typed, or where there is nobody to ask.
function show() {
  const text = words.value.trim().toLowerCase();
  const asks = words.hasAttribute("hx-get");
  found.hidden = !asks || text === "";
  for (const group of [recent, here, pages, actions]) {
    for (const each of group.querySelectorAll("[role=option]")) each.hidden = !holds(each, text);
    const replaced = !found.hidden && (group === recent || group === pages);
    group.hidden = replaced || !group.querySelector("[role=option]:not([hidden])");
  }
  if (!asks) answered = words.value;
  choose(options()[0] || null);
}

const holds = (each, text) => text.split(/\s+/).every((word) => each.textContent.toLowerCase().includes(word));

function options() {
  return [...list.querySelectorAll("[role=option]")].filter((each) => each.checkVisibility());
}

function choose(next) {
  for (const each of list.querySelectorAll("[aria-selected=true]")) each.setAttribute("aria-selected", "false");
  chosen = next;
  if (!next) { words.removeAttribute("aria-activedescendant"); return; }
  next.id ||= `option-${Math.random().toString(36).slice(2)}`;
  next.setAttribute("aria-selected", "true");
  words.setAttribute("aria-activedescendant", next.id);
  next.scrollIntoView({ block: "nearest" });
}

function step(by) {
  const all = options();
  if (all.length) choose(all[(all.indexOf(chosen) + by + all.length) % all.length]);
}

function typed(event) {
  if (event.isComposing) return;
  if (event.key === "ArrowDown" || event.key === "ArrowUp") step(event.key === "ArrowDown" ? 1 : -1);
  else if (event.key === "Enter" && chosen && (words.value === answered || !words.value.trim())) go(event);
  else return;
  event.preventDefault();
}

function go(event) {
  const link = chosen.matches("a, button") ? chosen : chosen.querySelector("a");
  if (!link) return;
  if (link.href && (event.ctrlKey || event.metaKey)) window.open(link.href, "_blank", "noopener");
  else link.click();
}

if (box) {
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    event.preventDefault();
    if (box.open) box.close(); else open();
  });
  document.getElementById("find").addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open();
  });
  words.addEventListener("keydown", typed);
  words.addEventListener("input", show);
  found.addEventListener("htmx:afterSwap", () => { answered = words.value; show(); });
  list.addEventListener("pointermove", (event) => {
    const at = event.target.closest("[role=option]");
    if (at && at !== chosen) choose(at);
  });
  list.addEventListener("click", (event) => { if (event.target.closest("a")) box.close(); });
  box.addEventListener("click", (event) => { if (event.target === box) box.close(); });
  document.getElementById("palette-close").addEventListener("click", () => box.close());
  // Nobody who signs in next on this browser sees where somebody else has been.
  document.getElementById("sign-out")?.addEventListener("submit", () => keep([]));
  remember();
}
