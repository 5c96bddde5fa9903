// The items of focus mode: one item at a time, the next one loaded beforehand; requests to the server one after
// another.
import { toast } from "../display/notices.js";

export class ItemQueue {
  constructor(root) {
    Object.assign(this, { root, next: null, asked: "", queue: Promise.resolve() });
  }

  get focus() {
    return document.getElementById("focus");
  }

  // Read the form's fields when its turn comes: by then earlier requests have been answered, so the version of the
  // draft is the server's.
  post(form, address) {
    const sent = this.queue.then(() => this.request(form, address));
    // A failed request must not stop those behind it.
    this.queue = sent.catch(() => {});
    return sent;
  }

  async request(form, address) {
    try {
      const response = await fetch(address, { method: "POST", body: new FormData(form), headers: { Accept: "application/json" }, credentials: "same-origin" });
      const body = response.headers.get("Content-Type")?.includes("json") ? await response.json() : null;
      if (response.ok && body?.version) form.elements.version.value = body.version;
      return { ok: response.ok && body !== null, status: response.status, body };
    } catch {
      return { ok: false, status: 0, body: null };
    }
  }

  after(act) {
    this.queue.then(act);
  }

  // --- the next item ---

  async lookAhead() {
    const address = this.root.dataset.ahead.replace("/items/0/", `/items/${this.focus.dataset.position}/`);
    this.next = null;
    this.asked = address;
    const found = await this.load(address);
    // The reviewer has moved on meanwhile: the answer is of another item.
    if (this.asked !== address) return;
    this.next = found;
    for (const image of found?.querySelectorAll("img") || []) warm(image);
  }

  // The element of an item, not on the page yet; null if there is none.
  async load(address) {
    try {
      const response = await fetch(address, { headers: { "X-Part": "focus" }, credentials: "same-origin" });
      // 204 means that nothing follows.
      if (response.status !== 200) return null;
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      return document.adoptNode(page.getElementById("focus"));
    } catch {
      return null;
    }
  }

  // Show an item, and return the previous one with all that was typed in it.
  show(element) {
    const before = this.focus;
    before.replaceWith(element);
    htmx.process(element);
    document.title = element.dataset.title;
    this.mark(Number(element.dataset.position));
    scrollTo(0, 0);
    return before;
  }

  mark(position) {
    const line = document.getElementById("line");
    for (const link of line.querySelectorAll("li a")) {
      if (Number(link.dataset.position) === position) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    line.setAttribute("hx-get", this.root.dataset.item.replace("/items/0/", `/items/${position}/`) + "line/");
    htmx.process(line);
  }

  // The server has stored the review: the item that it reserved is visible already, or is shown now.
  async advance({ next, words, queue }, shown, begin) {
    if (!next) { location.assign(queue); return; }
    if (String(next.position) !== shown?.dataset.position) {
      const other = await this.load(this.root.dataset.item.replace("/items/0/", `/items/${next.position}/`));
      if (!other) { location.assign(this.root.dataset.item.replace("/items/0/", `/items/${next.position}/`)); return; }
      this.show(other);
      if (shown) toast(`Another reviewer has taken item ${shown.dataset.position} in the meantime: this is item ${next.position}.`);
      begin();
    } else this.focus.querySelector("#rubric").elements.version.value = next.version;
    history.pushState(null, "", this.focus.dataset.address);
    document.getElementById("say").textContent = words || `Item ${next.position}`;
    htmx.trigger("#line", "live");
  }
}

// Load an image before it is on the page, in the size in which it will be shown.
function warm(image) {
  const early = new Image();
  early.sizes = image.sizes;
  early.srcset = image.srcset;
  early.src = image.src;
}
