// Ctrl+K: a box that leads anywhere. The server's results are elements with role "option" in #palette-found; before
// anything is typed, the list has the places visited recently, the person's latest runs, and all pages. Actions are the
// page's own buttons and links with data-offer="Stop this run", which the palette presses. Actions come before pages.
import { base } from "./base.js";
import { score } from "./fuzzy.js";
import { toast } from "./notices.js";

// For a page, also the key that opens it.
const OFFERED = "[data-offer], main :is(a, button)[data-key-says]:not([data-key-own])";
const KEPT = 8; // places remembered in this browser
const RECENT = 4; // of these, visible ones, so that actions are visible without scrolling
const box = document.getElementById("palette");
const words = document.getElementById("palette-words");
const list = document.getElementById("palette-list");
const found = document.getElementById("palette-found");
const recent = document.getElementById("palette-recent");
const pages = document.getElementById("palette-pages");
const here = document.getElementById("palette-here");
const count = document.getElementById("palette-count");
const actions = document.getElementById("palette-actions");
let answered = ""; // the words for which the options were found
let chosen = null;

function places() {
  try { return JSON.parse(localStorage.getItem("places")) || []; } catch { return []; }
}

function keep(all) {
  try { localStorage.setItem("places", JSON.stringify(all)); } catch { /* nothing is remembered */ }
}

function remember() {
  const image = document.querySelector(`main img[src^='${base}/images/']`)?.getAttribute("src");
  const here = { url: location.pathname, words: document.title.replace(/ · MAIA Web$/, ""), image };
  // Pages of the menu are in the list anyway.
  if (inRail(here.url)) return;
  keep([here, ...places().filter((each) => each.url !== here.url)].slice(0, KEPT));
}

const inRail = (url) => [...document.querySelectorAll("#palette-pages [role=option]")].some((each) => each.pathname === url);

function open() {
  // Two modal dialogs would hide each other.
  if (document.querySelector("dialog[open]")) return;
  const links = places().filter((each) => each.url !== location.pathname).slice(0, RECENT).map(option);
  // The first child is the heading of the group.
  recent.replaceChildren(recent.firstElementChild, ...links);
  const [ours, others] = offers();
  here.replaceChildren(here.firstElementChild, ...ours.map(action));
  actions.replaceChildren(actions.firstElementChild, ...others.map(action));
  box.showModal();
  words.select();
  show();
  if (!words.value.trim()) window.htmx?.trigger(words, "look");
}

function option({ url, words: text, image }) {
  const link = document.createElement("a");
  link.setAttribute("role", "option");
  // The storage may hold anything, so only paths of this site are opened.
  link.href = location.origin + new URL(url, location.origin).pathname;
  const name = document.createElement("span");
  name.textContent = text;
  if (image?.startsWith(base) && /^\/images\/[0-9a-f]{64}\//.test(image.slice(base.length))) link.append(Object.assign(new Image(28, 28), { src: image, alt: "" }));
  link.append(name);
  return link;
}

// Actions of the page, with a link to it, and of the frame, without those that a run's state does not allow.
function offers() {
  const shown = [...document.querySelectorAll(OFFERED)].filter((each) => !each.hidden && !each.disabled && !each.closest("[hidden]") && stands(each.closest("[data-do]")));
  const within = (main) => {
    const all = shown.filter((each) => !each.closest("main") === !main).map((each) => [each.dataset.offer || each.dataset.keySays, () => press(each), each.dataset.key]);
    // Each name once: a page may offer the same action at two places.
    return [...new Map(all.map((each) => [each[0], each])).values()];
  };
  return [[["Copy link to this page", copyLink], ...within(true)], within(false)];
}

// Unfolded parts have fields to fill in.
function press(element) {
  element.click();
  if (element.matches("summary")) element.parentElement.querySelector("input:not([type=hidden])")?.focus();
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

function action([text, act, key]) {
  const button = document.createElement("button");
  button.type = "button";
  button.setAttribute("role", "option");
  const name = document.createElement("span");
  name.textContent = text;
  button.append(name);
  if (key) button.append(Object.assign(document.createElement("kbd"), { textContent: key }));
  button.addEventListener("click", () => { box.close(); act(); });
  return button;
}

// List pages instead of search results if nothing is typed or the server cannot be asked.
function show(keep = false) {
  const text = words.value.trim();
  const asks = words.hasAttribute("hx-get");
  (text ? actions : recent).after(found); // actions of the page come first once words are typed
  found.hidden = !asks || Boolean(text) !== Boolean(answered.trim());
  for (const group of [recent, here, pages, actions]) {
    rank(group, text);
    const replaced = asks && text !== "" && group === pages;
    group.hidden = replaced || !group.querySelector("[role=option]:not([hidden])");
  }
  // A run that was visited recently is not listed twice.
  const known = new Set([...recent.querySelectorAll("a:not([hidden])")].map((each) => each.pathname));
  for (const each of found.querySelectorAll("a")) each.hidden = known.has(each.pathname) && !each.search && !each.hash;
  for (const group of found.querySelectorAll("[role=group]")) group.hidden = !group.querySelector("a:not([hidden])");
  if (!asks) answered = words.value;
  const all = options();
  choose(keep && all.includes(chosen) ? chosen : all[0] || null);
  tell();
}

// Matches, best first; without words, everything in its order.
function rank(group, text) {
  const all = [...group.querySelectorAll("[role=option]")];
  // The first order is kept, so that it can be restored without words.
  all.forEach((each, place) => { each.dataset.place ??= place; });
  const points = new Map(all.map((each) => [each, text ? score(each.textContent, text) : 1]));
  for (const each of all) each.hidden = !points.get(each);
  group.append(...all.sort((one, other) => points.get(other) - points.get(one) || one.dataset.place - other.dataset.place));
}

let telling = 0;
function tell() {
  clearTimeout(telling);
  // Told after a pause: a screen reader would else read a number for each letter.
  if (box.open && words.value.trim()) telling = setTimeout(() => { count.textContent = `${options().length} results`; }, 600);
}

function options() {
  return [...list.querySelectorAll("[role=option]")].filter((each) => each.checkVisibility());
}

function choose(next) {
  for (const each of list.querySelectorAll("[aria-selected=true]")) each.setAttribute("aria-selected", "false");
  chosen = next;
  if (!next) { words.removeAttribute("aria-activedescendant"); return; }
  // `aria-activedescendant` needs an id.
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
  // Enter and arrows belong to the input method while it composes a letter.
  if (event.isComposing) return;
  if (event.key === "ArrowDown" || event.key === "ArrowUp") step(event.key === "ArrowDown" ? 1 : -1);
  else if (event.key === "Enter" && chosen && (words.value === answered || !words.value.trim())) go(event);
  else if (event.key === "Escape") box.close(); // in a search field, Escape would first empty the field
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
  words.addEventListener("input", () => show());
  found.addEventListener("htmx:afterSwap", () => { answered = words.value; show(true); });
  list.addEventListener("pointermove", (event) => {
    const at = event.target.closest("[role=option]");
    if (at && at !== chosen) choose(at);
  });
  list.addEventListener("click", (event) => { if (event.target.closest("a")) box.close(); });
  box.addEventListener("click", (event) => { if (event.target === box) box.close(); });
  document.getElementById("palette-close").addEventListener("click", () => box.close());
  // The next user of this browser must not see the places of this one.
  document.getElementById("sign-out")?.addEventListener("submit", () => keep([]));
  remember();
}
