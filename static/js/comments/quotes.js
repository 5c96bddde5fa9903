// Quotes of an event's text: turn a selection into a quote, and find a stored quote again. Texts are compared with
// single spaces, and without what only this page adds (.ours).

const SPACE = /\s/;
const NEARBY = 60; // characters stored of the text around a quote

// The text under an element, and for each of its characters the node and place it comes from.
export function reading(element) {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT, (node) => (node.parentElement.closest(".injected") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT));
  const [nodes, places] = [[], []];
  let text = "";
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    for (let place = 0; place < node.data.length; place += 1) {
      const space = SPACE.test(node.data[place]);
      if (space && (!text || text.endsWith(" "))) continue;
      text += space ? " " : node.data[place];
      nodes.push(node);
      places.push(place);
    }
  }
  return { text, nodes, places };
}

// The selection within an element, as a quote with the text around it; null if nothing is selected.
export function chosen(element, range) {
  const { text, nodes, places } = reading(element);
  const inside = (at) => {
    const node = nodes[at];
    return range.comparePoint(node, places[at]) === 0 && !(node === range.endContainer && places[at] >= range.endOffset);
  };
  let from = 0;
  while (from < text.length && !inside(from)) from += 1;
  let to = from;
  while (to < text.length && inside(to)) to += 1;
  while (from < to && text[from] === " ") from += 1;
  while (to > from && text[to - 1] === " ") to -= 1;
  if (from === to) return null;
  return { quote: text.slice(from, to), before: text.slice(Math.max(0, from - NEARBY), from), after: text.slice(to, to + NEARBY), place: from };
}

// The place of a quote: of several, the one with the most similar surroundings, then the nearest. Null if it is gone.
function found(text, { quote, before, after, place }) {
  let best = null;
  for (let at = text.indexOf(quote); at >= 0; at = text.indexOf(quote, at + 1)) {
    const like = alike(before, text.slice(0, at), true) + alike(after, text.slice(at + quote.length), false);
    const far = Math.abs(at - place);
    if (!best || like > best.like || (like === best.like && far < best.far)) best = { at, like, far };
  }
  return best && [best.at, best.at + quote.length];
}

// The number of characters next to the quote that are the same.
function alike(kept, now, fromEnd) {
  const [a, b] = [kept.trim(), now.trim()];
  let count = 0;
  while (count < Math.min(a.length, b.length) && (fromEnd ? a.at(-1 - count) === b.at(-1 - count) : a[count] === b[count])) count += 1;
  return count;
}

// Put marks around a quote: one in each text node that it covers.
export function mark(element, quote, thread) {
  const { text, nodes, places } = reading(element);
  const stretch = found(text, quote);
  if (!stretch) return;
  const pieces = new Map();
  for (let at = stretch[0]; at < stretch[1]; at += 1) {
    const piece = pieces.get(nodes[at]);
    if (piece) piece[1] = places[at] + 1;
    else pieces.set(nodes[at], [places[at], places[at] + 1]);
  }
  for (const [node, [from, to]] of pieces) {
    if (!node.data.slice(from, to).trim()) continue;
    const range = document.createRange();
    range.setStart(node, from);
    range.setEnd(node, to);
    const box = document.createElement("mark");
    box.className = "quoted";
    box.dataset.thread = thread;
    range.surroundContents(box);
  }
}

export function unmark(root) {
  for (const box of root.querySelectorAll("mark.quoted")) {
    const parent = box.parentNode;
    box.replaceWith(...box.childNodes);
    parent.normalize();
  }
}
