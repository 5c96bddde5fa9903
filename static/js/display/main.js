// The script of every page: the theme switch, the palette, keys, notices, Copy buttons, and forms that are sent once.
import "./image_switch.js";
import "./keys.js";
import "./notify.js";
import "./notices.js";
import "./palette.js";
import "./plots.js";
import "./unit_cards.js";

const THEMES = ["system", "light", "dark"];
const theme = document.getElementById("theme");

function showTheme() {
  theme.querySelector(".current-value").textContent = document.documentElement.dataset.theme || "system";
}

function setTheme(next) {
  if (next === "light" || next === "dark") document.documentElement.dataset.theme = next;
  else delete document.documentElement.dataset.theme;
  showTheme();
}

if (theme) {
  theme.hidden = false;
  showTheme();
  theme.addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme || "system") + 1) % THEMES.length];
    setTheme(next);
    try { localStorage.setItem("theme", next); } catch { /* kept for this page only */ }
  });
  // Other pages that are open follow.
  addEventListener("storage", (event) => { if (event.key === "theme") setTheme(event.newValue); });
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const text = button.parentElement.querySelector(button.dataset.copy).textContent;
  const words = button.querySelector("span");
  words.textContent = await copied(text) ? "Copied" : "Press Ctrl+C";
  setTimeout(() => { words.textContent = "Copy"; }, 1600);
});

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { // no clipboard without HTTPS, or not allowed
    return false;
  }
}

// Only once the form has been sent: a disabled button would not be sent, so the server could not tell which was
// pressed.
document.addEventListener("submit", ({ target }) => {
  if (target.matches("form[method=post]:not([hx-post])"))
    setTimeout(() => { for (const button of target.querySelectorAll("button")) button.disabled = true; }, 0);
});
// A page restored from the browser's history can be sent again.
addEventListener("pageshow", (event) => {
  if (event.persisted) for (const button of document.querySelectorAll("form button")) button.disabled = false;
});

// Requests that a page sends by itself do not keep an idle session alive.
document.addEventListener("htmx:configRequest", ({ detail }) => {
  const cause = detail.triggeringEvent?.type;
  if (!cause || cause === "live" || cause === "load") detail.headers["X-By-Itself"] = "yes";
});

// On a phone the row of settings is longer than the screen.
document.querySelector(".settings .tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
