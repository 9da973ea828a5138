// What people typed, as numbers.

// A number, or null.
export function typed(text) {
  const trimmed = String(text ?? "")
    .trim()
    .replace(/^−/, "-");
  if (trimmed === "" || !/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(trimmed)) return null;
  const value = Number(trimmed);
  return Number.isFinite(value) ? value : null;
}

// Rows of numbers, one point per line, separated by commas, semicolons, tabs or blanks.
export function typedPoints(text, columns) {
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
