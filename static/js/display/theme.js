// Sets the theme before the page is painted: a classic script, loaded in the head. "auto" follows the system.
(() => {
  let theme = null;
  try { theme = localStorage.getItem("theme"); } catch { /* storage is closed: follow the system */ }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
