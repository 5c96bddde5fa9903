// Experiments that the server drew as sketches, at full height and with all their words. Their pictures, and the
// colours of their programs, are added when the reader comes near.
const [AT_FIRST, NEAR] = ["200px 0px", "900px 0px"]; // a reader who scrolls needs more ahead
const AGAIN = 5000; // ms after which a failed request is repeated
const PARTS = ".grid, pre.code > code";

export class Sketches {
  constructor(events, signal) {
    this.events = events;
    this.look(AT_FIRST);
    addEventListener("scroll", () => this.look(NEAR), { passive: true, once: true, signal });
  }

  look(rootMargin) {
    this.near?.disconnect();
    this.near = new IntersectionObserver((seen) => seen.filter((each) => each.isIntersecting).forEach((each) => this.fill(each.target)), { rootMargin });
    this.watch();
  }

  watch() {
    for (const each of this.events.querySelectorAll(":scope > [data-whole]")) this.near.observe(each);
  }

  leave() { this.near.disconnect(); }

  // Only missing parts are replaced, so that open, selected or focused elements stay so.
  async fill(event) {
    const address = event.dataset.whole;
    if (!address) return;
    delete event.dataset.whole; // fetch it once only
    const whole = await fetched(address);
    if (whole?.id !== event.id) { setTimeout(() => { event.dataset.whole = address; this.watch(); }, AGAIN); return; }
    const fresh = whole.querySelectorAll(PARTS);
    event.querySelectorAll(PARTS).forEach((part, place) => part.replaceWith(fresh[place]));
  }
}

async function fetched(address) {
  const answer = await fetch(address).catch(() => null);
  if (!answer?.ok) return null;
  const box = document.createElement("template");
  box.innerHTML = await answer.text();
  return box.content.querySelector(".event");
}
