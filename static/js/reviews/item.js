// Focus mode: keys for the rubric, a draft saved while it is typed, and the next item without a wait.
import { ItemQueue } from "./item_queue.js";
import { acts } from "../display/keys.js";
import { toast } from "../display/notices.js";

const TYPED = 600; // ms without a key after which a draft is saved
const ALIVE = 240000; // ms between two signs of life, which keep a reservation
const queue = new ItemQueue(document.getElementById("desk"));
let line = 0;
let timer = 0;
let sideways = false; // the last key was an arrow to the left or right

const form = () => document.getElementById("rubric");
const lines = () => [...form().querySelectorAll(".score-line")];

// --- the current line, and keys ---

function point(to, look = true) {
  const all = lines();
  line = Math.max(0, Math.min(to, all.length - 1));
  for (const [place, each] of all.entries()) {
    each.classList.toggle("current", place === line);
    for (const input of each.querySelectorAll("input")) {
      if (place === line) input.dataset.key = input.value;
      else delete input.dataset.key;
    }
  }
  if (look) all[line].scrollIntoView({ block: "nearest" });
}

// The focus follows the line, for users of screen readers. It is on the line itself, not on a score, so that the space
// bar scrolls instead of giving one.
function stand() {
  const here = lines()[line];
  here.tabIndex = -1;
  here.focus({ preventScroll: true });
}

// After a score the next line follows; arrow keys within a line stay there.
document.addEventListener("click", ({ target }) => {
  if (!target.matches?.("#rubric input[type=radio]")) return;
  target.closest("fieldset").classList.remove("incomplete");
  const here = lines().indexOf(target.closest(".score-line"));
  if (here < 0) return;
  point(sideways ? here : here + 1);
  if (!sideways && form().contains(document.activeElement)) stand();
});

function rest() {
  const radios = [...lines()[line].querySelectorAll("input")];
  (radios.find((each) => each.checked) || radios[0]).focus({ preventScroll: true });
}

const typing = (target) => target.matches?.("input:not([type=radio]), textarea, select");
const pressable = (target) => target.closest?.("a, button, summary, label, [tabindex='0']");

// Scroll the evidence by pages, wherever in the rubric the focus is.
const PAGES = { PageDown: 0.85, PageUp: -0.85 };

function turn(event) {
  const free = event.target === document.body || event.target.closest?.("#judge");
  const by = PAGES[event.key] || (event.key === " " && !event.target.matches?.("input") && !pressable(event.target) ? (event.shiftKey ? -0.85 : 0.85) : 0);
  if (!by || !free || typing(event.target)) return;
  event.preventDefault();
  scrollBy({ top: by * innerHeight, behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "instant" : "smooth" });
}

document.addEventListener("keydown", (event) => {
  if (!form() || document.querySelector("dialog[open]") || event.isComposing) return;
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    send();
  } else if (event.key === "Enter" && !event.repeat && !event.shiftKey && acts(event) && !pressable(event.target)) {
    event.preventDefault();
    send();
  } else if (PAGES[event.key] || event.key === " ") turn(event);
  else if (["ArrowDown", "ArrowUp"].includes(event.key) && !typing(event.target) && !event.ctrlKey && !event.metaKey && !event.altKey && !event.shiftKey) {
    event.preventDefault();
    point(line + (event.key === "ArrowDown" ? 1 : -1));
    rest();
  } else sideways = ["ArrowLeft", "ArrowRight"].includes(event.key);
}, true);
document.addEventListener("pointerdown", () => { sideways = false; }, true);

// --- the draft ---

function changed(event) {
  const here = event.target.closest?.("#rubric");
  if (!here || here.dataset.sent) return;
  said("Not saved yet");
  clearTimeout(timer);
  timer = setTimeout(save, TYPED);
}

function said(words, bad = false) {
  const box = document.getElementById("saved");
  if (!box) return;
  box.textContent = words;
  box.classList.toggle("bad", bad);
}

function save() {
  clearTimeout(timer);
  timer = 0;
  if (!form()) return;
  const here = form();
  queue.post(here, here.dataset.save).then((answer) => {
    if (here !== form()) return;
    if (answer.ok) { if (!timer) said(`Saved ${answer.body.saved}`); if (answer.body.words) tell(answer.body.words); } else refused(answer);
  });
}

document.addEventListener("input", changed);
document.addEventListener("change", changed);
addEventListener("pagehide", () => { if (timer && form()) fetch(form().dataset.save, { method: "POST", body: new FormData(form()), headers: { Accept: "application/json" }, keepalive: true }); });

// --- submitting ---

