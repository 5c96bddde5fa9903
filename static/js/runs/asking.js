// New query: a fitting question as long as nobody has written one, and a unit at random.
import "../display/images.js";

const byId = (id) => document.getElementById(id);
const form = byId("query-form");

if (form) {
  const question = byId("id_question");
  const random = byId("random");
  // What was suggested last survives a refused form: the question that it filled in still follows the unit.
  let suggested = byId("suggested").value || suggestion();

  byId("suggested").value = suggested;
  random.hidden = false;
  random.addEventListener("click", () => {
    const unit = byId("id_unit");
    unit.value = Math.floor(Math.random() * Number(byId("unit-note").dataset.units));
    unit.dispatchEvent(new Event("input", { bubbles: true }));
  });
  form.addEventListener("change", (event) => { if (event.target.name === "task") suggest(); });
  document.addEventListener("htmx:afterSettle", suggest);
  document.addEventListener("htmx:oobAfterSwap", invalid);
  byId("summary")?.focus();

  function suggestion() {
    const task = form.querySelector("[name=task]:checked")?.value;
    return byId("answer")?.getAttribute(`data-${task}`) || "";
  }

  // What somebody has typed is never replaced.
  function suggest() {
    const next = suggestion();
    if (!next || next === suggested) return;
    if ((question.value === suggested || !question.value.trim()) && document.activeElement !== question) {
      question.value = next;
      byId("command").dispatchEvent(new Event("input"));
      form.dispatchEvent(new Event("input"));
    }
    suggested = byId("suggested").value = next;
  }

  function invalid() {
    const bad = byId("unit-note").classList.contains("bad");
    if (bad) byId("id_unit").setAttribute("aria-invalid", "true");
    else byId("id_unit").removeAttribute("aria-invalid");
  }
}
