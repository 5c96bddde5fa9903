// The words of a reply under way, with a still cursor after the last. Programs stand out as soon as their fence opens.

export class StreamedReply {
  constructor(section, words) {
    Object.assign(this, { section, words, text: "" });
  }

  take(offset, text) {
    this.text = this.text.slice(0, offset) + text;
    this.section.hidden = !this.text;
    const parts = this.text.split(/^```\w*\n?/m);
    this.words.replaceChildren(...parts.flatMap((part, place) => (place % 2 ? [program(part)] : words(part))));
    const cursor = document.createElement("span");
    cursor.className = "cursor";
    (parts.length % 2 ? this.words : this.words.lastElementChild).append(cursor);
  }

  clear() {
    this.text = "";
    this.section.hidden = true;
    this.words.replaceChildren();
  }
}

// The tags of the reply's grammar stand out as small heads.
function words(text) {
  return text.split(/^\[([A-Z][A-Z 0-9]*)\]:?[ \n]?/m).map((part, place) => {
    if (place % 2 === 0) return part;
    const head = document.createElement("span");
    head.className = "section";
    head.textContent = part;
    return head;
  });
}

function program(text) {
  const box = document.createElement("pre");
  box.textContent = text.trimEnd();
  return box;
}
