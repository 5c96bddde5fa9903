// The list of runs: how many are ticked, ticks that outlive a refresh, the address that a saved view keeps.

const ticked = new Set();
const boxes = () => [...document.querySelectorAll("#bulk input[name=run]")];

function show() {
  const form = document.getElementById("bulk");
  if (!form) return;
  const all = document.getElementById("tick-all");
  all.hidden = false;
  for (const box of boxes()) box.checked = ticked.has(box.value);
  const here = boxes().filter((box) => box.checked).length;
  all.checked = here > 0 && here === boxes().length;
  all.indeterminate = here > 0 && !all.checked;
  const whole = form.querySelector("input[name=all]")?.checked;
  document.getElementById("chosen").textContent = whole ? "With all of them:" : here ? `With ${here} ticked:` : "Tick runs to act on them";
  form.classList.toggle("idle", !here && !whole);
}

document.addEventListener("change", ({ target }) => {
  if (target.id === "tick-all") for (const box of boxes()) ticked[target.checked ? "add" : "delete"](box.value);
  else if (target.matches("#bulk input[name=run]")) ticked[target.checked ? "add" : "delete"](target.value);
  else if (!target.matches("#bulk input[name=all]")) return;
  show();
});

// A list under somebody's hands is not replaced by the clock; it is by a filter.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (event.target.id !== "run-list") return;
  const form = document.getElementById("bulk");
  if (ticked.size || form?.querySelector("input[name=all]")?.checked || form?.contains(document.activeElement)) event.preventDefault();
});

// Columns that are the usual ones need not stand in the address, nor filters that are empty.
document.addEventListener("htmx:configRequest", (event) => {
  if (event.target.id !== "filters") return;
  for (const [name, value] of [...event.detail.formData.entries()]) if (!value) event.detail.formData.delete(name);
  ticked.clear();
});

function remember() {
  const field = document.querySelector("[data-address]");
  if (field) field.value = location.search.slice(1);
}

document.addEventListener("htmx:afterSettle", () => { show(); remember(); });
document.addEventListener("htmx:pushedIntoHistory", remember);
show();
