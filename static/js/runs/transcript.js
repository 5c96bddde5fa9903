// The transcript: insert what the server draws, show the unfinished reply, fill gaps, keep the outline in step.
import { StreamedReply } from "./streamed_reply.js";
import { Follow } from "./follow.js";
import { Sketches } from "./sketches.js";

const NEAR = "900px 0px"; // distance of the reader at which a gap is filled
const byId = (id) => document.getElementById(id);

export class Transcript {
  constructor(page, last, replace) {
    Object.assign(this, { page, last, replace, away: new AbortController() });
    this.events = byId("events");
    this.draft = new StreamedReply(byId("draft"), byId("draft-words"));
    this.follow = new Follow(byId("pill"), byId("written"), this.away.signal);
    this.gaps = new IntersectionObserver((seen) => this.near(seen), { rootMargin: NEAR });
    this.sketches = new Sketches(this.events, this.away.signal);
    this.watch();
    const signal = this.away.signal;
    addEventListener("scroll", () => requestAnimationFrame(() => this.spy()), { passive: true, signal });
    document.addEventListener("htmx:beforeSwap", (event) => this.hold(event), { signal });
    document.addEventListener("htmx:afterSwap", () => this.filled(), { signal });
    addEventListener("resize", () => { byId("answer").style.minHeight = ""; }, { signal });
    byId("round-before").addEventListener("click", () => this.step(-1), { signal });
    byId("round-after").addEventListener("click", () => this.step(1), { signal });
    this.spy();
  }

  leave() {
    // Removes all listeners of this transcript at once.
    this.away.abort();
    this.gaps.disconnect();
    this.sketches.leave();
  }

  // --- what the server sends ---

  // The words that describe an event.
  event({ kind, html }) {
    const fresh = this.insert(html);
    if (kind === "reply") this.draft.clear();
    byId("progress").hidden = true;
    this.follow.grown("newRound" in fresh.dataset ? 1 : 0);
    if (location.hash.slice(1) === fresh.id) fresh.scrollIntoView();
    return fresh.dataset.say;
  }

  // An element whose id is already on the page replaces the old one; an open program stays open.
  insert(html) {
    const fresh = element(html);
    if (fresh.querySelector("#end")) byId("end")?.removeAttribute("id");  // of a run that continued after its end
    const old = byId(fresh.id);
    if (!old) { this.events.append(fresh); return fresh; }
    const [program, before] = [fresh, old].map((each) => each.querySelector("details.program"));
    const { top, bottom } = old.getBoundingClientRect();
    if (!program || this.follow.following || top >= innerHeight || bottom <= 0) { old.replaceWith(fresh); return fresh; }
    program.open = before.open;
    const place = before.getBoundingClientRect().top;
    old.replaceWith(fresh);
    if (before.open && place < innerHeight / 2) scrollBy({ top: program.getBoundingClientRect().top - place, behavior: "instant" });
    return fresh;
  }

  tail(html) { this.replace("tail", html); this.follow.grown(); }

  outline(html) { this.replace("outline", html); this.spy(); }

  // The answer is above all events and grows: it never gets shorter, so that the events below do not jump.
  answer(html) {
    byId("answer").style.minHeight = `${byId("answer").offsetHeight}px`;
    this.steady(() => this.replace("answer", html));
    this.follow.grown();
  }

  // Redraw something above the events without moving the event being read.
  steady(draw) {
    // A reader of the answer wants to see it change; one below it must not be moved.
    const reads = byId("answer").getBoundingClientRect().bottom < innerHeight / 2;
    this.follow.hold(reads ? this.current() : null, draw);
  }

  side(html) { this.replace("side", html); this.rescale(); }

  round(number) { byId("draft-round").textContent = number; }

  words(offset, text) {
    this.draft.take(offset, text);
    if (text) byId("progress").hidden = true;
    this.follow.grown();
  }

