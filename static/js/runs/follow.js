// Keeps the newest words in view while the reader is at the foot of the page, and never moves the page otherwise.

const NEAR = 90; // px from the foot that still count as there

export class Follow {
  // Until `signal` says that the transcript has been left.
  constructor(pill, signal) {
    this.pill = pill;
    this.following = this.fromFoot() < NEAR;
    this.fresh = 0;
    this.top = scrollY;
    addEventListener("scroll", () => this.scrolled(), { passive: true, signal });
    pill.addEventListener("click", () => { this.following = true; this.toFoot(); }, { signal });
  }

  fromFoot() {
    return document.documentElement.scrollHeight - innerHeight - scrollY;
  }

  // The first step up ends the following, however small: a smooth scroll begins with one pixel.
  scrolled() {
    const up = scrollY < this.top;
    this.top = scrollY;
    if (up && this.fromFoot() > 2) this.following = false;
    else if (!up && this.fromFoot() < NEAR) this.following = true;
    if (this.following) this.clear();
  }

  // Call after the page has grown; `rounds` is how many rounds are new.
  grown(rounds = 0) {
    if (this.following) { this.toFoot(); return; }
    this.fresh += rounds;
    if (!this.fresh) return;
    this.pill.textContent = `${this.fresh} new round${this.fresh > 1 ? "s" : ""} ↓`;
    this.pill.hidden = false;
  }

  toFoot() {
    scrollTo(0, document.documentElement.scrollHeight);
    this.clear();
  }

  clear() {
    this.fresh = 0;
    this.pill.hidden = true;
  }
}
