// Elements, made without HTML in texts: what engines say is never parsed.

function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "onclick") element.addEventListener("click", value);
    else if (value !== null && value !== false) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== ""));
  return element;
}

function icon(key) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  use.setAttribute("href", `#i-${key}`);
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  svg.append(use);
  return svg;
}

function badge(severity) {
  const { key, title } = outcomes[severity];
  return make("span", { class: `badge o-${key}` }, icon(key), title);
}

// A case's id, which may break after each of its segments.
function brokenId(id) {
  return id.split("/").flatMap((segment, at) => (at ? ["/", make("wbr"), segment] : [segment]));
}

// A sentence of our own, in which names stand between backticks.
function sentence(text) {
  return text.split("`").map((piece, at) => (at % 2 ? make("code", {}, piece) : piece));
}

function terms(rows) {
  const shown = rows.filter(([, value]) => value);
  return make(
    "dl",
    { class: "terms" },
    ...shown.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))),
  );
}

function plural(count, word) {
  return `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
}

async function copy(text, inside) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text, inside);
  }
}

// Where a page may not use the clipboard itself. A dialog makes all outside of it inert, so the text
// that is selected has to stand inside.
function copyBySelection(text, inside) {
  const holder = make("textarea", { class: "unseen", readonly: "", "aria-hidden": "true", tabindex: "-1" });
  holder.value = text;
  inside.append(holder);
  const focused = document.activeElement;
  holder.select();
  const done = document.execCommand("copy");
  holder.remove();
  focused?.focus();
  return done;
}