  progress({ what, done, total }) {
    const line = byId("progress");
    line.hidden = !what;
    line.querySelector(".progress-text").textContent = what;
    line.querySelector(".of").textContent = total > 1 ? `${done} of ${total}` : "";
    const bar = line.querySelector("progress");
    if (total > 1) { bar.max = total; bar.value = done; } else bar.removeAttribute("value");
    this.follow.grown();
  }

  // Bars hold absolute activations: a stronger image only widens the window of all.
  rescale() {
    const box = byId("scale").dataset.viewBox;
    for (const bar of this.events.querySelectorAll(".bar")) bar.setAttribute("viewBox", box);
  }

  // --- gaps ---

  watch() {
    this.gaps.disconnect();
    for (const link of this.events.querySelectorAll(".gap a")) this.gaps.observe(link);
    this.sketches.watch();
  }

  // A reader below the gap needs its last events, one above it the first.
  near(seen) {
    for (const gap of new Set(seen.filter((each) => each.isIntersecting).map((each) => each.target.parentElement))) {
      const { top, bottom } = gap.getBoundingClientRect();
      htmx.trigger((top + bottom) / 2 < innerHeight / 2 ? gap.lastElementChild : gap.firstElementChild, "near");
    }
  }

  // The event beside the gap on the reader's side must not move. The browser's scroll anchoring would keep the topmost
  // element in place, which is on the other side of a visible gap.
  hold(event) {
    const gap = event.detail.target;
    if (!gap?.matches?.(".gap")) return;
    const below = event.detail.requestConfig.elt === gap.lastElementChild;
    this.held = below ? gap.nextElementSibling : gap.previousElementSibling;
    this.top = this.held?.getBoundingClientRect().top;
    this.events.style.overflowAnchor = "none";
  }

  filled() {
    if (!this.held) return;
    const moved = this.held.getBoundingClientRect().top - this.top;
    if (Math.abs(moved) > 1) scrollBy({ top: moved, behavior: "instant" });
    this.held = null;
    this.events.style.overflowAnchor = "";
    this.watch();
    this.spy();
  }

  // --- where the reader is ---

  // The last event that begins above the first third of the window, by binary search: events are in order.
  current() {
    const all = this.events.children;
    let [low, high] = [0, all.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (all[middle].getBoundingClientRect().top < innerHeight / 3) low = middle + 1;
      else high = middle;
    }
    for (let place = low - 1; place >= 0; place -= 1) if (all[place].dataset.round) return all[place];
    return null;
  }

  spy() {
    // A frame may have been requested before the page was left.
    if (this.away.signal.aborted || !this.events.isConnected) return;
    const round = this.current()?.dataset.round;
    const outline = byId("outline");
    for (const link of outline.querySelectorAll("a")) {
      const { first, last } = link.dataset;
      const here = round === first || (Number(first) <= Number(round) && Number(round) <= Number(last));
      link.classList.toggle("current-round", here);
      if (here) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    if (round !== this.was) this.reveal(outline.querySelector(".current-round"), outline.parentElement);
    this.was = round;
  }

  // A long outline scrolls by itself, without moving the page.
  reveal(link, box) {
    if (!link || box.scrollHeight <= box.clientHeight) return;
    const [line, frame] = [link.getBoundingClientRect(), box.getBoundingClientRect()];
    if (line.top < frame.top || line.bottom > frame.bottom) box.scrollTop += line.top - frame.top - frame.height / 3;
  }

  // To the head of the round before or after the one at the top of the window.
  step(by) {
    const heads = [...this.events.querySelectorAll(".round-head")];
    const line = parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop) || 0;
    const tops = heads.map((head) => head.getBoundingClientRect().top - line);
    // A few pixels: the head at the top is not the next one.
    const place = by > 0 ? tops.findIndex((top) => top > 4) : tops.findLastIndex((top) => top < -4);
    heads[place]?.scrollIntoView();
  }
}

function element(html) {
  const box = document.createElement("template");
  box.innerHTML = html;
  return box.content.firstElementChild;
}
