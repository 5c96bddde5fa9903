// Images: the raw one under the pointer or the focus, and the light box with arrow keys.

const box = document.getElementById("lightbox");
const part = (name) => document.getElementById(`lightbox-${name}`);
let cards = [];
let place = 0;
let raw = false;

// The raw image is fetched when somebody first asks for it.
function uncover(event) {
  const frame = event.target.closest?.(".frame");
  const small = frame?.closest(".image-card")?.dataset.rawSmall;
  if (!small || frame.querySelector(".raw")) return;
  const image = new Image();
  image.className = "raw";
  image.alt = "";
  image.src = small;
  frame.append(image);
}

function open(figure) {
  const group = figure.closest(".experiment, .end, #answer") || document;
  cards = [...group.querySelectorAll(".image-card")].filter((each) => each.checkVisibility());
  place = Math.max(0, cards.indexOf(figure));
  raw = false;
  show();
  if (!box.open) box.showModal();
}

function show() {
  const card = cards[place];
  const image = part("image");
  image.src = raw ? card.dataset.raw : card.dataset.masked;
  image.alt = card.querySelector("img").alt;
  part("place").textContent = `Image ${place + 1} of ${cards.length}, ${raw ? "raw" : "masked"}`;
  part("title").textContent = card.querySelector(".title").textContent;
  part("measure").replaceChildren(...[...card.querySelector(".measure").children].map((each) => each.cloneNode(true)));
  part("facts").replaceChildren(...["origin", "prompt", "seed"].filter((name) => card.dataset[name]).map((name) => fact(name, card.dataset[name])));
  part("links").replaceChildren(...links(card));
  part("raw").setAttribute("aria-pressed", String(raw));
  part("raw").disabled = card.dataset.raw === card.dataset.masked;
  part("before").disabled = place === 0;
  part("after").disabled = place === cards.length - 1;
}

function fact(name, value) {
  const row = document.createElement("div");
  const [term, words] = [document.createElement("dt"), document.createElement("dd")];
  term.textContent = name[0].toUpperCase() + name.slice(1);
  words.textContent = value;
  row.append(term, words);
  return row;
}

// Where the image was logged, and the page with everything known of it.
function links(card) {
  const where = [...(card.closest(".gallery-item")?.querySelectorAll(".where a") || card.closest(".event")?.querySelectorAll(":scope > .permalink") || [])].map((each) => each.cloneNode(true));
  const page = card.querySelector(".frame").cloneNode();
  page.className = "";
  page.textContent = "Everywhere it is used";
  return [...where, page].map((each) => {
    each.removeAttribute("id");
    if (each.dataset.says) each.textContent = each.dataset.says;
    return each;
  });
}

function step(by) {
  const next = place + by;
  if (next < 0 || next >= cards.length) return;
  place = next;
  show();
}

function flip() {
  raw = !raw;
  show();
}

document.addEventListener("pointerover", uncover);
document.addEventListener("pointerdown", uncover);
document.addEventListener("focusin", uncover);
document.addEventListener("click", (event) => {
  const frame = event.target.closest(".frame");
  if (!frame || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  open(frame.closest(".image-card"));
});
if (box) {
  box.addEventListener("keydown", (event) => {
    const action = { ArrowLeft: () => step(-1), ArrowRight: () => step(1), r: flip, R: flip }[event.key];
    if (action && !event.ctrlKey && !event.metaKey) { event.preventDefault(); action(); }
  });
  box.addEventListener("click", (event) => { if (event.target === box) box.close(); });
  box.addEventListener("close", () => cards[place]?.querySelector(".frame").focus());
  part("raw").addEventListener("click", flip);
  part("before").addEventListener("click", () => step(-1));
  part("after").addEventListener("click", () => step(1));
  part("close").addEventListener("click", () => box.close());
}
