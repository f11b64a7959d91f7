// The review desk in a notebook: shows the queue, asks Python for what it shows, sends what a person decides.
//
// Texts of memories come in messages and stay in the page; nothing of them is in the widget's state, which a
// notebook saves. Every text is set as text, never as HTML. Python decides what everything means: what accepting
// does, what is masked, which differences are marked.

const ROW_HEIGHT = 46; // pixels, as in desk.css: the queue is laid out by it
const PAGE_ROWS = 50; // rows asked for at a time
const ANSWER_MS = 8_000; // a kernel that is busy for longer than this is said to be
const REST_MS = 300; // without a key: counts are asked for then, as they take longer than a proposal
const LISTS_KEPT = 40; // pages of rows that are kept while somebody scrolls
const DECISIONS = { accepted: "✓", edited: "✎", rejected: "✗", later: "◷" };
const ROLES = { goes: "goes", stays: "stays", changes: "changes", about: "is about" };

const KEYS = [
  ["a", "Accept", "accept"],
  ["r", "Reject", "reject"],
  ["l", "Later", "later"],
  ["e", "Edit", "edit"],
  ["x", "Reset", "reset"],
  ["u", "Undo", "undo"],
  ["g", "Open group", "group"],
  ["s", "Show secrets", "reveal"],
  ["w", "Whole text", "whole"],
  ["j", "Next", "next"],
  ["k", "Previous", "previous"],
  ["/", "Search", "search"],
  ["?", "Keys", "help"],
];

