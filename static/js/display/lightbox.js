// The light box: one image of a group, large; its mask for any threshold; an edit over its original.
import { cycle, view } from "./image_switch.js";
import { enlarge, paint } from "./mask.js";

const box = document.getElementById("lightbox");
const part = (name) => document.getElementById(`lightbox-${name}`);
const STEPS = 1000; // of the threshold's slider
let cards = [];
let place = 0;
let map = null; // of the visible image: { values, pixels }, once both are loaded

export function open(card) {
  const group = card.closest(".experiment, .end, #answer, .answer, .experiment-item, .evidence-list > li") || document;
  cards = [...group.querySelectorAll(".image-card")].filter((each) => each.dataset.raw && each.checkVisibility());
  place = Math.max(0, cards.indexOf(card));
  part("strip").replaceChildren(...cards.map(thumb));
  show();
  if (!box.open) box.showModal();
  part("strip").children[place]?.scrollIntoView({ block: "nearest", inline: "center" });
}

function thumb(card, index) {
  const [row, button, image] = [document.createElement("li"), document.createElement("button"), new Image(64, 64)];
  image.src = ((view() === "masked" ? null : card.querySelector("img.raw")) || card.querySelector("img")).src;
  image.alt = `${index + 1}: ${card.querySelector(".title").textContent}`;
  image.loading = "lazy";
  button.type = "button";
  button.append(image);
  button.addEventListener("click", () => go(index));
  row.append(button);
  return row;
}

function go(index) {
  if (index < 0 || index >= cards.length || index === place) return;
  place = index;
  show();
  part("strip").children[place].scrollIntoView({ block: "nearest", inline: "nearest" });
}

// --- one image ----------------------------------------------------------------------------------------

function show() {
  const card = cards[place];
  fill(part("plate"), card);
  part("place").textContent = `Image ${place + 1} of ${cards.length}`;
  part("title").textContent = card.querySelector(".title").textContent;
  part("measure").replaceChildren(...[...card.querySelector(".measure").children].map((each) => each.cloneNode(true)));
  part("facts").replaceChildren(...facts(card));
  part("links").replaceChildren(...links(card));
  part("previous").disabled = place === 0;
  part("next").disabled = place === cards.length - 1;
  for (const [index, row] of [...part("strip").children].entries()) row.firstChild.setAttribute("aria-current", String(index === place));
  showOriginal(card);
  readMap(card);
  showView();
}

// All pictures of a card in full size; as in a grid, the style sheet decides which is visible.
function fill(plate, card) {
  const { raw, masked } = card.dataset;
  const plain = raw === masked ? "" : "raw";
  const found = [picture(raw, plain, plain ? "" : card.querySelector("img").alt)];
  if (plain) found.unshift(picture(masked, "masked", card.querySelector("img").alt));
  const heat = card.querySelector(".heat")?.cloneNode(true);
  if (heat) heat.firstChild.loading = "eager";
  plate.replaceChildren(...found, ...(heat ? [heat] : []), ...plate.querySelectorAll("canvas"));
}

function picture(source, name, words) {
  const image = new Image();
  image.className = name;
  image.alt = words;
  image.loading = "lazy"; // invisible pictures are not loaded
  image.src = source;
  return image;
}

function facts(card) {
  const told = { origin: card.dataset.origin, prompt: card.dataset.prompt, seed: card.dataset.seed };
  const title = card.querySelector(".title").title;
  if (title && title !== card.querySelector(".title").textContent) told.title = title;
  return Object.entries(told).filter(([, value]) => value).map(([name, value]) => {
    const [row, term, words] = ["div", "dt", "dd"].map((each) => document.createElement(each));
    term.textContent = name[0].toUpperCase() + name.slice(1);
    words.textContent = value;
    row.append(term, words);
    return row;
  });
}

// Links to where the image was logged and to its page; a comment, if the page has comments.
function links(card) {
  const where = [...(card.closest(".gallery-item, .image-item, .experiment-page, .evidence-item, .exemplar-panel")?.querySelectorAll(".location a, a.source") || card.closest(".event")?.querySelectorAll(":scope > .permalink") || [])].map((each) => each.cloneNode(true));
  const page = card.querySelector(".frame").cloneNode();
  page.className = "";
  page.textContent = "All uses";
  for (const each of where) {
    each.removeAttribute("id");
    if (each.dataset.says) each.textContent = each.dataset.says;
  }
  card.dispatchEvent(new PointerEvent("pointerover", { bubbles: true })); // shows the button for a comment
  const talk = card.querySelector("button.comment-button");
  return [...where, page, ...(talk ? [comment(talk)] : [])];
}

function comment(talk) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "link";
  button.textContent = talk.textContent;
  button.addEventListener("click", () => { box.close(); talk.click(); });
  return button;
}

// --- an edit over its original --------------------------------------------------------------------------

function showOriginal(card) {
  const source = card.dataset.original;
  const before = card.closest(".edits")?.querySelector(":scope > .before .image-card") || cards.find((each) => each.dataset.raw === source) || document.querySelector(`.image-card[data-raw="${CSS.escape(source || "")}"]`);
  const there = Boolean(source) && source !== card.dataset.raw;
  for (const name of ["original", "seam", "split", "flip"]) part(name).hidden = !there;
  part("change").textContent = there ? card.closest(".after")?.querySelector(".edit-head b")?.textContent || "" : "";
  if (!there) return;
  if (before?.dataset.raw === source) fill(part("original"), before);
  else part("original").replaceChildren(picture(source, "", ""));
  split(50);
}

