// Fields in which people write to each other: drafts are stored in this browser, and @ opens a list of people to
// mention.

const byKey = (key) => `said ${key}`;
let people = null; // asked once for a page
let list = null;

// --- drafts ------------------------------------------------------------------------------------------

function restore(root) {
  for (const field of root.querySelectorAll("textarea[data-draft]")) {
    const draft = kept(field);
    if (draft && draft !== field.value) {
      field.value = draft;
      field.closest("details")?.setAttribute("open", "");
    }
    told(field, Boolean(draft));
    grow(field);
  }
}

function kept(field) {
  try { return localStorage.getItem(byKey(field.dataset.draft)) || ""; } catch { return ""; }
}

function keep(field) {
  try {
    // An unchanged text is no draft.
    if (field.value.trim() && field.value !== field.defaultValue) localStorage.setItem(byKey(field.dataset.draft), field.value);
    else localStorage.removeItem(byKey(field.dataset.draft));
    told(field, Boolean(kept(field)));
  } catch { /* it is kept in the field alone */ }
}

function told(field, is) {
  const words = field.form?.querySelector(".draft-status");
  if (words) words.hidden = !is;
}

function forget(field) {
  try { localStorage.removeItem(byKey(field.dataset.draft)); } catch { /* nothing was kept */ }
}

function grow(field) {
  field.rows = Math.min(14, Math.max(2, field.value.split("\n").length));
}

document.addEventListener("input", ({ target }) => {
  if (!target.matches?.("textarea[data-draft]")) return;
  keep(target);
  grow(target);
  suggest(target);
});
// A text was sent if the server answers with a part of the page. A refusal comes without one: then the draft stays.
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  const field = detail.requestConfig?.verb === "post" && detail.requestConfig.elt.querySelector?.("textarea[data-draft]");
  if (field && detail.xhr.status === 200) forget(field);
});
document.addEventListener("htmx:load", ({ detail }) => restore(detail.elt));
document.addEventListener("keydown", (press) => {
  if (press.key === "Enter" && (press.ctrlKey || press.metaKey) && press.target.matches?.("textarea[data-draft]")) press.target.form.requestSubmit();
});

// --- people to mention ---------------------------------------------------------------------------------

// The beginning of a name before the cursor; null if there is none.
function begun(field) {
  const found = field.value.slice(0, field.selectionStart).match(/(?:^|[^\w@.])@([\w.+-]{0,40})$/);
  return found ? found[1] : null;
}

async function known(field) {
  people ||= fetch(field.dataset.mentions, { headers: { Accept: "application/json" } }).then((answer) => (answer.ok ? answer.json() : { people: [] })).then((data) => data.people).catch(() => []);
  return people;
}

async function suggest(field) {
  if (begun(field) === null) { shut(); return; }
  const all = await known(field);
  // Read again: the person may have typed on, or left, while the list was fetched.
  const word = begun(field);
  if (word === null || document.activeElement !== field) { shut(); return; }
  const low = word.toLowerCase();
  const fitting = all.filter(({ name, words }) => name.toLowerCase().startsWith(low) || words.toLowerCase().split(" ").some((part) => part.startsWith(low)));
  if (!fitting.length) { shut(); return; }
  show(field, fitting.slice(0, 8));
}

function show(field, fitting) {
  if (list?.previousElementSibling !== field) {
    shut();
    list = Object.assign(document.createElement("ul"), { className: "mentions", id: "mentions" });
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", "People to mention");
    field.after(list);
    field.setAttribute("aria-controls", "mentions");
    field.setAttribute("aria-expanded", "true");
    list.addEventListener("pointerdown", (press) => {
      press.preventDefault();
      const option = press.target.closest("[role=option]");
      if (option) take(field, option);
    });
  }
  list.replaceChildren(...fitting.map(line));
  point(field, 0);
}

function line({ name, words }, place) {
  const item = document.createElement("li");
  item.setAttribute("role", "option");
  item.id = `mention-${place}`;
  item.dataset.name = name;
  item.append(Object.assign(document.createElement("b"), { textContent: `@${name}` }));
  if (words !== name) item.append(" ", Object.assign(document.createElement("span"), { className: "muted", textContent: words }));
  return item;
}

function point(field, place) {
  [...list.children].forEach((each, at) => each.setAttribute("aria-selected", String(at === place)));
  field.setAttribute("aria-activedescendant", `mention-${place}`);
}

function take(field, option) {
  const from = field.selectionStart - begun(field).length;
  field.setRangeText(`${option.dataset.name} `, from, field.selectionStart, "end");
  shut();
  keep(field);
}

function shut() {
  if (!list) return;
  const field = list.previousElementSibling;
  for (const name of ["aria-controls", "aria-expanded", "aria-activedescendant"]) field?.removeAttribute(name);
  list.remove();
  list = null;
}

// Keys belong to the list while it is open.
document.addEventListener("keydown", (press) => {
  if (!list || press.target !== list.previousElementSibling) return;
  const all = [...list.children];
  const at = all.findIndex((each) => each.getAttribute("aria-selected") === "true");
  if (press.key === "ArrowDown") point(press.target, (at + 1) % all.length);
  else if (press.key === "ArrowUp") point(press.target, (at + all.length - 1) % all.length);
  else if ((press.key === "Enter" && !press.ctrlKey && !press.metaKey) || press.key === "Tab") take(press.target, all[at]);
  else if (press.key === "Escape") shut();
  else return;
  press.preventDefault();
  press.stopImmediatePropagation();
}, true);
document.addEventListener("focusout", ({ target }) => { if (list?.previousElementSibling === target) shut(); });
restore(document);
