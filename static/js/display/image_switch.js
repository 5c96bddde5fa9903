// How images are shown on the whole site: masked, as heat maps, or raw. Kept in this browser; other pages follow.
// The style sheet decides by the page's `data-images` which of a card's pictures is visible; theme.js sets it first.

export const VIEWS = ["masked", "heat", "raw"];
const WORDS = { masked: "masked", heat: "heat map", raw: "raw" };
const root = document.documentElement;

export const view = () => root.dataset.images || "masked";

export function choose(next) {
  set(next);
  try { localStorage.setItem("images", next); } catch { /* kept for this page only */ }
}

export const cycle = () => choose(VIEWS[(VIEWS.indexOf(view()) + 1) % VIEWS.length]);

function set(next) {
  if (next === "heat" || next === "raw") root.dataset.images = next;
  else delete root.dataset.images;
  show();
  document.dispatchEvent(new CustomEvent("images-shown"));
}

function show() {
  for (const button of document.querySelectorAll("[data-images-as]")) button.setAttribute("aria-pressed", String(button.dataset.imagesAs === view()));
  for (const group of document.querySelectorAll(".image-switch[hidden]")) group.hidden = false;
  const now = document.querySelector("#images-shown .current-value");
  if (now) now.textContent = WORDS[view()];
}

document.addEventListener("click", ({ target }) => {
  const button = target.closest?.("[data-images-as]");
  if (button) choose(button.dataset.imagesAs);
});
const rail = document.getElementById("images-shown");
if (rail) {
  rail.hidden = false;
  rail.addEventListener("click", () => {
    cycle();
    document.getElementById("say").textContent = `Images: ${WORDS[view()]}`;
  });
}
addEventListener("storage", (event) => { if (event.key === "images") set(event.newValue); });
document.addEventListener("htmx:load", show);
show();
