// The words of an unfinished reply, with a cursor that does not blink: hypotheses as they will look, and the end of the
// program in a box of fixed height. Words are only ever inserted as text.

const LINES = 10; // of an unfinished program
const TAG = /^\[([A-Z][A-Z 0-9]*)\]:?[ \n]?/m;
const HYPOTHESIS = /^[-*\s]*Hypothesis[_ ]?(\d+):\s*(.*?)\s*(?:\[(open|supported|refuted)\b:?\s*([^\]]*)\]?)?$/i;
const HALF = /(^|\n)(\[[A-Z 0-9]*\]?|`{1,2})$/; // the beginning of a tag or of a fence, not shown yet

export class StreamedReply {
  constructor(section, words) {
    Object.assign(this, { section, words, text: "" });
  }

  take(offset, text) {
    this.text = this.text.slice(0, offset) + text;
    this.section.hidden = !this.text;
    const parts = this.text.replace(HALF, "$1").split(/^```\w*\n?/m);
    this.words.replaceChildren(...parts.flatMap((part, place) => (place % 2 ? [program(part)] : words(part))));
    const cursor = made("span", "cursor");
    (parts.length % 2 ? this.words : this.words.lastElementChild.lastElementChild).append(cursor);
  }

  clear() {
    this.text = "";
    this.section.hidden = true;
    this.words.replaceChildren();
  }
}

// The tags of the reply's grammar stand out as small heads; a program and a list of hypotheses show what they are.
function words(text) {
  const [first, ...tagged] = text.split(TAG);
  const found = first.trim() ? [`${first.trimEnd()}\n`] : [];
  for (let place = 0; place < tagged.length; place += 2) {
    const [tag, body] = [tagged[place], tagged[place + 1]];
    if (tag === "HYPOTHESIS LIST") found.push(hypotheses(body));
    else if (tag !== "CODE") found.push(made("span", "section", tag), body);
  }
  return found;
}

function hypotheses(text) {
  const list = made("ul", "hypotheses");
  for (const line of text.split("\n").filter((each) => each.trim())) {
    const [, number, words, status, reason] = line.match(HYPOTHESIS) || [null, "", line];
    const item = made("li", "");
    item.append(made("span", "mono hypothesis-number", number && `H${number}`), made("span", "text", words.replace(/\s*\[\w*$/, "")));
    if (status) item.append(made("span", `status ${status.toLowerCase()}`, reason ? `${status} · ${reason}` : status));
    list.append(item);
  }
  return list;
}

function program(text) {
  const lines = text.trimEnd().split("\n");
  const head = made("p", "");
  head.append(made("b", "", "Program"), made("span", "muted", `${lines.length} line${lines.length > 1 ? "s" : ""}`));
  const box = made("div", "program-box");
  box.append(head, made("pre", "", lines.slice(-LINES).join("\n")));
  return box;
}

function made(name, names, text = "") {
  const element = document.createElement(name);
  element.className = names;
  element.textContent = text;
  return element;
}
