// Keys: an element with data-key="j" or data-key="g r" is pressed by that key, or those two after each other.
// "?" lists them all, by what data-key-says; with data-key-own the page's own script acts and the key is only listed.

const PATIENCE = 1200; // ms in which the second key of two follows the first
const list = document.getElementById("keys");
const help = document.getElementById("show-keys");
const on = document.getElementById("keys-on");
let first = "";
let timer = 0;

const allowed = () => { try { return localStorage.getItem("keys") !== "off"; } catch { return true; } };
const typing = (target) => target.matches?.("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (!allowed() || typing(event.target) || document.querySelector("dialog[open]")) return;
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

// What stands on the page goes before the frame: a page with a search of its own takes "/".
function bearer(keys) {
  const all = [...document.querySelectorAll(`[data-key="${CSS.escape(keys)}"]:not([data-key-own])`)].filter((each) => !each.disabled && !each.hidden);
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
  help.addEventListener("click", show);
  list.addEventListener("click", (event) => { if (event.target === list) list.close(); });
  on.addEventListener("change", () => {
    try { localStorage.setItem("keys", on.checked ? "on" : "off"); } catch { /* they act until this page is left */ }
  });
}
