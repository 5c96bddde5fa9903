// Sets the theme, and how images are shown, before the page is painted: a classic script, loaded in the head. "auto"
// follows the system; images are masked by default.
(() => {
  let [theme, images] = [null, null];
  try { [theme, images] = [localStorage.getItem("theme"), localStorage.getItem("images")]; } catch { /* storage is closed: follow the system */ }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  if (images === "heat" || images === "raw") document.documentElement.dataset.images = images;
})();
