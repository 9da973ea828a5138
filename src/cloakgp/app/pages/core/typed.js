// What people typed, as numbers: 2,000,000 and 50,5 are understood. What may be two numbers is not guessed.

const PLAIN = /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i;
const GROUPS = /^[-+]?[1-9]\d{0,2}((,\d{3}){2,}(\.\d*)?|,\d{3}\.\d+)$/; // 2,000,000 or 2,000.5
const POINT_GROUPS = /^[-+]?[1-9]\d{0,2}((\.\d{3}){2,}(,\d+)?|\.\d{3},\d+)$/; // 2.000.000 or 2.000,5
const EITHER = /^[-+]?[1-9]\d{0,2},\d{3}$/;
const DECIMAL = /^[-+]?\d*,\d+(e[-+]?\d+)?$/i;

const trimmed = (text) =>
  String(text ?? "")
    .trim()
    .replace(/^−/, "-")
    .replace(/[\s\u00a0\u202f'](?=\d{3}(\D|$))/g, "");

function plain(text) {
  if (GROUPS.test(text)) return text.replaceAll(",", "");
  if (POINT_GROUPS.test(text)) return text.replaceAll(".", "").replace(",", ".");
  if (EITHER.test(text)) return null;
  return DECIMAL.test(text) ? text.replace(",", ".") : text;
}

// A number, or null.
export function typed(text) {
  const word = plain(trimmed(text));
  if (word === null || !PLAIN.test(word)) return null;
  const value = Number(word);
  return Number.isFinite(value) ? value : null;
}

// Why something that was typed is no number, and how to write it; null where it is one, or nothing.
export function numberTrouble(text) {
  const word = trimmed(text);
  if (word === "" || typed(word) !== null) return null;
  if (!EITHER.test(word)) return "This is not a number. Write it like 1250 or 0.5.";
  const [thousands, decimal] = [word.replace(",", ""), String(Number(word.replace(",", ".")))];
  return `This may be ${thousands} or ${decimal}. Write ${thousands} or ${decimal}.`;
}
