// Comments in a transcript: the number at each event, its threads beside it, and comments on selected words. The server
// renders what it knows into #comment-marks, and again after a change; events may be added and replaced.
import "./writing.js";
import { chosen, mark, unmark } from "./quotes.js";

const byId = (id) => document.getElementById(id);
const marks = () => byId("comment-marks");
const panel = byId("panel");
const LONGEST = 600; // characters of a quote
let due = 0;

// --- marks -------------------------------------------------------------------------------------------

function soon() {
  due ||= requestAnimationFrame(() => { due = 0; draw(); });
}

function draw() {
  const [events, known] = [byId("events"), marks()];
  count(known);
  if (!known) return;
  if (!events) { listed(known); return; }
  const spots = new Map([...known.querySelectorAll("div[data-spot]")].map((each) => [each.dataset.spot, each]));
  for (const event of events.querySelectorAll(":scope > .event")) {
    label(event, spots.get(event.id), "mayComment" in known.dataset);
    images(event, spots.get(event.id));
  }
  unmark(events);
  for (const quote of known.querySelectorAll("q")) {
    const event = byId(quote.dataset.spot);
    if (event) mark(event, { quote: quote.textContent, before: quote.dataset.before, after: quote.dataset.after, place: Number(quote.dataset.place) }, quote.dataset.thread);
  }
}

// In the lists of experiments and images: links to the threads in the transcript.
function listed(known) {
  for (const each of panel.querySelectorAll(".wide a.comment-button")) each.remove();
  for (const spot of known.querySelectorAll("div[data-spot^=experiment]")) {
    byId(spot.dataset.spot)?.querySelector(":scope > header")?.append(link(spot.dataset.spot, spot.dataset.comments));
    for (const image of spot.children) {
      for (const frame of panel.querySelectorAll(`.wide .image-card a.frame[href*="${image.dataset.image}"]`))
        if (logged(frame, spot.dataset.spot)) frame.closest(".image-card").querySelector("figcaption")?.append(link(spot.dataset.spot, image.dataset.comments));
    }
  }
}

// True if this experiment logged it: others may have logged the same image.
function logged(frame, spot) {
  const one = frame.closest(".image-item");
  return one ? one.querySelector(`.location a[href$="#${spot}"]`) : frame.closest(`#${spot}`);
}

function link(spot, comments) {
  const made = document.createElement("a");
  made.className = "comment-button has-comments injected";
  made.href = `?experiment=${spot.split("-")[1]}&talk=1#${spot}`;
  say(made, `${comments} comment${comments === "1" ? "" : "s"}`);
  return made;
}

// The number of unresolved threads, beside the name of the tab.
function count(known) {
  const tab = document.querySelector("#tabs [data-tab=comments]");
  if (!tab || !known?.dataset.open) return;
  const open = Number(known.dataset.open);
  let box = tab.querySelector(".n");
  if (!box) tab.append(" ", (box = Object.assign(document.createElement("span"), { className: "n" })));
  box.textContent = open || "";
}

function label(event, known, may) {
  let button = event.querySelector(":scope > .comment-button, :scope > header > .comment-button");
  const comments = Number(known?.dataset.comments || 0);
  if (!comments && !may) { button?.remove(); return; }
  if (!button) {
    button = made("button", "comment-button injected");
    const link = event.querySelector(":scope > header .permalink, :scope > p > .permalink, :scope > .permalink");
    const head = event.querySelector(":scope > header");
    if (head && link) link.before(button);
    else event.append(button);
  }
  button.classList.toggle("has-comments", comments > 0);
  button.classList.toggle("open", Number(known?.dataset.open || 0) > 0);
  say(button, comments ? `${comments} comment${comments > 1 ? "s" : ""}` : "Comment");
  button.setAttribute("aria-label", `${button.textContent} on ${event.dataset.round > 0 ? `round ${event.dataset.round}, ` : ""}event ${event.dataset.seq}`);
  button.setAttribute("aria-expanded", String(Boolean(slotOf(event))));
}

function images(event, known) {
  const counts = new Map([...(known?.children || [])].map((each) => [each.dataset.image, each.dataset.comments]));
  for (const button of event.querySelectorAll(".comment-button.comment-image.has-comments")) if (!counts.has(keyOf(button.closest(".image-card")))) button.remove();
  for (const card of event.querySelectorAll(".image-card")) if (counts.has(keyOf(card))) imageButton(card, Number(counts.get(keyOf(card))));
}

const keyOf = (card) => card?.querySelector("a.frame")?.pathname.match(/[0-9a-f]{64}/)?.[0];

function imageButton(card, comments = 0) {
  const button = card.querySelector(".comment-button") || made("button", "comment-button comment-image injected");
  if (!button.isConnected) (card.querySelector("figcaption") || card).append(button);
  if (comments || !button.textContent) say(button, comments ? `${comments} comment${comments > 1 ? "s" : ""}` : "Comment");
  button.classList.toggle("has-comments", comments > 0 || button.matches(".has-comments"));
}

