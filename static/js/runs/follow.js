// Keeps the newest words in view while the reader is at the foot of the page, and never moves the page otherwise.

const NEAR = 90; // px from the foot that still count as there
const STEP = 32; // px a frame: the page glides up, however much is added at once
const still = matchMedia("(prefers-reduced-motion: reduce)");

export class Follow {
  // Until `signal` aborts, when the user leaves the transcript. `written` never gets shorter for a reader at its end:
  // room that an unfinished program took before it was folded stays until new words fill it.
  constructor(pill, written, signal) {
    Object.assign(this, { pill, written, room: 0, frame: 0 });
    this.following = this.fromFoot() < NEAR;
    this.fresh = 0;
    this.top = scrollY;
    addEventListener("scroll", () => this.scrolled(), { passive: true, signal });
    addEventListener("resize", () => this.keep(0), { signal });
    pill.addEventListener("click", () => { this.following = true; this.toFoot(); }, { signal });
  }

  fromFoot() {
    return document.documentElement.scrollHeight - innerHeight - scrollY;
  }

  // The smallest step up ends the following: a smooth scroll begins with one pixel.
  scrolled() {
    const up = scrollY < this.top;
    this.top = scrollY;
    if (up && this.fromFoot() > 2) this.following = false;
    else if (!up && this.fromFoot() < NEAR) this.following = true;
    if (this.following) this.clear();
  }

  // Call after the page has grown; `rounds` is how many rounds are new.
  grown(rounds = 0) {
    this.keep(this.room);
    if (this.following) { this.glide(); return; }
    this.fresh += rounds;
    if (!this.fresh) return;
    this.pill.textContent = `${this.fresh} new round${this.fresh > 1 ? "s" : ""} ↓`;
    this.pill.hidden = false;
  }

  // At least this much room, as a separate element at the end: browsers keep the reader's place only if the height of
  // the element around it is not set.
  keep(room) {
    // Compared before it is set: setting a style makes the browser lay the page out again.
    const spare = this.written.lastElementChild;
    const filled = this.written.offsetHeight - spare.offsetHeight;
    this.room = Math.max(room, filled);
    const height = `${this.room - filled}px`;
    if (spare.style.height !== height) spare.style.height = height;
  }

  // Redraw something without moving the event that is being read.
  hold(place, draw) {
    const top = place?.getBoundingClientRect().top;
    draw();
    const moved = place?.isConnected ? place.getBoundingClientRect().top - top : 0;
    // Less than a pixel is rounding.
    if (Math.abs(moved) > 1) scrollBy({ top: moved, behavior: "instant" });
  }

  glide() {
    if (still.matches || document.hidden) { this.toFoot(); return; }
    this.clear();
    if (!this.frame && this.fromFoot() > 0) this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      if (!this.following) return;
      scrollBy({ top: Math.min(STEP, this.fromFoot()), behavior: "instant" });
      this.glide();
    });
  }

  toFoot() {
    scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });
    this.clear();
  }

  clear() {
    this.fresh = 0;
    this.pill.hidden = true;
  }
}
