// Messages about this page's connection to the server: no network, no answer, a refused request.

const SHOWN = 8000; // ms that a message stays, unless it is an error
const away = document.getElementById("away");
const toasts = document.getElementById("toasts");
const pulse = document.getElementById("pulse");
const asked = new Set(["click", "submit", "change", "input", "keyup", "search"]);

const REFUSED = {
  400: "The server could not read this request. Nothing was changed. Load the page again, then try once more.",
  403: "You may not do this, or this page is older than your session. Load the page again; if it stays so, ask an admin of your team.",
  404: "This is not there any more. Load the page again to see what is.",
  409: "This has changed in the meantime. Load the page again, then decide.",
  412: "This has changed in the meantime. Load the page again, then decide.",
  413: "This is larger than the server takes. Nothing was changed. Send less at once.",
  429: "Too many requests in a short time. Nothing was changed. Wait a moment, then try again.",
};
const BROKEN = "Something broke on our side. Everything recorded is kept. Try again; if it stays so, the log of the web server names the cause.";

// --- messages ---

export function toast(text, kind = "") {
  // The same words twice say nothing new.
  if ([...toasts.children].some((each) => each.firstElementChild.textContent === text)) return;
  const item = document.createElement("li");
  const line = document.createElement("p");
  item.className = `notice ${kind}`;
  line.textContent = text;
  item.append(line);
  toasts.append(closable(item));
}

function closable(item) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "link";
  button.textContent = "Close";
  button.addEventListener("click", () => item.remove());
  item.append(button);
  // Errors stay until they are closed: they may need to be copied.
  if (!item.matches(".error, .warning")) setTimeout(() => item.remove(), SHOWN);
  return item;
}

// --- the connection to the server ---

function look() {
  if (!navigator.onLine) say("You are offline.", "What is on this page can be read, and what you typed stays. Runs go on without you; this page catches up by itself.");
  else if (away.dataset.silent) say("The server does not answer.", "What is on this page can be read, and what you typed stays. Nothing that was recorded is lost; this page keeps asking.");
  else away.hidden = true;
}

function say(what, words) {
  document.getElementById("away-what").textContent = what;
  document.getElementById("away-words").textContent = words;
  away.hidden = false;
}

function answered() {
  if (!away.dataset.silent) return;
  delete away.dataset.silent;
  look();
}

function silent() {
  away.dataset.silent = "yes";
  look();
}

const askNow = () => { if (pulse && !document.hidden) htmx.trigger(pulse, "look"); };

document.addEventListener("htmx:afterOnLoad", answered);
document.addEventListener("htmx:responseError", (event) => {
  const { xhr, requestConfig, elt } = event.detail;
  // The poll of every page: its failure is that of the server, not of an action.
  if (elt === pulse && xhr.status >= 500) { silent(); return; }
  answered();
  if (xhr.getResponseHeader("HX-Trigger")?.includes("\"toast\"")) return;  // the answer has a message
  const words = REFUSED[xhr.status] || (xhr.status >= 500 ? BROKEN : `The server refused this (${xhr.status}). Nothing was changed. Load the page again, then try once more.`);
  const told = `${requestConfig.path} ${xhr.status}`;
  const wanted = asked.has(requestConfig.triggeringEvent?.type);
  // Parts that poll report a failure once, not for every request.
  if (!wanted && elt.dataset.refused === told) return;
  elt.dataset.refused = told;
  toast(words, "error");
});
for (const name of ["htmx:sendError", "htmx:timeout"]) {
  document.addEventListener(name, (event) => {
    silent();
    if (asked.has(event.detail.requestConfig?.triggeringEvent?.type)) toast("This did not reach the server. What you typed is still here: try again once it answers.", "error");
  });
}
// Skip the poll while offline, in a hidden tab, and while a key command runs: the next one is soon enough.
document.addEventListener("htmx:beforeRequest", (event) => {
  const unseen = document.hidden && event.target.closest("[data-while-visible]");
  const atWork = event.target.closest("[data-while-idle]")?.querySelector(":focus-visible");
  if (!navigator.onLine || unseen || atWork) event.preventDefault();
});
document.addEventListener("toast", (event) => toast(String(event.detail.value ?? event.detail.words ?? ""), event.detail.kind || "success"));
document.addEventListener("visibilitychange", askNow);
addEventListener("online", () => { look(); askNow(); });
addEventListener("offline", look);
for (const each of toasts.children) closable(each);
look();
