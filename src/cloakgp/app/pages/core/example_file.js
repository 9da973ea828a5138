// Generated heights, nobody's, for people who have no file at hand.

export const EXAMPLE_NAME = "example-heights.csv";

export function exampleFile() {
  let state = 20180409;
  const uniform = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state + 0.5) / 4294967296;
  };
  const normal = () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
  const lines = ["age,height,village"];
  for (let row = 0; row < 287; row += 1) {
    const age = 75 * uniform() ** 1.3;
    const grown = 152 - 98 * Math.exp(-age / 6.5);
    lines.push(`${age.toFixed(1)},${(grown + 5.5 * normal()).toFixed(1)},${1 + Math.floor(4 * uniform())}`);
  }
  return new TextEncoder().encode(`${lines.join("\n")}\n`);
}
