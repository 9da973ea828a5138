// Numbers and times as people read them.

export function number(value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(Number(value))) return "–";
  const v = Number(value);
  if (v === 0) return "0";
  const size = Math.abs(v);
  if (size >= 1e6 || size < 1e-4)
    return v
      .toExponential(2)
      .replace("e+", "e")
      .replace(/\.?0+e/, "e");
  return String(Number(v.toPrecision(digits)));
}

export const count = (value) => Number(value).toLocaleString("en");

export function percent(share) {
  const value = 100 * share;
  return `${value >= 10 ? Math.round(value) : Number(value.toPrecision(2))} %`;
}

export function bytes(size) {
  if (size < 1000) return `${size} bytes`;
  if (size < 1e6) return `${(size / 1e3).toFixed(0)} kB`;
  return `${(size / 1e6).toFixed(1)} MB`;
}

export function when(text) {
  const time = new Date(typeof text === "number" ? text * 1000 : text);
  if (Number.isNaN(time.getTime())) return String(text ?? "");
  return time.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}

// A number that somebody typed, or null.
export function typed(text) {
  const trimmed = String(text ?? "")
    .trim()
    .replace(/^−/, "-");
  if (trimmed === "" || !/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(trimmed)) return null;
  const value = Number(trimmed);
  return Number.isFinite(value) ? value : null;
}

// Rows of numbers, one point per line, separated by commas, semicolons, tabs or blanks.
export function points(text, columns) {
  const rows = [];
  const lines = text.split(/\r?\n/);
  for (const [place, line] of lines.entries()) {
    if (line.trim() === "") continue;
    const cells = line
      .trim()
      .split(/[\s,;]+/)
      .filter((cell) => cell !== "");
    const values = cells.map(typed);
    if (values.some((value) => value === null)) {
      if (rows.length === 0 && place === 0) continue; // names of columns
      throw new Error(`Line ${place + 1} is not made of numbers.`);
    }
    if (values.length !== columns) {
      throw new Error(
        `Line ${place + 1} has ${values.length} number${values.length === 1 ? "" : "s"}; there must be ${columns}.`,
      );
    }
    rows.push(values);
  }
  return rows;
}
