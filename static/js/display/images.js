// Images: the raw one under the pointer or the focus, and the light box with arrow keys.

const box = document.getElementById("lightbox");
const part = (name) => document.getElementById(`lightbox-${name}`);
let shots = [];
let place = 0;
let raw = false;

// The raw image is fetched when somebody first asks for it.
function uncover(event) {
  const frame = event.target.closest?.(".frame");
  const small = frame?.closest(".shot")?.dataset.rawSmall;
  if (!small || frame.querySelector(".raw")) return;
  const image = new Image();
  image.className = "raw";
  image.alt = "";
  image.src = small;
  frame.append(image);
}

function open(figure) {
  const group = figure.closest(".experiment, .end, #answer") || document;
  shots = [...group.querySelectorAll(".shot")].filter((each) => each.checkVisibility());
  place = Math.max(0, shots.indexOf(figure));
  raw = false;
  show();
  if (!box.open) box.showModal();
}

function show() {
  const shot = shots[place];
  const image = part("image");
  image.src = raw ? shot.dataset.raw : shot.dataset.masked;
  image.alt = shot.querySelector("img").alt;
  part("place").textContent = `Image ${place + 1} of ${shots.length}, ${raw ? "raw" : "masked"}`;
  part("title").textContent = shot.querySelector(".title").textContent;
  part("measure").replaceChildren(...[...shot.querySelector(".measure").children].map((each) => each.cloneNode(true)));
  part("facts").replaceChildren(...["origin", "prompt", "seed"].filter((name) => shot.dataset[name]).map((name) => fact(name, shot.dataset[name])));
  part("links").replaceChildren(...links(shot));
  part("raw").setAttribute("aria-pressed", String(raw));
  part("raw").disabled = shot.dataset.raw === shot.dataset.masked;
  part("before").disabled = place === 0;
  part("after").disabled = place === shots.length - 1;
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
function links(shot) {
  const where = [...(shot.closest(".sighting")?.querySelectorAll(".where a") || shot.closest(".event")?.querySelectorAll(":scope > .permalink") || [])].map((each) => each.cloneNode(true));
  const page = shot.querySelector(".frame").cloneNode();
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
  if (next < 0 || next >= shots.length) return;
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
  open(frame.closest(".shot"));
});
if (box) {
  box.addEventListener("keydown", (event) => {
    const action = { ArrowLeft: () => step(-1), ArrowRight: () => step(1), r: flip, R: flip }[event.key];
    if (action && !event.ctrlKey && !event.metaKey) { event.preventDefault(); action(); }
  });
  box.addEventListener("click", (event) => { if (event.target === box) box.close(); });
  box.addEventListener("close", () => shots[place]?.querySelector(".frame").focus());
  part("raw").addEventListener("click", flip);
  part("before").addEventListener("click", () => step(-1));
  part("after").addEventListener("click", () => step(1));
  part("close").addEventListener("click", () => box.close());
}
