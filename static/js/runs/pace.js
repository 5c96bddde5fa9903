// Type the words of a reply at an even pace, however fast they come, and show everything else in order after them. The
// run does not wait: a fast run is shown at most BEHIND ms late.

const CHARACTERS = 0.4; // a millisecond
const BEHIND = 2500;
const still = matchMedia("(prefers-reduced-motion: reduce)");

export class Pace {
  // `take` shows a message, `typed` returns the length of the reply on the page, `follows` whether anyone reads its
  // end.
  constructor(take, typed, follows) {
    Object.assign(this, { take, typed, follows, waiting: [], frame: 0 });
    document.addEventListener("visibilitychange", () => { if (document.hidden) this.rush(); });
  }

  push(message) {
    this.waiting.push([message, performance.now() + BEHIND]);
    if (!this.frame) this.step(performance.now(), 0);
  }

  // Show everything that waits, at once.
  rush() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    for (const [message] of this.waiting.splice(0)) this.take(message);
  }

  step(now, elapsed) {
    this.frame = 0;
    if (still.matches || document.hidden || !this.follows()) { this.rush(); return; }
    let room = CHARACTERS * elapsed;
    while (this.waiting.length) {
      const [message, by] = this.waiting[0];
      const missing = message.type === "draft" ? message.offset + message.text.length - this.typed() : 0;
      if (missing > room && now < by) {
        const part = Math.ceil(Math.max(room, (missing * elapsed) / (by - now + elapsed)));
        this.take({ ...message, text: message.text.slice(0, this.typed() - message.offset + part) });
        this.frame = requestAnimationFrame((next) => this.step(next, next - now));
        return;
      }
      room = Math.max(room - Math.max(missing, 0), 0);
      this.waiting.shift();
      this.take(message);
    }
  }
}
