// How often each step of the scale occurs. A turn that branches share counts once.
function occurrences() {
  const runs = new Map(), counts = LABELS.map(() => 0);
  for (const sample of DATA.samples) {
    for (const span of sample.spans) {
      const key = JSON.stringify([sample.session_id, span.turn_id, span.part]);
      runs.set(key, sample.logprobs.subarray(span.start, span.end));
    }
  }
  for (const run of runs.values()) run.forEach((logprob) => counts[step(logprob)]++);
  return counts;
}

function drawScale() {
  const counts = occurrences(), most = Math.max(1, ...counts), total = counts.reduce((sum, number) => sum + number, 0);
  LABELS.forEach((label, at) => {
    const share = total ? `${(100 * counts[at] / total).toFixed(counts[at] * 10 < total ? 1 : 0)}%` : "";
    const bar = make("i", "", share);
    bar.style.setProperty("--height", `${100 * counts[at] / most}%`);
    const column = make("div", "", bar, make("b", `p${at}`, label));
    column.title = `${count(counts[at])} of ${plural(total, "token")} sampled at a probability ${label}`;
    document.getElementById("scale").append(column);
  });
}

function openNamed() {
  const rows = [...document.querySelectorAll(".rollout")];
  const named = rows.find((row) => location.hash === `#${encodeURIComponent(row.sample.id)}`);
  const row = named ?? rows[0];
  if (!row) return;
  row.open = true;
  if (named) named.scrollIntoView();
}

function listen() {
  for (const type of ["mouseover", "focusin"]) {
    document.addEventListener(type, (event) => {
      hideTip();
      const node = event.target.closest?.(".token[data-at]");
      if (node) showTip(node);
    });
  }
  document.addEventListener("keydown", walk);
  document.addEventListener("keydown", (event) => event.key === "Escape" && hideTip());
  addEventListener("scroll", followScroll, { passive: true });
  addEventListener("hashchange", openNamed);
}

function start() {
  DATA.samples.forEach(arrays);
  drawScale();
  const rows = DATA.samples.map(rolloutNode);
  document.getElementById("rollouts").append(...(rows.length ? rows : [make("p", "", "Nothing was sampled.")]));
  openNamed();
  listen();
}

start();
