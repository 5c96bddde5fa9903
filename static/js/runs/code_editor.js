// A text field for programs: the transparent field is over a layer with its text in colour, and line numbers beside it.
// Selecting and undoing remain the browser's.
import { lines } from "./python.js";

const INDENT = "    ";
const MOST = 60_000; // characters that are coloured; a longer program is plain

export class CodeEditor {
  constructor(field, leave) {
    Object.assign(this, { field, leave, marked: Number(field.dataset.line) || 0 });
    const box = Object.assign(document.createElement("div"), { className: "code-edit live" });
    this.layer = Object.assign(document.createElement("pre"), { className: "layer code" });
    this.gutter = Object.assign(document.createElement("pre"), { className: "gutter" });
    const paper = Object.assign(document.createElement("div"), { className: "paper" });
    for (const each of [this.layer, this.gutter]) each.setAttribute("aria-hidden", "true");
    field.before(box);
    paper.append(this.layer, field);
    box.append(this.gutter, paper);
    this.field.addEventListener("input", () => this.typed());
    this.field.addEventListener("keydown", (event) => this.pressed(event));
    this.draw();
  }

  get text() { return this.field.value; }

  set text(words) { this.field.value = words; this.draw(); }

  // The line of the error is marked until it, or anything before it, changes.
  typed() {
    if (this.marked && this.wrong !== this.upToMark()) this.marked = 0;
    this.draw();
  }

  upToMark() { return this.text.split("\n").slice(0, this.marked).join("\n"); }

  draw() {
    const text = this.text;
    if (this.marked && this.wrong === undefined) this.wrong = this.upToMark();
    const rows = text.length > MOST ? text.split("\n").map((row) => [["", row]]) : lines(text);
    this.layer.replaceChildren(...rows.map((row, place) => this.row(row, place + 1)));
    this.gutter.replaceChildren(...rows.map((_, place) => this.number(place + 1)));
  }

  row(parts, number) {
    const line = document.createElement("span");
    line.className = number === this.marked ? "line error-line" : "line";
    for (const [name, words] of parts) {
      const piece = document.createElement("span");
      piece.className = name;
      piece.textContent = words;
      line.append(name ? piece : words);
    }
    line.append("\n");
    return line;
  }

  number(place) {
    const line = document.createElement("span");
    line.className = place === this.marked ? "line error-line" : "line";
    line.textContent = `${place}\n`;
    return line;
  }

  pressed(event) {
    if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") { event.preventDefault(); this.leave(); }
    else if (event.key === "Tab") { event.preventDefault(); event.shiftKey ? this.dedent() : this.indent(); }
    else if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); this.breakLine(); }
  }

  indent() {
    const { selectionStart: from, selectionEnd: to } = this.field;
    if (from === to) this.insert(INDENT.slice((from - this.lineStart(from)) % INDENT.length));
    else this.reshape((row) => (row ? INDENT + row : row));
  }

  dedent() { this.reshape((row) => row.replace(/^( {1,4}|\t)/, "")); }

  // Each line that the selection touches, changed by `how`.
  reshape(how) {
    const { selectionStart, selectionEnd } = this.field;
    const from = this.lineStart(selectionStart);
    const next = this.text.indexOf("\n", Math.max(selectionStart, selectionEnd - 1));
    const to = next < 0 ? this.text.length : next;
    const before = this.text.slice(from, to);
    const after = before.split("\n").map(how).join("\n");
    if (after === before) return;
    const first = how(before.split("\n")[0]).length - before.split("\n")[0].length;
    this.field.setSelectionRange(from, to);
    this.insert(after);
    const whole = selectionStart !== selectionEnd;
    if (whole) this.field.setSelectionRange(from, from + after.length);
    else { const at = Math.max(from, selectionStart + first); this.field.setSelectionRange(at, at); }
  }

  // A new line has the indent of the last one, and one step more after a colon.
  breakLine() {
    const at = this.field.selectionStart;
    const row = this.text.slice(this.lineStart(at), at);
    this.insert(`\n${row.match(/^[ \t]*/)[0]}${/:\s*(#.*)?$/.test(row) ? INDENT : ""}`);
  }

  lineStart(at) { return this.text.lastIndexOf("\n", at - 1) + 1; }

  // As if it had been typed, so that the browser's Undo takes it back.
  insert(words) {
    this.field.focus({ preventScroll: true });
    if (document.execCommand(words ? "insertText" : "delete", false, words)) return;
    const { selectionStart, selectionEnd } = this.field;
    this.field.setRangeText(words, selectionStart, selectionEnd, "end");
    this.field.dispatchEvent(new Event("input", { bubbles: true }));
  }

  // Insert a program from elsewhere on the page: into an empty field, or as separate lines at the cursor.
  paste(words) {
    if (!this.text.trim()) { this.field.select(); this.insert(words); return; }
    const at = this.field.selectionStart;
    const lone = words.includes("\n");
    const [before, after] = [this.text.slice(0, at), this.text.slice(this.field.selectionEnd)];
    const head = lone && before && !before.endsWith("\n") ? "\n" : "";
    this.insert(head + words + (lone && after && !after.startsWith("\n") ? "\n" : ""));
  }
}
