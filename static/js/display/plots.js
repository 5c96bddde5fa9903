// Marks of plots: arrow keys move from one to the next. The mark under the pointer, or with the focus, shows its words
// and its picture.
const MARKS = ".spot, .mark, .bar";
const GAP = 10; // pixels between a mark and its card

const card = document.createElement("div");
card.className = "plot-card";
card.id = "plot-card";
card.setAttribute("role", "tooltip");
// Closed by this script alone: a click elsewhere must not hide it.
card.popover = "manual";
document.body.append(card);
let at = null;

const markOf = (target) => (target instanceof Element ? target.closest("svg.plot :is(.spot, .mark, .bar)") : null);

// A title would open a second tooltip.
function wordsOf(mark) {
  const title = mark.querySelector("title");
  if (title) {
    mark.setAttribute("aria-label", title.textContent);
    title.remove();
  }
  return mark.getAttribute("aria-label") || "";
}

function show(mark) {
  if (at === mark) return;
  at = mark;
  const words = document.createElement("span");
  words.textContent = wordsOf(mark);
  card.replaceChildren(...(mark.dataset.picture ? [picture(mark.dataset.picture)] : []), words);
  if (!card.matches(":popover-open")) card.showPopover();
  place(mark);
}

function place(mark) {
  const [from, own] = [mark.getBoundingClientRect(), card.getBoundingClientRect()];
  const above = from.top - own.height - GAP;
  // Centred above the mark, within the window; below it where there is no room.
  card.style.left = `${Math.max(GAP, Math.min(innerWidth - own.width - GAP, from.left + from.width / 2 - own.width / 2))}px`;
  card.style.top = `${above > GAP ? above : Math.min(from.bottom + GAP, innerHeight - own.height - GAP)}px`;
}

function picture(address) {
  const image = new Image(160, 160);
  image.alt = "";
  image.src = address;
  return image;
}

function hide() {
  at = null;
  if (card.matches(":popover-open")) card.hidePopover();
}

function walk(mark, key) {
  // Marks that the style sheet hides are not visited.
  const marks = [...mark.closest("svg").querySelectorAll(MARKS)].filter((each) => each.checkVisibility());
  const position = marks.indexOf(mark);
  const next = { ArrowRight: position + 1, ArrowDown: position + 1, ArrowLeft: position - 1, ArrowUp: position - 1, Home: 0, End: marks.length - 1 }[key];
  if (next === undefined) return false;
  const goal = marks[Math.max(0, Math.min(marks.length - 1, next))];
  // Only one mark of a plot is in the tab order: the one visited last.
  mark.setAttribute("tabindex", "-1");
  goal.setAttribute("tabindex", "0");
  goal.focus();
  goal.scrollIntoView({ block: "nearest", inline: "nearest" });
  return true;
}

document.addEventListener("pointerover", (event) => {
  const mark = markOf(event.target);
  if (mark) show(mark);
  else if (at && at !== markOf(document.activeElement)) hide();
});
document.addEventListener("focusin", (event) => {
  const mark = markOf(event.target);
  if (mark && mark.matches(":focus-visible")) show(mark);
  else hide();
});
document.addEventListener("focusout", hide);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && at) { hide(); return; }
  const mark = markOf(event.target);
  if (!mark || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
  if (walk(mark, event.key)) { event.preventDefault(); event.stopPropagation(); }
}, true);
// When the page scrolls, a focused mark keeps its card; under the pointer there is another mark.
addEventListener("scroll", () => {
  if (at && at === document.activeElement) place(at);
  else if (at) hide();
}, { capture: true, passive: true });
