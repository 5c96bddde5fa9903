// The list of runs: the number of ticked rows, and ticks that outlive a refresh.

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
  const whole = form.elements.all?.checked;
  document.getElementById("chosen").textContent = whole ? "With all of them:" : here ? `With ${here} ticked:` : "Tick runs to act on them";
  document.getElementById("run-list").classList.toggle("idle", !here && !whole);
}

document.addEventListener("change", ({ target }) => {
  if (target.id === "tick-all") for (const box of boxes()) ticked[target.checked ? "add" : "delete"](box.value);
  else if (target.matches("#bulk input[name=run]")) ticked[target.checked ? "add" : "delete"](target.value);
  else if (!target.matches("input[name=all]")) return;
  show();
});

// A poll does not replace a list in use; a filter does.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (event.target.id !== "run-list") return;
  const form = document.getElementById("bulk");
  if (ticked.size || form?.elements.all?.checked || document.getElementById("run-list").contains(document.activeElement)) event.preventDefault();
});

// Other filters choose other runs.
document.addEventListener("htmx:configRequest", (event) => { if (event.target.id === "filters") ticked.clear(); });

document.addEventListener("htmx:afterSettle", show);
show();
