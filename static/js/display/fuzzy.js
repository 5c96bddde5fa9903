// How well a name matches a few words: half a word, or one with a typing error, matches too. 0 if a word matches
// nothing. The server uses the same rules: experiments/search/fuzzy.py.

const normal = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

export function score(name, typed) {
  const terms = normal(typed).split(/\s+/).filter((term) => /[\p{L}\p{N}_]/u.test(term));
  const whole = normal(name);
  const words = whole.match(/[\p{L}\p{N}_]+/gu) || [];
  const found = terms.map((term) => Math.max(whole.includes(term) ? 50 : 0, ...words.map((word) => scoreWord(word, term))));
  return found.length && found.every(Boolean) ? found.reduce((sum, each) => sum + each, 0) * 10 - words.length : 0;
}

function scoreWord(word, term) {
  if (word === term) return 100;
  if (word.startsWith(term)) return 80;
  if (word.includes(term)) return 50;
  if (term.length < 3 || word[0] !== term[0]) return 0;
  if (holdsLetters(word, term)) return 30;
  return term.length > 4 && isOneSlip(word.slice(0, term.length + 1), term) ? 25 : 0;
}

function holdsLetters(word, term) {
  let at = 0;
  for (const letter of word) if (letter === term[at]) at += 1;
  return at === term.length;
}

function isOneSlip(word, term) {
  let at = 0;
  while (at < term.length && word[at] === term[at]) at += 1;
  const [rest, typed] = [word.slice(at), term.slice(at)];
  const swapped = (rest[1] || "") + (rest[0] || "") + rest.slice(2);
  return [[rest.slice(1), typed.slice(1)], [rest, typed.slice(1)], [rest.slice(1), typed], [swapped, typed]].some(([left, right]) => left.startsWith(right));
}