function say(button, words) {
  if (button.textContent !== words) button.textContent = words;
}

function made(name, names) {
  const element = document.createElement(name);
  element.className = names;
  if (name === "button") element.type = "button";
  return element;
}

// --- threads beside an event -------------------------------------------------------------------------

const slotOf = (event) => (event.nextElementSibling?.matches(".slot") ? event.nextElementSibling : null);

async function open(event, about = null) {
  let slot = slotOf(event);
  if (slot && !about) { shut(event); return; }
  if (!slot) event.after((slot = made("div", "slot injected")));
  slot.replaceChildren(Object.assign(made("p", "muted"), { textContent: "Loading the comments…" }));
  const query = about ? `?${new URLSearchParams(about)}` : "";
  await htmx.ajax("GET", marks().dataset.at.replace(/0\/$/, `${event.dataset.seq}/`) + query, { target: slot, swap: "innerHTML" });
  slot.tabIndex = -1;
  (about || !slot.querySelector(".thread") ? slot.querySelector(".comment-form.new textarea") || slot : slot).focus({ preventScroll: true });
  slot.scrollIntoView({ block: "nearest" });
  soon();
}

function shut(event) {
  slotOf(event)?.remove();
  event.querySelector(".comment-button")?.focus();
  soon();
}

const number = (event) => event.id.match(/^experiment-(\d+)$/)?.[1];

document.addEventListener("click", (click) => {
  const button = click.target.closest?.("button.comment-button");
  const event = click.target.closest?.("#events > .event");
  const quoted = click.target.closest?.("mark.quoted");
  if (button && event) {
    click.preventDefault();
    const card = button.closest(".image-card");
    open(event, card && number(event) ? { on: "image", experiment: number(event), image: keyOf(card) } : null);
  } else if (quoted && event && !slotOf(event) && getSelection().isCollapsed) open(event);
});
document.addEventListener("keydown", (press) => {
  const slot = press.key === "Escape" && !press.defaultPrevented ? press.target.closest?.(".slot") : null;
  if (slot) shut(slot.previousElementSibling);
});
for (const name of ["pointerover", "focusin"]) {
  document.addEventListener(name, ({ target }) => {
    const card = target.closest?.("#events .event.experiment .image-card[data-raw]");
    if (card && "mayComment" in (marks()?.dataset || {}) && !card.querySelector(".comment-button")) imageButton(card);
  });
}

// --- words that are selected -------------------------------------------------------------------------

const quoter = made("button", "button small quoter injected");
quoter.textContent = "Comment";
quoter.hidden = true;
document.body.append(quoter);

function selected() {
  const selection = getSelection();
  const range = selection.rangeCount && !selection.isCollapsed ? selection.getRangeAt(0) : null;
  const node = range?.commonAncestorContainer;
  const event = (node?.nodeType === Node.TEXT_NODE ? node.parentElement : node)?.closest?.("#events > .event");
  return event && "mayComment" in (marks()?.dataset || {}) ? { event, range } : null;
}

function offer() {
  const found = selected();
  quoter.hidden = !found;
  if (!found) return;
  const box = found.range.getBoundingClientRect();
  quoter.style.left = `${Math.max(8, Math.min(innerWidth - 110, box.left + box.width / 2 - 44)) + scrollX}px`;
  quoter.style.top = `${box.bottom + scrollY + 8}px`;
}

document.addEventListener("selectionchange", offer);
// The selection stays while the button is pressed.
quoter.addEventListener("pointerdown", (press) => press.preventDefault());
quoter.addEventListener("click", () => {
  const found = selected();
  const about = found && chosen(found.event, found.range);
  if (!about) return;
  if (about.quote.length > LONGEST) {
    document.dispatchEvent(new CustomEvent("toast", { detail: { words: `${about.quote.length} characters are selected, and a comment hangs on at most ${LONGEST}. Select fewer.`, kind: "error" } }));
    return;
  }
  getSelection().removeAllRanges();
  open(found.event, { on: "words", ...about });
});

// --- what changes on the page ------------------------------------------------------------------------

new MutationObserver((changes) => {
  if (changes.some((change) => [...change.addedNodes].some((node) => node.matches?.(".event, .panel, .grid")))) soon();
}).observe(panel, { childList: true, subtree: true });
document.addEventListener("htmx:afterSwap", ({ detail }) => { if (detail.requestConfig?.path.endsWith("/comments/marks/")) soon(); });
// A link to a thread opens it at its event.
document.addEventListener("htmx:afterSwap", function arrive({ detail }) {
  if (!detail.requestConfig?.path.endsWith("/comments/marks/")) return;
  document.removeEventListener("htmx:afterSwap", arrive);
  const event = new URLSearchParams(location.search).has("talk") && byId(location.hash.slice(1))?.closest("#events > .event");
  if (event) open(event);
});
soon();
