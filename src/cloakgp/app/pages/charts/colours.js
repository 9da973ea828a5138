// The colours of the theme, as plotly takes them.

export function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    ink: of("ink"),
    soft: of("soft"),
    edge: of("edge"),
    line: of("line"),
    card: of("card"),
    public: of("public"),
    private: of("private"),
    free: of("free"),
    warn: of("warn"),
  };
}

export const alpha = (hex, share) => {
  const value = Number.parseInt(hex.slice(1), 16);
  return `rgba(${value >> 16}, ${(value >> 8) & 255}, ${value & 255}, ${share})`;
};
