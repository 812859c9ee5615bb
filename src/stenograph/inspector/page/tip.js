// What a token is: on hover, and on a walk with the arrow keys.

const TIP = document.getElementById("tip");

function bytesOf(id) {
  const own = DATA.tokens[id];
  return typeof own === "string" ? new TextEncoder().encode(own) : own;
}

function tokenFacts(sample, at) {
  const id = sample.tokens[at];
  const bytes = hex(bytesOf(id)) || "none: the vocabulary has no such id";
  const facts = [["id", String(id)], ["bytes", bytes], ["place", count(at)]];
  const span = sample.spans.find((span) => span.start <= at && at < span.end);
  if (!span) return [...facts, ["", "context: not sampled here"]];
  const logprob = sample.logprobs[at];
  const turnStart = span.siblings[0].start, turnEnd = span.siblings.at(-1).end;
  return [
    ...facts,
    ["logprob", `${digits(logprob)} (${span.logprob_kind})`],
    ["probability", percent(Math.exp(logprob))],
    ["turn", `${span.turn}, token ${at - turnStart + 1} of ${turnEnd - turnStart}`],
    ["weights", weights(span)],
    ["trained", sample.mask[at] ? "yes" : "in another branch"],
  ];
}

function showTip(node) {
  const sample = node.closest(".rollout").sample, at = Number(node.dataset.at);
  const own = DATA.tokens[sample.tokens[at]];
  const text = typeof own === "string" ? ["“", ...written(own), "”"] : ["part of a character"];
  const facts = tokenFacts(sample, at).flatMap(([name, value]) => [make("dt", "", name), make("dd", "", value)]);
  TIP.replaceChildren(make("div", "text", ...text), make("dl", "", ...facts));
  TIP.hidden = false;
  const box = node.getClientRects()[0], tip = TIP.getBoundingClientRect();
  const below = box.bottom + 8 + tip.height < innerHeight;
  TIP.style.top = `${below ? box.bottom + 8 : Math.max(4, box.top - tip.height - 8)}px`;
  TIP.style.left = `${Math.max(4, Math.min(box.left, innerWidth - tip.width - 8))}px`;
  node.setAttribute("aria-describedby", "tip");
}

function hideTip() {
  TIP.hidden = true;
  document.querySelector("[aria-describedby=tip]")?.removeAttribute("aria-describedby");
}

// Walking to a token may scroll the page: the tip goes with the token that has the focus.
function followScroll() {
  const focused = document.activeElement;
  if (focused?.matches(".token[data-at]")) showTip(focused);
  else hideTip();
}

// One stop of the Tab key a segment; inside, the arrows walk, across segments too.
function walk(event) {
  const from = event.target.closest?.(".token[data-at]");
  if (!from || event.ctrlKey || event.metaKey || event.altKey) return;
  const all = [...from.closest(".rollout").querySelectorAll(".token[data-at]")], at = all.indexOf(from);
  const to = all[{ ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: all.length - 1 }[event.key]];
  if (!to) return;
  event.preventDefault();
  to.closest(".tokens").querySelector(".token[tabindex='0']").tabIndex = -1;
  to.tabIndex = 0;
  to.focus();
}
