"""How a report looks: light and dark, on a page and on a telephone."""

STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #566072; --paper: #fbfaf7; --card: #ffffff;
  --line: #dcdfe4; --accent: #0b5f8f; --good: #1d7a4f; --bad: #b3261e; --part: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8ec; --soft: #a2abba; --paper: #14181e;
  --card: #1c222b; --line: #333b47; --accent: #6fb9e6; --good: #67c99a; --bad: #ff8a80; --part: #f0b849; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 52rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
p, li, h1 { overflow-wrap: anywhere; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .3rem; letter-spacing: -.01em; }
h2 { font-size: 1.2rem; margin: 2.4rem 0 .7rem; }
.lead { color: var(--soft); margin: 0 0 1.4rem; }
.facts { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.4rem 0 0; padding: 0; list-style: none; }
.facts li { flex: 1 1 9rem; background: var(--card); border: 1px solid var(--line); border-radius: .6rem;
  padding: .7rem .9rem; }
.facts b { display: block; font-size: 1.3rem; font-variant-numeric: tabular-nums; }
.facts span { color: var(--soft); font-size: .85rem; }
.good b { color: var(--good); } .bad b { color: var(--bad); } .part b { color: var(--part); }
.fits { color: var(--good); }
.unchecked { color: var(--part); font-weight: 600; }
.warning { border-left: .3rem solid var(--bad); background: var(--card); padding: .7rem 1rem;
  color: var(--bad); font-weight: 600; }
figure { margin: 1rem 0 1.6rem; }
figure img { display: block; max-width: 100%; height: auto; margin: 0 auto; background: #fff;
  border: 1px solid var(--line); border-radius: .6rem; padding: .5rem; }
@media (prefers-color-scheme: dark) { figure img { background: #14181e; } }
figcaption { color: var(--soft); font-size: .9rem; margin-top: .5rem; }
.promise { background: var(--card); border: 1px solid var(--line); border-left: .3rem solid var(--accent);
  border-radius: .6rem; padding: .4rem 1.2rem; }
table { border-collapse: collapse; width: 100%; font-size: .93rem; }
th, td { text-align: left; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; overflow-wrap: anywhere; }
th { font-weight: 600; color: var(--soft); }
.settings th { width: 11rem; white-space: nowrap; }
.numbers td, .numbers th { text-align: right; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
.numbers th:first-child, .numbers td:first-child { text-align: left; }
.scroll { overflow-x: auto; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: .8rem 1rem;
  overflow-x: auto; font-size: .88rem; }
code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
summary { cursor: pointer; color: var(--accent); margin: .6rem 0; }
footer { margin-top: 3rem; color: var(--soft); font-size: .85rem; border-top: 1px solid var(--line);
  padding-top: .8rem; overflow-wrap: anywhere; }
.cite { background: var(--card); border: 1px solid var(--line); border-radius: .6rem;
  padding: .7rem 1rem; overflow-wrap: anywhere; }
details > figure { margin-top: .4rem; }
@media (max-width: 34rem) { main { padding: 1.4rem 1rem 3rem; } h1 { font-size: 1.5rem; }
  .facts li { flex-basis: 40%; padding: .55rem .7rem; } .facts b { font-size: 1.1rem; }
  .settings, .settings tbody, .settings tr, .settings th, .settings td { display: block; width: auto; }
  .settings th { border-bottom: 0; padding-bottom: 0; } .settings td { padding-top: 0; }
  figure { margin: 1rem -.4rem 1.4rem; } figure img { padding: .2rem; }
  .numbers td, .numbers th { padding-right: .5rem; font-size: .85rem; } pre { font-size: .8rem; } }
@media print { .facts li, figure, .promise { break-inside: avoid; } }
"""
