// The words of a reply under way, with a still cursor after the last. Programs stand out as soon as their fence opens.

export class Draft {
  constructor(section, words) {
    Object.assign(this, { section, words, text: "" });
  }

  take(offset, text) {
    this.text = this.text.slice(0, offset) + text;
    this.section.hidden = !this.text;
    const parts = this.text.split(/^```\w*\n?/m);
    this.words.replaceChildren(...parts.map((part, place) => (place % 2 ? program(part) : part)));
    const cursor = document.createElement("span");
    cursor.className = "cursor";
    const last = this.words.lastElementChild;
    (parts.length % 2 === 0 && last ? last : this.words).append(cursor);
  }

  clear() {
    this.text = "";
    this.section.hidden = true;
    this.words.replaceChildren();
  }
}

function program(text) {
  const box = document.createElement("pre");
  box.textContent = text.trimEnd();
  return box;
}
