// Experiments that the server drew as sketches, as high as they will be, with all their words. Their pictures, and the
// colours of their programs, are put in place when the reader comes near.
const [AT_FIRST, NEAR] = ["200px 0px", "900px 0px"]; // who reads on wants more ahead than who has come for the answer
const AGAIN = 5000; // ms after which what did not come is asked for again
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

  // What is open, chosen or focused in it stays so: only what is missing is replaced.
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
