// Keys: an element with data-key="j" or data-key="g r" is pressed by that key, or by those two in turn. "?" lists them
// all with the words of data-key-says; with data-key-own, the key is only listed, and another script acts on it.

const PATIENCE = 1200; // ms in which the second key of two follows the first
const list = document.getElementById("keys");
const help = document.getElementById("show-keys");
const on = document.getElementById("keys-on");
const glossary = document.getElementById("keys-words"); // absent on the glossary itself
let meant = ""; // the key of the word that is explained
let first = "";
let timer = 0;

const allowed = () => { try { return localStorage.getItem("keys") !== "off"; } catch { return true; } };
// A field in a dialog that was just closed keeps the focus until the browser paints again, but the user does not type
// there.
const typing = (target) => target.matches?.("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]") && target.checkVisibility();

// True if a single key is a command now: not while the user types, nor under a dialog.
export function acts(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return false;
  return allowed() && !typing(event.target) && !document.querySelector("dialog[open]");
}

function pressed(event) {
  if (!acts(event)) return;
  const keys = first ? `${first} ${event.key}` : event.key;
  clearTimeout(timer);
  first = "";
  const found = bearer(keys);
  if (found) {
    event.preventDefault();
    act(found);
  } else if (document.querySelector(`[data-key^="${CSS.escape(event.key)} "]`)) {
    first = event.key;
    timer = setTimeout(() => { first = ""; }, PATIENCE);
  }
}

// Elements of the page win over those of the frame: on a page with a search, "/" opens that one.
function bearer(keys) {
  const all = [...document.querySelectorAll(`[data-key="${CSS.escape(keys)}"]:not([data-key-own])`)].filter((each) => !each.disabled && !each.hidden && !each.closest(".idle .bulk"));
  return all.find((each) => each.closest("main")) || all[0];
}

function act(element) {
  if (element.matches("input:not([type=checkbox], [type=radio]), textarea, select")) {
    element.focus();
    element.select?.();
  } else element.click();
}

function show() {
  const bearers = [...document.querySelectorAll("[data-key-says]")].filter((each) => !each.closest("[hidden]"));
  fill("here", bearers.filter((each) => each.closest("main")));
  fill("everywhere", bearers.filter((each) => !each.closest("main")));
  on.checked = allowed();
  if (!list.open) list.showModal();
  glossary?.dispatchEvent(new Event("wanted")); // the glossary, the first time
}

// A "?" beside a heading opens the glossary over the page, so that nothing typed on the page is lost.
function explain(event) {
  const link = event.target.closest("a.explain");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  meant = link.dataset.word;
  show();
  point();
}

function point() {
  for (const each of glossary.querySelectorAll(".highlighted-term")) each.classList.remove("highlighted-term");
  const entry = meant ? glossary.querySelector(`#word-${CSS.escape(meant)}`) : null;
  entry?.classList.add("highlighted-term");
  entry?.scrollIntoView({ block: "center" });
}

function fill(part, bearers) {
  const section = document.getElementById(`keys-${part}`);
  const told = new Map(bearers.map((each) => [each.dataset.key, each.dataset.keySays]));
  if (part === "everywhere") told.set("Ctrl K", "Search, or jump to a page");
  section.hidden = told.size === 0;
  section.querySelector("dl").replaceChildren(...[...told].map(([keys, says]) => row(keys, says)));
}

function row(keys, says) {
  const line = document.createElement("div");
  const [words, caps] = [document.createElement("dt"), document.createElement("dd")];
  words.textContent = says;
  caps.append(...keys.split(" ").map((key) => Object.assign(document.createElement("kbd"), { textContent: key })));
  line.append(words, caps);
  return line;
}

document.addEventListener("keydown", pressed);
if (list && help) {
  help.hidden = false;
  help.addEventListener("click", () => { meant = ""; show(); });
  document.addEventListener("click", explain);
  glossary?.addEventListener("htmx:afterSwap", point);
  list.addEventListener("click", (event) => { if (event.target === list) list.close(); });
  on.addEventListener("change", () => {
    try { localStorage.setItem("keys", on.checked ? "on" : "off"); } catch { /* they act until this page is left */ }
  });
}
