// Split a Python program into tokens, as far as colours need it: [class, text] pairs that together are the whole text.
// The classes are those of Pygments, which code.css colours.

const KEYWORDS = new Set("and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield match case".split(" "));
const CONSTANTS = new Set(["True", "False", "None"]);
const NAMES = new Set("abs all any bool dict enumerate filter float format getattr hasattr int isinstance len list map max min next open print range repr reversed round set sorted str sum super tuple type zip self system tools".split(" "));
const TOKEN = new RegExp(
  [
    "(#[^\\n]*)",
    "([rbfuRBFU]{0,2}(?:\"\"\"[^]*?(?:\"\"\"|$)|'''[^]*?(?:'''|$)|\"(?:\\\\[^]|[^\"\\\\\\n])*\"?|'(?:\\\\[^]|[^'\\\\\\n])*'?))",
    "(\\d[\\w.]*)",
    "([A-Za-z_\\u0080-\\uffff][\\w\\u0080-\\uffff]*)",
    "([-+*/%=<>!&|^~@.,:;()[\\]{}]+)",
  ].join("|"),
  "g",
);

export function tokens(text) {
  const found = [];
  let [end, before] = [0, ""];
  for (const match of text.matchAll(TOKEN)) {
    if (match.index > end) found.push(["", text.slice(end, match.index)]);
    found.push([kind(match, before), match[0]]);
    end = match.index + match[0].length;
    before = match[0];
  }
  if (end < text.length) found.push(["", text.slice(end)]);
  return found;
}

function kind([word, comment, string, number, name], before) {
  if (comment !== undefined) return "c1";
  if (string !== undefined) return "s1";
  if (number !== undefined) return "mi";
  if (name === undefined) return "o";
  if (before === "def" || before === "class") return "nf";
  if (KEYWORDS.has(word)) return "k";
  if (CONSTANTS.has(word)) return "kc";
  return NAMES.has(word) && !before.endsWith(".") ? "nb" : "";
}

// The same by lines: a token of several lines, such as a docstring, is in each of them.
export function lines(text) {
  const rows = [[]];
  for (const [name, words] of tokens(text)) {
    words.split("\n").forEach((part, place) => {
      if (place) rows.push([]);
      if (part) rows.at(-1).push([name, part]);
    });
  }
  return rows;
}
