// Which entry of the ledger paid.

import { h } from "../ui/dom.js";

export function receiptLine(receipt) {
  if (!receipt) return null;
  const entry = receipt.entry ?? receipt.number;
  const hash = String(receipt.head ?? "");
  return h(
    "p",
    { class: "hint" },
    "Paid from ",
    h("b", {}, receipt.dataset ?? "the ledger"),
    entry === undefined ? null : `, entry ${entry}`,
    hash ? [", hash ", h("code", { title: hash }, hash.slice(0, 12))] : null,
    ".",
  );
}
