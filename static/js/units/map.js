// A map of units: the square under the pointer is named and can be opened; on a layer's page, arrow keys move.

const cells = document.getElementById("cells");

function tell(words) {
  const hint = document.getElementById("unit-hint");
  hint.dataset.said ??= hint.textContent;
  hint.textContent = words || hint.dataset.said;
  hint.classList.toggle("has-text", Boolean(words));
}

// --- the drawing of a model ---

function unitAt(sheet, event) {
  const box = sheet.getBoundingClientRect();
  const { pitch, rows, units } = Object.fromEntries(["pitch", "rows", "units"].map((name) => [name, Number(sheet.dataset[name])]));
  const [column, row] = [event.clientX - box.left, event.clientY - box.top].map((each) => Math.floor(each / pitch));
  const number = column * rows + row;
  return column >= 0 && row >= 0 && row < rows && number < units ? { number, x: column * pitch, y: row * pitch, pitch } : null;
}

function mark(sheet, unit) {
  let under = sheet.querySelector(".hovered");
  if (!under) {
    under = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    under.setAttribute("class", "hovered");
    sheet.append(under);
  }
  for (const [name, value] of Object.entries({ x: unit.x, y: unit.y, width: unit.pitch, height: unit.pitch })) under.setAttribute(name, value);
}

function follow(sheet) {
  sheet.addEventListener("pointermove", (event) => {
    const unit = unitAt(sheet, event);
    if (!unit) return;
    mark(sheet, unit);
    const link = event.target.closest("a");
    tell(`${sheet.dataset.layer} / ${link ? link.querySelector("title").textContent : `unit ${unit.number}`}`);
  });
  sheet.addEventListener("pointerleave", () => { sheet.querySelector(".hovered")?.remove(); tell(""); });
  sheet.addEventListener("focusin", (event) => tell(`${sheet.dataset.layer} / ${event.target.querySelector("title").textContent}`));
  sheet.addEventListener("focusout", () => tell(""));
  sheet.addEventListener("click", (event) => {
    if (event.target.closest("a")) return;
    const unit = unitAt(sheet, event);
    // A finger is wider than a square: it opens the layer, where every unit is a larger link.
    if (event.pointerType === "touch") location.assign(sheet.dataset.url);
    else if (unit) location.assign(`${sheet.dataset.url}${unit.number}/`);
  });
}

document.querySelectorAll(".sheet svg").forEach(follow);
document.addEventListener("htmx:afterSwap", (event) => event.target.querySelectorAll?.(".sheet svg").forEach(follow)); // drawn again

// --- the links of a layer: one stop for the Tab key, arrows within ---

function step(from, event) {
  const all = [...cells.children];
  const place = all.indexOf(from);
  const side = { ArrowLeft: -1, ArrowRight: 1, Home: -place, End: all.length - 1 - place }[event.key];
  if (side !== undefined) return all[place + side];
  const down = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (!down) return null;
  const here = from.getBoundingClientRect();
  const beyond = (each) => (each.getBoundingClientRect().top - here.top) * down > 1;
  const lines = (down > 0 ? all.slice(place + 1) : all.slice(0, place).reverse()).filter(beyond);
  const line = lines.filter((each) => Math.abs(each.offsetTop - lines[0].offsetTop) < 2);
  return line.sort((one, other) => Math.abs(one.offsetLeft - from.offsetLeft) - Math.abs(other.offsetLeft - from.offsetLeft))[0];
}

if (cells) {
  [...cells.children].forEach((each, place) => { each.tabIndex = place ? -1 : 0; });
  cells.addEventListener("keydown", (event) => {
    const next = event.target.matches("a") && !event.ctrlKey && !event.metaKey && !event.altKey && step(event.target, event);
    if (!next) return;
    event.preventDefault();
    event.target.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
  const named = (event) => event.target.matches("a") && tell(`Unit ${event.target.getAttribute("href").replace("/", "")}: ${[event.target.title, document.querySelector(`.legend .${event.target.className}`)?.title].filter(Boolean).join(" · ")}`);
  cells.addEventListener("focusin", named);
  cells.addEventListener("pointerover", named);
  cells.addEventListener("pointerleave", () => tell(""));
}
