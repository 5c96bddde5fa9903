// Lists: j and k move from row to row, x ticks, Enter opens the link that has the focus. A row is an element with
// data-row; its first link with data-open is opened.
import { acts } from "./keys.js";

const rows = () => [...document.querySelectorAll("[data-row]")].filter((each) => each.checkVisibility());

function move(by) {
  const all = rows();
  const at = all.findIndex((each) => each.contains(document.activeElement));
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by))];
  next?.querySelector("a[data-open]")?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

function tick() {
  document.activeElement.closest("[data-row]")?.querySelector("input[type=checkbox]")?.click();
}

const KEYS = { j: () => move(1), k: () => move(-1), x: tick };

document.addEventListener("keydown", (event) => {
  if (!acts(event) || !KEYS[event.key] || !document.querySelector("[data-row]")) return;
  event.preventDefault();
  KEYS[event.key]();
});

// Keep empty fields, and the usual columns, out of the address.
document.addEventListener("htmx:configRequest", ({ target, detail }) => {
  if (!target.matches("form.filters")) return;
  const given = detail.formData;
  const usual = target.querySelector("[data-usual]")?.dataset.usual.split(" ").sort().join(" ");
  if (usual && given.getAll("col").sort().join(" ") === usual) given.delete("col");
  for (const [name, value] of [...given.entries()]) if (!value) given.delete(name);
});

// Another model has other layers.
document.addEventListener("change", ({ target }) => {
  const dependent = target.dataset.clears && target.form?.elements[target.dataset.clears];
  if (dependent) dependent.value = "";
}, true);

// A press beside a panel over the list, or Esc, closes it.
const panels = () => document.querySelectorAll(":is(.columns, .saved details)[open]");
document.addEventListener("click", ({ target }) => {
  for (const panel of panels()) if (!panel.contains(target)) panel.open = false;
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const panel of panels()) {
    const inside = panel.contains(document.activeElement);
    panel.open = false;
    if (inside) panel.querySelector("summary").focus();
  }
});

// A saved view, or an export, is of the list as it is now.
function remember() {
  for (const field of document.querySelectorAll("[data-address]")) field.value = location.search.slice(1);
}
document.addEventListener("htmx:afterSettle", remember);
document.addEventListener("htmx:pushedIntoHistory", remember);
document.addEventListener("htmx:replacedInHistory", remember);
