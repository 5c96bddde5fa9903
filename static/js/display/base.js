// What stands before every address of the site where it lies below a path, such as "/maia"; "" otherwise.
export const base = (document.documentElement.dataset.base ?? "/").slice(0, -1);
