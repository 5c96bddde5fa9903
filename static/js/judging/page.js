// Judging: the next item waits behind the visible one with its images loaded, so that it appears right after an answer.
// Answers are sent one after the other; if one does not arrive, its item comes back with the reason.

const deck = document.getElementById("deck");
const undo = document.getElementById("undo");
const trouble = document.getElementById("trouble");
const waiting = document.getElementById("waiting");
const far = document.getElementById("far");
const ARROWS = { ArrowLeft: deck?.dataset.left, ArrowRight: deck?.dataset.right }; // answers of the arrow keys, if any
let line = Promise.resolve();
const on_the_way = new Set(); // items whose answers the server does not know yet
let began = performance.now();
let whole = false;

const current = () => deck.querySelector("[data-item]:not([hidden])");

function choose(item, answer) {
  const form = item.querySelector("form");
  const inside = item.contains(document.activeElement);
  const body = new URLSearchParams(new FormData(form));
  body.set("answer", answer);
  body.set("seconds", ((performance.now() - began) / 1000).toFixed(1));
  item.remove();
  counted(1);
  show();
  if (inside) current()?.querySelector("form button")?.focus({ preventScroll: true }); // users of Tab continue at the same place
  on_the_way.add(item.dataset.item);
  line = line.then(() => send(form.action, body)).catch((error) => back(item, error)).finally(() => { on_the_way.delete(item.dataset.item); end(); });
}

async function send(address, body) {
  const held = [...deck.querySelectorAll("[data-item]")].map((item) => item.dataset.item);
  for (const item of [...held, ...on_the_way]) body.append("holds", item);
  const response = await fetch(address, { method: "POST", body, headers: { "HX-Request": "true" }, credentials: "same-origin" });
  if (response.redirected) { location.reload(); return; } // the session is over: the sign-in page leads back
  const text = await response.text();
  if (!response.ok) throw new Error(response.status === 409 ? text : `The server answered ${response.status}. Choose again.`);
  deck.insertAdjacentHTML("beforeend", text);
  if (!current()) show();
}

function show() {
  const next = deck.querySelector("[data-item]");
  waiting.hidden = Boolean(next);
  if (!next) return;
  for (const item of deck.querySelectorAll("[data-item]")) item.hidden = item !== next;
  const box = next.querySelector("[name=whole]");
  if (box) box.checked = whole;
  for (const button of next.querySelectorAll("button")) button.disabled = false;
  scrollTo({ top: 0 });
  began = performance.now();
}

function back(item, error) {
  deck.prepend(item);
  counted(-1);
  show();
  trouble.textContent = error instanceof TypeError ? "The server cannot be reached, so the answer was not kept. Choose again." : error.message;
  trouble.hidden = false;
}

function counted(step) {
  far.value += step;
  document.getElementById("done").textContent = String(far.value);
  undo.querySelector("button").disabled = far.value === 0;
  trouble.hidden = true;
}

// Nothing is visible or being sent: the server's page says that all is done.
function end() {
  if (on_the_way.size === 0 && !deck.querySelector("[data-item]")) location.reload();
}

if (deck) {
  deck.addEventListener("submit", (event) => {
    event.preventDefault();
    choose(event.target.closest("[data-item]"), event.submitter.value);
  });
  deck.addEventListener("change", (event) => { if (event.target.name === "whole") whole = event.target.checked; });
  document.addEventListener("keydown", (event) => {
    if (!ARROWS[event.key] || event.ctrlKey || event.metaKey || event.altKey || event.repeat || document.querySelector("dialog[open]")) return;
    if (event.target.matches?.("input:not([type=checkbox]), textarea, select") || !current()) return;
    event.preventDefault();
    choose(current(), ARROWS[event.key]);
  });
  undo.addEventListener("submit", (event) => {
    if (on_the_way.size === 0) return;
    event.preventDefault();
    line.then(() => undo.submit());
  });
}
