// Steering a run: drafts that survive the page, Ctrl+Enter, the dialog of limits, refusals with their reason.

const byId = (id) => document.getElementById(id);
const own = (field) => `draft:${field.dataset.keep}`;

function read(field) {
  try { return localStorage.getItem(own(field)) || ""; } catch { return ""; }
}

function write(field) {
  try {
    if (field.value) localStorage.setItem(own(field), field.value);
    else localStorage.removeItem(own(field));
  } catch { /* kept on this page alone */ }
}

// A note written here before, or on the run's page for a fork.
function fill(part) {
  for (const field of part.querySelectorAll("[data-keep]")) if (!field.value) field.value = read(field);
}

document.addEventListener("input", ({ target }) => { if (target.matches("[data-keep]")) write(target); });
document.addEventListener("htmx:load", ({ detail }) => fill(detail.elt));
fill(document);
document.querySelector(".summary")?.focus();

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") byId("menu")?.removeAttribute("open");
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || !event.target.matches("[data-send]")) return;
  event.preventDefault();
  event.target.form.requestSubmit();
});

// --- answers ---

// A refusal is shown beside the form, which keeps its content.
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (![409, 422].includes(detail.xhr.status) || !detail.requestConfig.elt.closest(".composer, .limits-form")) return;
  detail.shouldSwap = true;
  detail.isError = false;
});

document.addEventListener("htmx:afterRequest", ({ detail }) => {
  if (!detail.xhr || detail.xhr.status !== 204) return;
  if (detail.elt.matches(".composer")) said(detail.elt);
  if (detail.elt.matches(".limits-form")) byId("steer").close();
});

function said(form) {
  const field = form.querySelector("textarea");
  field.value = "";
  write(field);
  form.querySelector(".answer").replaceChildren();
}

// --- the menu, the dialog ---

document.addEventListener("click", ({ target }) => {
  const menu = byId("menu");
  if (menu?.open && !target.closest("summary")) menu.removeAttribute("open");
  if (target.closest("[data-close]") || target === byId("steer")) byId("steer").close();
});
byId("steer-form")?.addEventListener("htmx:afterSwap", () => { if (!byId("steer").open) byId("steer").showModal(); });

// A fork that was sent contains the note.
document.addEventListener("submit", ({ target }) => {
  if (target.matches(".fork")) for (const field of target.querySelectorAll("[data-keep]")) { try { localStorage.removeItem(own(field)); } catch { /* it was not kept */ } }
});
