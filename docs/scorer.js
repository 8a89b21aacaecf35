// How the results of a search are ordered: what you use comes before why it is so.
const FIRST = /^(api|install|command-line\/|quickstarts\/|operators\/onnx.Split-18)/;
const LATER = /^(adr\/|performance|conformance|changelog|contributing|architecture|add-an-|reliability|proofs|errata)/;
const PUBLIC = /^tensorsplit(\.[a-z]\w*)?\.[a-z]\w*$/; // ts.split, ts.files.split
const OPTION = /^#?cmdoption-/;

var Scorer = {
  score: ([page, title, anchor, , score]) =>
    score +
    (FIRST.test(page) ? 20 : 0) -
    (LATER.test(page) ? 40 : 0) -
    (OPTION.test(anchor) ? 30 : 0) +
    (PUBLIC.test(title) ? 10 : anchor && page === "api" ? -40 : 0),

  // The rest is what Sphinx has, but that the name of a function counts more.
  objNameMatch: 40,
  objPartialMatch: 12,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
