// Save a form's draft on the server while the user types. Each save names the version it is based on, so that two tabs
// do not overwrite each other silently.

const WAIT = 700; // ms without typing after which the draft is saved
const RETRY = 5000; // ms after which a failed save is tried again

export class SavedDraft {
  // `report` gets the state to show and, if another tab was first, the stored draft.
  constructor(form, report) {
    Object.assign(this, { form, report, dirty: false, saving: null, timer: 0, over: false });
    this.version = form.elements.version;
    form.addEventListener("input", () => this.touch());
  }

  touch() {
    this.dirty = true;
    clearTimeout(this.timer);
    if (!this.over) this.timer = setTimeout(() => this.save(), WAIT);
  }

  // The form is gone from the page; what was typed until then is saved nevertheless.
  async leave() {
    clearTimeout(this.timer);
    await this.save();
    this.over = true;
  }

  // One save at a time, the newest last. True once everything is saved.
  async save(options = {}) {
    clearTimeout(this.timer);
    // The version of this save is the answer of the one before.
    if (this.saving) await this.saving;
    if (!this.dirty) return true;
    if (this.over) return false;
    this.saving = this.send(options).finally(() => { this.saving = null; });
    return this.saving;
  }

  async send(options) {
    this.dirty = false;
    try {
      // Read before the request: what is typed meanwhile belongs to the next save.
      const body = new URLSearchParams(new FormData(this.form));
      const answer = await fetch(this.form.dataset.draft, { method: "POST", body, ...options });
      if (answer.ok) return this.kept(await answer.json());
      if (answer.status === 409) return this.refused(await answer.json());
    } catch { /* no network: the text is still in the form */ }
    this.dirty = true;
    this.report("Not saved yet: no answer from the server. What you wrote is in this page.");
    // A form that has left the page has no text that could still be saved.
    if (this.form.isConnected) this.timer = setTimeout(() => this.save(), RETRY);
    return false;
  }

  kept({ version, saved }) {
    this.version.value = version;
    this.report(`Draft kept ${new Date(saved).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })}`);
    return true;
  }

  refused({ why, words, kept }) {
    this.dirty = true;
    // A text that is too long can be shortened; any other refusal is final.
    this.over = why !== "unfit";
    this.report(words, why === "stale" ? kept : null);
    return false;
  }

  // Continue from the stored draft: the content of the form replaces it.
  resume(version) {
    this.version.value = version;
    this.over = false;
    this.touch();
    return this.save();
  }
}
