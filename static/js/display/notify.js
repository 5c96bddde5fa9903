// Parts of a page that follow changes by others: <section data-live="comments.run.7" hx-get="…" hx-trigger="live">.
// Such a part is requested again when one of its topics has changed, when the socket is connected again, and every half
// minute. The socket only names topics that have changed; it never carries data.
import { Socket } from "./socket.js";

const ASK_EVERY = 30000; // ms between two requests without a change
const TOGETHER = 60; // ms in which changes count as one
const MOST = 10; // maximum topics of a socket, as on the server
const shown = new Map(); // address -> its last response
const waiting = new Set();
const changed = new Set();
let topics = [];
let isNew = true;
let timer = 0;

const parts = () => [...document.querySelectorAll("[data-live]")];
const topicsOf = (part) => part.dataset.live.split(" ").filter(Boolean);
const socket = new Socket(() => (topics.length ? `/ws/live/?${new URLSearchParams(topics.map((topic) => ["topic", topic]))}` : ""), receive);

// After a second connection, changes may have been missed.
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

// If only the tokens of forms differ, nothing has changed: open and selected elements stay so.
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
