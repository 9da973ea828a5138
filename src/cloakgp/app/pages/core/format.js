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
