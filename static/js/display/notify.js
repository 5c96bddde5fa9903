// Parts of a page that follow what others do: <section data-live="comments.run.7" hx-get="…" hx-trigger="live">.
// Such a part asks again when one of its topics has changed, when the socket has come back, and every half minute. The
// socket says which topics have changed, and never carries data.
import { Socket } from "./socket.js";

const ASK_EVERY = 30000; // ms between two questions that no topic asked for
const TOGETHER = 60; // ms in which changes count as one
const MOST = 10; // topics that the server lets one socket hear
const shown = new Map(); // address -> what it answered last
const waiting = new Set();
const changed = new Set();
let topics = [];
let isNew = true;
let timer = 0;

const parts = () => [...document.querySelectorAll("[data-live]")];
const topicsOf = (part) => part.dataset.live.split(" ").filter(Boolean);
const socket = new Socket(() => (topics.length ? `/ws/live/?${new URLSearchParams(topics.map((topic) => ["topic", topic]))}` : ""), receive);

// A second beginning means that changes may have been missed.
function receive({ type, topic }) {
  if (type === "bell") note(topic);
  if (type === "ready" && !isNew) ask(parts());
  if (type === "ready") isNew = false;
}

function note(topic) {
  changed.add(topic);
  timer ||= setTimeout(() => {
    timer = 0;
    ask(parts().filter((part) => topicsOf(part).some((each) => changed.has(each))));
    changed.clear();
  }, TOGETHER);
}

// A field is not replaced while the user types in it.
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
  const wanted = [...new Set(parts().flatMap(topicsOf))].slice(0, MOST).sort();
  if (wanted.join() === topics.join()) return;
  topics = wanted;
  socket.restart();
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
