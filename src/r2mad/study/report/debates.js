"use strict";
// The browser of single debates. All text is set as text, never as HTML: replies may hold anything.
(async () => {
  const browser = document.getElementById("browser");
  const source = document.getElementById("index");
  if (!browser || !source) return;

  const PAGE = 50;
  const SIGNS = { 1: ["right", "✓"], 0: ["wrong", "✗"], "-": ["none", "–"], x: ["failed", "!"] };
  const SAID = { right: "right", wrong: "wrong", none: "no answer", failed: "failed" };
  const ENDED = {
    unanimity: "all agreed", rounds: "its rounds were over", settled: "the opening agreed enough, so no debate was held",
    doubted: "all agreed before, but memory doubted it, and its rounds were over", partial: "cut short by --max-calls",
    failed: "no agent could reply",
  };

  // Elements: h("td", { class: "n" }, "text", other)
  const h = (name, attributes = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (value !== null && value !== false) element.setAttribute(key, value === true ? "" : value);
    }
    element.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return element;
  };

  const unpacked = async (element) => {
    if (!element.dataset.packed) return JSON.parse(element.textContent);
    const bytes = Uint8Array.from(atob(element.textContent), (sign) => sign.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  };

  let index;
  try {
    index = await unpacked(source);
  } catch (error) {
    browser.before(h("p", { class: "note" }, "This browser cannot unpack the debates; a newer one can."));
    return;
  }
  const chunks = [...document.querySelectorAll("script.chunk")];
  const opened = new Map();
  const chunkOf = (place) => {
    const number = Math.floor(place / index.chunk);
    if (!opened.has(number)) opened.set(number, unpacked(chunks[number]));
    return opened.get(number);
  };
  const MISCONCEIVED = index.kinds.length;
  const rows = index.debates.map((row, place) => {
    const [id, method, dataset, model, seed, question, flags, answer, right, grades] = row;
    return { place, id, method, dataset, model, seed, question, flags, answer, right, grades };
  });
  const byId = new Map(rows.map((row) => [row.id, row]));
  const sought = index.questions.map((asked) => [asked.id, asked.text, ...(asked.options || [])].join("\n").toLowerCase());
  const named = (flags) => [...index.kinds.filter((_, bit) => flags >> bit & 1), ...(flags >> MISCONCEIVED & 1 ? ["misconception"] : [])];

  const form = document.getElementById("filters");
  const list = document.getElementById("list");
  const body = list.querySelector("tbody");
  const pages = document.getElementById("pages");
  const article = document.getElementById("view");
  let found = rows;
  let page = 0;

  for (const [field, names] of [["method", index.methods], ["dataset", index.datasets], ["model", index.models]]) {
    const select = form.elements[field];
    names.forEach((name, number) => select.append(h("option", { value: number }, name)));
    if (names.length < 2) select.closest("label").hidden = true;
    if (names.length < 2 && field !== "method") list.classList.add(`no-${field}`);
  }
  for (const box of form.querySelectorAll("[name=kind]")) {
    const bit = box.value === "misconception" ? MISCONCEIVED : index.kinds.indexOf(box.value);
    const count = rows.filter((row) => row.flags >> bit & 1).length;
    box.dataset.bit = bit;
    box.disabled = count === 0;
    box.parentElement.append(h("span", { class: "count" }, ` ${count}`));
  }

  const signs = (grades, spoken = true) => {
    const rounds = grades.split(" ").map((round) => h("span", { class: "round" }, [...round].map((sign) => {
      const [kind, drawn] = SIGNS[sign] || ["none", "?"];
      return h("span", { class: `sign ${kind}`, "aria-hidden": "true" }, drawn);
    })));
    const told = grades.split(" ").map((round, number) => `round ${number}: ${[...round].filter((sign) => sign === "1").length} of ${round.length} right`);
    return h("span", { class: "signs" }, spoken ? h("span", { class: "hidden-text" }, told.join(", ")) : null, rounds);
  };
  const excerpt = (text, longest) => (text.length > longest ? `${text.slice(0, longest - 1)}…` : text);
  const chips = (flags) => named(flags).map((kind) => h("span", { class: `chip ${kind}` }, kind));

  const line = (row) => {
    const asked = index.questions[row.question];
    const link = h("a", { href: `#debate=${row.id}` }, excerpt(asked.text || asked.id, 110));
    return h("tr", {},
      h("td", { class: "question" }, link),
      h("td", { "data-name": "method" }, index.methods[row.method]),
      h("td", { "data-name": "data set", class: "dataset" }, index.datasets[row.dataset]),
      h("td", { "data-name": "model", class: "model" }, index.models[row.model]),
      h("td", { "data-name": "seed", class: "n" }, String(row.seed)),
      h("td", { "data-name": "answer", class: row.right ? "right" : "wrong" }, row.answer === null ? "none" : excerpt(row.answer, 40), row.right ? " ✓" : " ✗"),
      h("td", { "data-name": "right answer" }, asked.gold ? excerpt(asked.gold, 40) : "–"),
      h("td", { "data-name": "replies" }, signs(row.grades)),
      h("td", { "data-name": "what" }, chips(row.flags)));
  };

  const show = () => {
    const last = Math.max(0, Math.ceil(found.length / PAGE) - 1);
    page = Math.min(Math.max(page, 0), last);
    body.replaceChildren(...found.slice(page * PAGE, (page + 1) * PAGE).map(line));
    document.getElementById("count").textContent = `${found.length} of ${rows.length} debates`;
    pages.hidden = last === 0;
    pages.querySelector("span").textContent = `page ${page + 1} of ${last + 1}`;
    const [before, after] = pages.querySelectorAll("button");
    before.disabled = page === 0;
    after.disabled = page === last;
  };

  const filter = () => {
    const wanted = new FormData(form);
    const mask = [...form.querySelectorAll("[name=kind]:checked")].reduce((sum, box) => sum | 1 << box.dataset.bit, 0);
    const words = String(wanted.get("text")).toLowerCase().split(/\s+/).filter(Boolean);
    const matching = words.length ? new Set(sought.flatMap((text, number) => (words.every((word) => text.includes(word)) ? [number] : []))) : null;
    const same = (field, row) => wanted.get(field) === "" || String(row[field]) === wanted.get(field);
    found = rows.filter((row) => (mask === 0 || row.flags & mask) && ["method", "dataset", "model", "right"].every((field) => same(field, row))
      && (!matching || matching.has(row.question)));
    page = 0;
    show();
  };

  // One debate

  const number = (value, digits = 2) => (typeof value === "number" ? value.toFixed(digits).replace("-", "−") : String(value));
  const percent = (value) => `${Math.round(100 * value)} %`;
  const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
  const inFull = (asked, answer) => {
    const place = /^[A-Z]$/.test(answer) ? answer.charCodeAt(0) - 65 : -1;
    return asked.options && asked.options[place] ? `${answer}: ${asked.options[place]}` : answer;
  };

  const longText = (text) => {
    const shown = h("div", { class: "text" }, text);
    if (text.length < 700 && text.split("\n").length < 12) return shown;
    shown.classList.add("cut");
    const button = h("button", { type: "button", class: "more", "aria-expanded": "false" }, "Show all");
    button.addEventListener("click", () => {
      const all = shown.classList.toggle("cut");
      button.textContent = all ? "Show all" : "Show less";
      button.setAttribute("aria-expanded", String(!all));
    });
    return h("div", {}, shown, button);
  };

  // How the replies of a round fared in the next: hidden from whom, and the mask's verdict
  const fate = (next, agent) => {
    const peers = (next?.views || []).flatMap((view) => (view.peers || []).filter((peer) => peer.agent === agent).map((peer) => ({ viewer: view.agent, ...peer })));
    const hidden = peers.filter((peer) => peer.shown === false);
    const verdict = peers.map((peer) => peer.verdict).find(Boolean);
    return { hidden: hidden.map((peer) => peer.viewer), all: hidden.length > 0 && hidden.length === peers.length, verdict };
  };

  const seen = (view, name) => {
    const lines = [];
    const peers = view.peers || [];
    const told = (peer) => {
      const parts = [];
      if (peer.label) parts.push(peer.label);
      if (peer.confidence !== undefined) parts.push(number(peer.confidence));
      if (peer.weight !== undefined) parts.push(`weight ${number(peer.weight)}`);
      if (peer.shown === false) parts.push(`hidden${peer.verdict ? `, ${peer.verdict}` : ""}`);
      if (peer.score !== undefined) parts.push(`log p ${number(peer.score)}`);
      return h("li", { class: peer.shown === false ? "unseen" : "" }, name(peer.agent), parts.length ? ` (${parts.join(", ")})` : "");
    };
    if (peers.length) lines.push(h("div", {}, h("span", { class: "what" }, "saw"), h("ul", { class: "inline" }, peers.map(told))));
    const cases = view.retrieved || [];
    if (cases.length) {
      const fared = (one) => (one.reward === undefined || one.reward === null ? "not known" : one.reward === 1 ? "right" : one.reward === 0 ? "wrong" : `rated ${one.reward}`);
      lines.push(h("div", {}, h("span", { class: "what" }, `reminded of ${counted(cases.length, "case")}${view.trade_off === undefined ? "" : `, λ ${number(view.trade_off)}`}`),
        h("ul", { class: "inline" }, cases.map((one) => h("li", { title: `case ${one.case}` }, `${number(one.similarity)} ${fared(one)}`)))));
    }
    if (view.forgot) lines.push(h("div", { class: "failed" }, `remembered nothing: ${view.forgot.message || view.forgot.kind}`));
    if (view.trimmed) lines.push(h("div", {}, `${counted(view.trimmed, "old turn")} left out, for the context is too short`));
    return lines.length ? h("div", { class: "view" }, lines) : null;
  };

  const card = (debate, asked, round, reply, name) => {
    const later = fate(debate.rounds[round.place + 1], reply.agent);
    const view = (round.views || []).find((one) => one.agent === reply.agent);
    const [kind, drawn] = SIGNS[reply.grade] || ["none", "?"];
    const facts = [];
    if (reply.verbal_confidence !== undefined) facts.push(h("span", { class: "chip" }, `says ${reply.verbal_confidence} of 10`));
    if (reply.mean_logprob !== undefined) facts.push(h("span", { class: "chip" }, `log p ${number(reply.mean_logprob)}`));
    if (reply.finish_reason === "length") facts.push(h("span", { class: "chip degraded" }, "cut off"));
    if (reply.cached) facts.push(h("span", { class: "chip" }, "shared or cached"));
    if (later.hidden.length) facts.push(h("span", { class: "chip mask" }, `hidden${later.all ? "" : ` from ${later.hidden.map(name).join(", ")}`}${later.verdict ? `: ${later.verdict}` : ""}`));
    else if (later.verdict && later.verdict !== "error") facts.push(h("span", { class: "chip" }, `mask: ${later.verdict}`));
    const answer = reply.error ? `failed: ${reply.error.kind}` : reply.answer === undefined ? "no answer" : inFull(asked, reply.answer);
    return h("div", { class: `reply ${kind}${later.all ? " masked" : ""}` },
      view && round.place ? seen(view, name) : null,
      h("p", { class: "answer" }, h("span", { class: `sign ${kind}`, "aria-hidden": "true" }, drawn), " ", answer, h("span", { class: "hidden-text" }, ` (${SAID[kind]})`)),
      h("p", { class: "chips" }, facts),
      longText(reply.error ? reply.error.message || "" : reply.text || ""),
      reply.reasoning ? h("details", {}, h("summary", {}, "reasoning"), h("div", { class: "text" }, reply.reasoning)) : null,
      h("p", { class: "small" }, `${reply.usage?.completion_tokens || 0} tokens${reply.seconds ? `, ${number(reply.seconds, 1)} s` : ""}`));
  };

  const board = (debate, asked, name) => {
    const rounds = debate.rounds.map((round, place) => ({ ...round, place }));
    const height = Math.max(...rounds.map((round) => round.replies.length));
    const head = h("tr", {}, h("th", { scope: "col" }, "agent"), rounds.map((round) => h("th", { scope: "col" }, `Round ${round.place}`,
      h("span", { class: "small" }, ` ${percent(round.consensus)} agree${round.trust === undefined ? "" : `, memory trusts it ${number(round.trust)}`}`),
      round.pool ? h("div", { class: "small" }, `of ${counted(round.pool.length, "reply").replace("replys", "replies")} (${round.pool.join(", ")}) numbers ${(round.kept || []).map((place) => place + 1).join(", ")} go on`) : null)));
    const lines = Array.from({ length: height }, (_, row) => {
      const first = rounds.map((round) => round.replies[row]).find(Boolean);
      const samples = debate.agents.length < height;
      const who = samples ? `${name(first.agent)} #${(first.sample || row) + 1}` : name(first.agent);
      return h("tr", {}, h("th", { scope: "row" }, who), rounds.map((round) => h("td", { "data-name": `Round ${round.place}` },
        round.replies[row] ? card(debate, asked, round, round.replies[row], name) : "–")));
    });
    const summed = rounds.some((round) => round.summary) ? [h("tr", { class: "summary" }, h("th", { scope: "row" }, "summed up"), rounds.map((round) => h("td", { "data-name": `Round ${round.place}` },
      round.summary ? longText(round.summary) : "–", round.plain ? h("p", { class: "small" }, "by the tally, not by a model") : null)))] : [];
    return h("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Rounds of the debate" }, h("table", { class: "board" }, h("thead", {}, head), h("tbody", {}, lines, summed)));
  };

  const judged = (debate, name) => {
    if (!debate.judgements) return null;
    const lines = debate.judgements.map((note) => h("tr", {},
      h("td", {}, note.purpose), h("td", { class: "n" }, String(note.round)), h("td", {}, note.about === undefined ? "the round" : name(note.about)),
      h("td", {}, name(note.agent)), h("td", {}, note.error ? `failed: ${note.error.kind}` : note.verdict || "–"), h("td", {}, longText(note.text || ""))));
    return h("details", {}, h("summary", {}, `${counted(debate.judgements.length, "judgement")} of replies`), h("div", { class: "scroll" }, h("table", {},
      h("thead", {}, h("tr", {}, ["for", "round", "about", "judged by", "verdict", "said"].map((title) => h("th", { scope: "col" }, title)))), h("tbody", {}, lines))));
  };

  const factsOf = (debate, row) => {
    const used = Object.entries(debate.usage || {}).map(([kind, [read, written]]) => `${kind} ${read} read, ${written} written`).join("; ");
    const calls = Object.entries(debate.calls || {}).filter(([, count]) => count).map(([kind, count]) => `${count} ${kind}`).join(", ");
    const votes = Object.entries(debate.votes || {}).map(([answer, count]) => `${answer}: ${number(count, Number.isInteger(count) ? 0 : 2)}`).join(", ");
    return [
      ["ended", `after ${counted(debate.rounds.length, "round")}: ${ENDED[debate.stopped] || debate.stopped}`],
      ["votes", votes || "none"],
      ["tie", debate.tie ? `between ${(debate.tied || []).join(", ")}, broken by the seed` : null],
      ["confidence", debate.confidence === undefined ? null : `${number(debate.confidence)}${debate.calibrated === undefined ? "" : `, calibrated ${number(debate.calibrated)}`}`],
      ["calls", calls], ["tokens", used],
      ["memory", debate.memory ? `${debate.memory.url}, ${debate.memory.cases || 0} cases, version ${debate.memory.version}` : null],
      ["mask", debate.choice ? `${debate.choice.chosen}: ${debate.choice.reason}` : null],
      ["model", index.models[row.model]], ["method", `${index.methods[row.method]}${debate.composition ? `: ${debate.composition}` : ""}`],
      ["prompts", debate.prompts], ["started", `${debate.started}, took ${number(debate.seconds || 0, 1)} s`], ["record", `${debate.id}, seed ${row.seed}`],
    ].filter(([, told]) => told).map(([what, told]) => h("div", {}, h("dt", {}, what), h("dd", {}, told)));
  };

  const question = (asked, debate, row) => {
    const letter = (place) => String.fromCharCode(65 + place);
    const options = (asked.options || []).map((option, place) => h("li", { class: letter(place) === asked.gold ? "gold" : "" },
      `(${letter(place)}) ${option}`, letter(place) === asked.gold ? " ← right" : "", letter(place) === debate.answer ? " ← the group's answer" : ""));
    return [h("p", { class: "question" }, asked.text || asked.id), options.length ? h("ul", { class: "options" }, options) : null,
      h("p", {}, h("strong", {}, "Answer: "), debate.answer === undefined ? "none" : inFull(asked, debate.answer), row.right ? " ✓ right" : " ✗ wrong",
        asked.gold ? [h("strong", {}, "  Right: "), inFull(asked, asked.gold)] : null, " ", chips(row.flags))];
  };

  const open = async (row) => {
    const debate = (await chunkOf(row.place))[row.place % index.chunk];
    const asked = index.questions[row.question];
    const name = (agent) => debate.agents[agent]?.name || `agent ${agent}`;
    const place = found.indexOf(row);
    const near = (step) => found[place + step];
    const step = (text, other) => (other ? h("a", { class: "button", href: `#debate=${other.id}` }, text) : h("span", { class: "button off" }, text));
    article.replaceChildren(
      h("p", { class: "steps" }, h("a", { class: "button", href: "#debates" }, "↑ Back to the list"), step("← Previous", near(-1)), step("Next →", near(1)),
        h("span", { class: "small" }, place < 0 ? "" : `${place + 1} of ${found.length}`)),
      h("h3", {}, `${index.methods[row.method]} on ${asked.id}`),
      ...question(asked, debate, row).filter(Boolean),
      board(debate, asked, name), ...[judged(debate, name)].filter(Boolean),
      h("dl", { class: "facts" }, factsOf(debate, row)));
    article.hidden = false;
    article.dataset.open = row.id;
    article.focus({ preventScroll: true });
    article.scrollIntoView({ block: "start" });
  };

  const close = () => {
    const last = article.dataset.open;
    article.hidden = true;
    article.replaceChildren();
    delete article.dataset.open;
    if (last) body.querySelector(`a[href="#debate=${CSS.escape(last)}"]`)?.focus();
  };

  const route = () => {
    const row = byId.get(location.hash.replace(/^#debate=/, ""));
    if (row) open(row);
    else if (article.dataset.open) close();
  };

  form.addEventListener("input", filter);
  form.addEventListener("reset", () => setTimeout(filter));
  form.addEventListener("submit", (event) => event.preventDefault());
  pages.addEventListener("click", (event) => {
    if (event.target.dataset.step) {
      page += Number(event.target.dataset.step);
      show();
      list.scrollIntoView({ block: "nearest" });
    }
  });
  addEventListener("hashchange", route);
  addEventListener("keydown", (event) => {
    if (!article.dataset.open || event.target.closest("input, select, textarea, .scroll") || event.altKey || event.ctrlKey || event.metaKey) return;
    const place = found.indexOf(byId.get(article.dataset.open));
    const other = event.key === "ArrowLeft" ? found[place - 1] : event.key === "ArrowRight" ? found[place + 1] : null;
    if (event.key === "Escape") location.hash = "#debates";
    else if (other && place >= 0) location.hash = `#debate=${other.id}`;
  });
  browser.hidden = false;
  show();
  route();
})();
