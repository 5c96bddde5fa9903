// A round that a person writes: the editor with its draft, with tools and examples beside it. The server renders the
// section; it is requested again when an event begins or ends a person's round.
import { SavedDraft } from "./saved_draft.js";
import { CodeEditor } from "./code_editor.js";

const BEGINS = new Set(["waiting_for_person", "experiment", "result"]); // events that fill an empty section
const ENDS = new Set(["resumed", "handover", "concluded", "limit_reached", "cancelled", "failed"]); // events that end a person's round
const NARROW = 900; // px
const byId = (id) => document.getElementById(id);
let editor = null;

class ReplyEditor {
  constructor(section) {
    this.section = section;
    this.form = byId("reply-editor");
    this.code = new CodeEditor(byId("reply-program"), () => byId("send").focus());
    this.draft = new SavedDraft(this.form, (words, kept) => this.report(words, kept));
    this.form.addEventListener("keydown", (event) => this.pressed(event));
    this.form.addEventListener("htmx:confirm", (event) => this.send(event));
    this.form.addEventListener("htmx:beforeRequest", () => { byId("send").disabled = true; });
    this.form.addEventListener("htmx:afterRequest", () => { if (byId("send")) byId("send").disabled = false; });
    section.onclick = (event) => this.clicked(event.target);
    for (const button of section.querySelectorAll("[data-insert], [data-insert-pre], [data-insert-below]")) button.disabled = false;
    this.hypotheses();
    this.tools();
    byId("reply-trouble")?.focus();
  }

  hypotheses() {
    const more = byId("more-hypotheses");
    const list = this.form.querySelector(".own-hypotheses ol");
    more.hidden = false;
    more.addEventListener("click", () => {
      const line = list.lastElementChild.cloneNode(true);
      for (const field of line.querySelectorAll("input")) field.value = "";
      line.querySelector("select").selectedIndex = 0;
      line.querySelector(".hypothesis-number").textContent = "new";
      list.append(line);
      line.querySelector(".text").focus();
    });
  }

  tools() {
    const find = byId("find-tool");
    if (innerWidth < NARROW) this.section.querySelector(".reference details").open = false;
    if (!find) return;
    find.hidden = false;
    find.addEventListener("input", () => {
      const words = find.value.toLowerCase().split(/\s+/);
      let shown = 0;
      for (const entry of this.section.querySelectorAll(".reference li")) {
        entry.hidden = !words.every((word) => entry.dataset.words.includes(word));
        shown += !entry.hidden;
      }
      byId("no-tool").hidden = shown > 0;
    });
  }

  clicked(target) {
    const button = target.closest("button");
    if (!button) return;
    if ("insert" in button.dataset) this.insert(button.dataset.insert);
    else if ("insertPre" in button.dataset) this.insert(button.parentElement.querySelector("pre").textContent);
    else if ("insertBelow" in button.dataset) this.insert(button.previousElementSibling.querySelector("pre").textContent);
    else if ("take" in button.dataset) this.take();
    else if ("keep" in button.dataset) this.keep();
  }

  insert(words) {
    const experiment = byId("what-experiment");
    if (!experiment.checked && !experiment.disabled) experiment.click();
    if (experiment.checked) this.code.paste(words);
  }

  pressed(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.form.requestSubmit();
    }
  }

  // Wait for a save in progress, to send the version that it creates.
  async send(event) {
    event.preventDefault();
    if (this.sending) return;
    this.sending = true;
    await this.draft.save();
    this.sending = false;
    event.detail.issueRequest(true);
  }

  report(words, kept = null) {
    if (!this.form.isConnected) return;
    byId("kept").textContent = words;
    byId("stale").hidden = !kept;
    if (!kept) return;
    this.other = kept;
    byId("stale").querySelector("p").textContent = `${words} What you write here is not saved until you choose.`;
  }

  // Requested again, so that the form has the draft of the other tab.
  take() { this.draft.dirty = false; fetchAgain(); }

  keep() { this.draft.resume(this.other.version); }
}

function mount() {
  const section = byId("reply");
  if (editor?.form.isConnected) return;
  editor?.draft.leave();
  editor = section && byId("reply-editor") ? new ReplyEditor(section) : null;
}

// One request at a time. An editor that came meanwhile may be in use: it stays unless the section `must` be replaced.
let fetching = Promise.resolve();
function fetchAgain(must = true) {
  fetching = fetching.then(() => (editor && !must ? null : drawAgain())).catch(() => null);
}

// A draft that could not be saved remains below the new section, to be copied.
async function drawAgain() {
  const section = byId("reply");
  if (!section?.dataset.url) return;
  const unsaved = editor && !(await editor.draft.save()) ? editor.code.text : "";
  await htmx.ajax("GET", section.dataset.url, { target: section, swap: "innerHTML" });
  if (unsaved.trim()) section.append(leftOver(unsaved));
}

function leftOver(words) {
  const box = Object.assign(document.createElement("details"), { className: "unsent", open: true });
  const head = Object.assign(document.createElement("summary"), { textContent: "What you had written here, and could not be kept" });
  box.append(head, Object.assign(document.createElement("pre"), { className: "plain", textContent: words }));
  return box;
}

// Runs of agents have no editor, so they request none.
document.addEventListener("run:event", ({ detail: kind }) => {
  const people = byId("run").dataset.backbone === "person";
  if (kind === "handover" || (ENDS.has(kind) && (editor || people))) fetchAgain();
  else if (BEGINS.has(kind) && people) fetchAgain(false);
});
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.target.id === "panel") editor?.draft.save({ keepalive: true });
});
document.addEventListener("htmx:afterSwap", (event) => { if (event.detail.target?.matches("#reply, #panel")) mount(); });
document.addEventListener("htmx:historyRestore", mount);
addEventListener("pagehide", () => editor?.draft.save({ keepalive: true }));
document.addEventListener("visibilitychange", () => { if (document.hidden) editor?.draft.save({ keepalive: true }); });
mount();
