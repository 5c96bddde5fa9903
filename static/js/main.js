// What every page has: the theme switch, Copy buttons, and forms that are sent once.

const THEMES = ["auto", "light", "dark"];
const theme = document.getElementById("theme");

function showTheme() {
  theme.querySelector(".now").textContent = document.documentElement.dataset.theme || "auto";
}

if (theme) {
  theme.hidden = false;
  showTheme();
  theme.addEventListener("click", () => {
    const root = document.documentElement;
    const next = THEMES[(THEMES.indexOf(root.dataset.theme || "auto") + 1) % THEMES.length];
    if (next === "auto") delete root.dataset.theme;
    else root.dataset.theme = next;
    try { localStorage.setItem("theme", next); } catch { /* kept for this page only */ }
    showTheme();
  });
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

// Without a network nothing is asked for: the next poll comes soon enough.
document.addEventListener("htmx:beforeRequest", (event) => { if (!navigator.onLine) event.preventDefault(); });

document.addEventListener("submit", (event) => {
  if (event.target.matches("form[method=post]:not([hx-post])"))
    for (const button of event.target.querySelectorAll("button")) button.disabled = true;
});
// A page that comes back from the browser's history is ready to send again.
addEventListener("pageshow", (event) => {
  if (event.persisted) for (const button of document.querySelectorAll("form button")) button.disabled = false;
});
