// Parts of a page that follow what others do: <section data-live="comments.run.7" hx-get="…" hx-trigger="live">.
// Such a part asks again when one of its topics rings, when the socket has come back, and every half minute.
import { Bells } from "./bells.js";

const ASK_EVERY = 30000; // ms between two questions that no bell asked for
const TOGETHER = 60; // ms in which bells count as one
const shown = new Map(); // address -> what it answered last
const waiting = new Set();
const rung = new Set();
let timer = 0;

const parts = () => [...document.querySelectorAll("[data-live]")];
const topicsOf = (part) => part.dataset.live.split(" ").filter(Boolean);
const bells = new Bells(ring, () => ask(parts()));

function ring(topic) {
  rung.add(topic);
  timer ||= setTimeout(() => {
    timer = 0;
    ask(parts().filter((part) => topicsOf(part).some((each) => rung.has(each))));
    rung.clear();
  }, TOGETHER);
}

// What somebody is typing in is left alone until they have gone on.
function ask(found) {
  for (const part of found) {
    if (part.querySelector("input:focus, textarea:focus, select:focus")) waiting.add(part);
    else htmx.trigger(part, "live");
  }
}

function leave() {
  const free = [...waiting];
  waiting.clear();
  ask(free.filter((part) => part.isConnected));
}

function listen() {
  bells.hear([...new Set(parts().flatMap(topicsOf))]);
}

// Forms differ by their token alone: then nothing has changed, and what is open or marked stays so.
const bare = (text) => text.replace(/name="csrfmiddlewaretoken" value="\w+"/g, "");

document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (detail.requestConfig.triggeringEvent?.type !== "live") { shown.clear(); return; }
  const [path, text] = [detail.requestConfig.path, bare(detail.xhr.responseText)];
  if (shown.get(path) === text) detail.shouldSwap = false;
  else shown.set(path, text);
});
document.addEventListener("htmx:load", () => listen());
document.addEventListener("focusout", () => { if (waiting.size) setTimeout(leave, 0); });
document.addEventListener("visibilitychange", () => { if (!document.hidden) ask(parts()); });
setInterval(() => { if (!document.hidden) ask(parts()); }, ASK_EVERY);
listen();