/** Make an element: properties, then children; a text child is set as text. */
function make(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (key in element && typeof value !== "string") element[key] = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Ask Python, and return its answer; refuse after a while, as a kernel that is gone answers nothing. */
function makeLine(model, onLate) {
  const view = Math.random().toString(36).slice(2);
  const waiting = new Map();
  let asked = 0;
  const receive = (content) => {
    if (content.view !== view) return;
    if (!waiting.has(content.to)) return onLate();
    const { resolve, reject, timer } = waiting.get(content.to);
    waiting.delete(content.to);
    clearTimeout(timer);
    content.error ? reject(new Error(content.error)) : resolve(content.answer);
  };
  model.on("msg:custom", receive);
  const ask = (what, details = {}) =>
    new Promise((resolve, reject) => {
      const to = ++asked;
      const timer = setTimeout(() => {
        waiting.delete(to);
        reject(new Error("The kernel does not answer. If it is busy, wait; if it was restarted, run this cell again."));
      }, ANSWER_MS);
      waiting.set(to, { resolve, reject, timer });
      try {
        model.send({ ...details, ask: what, view, to });
      } catch {
        // the connection is closed: the time runs out
      }
    });
  const close = () => {
    model.off("msg:custom", receive);
    for (const { timer } of waiting.values()) clearTimeout(timer);
  };
  return { ask, close, view };
}

/** Show a text in pieces: what is the same, removed, added, masked, or invisible. */
function showPieces(pieces) {
  const tags = { removed: "del", added: "ins", masked: "span", invisible: "span", same: "span" };
  return pieces.map(({ text, as }) => make(tags[as] ?? "span", { class: `mf-${as}` }, text));
}

function render({ model, el }) {
  const line = makeLine(model, () => attempt(catchUp));
  const state = { filter: {}, search: "", rows: new Map(), n: 0, at: 0, shown: null, ahead: null, editing: null };

  // ---- the parts of the page

  const status = make("div", { class: "mf-status", role: "status", "aria-live": "polite" });
  const meter = make("div", { class: "mf-meter" }, make("div"));
  const progress = make("div", { class: "mf-progress" });
  const preview = make("div", { class: "mf-preview" });
  const facets = make("div", { class: "mf-facets", role: "group", "aria-label": "Filters" });
  const search = make("input", { type: "search", placeholder: "Search  /", "aria-label": "Search the proposals" });
  const spacer = make("div", { class: "mf-spacer" });
  const queue = make("div", { class: "mf-queue", role: "listbox", "aria-label": "Proposals", tabindex: "0" }, spacer);
  const bound = make("p", { class: "mf-bound" });
  const proposal = make("div", { class: "mf-proposal", role: "region", "aria-label": "Proposal" });
  const help = make("div", { class: "mf-keys", hidden: true });
  const note = make("input", { type: "text", class: "mf-note", placeholder: "Note (optional)", "aria-label": "Note" });
  const buttons = make("div", { class: "mf-buttons", role: "toolbar", "aria-label": "Decide" });
  const root = make(
    "div",
    // Lumino, on which JupyterLab and Notebook 7 are built, runs no command for keys pressed inside such an element
    { class: "mf-desk mf-waiting", tabindex: "0", role: "application", "aria-label": "Review desk", "data-lm-suppress-shortcuts": "true" },
    make("div", { class: "mf-top" }, meter, progress, preview),
    make("div", { class: "mf-side" }, search, facets),
    queue,
    make("div", { class: "mf-main" }, proposal, make("div", { class: "mf-decide" }, buttons, note)),
    help,
    status,
  );
  el.append(make("div", { class: "mf-frame" }, root)); // its width decides how the desk is laid out
  say("Waiting for the kernel. If nothing comes, run this cell again.");
  for (const [key, label, action] of KEYS) {
    const button = make("button", { type: "button", class: `mf-${action}`, title: `Key: ${key}`, "aria-keyshortcuts": key }, label, make("kbd", { "aria-hidden": "true" }, key));
    button.addEventListener("click", () => act(action));
    buttons.append(button);
  }
  help.append(make("b", {}, "Keys"), ...KEYS.map(([key, label]) => make("div", {}, make("kbd", {}, key), ` ${label}`)));

  function say(sentence) {
    status.textContent = sentence;
  }

  /** Ask, and say what went wrong instead of throwing: nobody waits for the promise of a key press. */
  async function attempt(work) {
    try {
      return await work();
    } catch (error) {
      say(error.message);
    }
  }

  // ---- what is shown

  /** Let Python list the proposals anew, in the order of the queue as it is now. */
  async function settle() {
    const summary = await line.ask("settle", query());
    root.classList.remove("mf-waiting");
    state.at = 0;
    queue.scrollTop = 0;
    drop(summary.n_shown);
    showSummary(summary);
    await show(0);
  }

  /** Forget what is known of the rows: what was decided elsewhere, or grouped anew. */
  function drop(n) {
    state.n = n;
    state.rows.clear();
    state.ahead = null;
    spacer.style.height = `${n * ROW_HEIGHT}px`;
  }

  async function catchUp() {
    await summarize();
    drop(state.n);
    if (state.editing) return showRows();
    await show(state.at);
  }

  async function summarize() {
    showSummary(await line.ask("summary", { ...query(), proposal: state.shown?.id ?? "" }));
  }

  let resting;
  function summarizeSoon() {
    clearTimeout(resting);
    resting = setTimeout(() => attempt(summarize), REST_MS);
  }

  function showSummary(summary) {
    state.n = summary.n_shown;
    meter.firstChild.style.width = `${(100 * summary.n_decided) / Math.max(1, summary.n_total)}%`;
    progress.textContent = summary.progress;
    preview.replaceChildren(...summary.preview.map((sentence) => make("div", {}, sentence)));
    bound.textContent = summary.bound;
    showFacets(summary.facets);
    showOffer(summary.offer);
  }

  const query = () => ({ filter: state.filter, search: state.search });

  function showFacets(groups) {
    const had = facets.contains(document.activeElement) ? document.activeElement.dataset.of : null;
    facets.replaceChildren(
      ...groups.map(({ name, values }) =>
        make("fieldset", {}, make("legend", {}, name), ...values.map(({ value, label, n, chosen }) => {
          const box = make("input", { type: "checkbox", checked: chosen, "data-of": `${name} ${value}` });
          box.addEventListener("change", () => choose(name, value, box.checked));
          return make("label", { title: label }, box, make("span", {}, label), make("small", {}, String(n)));
        })),
      ),
    );
    if (had) [...facets.querySelectorAll("input")].find((box) => box.dataset.of === had)?.focus({ preventScroll: true });
  }

  function showOffer(offer) {
    if (!offer) return;
    const button = make("button", { type: "button", class: "mf-offer" }, offer.label);
    button.addEventListener("click", () => enqueue(() => decide("accept_rest", { check: offer.check, kind: offer.kind, n: offer.n })));
    preview.append(make("div", {}, button, make("span", {}, ` ${offer.warning}`)));
  }

  function choose(name, value, wanted) {
    const chosen = new Set(state.filter[name] ?? []);
    wanted ? chosen.add(value) : chosen.delete(value);
    state.filter = { ...state.filter, [name]: [...chosen] };
    if (!chosen.size) delete state.filter[name];
    attempt(settle);
  }

  /** Lay out the rows that can be seen; ask for the pages that are missing. */
  async function showRows() {
    const first = Math.max(0, Math.floor(queue.scrollTop / ROW_HEIGHT) - 5);
    const last = Math.min(state.n, first + Math.ceil((queue.clientHeight || 500) / ROW_HEIGHT) + 10);
    for (let page = Math.floor(first / PAGE_ROWS); page * PAGE_ROWS < last; page++) {
      const start = page * PAGE_ROWS;
      if (state.rows.has(start)) continue;
      state.rows.set(start, null); // asked for
      await line.ask("page", { start, n: PAGE_ROWS }).then(
        ({ rows }) => rows.forEach((row, place) => state.rows.set(start + place, row)),
        (error) => {
          state.rows.delete(start);
          throw error;
        },
      );
      if (state.rows.size > LISTS_KEPT * PAGE_ROWS)
        for (const known of [...state.rows.keys()].slice(0, PAGE_ROWS)) state.rows.delete(known);
    }
    const shown = [];
    for (let place = first; place < last; place++) {
      const row = state.rows.get(place);
      if (row) shown.push(makeRow(row, place));
    }
    spacer.replaceChildren(...shown);
  }

  function makeRow(row, place) {
    const element = make(
      "div",
      {
        class: `mf-row mf-is-${row.decision || "open"}`,
        role: "option",
        id: `mf-${line.view}-${place}`,
        "aria-setsize": String(state.n),
        "aria-posinset": String(place + 1),
        "aria-selected": String(place === state.at),
        style: `top: ${place * ROW_HEIGHT}px`,
      },
      make("span", { class: "mf-mark", "aria-label": row.decision || "open" }, DECISIONS[row.decision] ?? ""),
      make("span", { class: "mf-title" }, row.title),
      make("span", { class: "mf-kind" }, row.label),
    );
    element.addEventListener("click", () => enqueue(() => show(place)));
    return element;
  }

  async function show(place) {
    state.editing = null;
    if (!state.n) {
      state.shown = null;
      spacer.replaceChildren();
      proposal.replaceChildren(make("p", {}, "Nothing here. Clear the filters to see the rest."));
      return say("No proposal is listed.");
    }
    state.at = Math.max(0, Math.min(place, state.n - 1));
    const top = state.at * ROW_HEIGHT;
    if (top < queue.scrollTop) queue.scrollTop = top;
    else if (top + ROW_HEIGHT > queue.scrollTop + queue.clientHeight) queue.scrollTop = top + ROW_HEIGHT - queue.clientHeight;
    const ahead = state.ahead?.place === state.at ? state.ahead.answer : null;
    const [shown] = await Promise.all([(await ahead) ?? line.ask("show", { place: state.at }), showRows()]);
    state.shown = shown;
    queue.setAttribute("aria-activedescendant", `mf-${line.view}-${state.at}`);
    note.value = shown.note;
    showProposal(shown);
    say(`${state.at + 1} of ${state.n}: ${shown.heading}. ${shown.accepting} ${shown.decision}`);
    // the next one is fetched while this one is read
    const next = state.at + 1;
    state.ahead = next < state.n ? { place: next, answer: line.ask("show", { place: next }).catch(() => null) } : null;
    summarizeSoon();
  }

  function showProposal(shown) {
    proposal.replaceChildren(
      make("h3", {}, shown.heading),
      make("p", { class: "mf-reason" }, shown.reason),
      make("p", { class: "mf-accepting" }, shown.accepting),
      ...(shown.decision ? [make("p", { class: "mf-decision" }, shown.decision)] : []),
      ...shown.members.map((member) => makeMember(shown, member)),
      ...shown.others.map((sentence) => make("p", { class: "mf-other" }, sentence)),
      bound,
    );
    proposal.scrollTop = 0;
    const useless = {
      edit: !shown.can_edit,
      group: !shown.can_split,
      reveal: !shown.has_secrets,
      whole: !shown.members.some((member) => member.fields.some((field) => field.n_more)),
    };
    for (const [action, is] of Object.entries(useless)) buttons.querySelector(`.mf-${action}`).disabled = is;
  }

  function makeMember(shown, member) {
    const take = make("button", { type: "button", class: "mf-take", title: "Decide on this memory apart from the others" }, "Take out");
    take.addEventListener("click", () => enqueue(() => decide("split", { memory: member.id })));
    return make(
      "article",
      { class: `mf-member mf-${member.role}` },
      make("header", {}, make("b", {}, ROLES[member.role] ?? member.role), " ",
        make("small", {}, member.facts.join(" · ")), shown.can_split && member.role !== "stays" ? take : null),
      ...member.fields.map(({ name, pieces, n_more }) =>
        make("div", { class: "mf-field", dir: "auto" }, make("small", {}, name), make("div", { class: "mf-text" }, ...showPieces(pieces),
          n_more ? make("small", {}, ` … ${n_more.toLocaleString("en")} more characters (key w)`) : null))),
    );
  }

  // ---- what is done

  async function decide(what, details = {}) {
    const at = state.at;
    const done = await line.ask(what, { note: note.value, ...(OF_ALL.includes(what) ? {} : { place: at }), ...details });
    if (done.row) state.rows.set(at, done.row);
    else drop(done.n);
    const isLast = done.moves && at + 1 >= state.n;
    if (isLast) state.ahead = null;
    await show(done.place ?? (done.moves ? at + 1 : at));
    say(`${done.sentence} ${isLast ? "This was the last one of the list." : status.textContent}`);
    root.focus({ preventScroll: true });
  }

  async function edit() {
    if (!state.shown.can_edit) return say("This proposal has no text to edit: open the group, and edit one of its memories.");
    const answer = await line.ask("fields", { place: state.at });
    const fields = answer.fields.map(({ name, value }) => {
      const area = make("textarea", { "aria-label": name, rows: name === "content" ? "6" : "1", dir: "auto" });
      area.value = value;
      return [name, area.value, area]; // the browser's own ends of lines are no edit
    });
    const save = make("button", { type: "button" }, "Save and accept");
    const cancel = make("button", { type: "button" }, "Cancel");
    const finish = () => {
      const values = Object.fromEntries(fields.filter(([, value, area]) => area.value !== value).map(([name, , area]) => [name, area.value]));
      enqueue(() => decide("edit", { values }));
    };
    save.addEventListener("click", finish);
    cancel.addEventListener("click", () => enqueue(() => show(state.at)));
    state.editing = { save: finish };
    proposal.replaceChildren(
      make("h3", {}, "Correct the text that is kept"),
      ...fields.map(([name, , area]) => make("label", { class: "mf-edit-field" }, make("small", {}, name === "tags" ? "tags, one on a line" : name), area)),
      make("div", {}, save, " ", cancel),
    );
    (fields.find(([name]) => name === "content") ?? fields[0])[2].focus();
  }

  async function showMore(details, sentence) {
    state.shown = await line.ask("show", { place: state.at, ...details });
    showProposal(state.shown);
    say(sentence);
  }

  const OF_ALL = ["undo", "accept_rest"]; // what is not about the proposal that is shown
  const ACTIONS = {
    accept: () => decide("accept"),
    reject: () => decide("reject"),
    later: () => decide("later"),
    reset: () => decide("reset"),
    undo: () => decide("undo"),
    group: () => (state.shown.can_split ? decide("split") : say("This proposal is about one memory, or holds together.")),
    edit,
    reveal: () => (state.shown.has_secrets ? showMore({ reveal: true }, "Shown until you go on.") : say("Nothing is masked here.")),
    whole: () => showMore({ whole: true }, "The whole text is shown."),
    next: () => show(state.at + 1),
    previous: () => show(state.at - 1),
    search: () => search.focus(),
    help: () => (help.hidden = !help.hidden),
  };

  /** Do one thing after the other: a key that is pressed quickly is about the proposal that comes next. */
  let last = Promise.resolve();
  function enqueue(work) {
    last = last.then(() => attempt(work));
    return last;
  }

  function act(action) {
    return enqueue(async () => {
      const needs = !["undo", "search", "help", "next", "previous"].includes(action);
      if (needs && !state.shown) return say("There is no proposal to decide on.");
      await ACTIONS[action]();
    });
  }

  function onKey(event) {
    event.stopPropagation(); // the notebook has commands on the same letters: `a` inserts a cell
    const isTyping = ["INPUT", "TEXTAREA"].includes(event.target.tagName) && event.target.type !== "checkbox";
    if (event.key === "Escape") {
      if (state.editing) enqueue(() => show(state.at));
      help.hidden = true;
      root.focus({ preventScroll: true });
    } else if (state.editing && event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      state.editing.save();
    } else if (!isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
      const bound = KEYS.find(([key]) => key === event.key) ?? { ArrowDown: KEYS[8], ArrowUp: KEYS[9] }[event.key];
      if (!bound || (event.target.tagName === "BUTTON" && event.key === "Enter")) return;
      event.preventDefault();
      act(bound[2]);
    }
  }

  let typing;
  search.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => {
      state.search = search.value;
      attempt(settle);
    }, 200); // milliseconds after the last letter
  });
  queue.addEventListener("scroll", () => attempt(showRows));
  root.addEventListener("keydown", onKey);
  // another desk may have written to the same file
  root.addEventListener("focusin", (event) => root.contains(event.relatedTarget) || summarizeSoon());
  let changing;
  const onChange = (content) => {
    if (!content.changed || content.changed === line.view) return;
    clearTimeout(changing);
    changing = setTimeout(() => enqueue(catchUp), REST_MS); // a cell may decide in a loop
  };
  model.on("msg:custom", onChange);
  attempt(settle);

  return () => {
    model.off("msg:custom", onChange);
    line.close();
    for (const timer of [typing, resting, changing]) clearTimeout(timer);
  };
}

export default { render };
