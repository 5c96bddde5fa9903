// The card of a unit beside a link to it: after a short wait under the pointer, at once for the keyboard, never for a
// finger, whose tap follows the link. Its address is below that of the unit's page; a link that names a unit but leads
// elsewhere has it in data-card. Buttons and breadcrumbs have no card.

import { base } from "./base.js";

const [WAIT, GRACE, GAP] = [350, 200, 8];
const known = new Map();
let box = null;
let link = null;
let timer = 0;

const PAGE = /^\/units\/[^/]+\/[^/]+\/\d+\/$/;

function linkAt(target) {
  const found = target.closest?.("a[href]");
  return found && addressOf(found) && !found.matches(".button, .breadcrumbs a") ? found : null;
}

function addressOf(each) {
  if (each.dataset.card) return each.dataset.card;
  const { pathname, origin } = new URL(each.href?.baseVal ?? each.href, document.baseURI);
  return pathname.startsWith(base) && PAGE.test(pathname.slice(base.length)) && origin === location.origin && pathname !== location.pathname ? `${pathname}card/` : "";
}

async function fetched(address) {
  const answer = await fetch(address);
  if (!answer.ok || answer.redirected) throw new Error(`no card: ${answer.status}`);
  return answer.text();
}

function read(address) {
  if (!known.has(address)) {
    const card = fetched(address);
    card.catch(() => known.delete(address));
    known.set(address, card);
  }
  return known.get(address);
}

function makeBox() {
  box = document.createElement("div");
  box.className = "unit-card-box";
  box.id = "unit-card";
  box.setAttribute("role", "tooltip");
  box.popover = "manual";
  box.addEventListener("pointerenter", () => clearTimeout(timer));
  box.addEventListener("pointerleave", closeSoon);
}

// A card opened by the keyboard lets the pointer through, so that it covers nothing.
async function open(wanted, byKeyboard = false) {
  const address = addressOf(wanted);
  if (!address || link === wanted) return;
  close();
  link = wanted;
  let words;
  try { words = await read(address); } catch { if (link === wanted) link = null; return; }
  if (link !== wanted || !wanted.isConnected) return;
  if (!box) makeBox();
  (wanted.closest("dialog[open]") ?? document.body).append(box);
  box.innerHTML = words;
  box.classList.toggle("by-keyboard", byKeyboard);
  box.showPopover();
  place(wanted.getBoundingClientRect());
  wanted.setAttribute("aria-describedby", box.id);
}

// Below the link, or above it if there is more room; never beyond the window.
function place(at) {
  const [width, height] = [box.offsetWidth, box.offsetHeight];
  const under = at.bottom + GAP + height <= innerHeight || at.top < height + GAP;
  box.style.left = `${Math.max(GAP, Math.min(at.left, innerWidth - width - GAP))}px`;
  box.style.top = `${under ? at.bottom + GAP : at.top - GAP - height}px`;
}

function close() {
  clearTimeout(timer);
  link?.removeAttribute("aria-describedby");
  link = null;
  if (box?.matches(":popover-open")) box.hidePopover();
}

function closeSoon() {
  clearTimeout(timer);
  timer = setTimeout(close, GRACE);
}

document.addEventListener("pointerover", (event) => {
  const over = event.pointerType === "touch" ? null : linkAt(event.target);
  if (!over) return;
  clearTimeout(timer);
  if (over !== link) timer = setTimeout(() => open(over), WAIT);
});
document.addEventListener("pointerout", (event) => { if (linkAt(event.target) && !box?.contains(event.relatedTarget)) closeSoon(); });
document.addEventListener("focusin", (event) => {
  const focused = linkAt(event.target);
  if (focused?.matches(":focus-visible")) open(focused, true);
});
document.addEventListener("focusout", (event) => { if (event.target === link) close(); });
document.addEventListener("pointerdown", (event) => { if (!box?.contains(event.target)) close(); });
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !box?.matches(":popover-open")) return;
  event.stopPropagation(); // it closes only the card
  close();
}, true);
addEventListener("scroll", () => { if (link && !link.matches(":hover")) close(); }, { capture: true, passive: true });
