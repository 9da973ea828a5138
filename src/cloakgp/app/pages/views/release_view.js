// One release: pictures, the promise, downloads, and questions anywhere.

import { api } from "../core/api.js";
import { when } from "../core/format.js";
import { releaseResults } from "../release/release_results.js";
import { link } from "../ui/buttons.js";
import { h } from "../ui/dom.js";
import { pageHead } from "../ui/page_head.js";

export async function releaseView(root, { id }) {
  const release = await api.releaseOf(id);
  const { inputs, output } = release.settings;
  const inner = h("div", {});
  const done = releaseResults(inner, release);
  root.append(
    h("p", { class: "crumbs" }, link("Releases", "#/releases")),
    pageHead(
      release.name,
      `${output} by ${inputs.join(" and ")}, released ${when(release.created)} by ${release.by}.`,
    ),
    inner,
  );
  return done;
}