function complete() {
  const empty = [...form().querySelectorAll(".score-line, .verdicts")].filter((each) => !each.querySelector("input:checked"));
  for (const each of form().querySelectorAll("fieldset")) each.classList.toggle("incomplete", empty.includes(each));
  if (!empty.length) { hush(); return true; }
  const first = lines().indexOf(empty[0]);
  if (first >= 0) point(first); else empty[0].scrollIntoView({ block: "nearest" });
  tell(`Still to be filled in: ${empty.map((each) => each.querySelector("legend").textContent.replace("?", "")).join(", ")}.`);
  return false;
}

async function send(additional = false) {
  const here = form();
  if (!here || here.dataset.sent || !complete()) return;
  clearTimeout(timer);
  timer = 0;
  here.dataset.sent = "yes";
  if (additional) here.elements.additional.value = "yes";
  const next = queue.next;
  here.elements.next.value = next?.dataset.position || "";
  const asked = queue.post(here, here.action);
  const before = next ? queue.show(next) : null; // the next item is visible before the server has answered
  if (next) begin();
  const answer = await asked;
  delete here.dataset.sent;
  if (!answer.ok) {
    if (before) begin(queue.show(before)); // what was typed in the next one is kept
    refused(answer);
    return;
  }
  await queue.advance(answer.body, next, () => begin());
}

function refused({ status, body }) {
  said("Not saved", true);
  if (!body) { tell(status ? "The server refused this. Your text is still here: try again." : "The server does not answer. What you typed stays here: try again.", [["Retry", save]]); return; }
  const { problem, words } = body;
  if (body.saved && problem !== "version") { form().elements.version.value = body.version; said(`Saved ${body.saved}`); }
  if (problem === "version") tell(`${words} Both are kept until you choose.`, [["Keep what is here", () => keep(body)], ["Take the other", () => take(body)]]);
  else if (problem === "run") { form().elements.seq.value = body.seq; tell(words, [["I have seen it: submit", () => send()]], body.news); }
  else if (problem === "taken") tell(words, [["Submit as an additional review", () => send(true)]]);
  else if (problem === "over") tell(words, [["Load this item again", () => location.reload()]]);
  else tell(words);
}

function keep(body) {
  form().elements.version.value = body.version;
  hush();
  save();
}

function take(body) {
  form().elements.version.value = body.version;
  for (const [name, value] of Object.entries(body.fields)) {
    const field = form().elements[name];
    if (field instanceof RadioNodeList) { for (const radio of field) radio.checked = radio.value === String(value ?? ""); } else field.value = value ?? "";
  }
  hush();
  said(`Saved ${body.saved}`);
}

// --- messages beside the rubric ---

function tell(words, choices = [], news = []) {
  const box = document.getElementById("told");
  if (!box) { toast(words, "warning"); return; }
  const line = Object.assign(document.createElement("p"), { textContent: words });
  const links = news.map((each) => Object.assign(document.createElement("a"), { href: each.link, target: "_blank", textContent: `#${each.seq} ${each.words}` }));
  const list = document.createElement("p");
  list.append(...links.flatMap((each) => [each, " "]));
  const buttons = document.createElement("div");
  buttons.className = "choices";
  for (const [name, act] of choices) {
    const button = Object.assign(document.createElement("button"), { type: "button", className: "button small", textContent: name });
    button.addEventListener("click", act);
    buttons.append(button);
  }
  box.replaceChildren(line, ...(links.length ? [list] : []), ...(choices.length ? [buttons] : []));
  box.hidden = false;
  box.scrollIntoView({ block: "nearest" });
}

function hush() {
  const box = document.getElementById("told");
  if (box) box.hidden = true;
}

// --- the page ---

function begin(next = null) {
  if (!form()) return;
  form().classList.add("enhanced");
  const empty = lines().findIndex((each) => !each.querySelector("input:checked"));
  point(empty < 0 ? 0 : empty, false);
  if (matchMedia("(min-width: 1001px)").matches && !document.querySelector("dialog[open]")) stand();
  if (next) queue.next = next;
  else queue.lookAhead();
}

async function live() {
  if (!form() || form().dataset.sent) return;
  const here = form();
  const { ok, body } = await queue.post(here, here.dataset.hold);
  if (!ok || here !== form()) return;
  if (!body.held) tell("Your reservation lapsed and another reviewer has the place. Your draft is kept; you can send it as an additional review.", [["Submit as an additional review", () => send(true)]]);
  else if (body.seq > Number(here.elements.seq.value)) tell("The run has continued since you opened it.", [["Load what is new", () => { save(); queue.after(() => location.reload()); }]]);
}

// In the capture phase, so that main.js does not disable the buttons of a form that stays.
document.addEventListener("submit", (event) => {
  if (event.target.id !== "rubric" || event.submitter?.hasAttribute("formaction")) return;
  event.preventDefault();
  event.stopPropagation();
  send(event.submitter?.name === "additional");
}, true);
addEventListener("popstate", () => location.reload());
setInterval(live, ALIVE);
begin();
