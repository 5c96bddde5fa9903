// New run: suggests a question until the user writes one, a unit at random, Alt+U, Ctrl+Enter.
import "../display/images.js";

const byId = (id) => document.getElementById(id);
const form = byId("query-form");

if (form) {
  const question = byId("id_question");
  const random = byId("random");
  // The last suggestion survives a refused form, so that a suggested question still changes with the unit.
  let suggested = byId("suggested").value || suggestion();
  let own = isOwn();

  byId("suggested").value = suggested;
  if (random) random.hidden = false; // a circuit is chosen on its own page
  random?.addEventListener("click", () => {
    const unit = byId("id_unit");
    unit.value = Math.floor(Math.random() * Number(byId("unit-note").dataset.units));
    unit.dispatchEvent(new Event("input", { bubbles: true }));
  });
  question.addEventListener("input", () => { own = isOwn(); });
  form.addEventListener("change", (event) => { if (event.target.name === "task") suggest(); });
  // Browsers list only names that contain the field's words: select these, so that the first letter replaces them.
  form.addEventListener("focusin", (event) => { if (event.target.id === "id_unit") event.target.select(); });
  form.addEventListener("keydown", (event) => {
    // By its place on the keyboard: with Alt, the key may write another letter.
    if (event.altKey && event.code === "KeyU" && byId("id_unit")) {
      event.preventDefault();
      byId("id_unit").focus();
      return;
    }
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit(byId("start"));
  });
  document.addEventListener("htmx:afterSettle", suggest);
  document.addEventListener("htmx:oobAfterSwap", invalid);
  // While exemplars are computed, the page polls every second. A button replaced between press and release is not
  // clicked.
  form.addEventListener("htmx:oobBeforeSwap", ({ target, detail }) => {
    if (target.id === "start-button" && detail.fragment.firstElementChild?.isEqualNode(target)) detail.shouldSwap = false;
  });
  for (const link of document.querySelectorAll("#summary a")) link.addEventListener("click", lead);
  for (const link of document.querySelectorAll("a.preset")) link.addEventListener("click", carry);
  if (byId("summary")) byId("summary").focus();
  else if (!own) question.select(); // typing replaces a suggestion

  function suggestion() {
    const task = form.querySelector("[name=task]:checked")?.value;
    return byId("answer")?.getAttribute(`data-${task}`) || "";
  }

  function isOwn() { return question.value.trim() !== "" && question.value.trim() !== suggested.trim(); }

  // Never replace what the user has typed.
  function suggest() {
    const next = suggestion();
    if (!next || next === suggested) return;
    suggested = byId("suggested").value = next;
    if (own) return;
    question.value = next;
    if (document.activeElement === question) question.select();
    form.dispatchEvent(new Event("input"));
  }

  function invalid() {
    const bad = byId("id_unit_error").textContent.trim() !== "";
    if (bad) byId("id_unit").setAttribute("aria-invalid", "true");
    else byId("id_unit").removeAttribute("aria-invalid");
  }

  // An error leads into the field itself, unfolded, not beside it.
  function lead(event) {
    const place = byId(event.target.hash.slice(1));
    if (!place) return;
    event.preventDefault();
    place.closest("details")?.setAttribute("open", "");
    (place.matches("input, select, textarea") ? place : place.querySelector("input:checked, input") || place).focus();
  }

  // A preset keeps the typed question.
  function carry(event) {
    const address = new URL(event.currentTarget.href);
    if (own && question.value.length < 1500) address.searchParams.set("question", question.value);
    event.currentTarget.href = address.href;
  }
}
