// The path prefix of the site, such as "/maia"; "" for none.
export const base = (document.documentElement.dataset.base ?? "/").slice(0, -1);
