// Choosing units of a layer, on its sheet and on its map: by mouse, with Shift from one to another, by Space. The
// choice stays across pages, filters and views until the tab is closed.

const form = document.getElementById("choose");
const place = document.querySelector("[data-choosing]");

function read(text) {
  return text.split(",").filter(Boolean).flatMap((stretch) => {
    const [first, last = first] = stretch.split("-").map(Number);
    return Array.from({ length: last - first + 1 }, (_, at) => first + at);
  });
}

function write(numbers) {
  const found = [];
  for (const number of [...numbers].sort((one, other) => one - other)) {
    if (found.length && found.at(-1)[1] === number - 1) found.at(-1)[1] = number;
    else found.push([number, number]);
  }
  return found.map(([first, last]) => (first === last ? first : `${first}-${last}`)).join(",");
}

if (form && place) {
  const key = `chosen:${form.dataset.place}`;
  const every = read(form.dataset.all);
  const boxes = [...place.querySelectorAll("input[name=unit]")];
  const cells = [...place.querySelectorAll(":scope > a")];
  const numberOf = (each) => Number(each.value ?? each.getAttribute("href").replace("/", ""));
  const shown = boxes.length ? boxes : cells;
  let chosen = new Set();
  let last = null;

  const recall = () => { try { chosen = new Set(read(sessionStorage.getItem(key) ?? "")); } catch { /* nothing is kept */ } };
  const keep = () => { try { sessionStorage.setItem(key, write(chosen)); } catch { /* for this page only */ } };

  function show() {
    for (const each of boxes) each.checked = chosen.has(numberOf(each));
    for (const each of cells) each.toggleAttribute("data-chosen", chosen.has(numberOf(each)));
    document.getElementById("chosen-count").textContent = chosen.size.toLocaleString("en");
    document.getElementById("choose-none").hidden = chosen.size === 0;
    document.getElementById("choose-all").hidden = every.every((number) => chosen.has(number));
    form.classList.toggle("has-selection", chosen.size > 0);
    for (const button of form.querySelectorAll(".choose-acts button")) button.disabled = chosen.size === 0;
    form.elements.units.value = write(chosen);
  }

  function choose(numbers, on) {
    for (const number of numbers) on ? chosen.add(number) : chosen.delete(number);
    keep();
    show();
  }

  // One, or with Shift all from the last one to it.
  function take(each, on, whole) {
    const [from, to] = [whole && last ? shown.indexOf(last) : shown.indexOf(each), shown.indexOf(each)].sort((a, b) => a - b);
    choose(shown.slice(from, to + 1).map(numberOf), on);
    last = each;
  }

  place.addEventListener("click", (event) => {
    const box = event.target.closest("input[name=unit]");
    if (box) return take(box, box.checked, event.shiftKey);
    const cell = event.target.closest("a");
    if (!cell || !event.shiftKey) return undefined;
    event.preventDefault(); // with Shift, a link chooses instead of opening
    const each = boxes.length ? cell.closest(".tile").querySelector("input") : cell;
    return take(each, true, Boolean(last));
  });
  place.addEventListener("keydown", (event) => {
    const cell = boxes.length ? null : event.target.closest("a");
    if (event.key !== " " || !cell) return;
    event.preventDefault();
    take(cell, !chosen.has(numberOf(cell)), event.shiftKey);
  });
  document.getElementById("choose-all").addEventListener("click", () => choose(every, true));
  document.getElementById("choose-none").addEventListener("click", () => choose([...chosen], false));
  form.addEventListener("submit", () => { for (const each of boxes) each.disabled = true; }); // `units` contains all of them
  addEventListener("pageshow", () => { for (const each of boxes) each.disabled = false; recall(); show(); });
  recall();
  show();
}