function split(percent) {
  part("split").querySelector("input").value = percent;
  box.style.setProperty("--split", `${percent}%`);
}

function flip() {
  if (!part("split").hidden) split(Number(part("split").querySelector("input").value) > 50 ? 0 : 100);
}

// --- the mask, for any threshold --------------------------------------------------------------------------

async function readMap(card) {
  map = null;
  part("mask").hidden = true;
  if (!card.dataset.map) return;
  const [grey, raw] = await Promise.all([card.dataset.map, card.dataset.raw].map(pixelsOf)).catch(() => []);
  if (!grey || cards[place] !== card) return; // the user moved on to another image
  map = { values: enlarge(grey, raw.width, raw.height), pixels: raw };
  part("plate").querySelector(".heat")?.replaceChildren(smooth(map.values, raw));
  setLevel(numbers(card).threshold);
}

// The map in the size of its image: browsers would enlarge so small an image in visible steps.
function smooth(values, { width, height }) {
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  const pixels = new ImageData(width, height);
  values.forEach((value, at) => pixels.data.set([255 * value, 255 * value, 255 * value, 255], 4 * at));
  canvas.getContext("2d").putImageData(pixels, 0, 0);
  return canvas;
}

async function pixelsOf(source) {
  const image = new Image();
  image.src = source;
  await image.decode();
  const canvas = new OffscreenCanvas(image.naturalWidth, image.naturalHeight);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(image, 0, 0);
  return context.getImageData(0, 0, canvas.width, canvas.height);
}

const numbers = (card) => Object.fromEntries(["low", "high", "threshold", "top"].map((name) => [name, Number(card.dataset[name])]));
const figure = (value) => value.toFixed(2).replace(/^-0\.00$/, "0.00");

// The ends of the slider: all of the map, and the layer's threshold.
function ends(card) {
  const { low, high, threshold } = numbers(card);
  return [Math.min(low, threshold), Math.max(high, threshold)];
}

function setLevel(value) {
  const [from, to] = ends(cards[place]);
  part("threshold").value = Math.round(to > from ? (STEPS * (value - from)) / (to - from) : 0);
  const at = part("threshold").value;
  part("tick").setAttribute("x1", at);
  part("tick").setAttribute("x2", at);
  tell(value);
  part("mask").hidden = true; // for this threshold, the worker's masked image is exact
  part("reset").hidden = true;
}

function slide() {
  const [from, to] = ends(cards[place]);
  const value = from + (Number(part("threshold").value) / STEPS) * (to - from);
  const canvas = part("mask");
  const pixels = new ImageData(map.pixels.data.slice(), map.pixels.width);
  [canvas.width, canvas.height] = [pixels.width, pixels.height];
  paint(pixels, map.values, shareOf(value));
  canvas.getContext("2d").putImageData(pixels, 0, 0);
  canvas.hidden = false;
  part("reset").hidden = false;
  tell(value);
}

function shareOf(value) {
  const { low, high } = numbers(cards[place]);
  return high > low ? (value - low) / (high - low) : 1;
}

function tell(value) {
  const share = shareOf(value);
  const bright = map.values.reduce((sum, each) => sum + (each > share), 0) / map.values.length;
  part("value").textContent = figure(value);
  part("threshold").setAttribute("aria-valuetext", `${figure(value)}, ${(100 * bright).toFixed(0)} % of the image above it`);
  part("share").textContent = `${(100 * bright).toFixed(bright && bright < 0.1 ? 1 : 0)} % of the image above it; the mark is the layer’s.`;
  showView();
}

function showView() {
  const card = cards[place];
  if (!card) return;
  const [masked, heat] = [view() === "masked", view() === "heat"];
  part("level").hidden = !(masked && map);
  part("key").hidden = !(heat && card.dataset.map);
  part("note").hidden = !(heat && !card.dataset.map);
  part("note").textContent = "No activation map was kept of this image: it is shown masked.";
  if (!card.dataset.map) return;
  part("low").textContent = figure(numbers(card).low);
  part("top").textContent = figure(numbers(card).top);
}

// --- keys and buttons -------------------------------------------------------------------------------------

if (box) {
  const actions = { ArrowLeft: () => go(place - 1), ArrowRight: () => go(place + 1), Home: () => go(0), End: () => go(cards.length - 1), i: cycle, b: flip };
  box.addEventListener("keydown", (event) => {
    const action = actions[event.key] || actions[event.key.toLowerCase()];
    const slides = event.target.matches?.("input[type=range]") && event.key.length > 1;
    if (!action || slides || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  });
  box.addEventListener("click", (event) => { if (event.target === box) box.close(); });
  box.addEventListener("close", () => cards[place]?.querySelector(".frame").focus());
  document.addEventListener("images-shown", () => { if (box.open) showView(); });
  part("threshold").addEventListener("input", slide);
  part("reset").addEventListener("click", () => { setLevel(numbers(cards[place]).threshold); part("threshold").focus(); });
  part("split").addEventListener("input", ({ target }) => split(target.value));
  part("flip").addEventListener("click", flip);
  part("previous").addEventListener("click", () => go(place - 1));
  part("next").addEventListener("click", () => go(place + 1));
  part("close").addEventListener("click", () => box.close());
}
