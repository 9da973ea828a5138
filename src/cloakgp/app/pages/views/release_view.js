// One release: pictures, the promise, downloads, and questions anywhere.

import { api } from "../core/api.js";
import { when } from "../core/format.js";
import { loadingResults } from "../release/loading_results.js";
import { link } from "../ui/buttons.js";
import { h } from "../ui/dom.js";
import { pageHead } from "../ui/page_head.js";

export async function releaseView(root, { id }) {
  const releases = await api.releases();
  const release = releases.find((one) => one.id === id) ?? (await api.releaseOf(id)); // which says what is wrong
  const { inputs, output } = release.settings;
  const inner = h("div", {});
  root.append(
    h("p", { class: "crumbs" }, link("Releases", "#/releases")),
    pageHead(
      release.name,
      `${output} by ${inputs.join(" and ")}, released ${when(release.created)} by ${release.by}.`,
    ),
    inner,
  );
  return loadingResults(inner, id);
}
