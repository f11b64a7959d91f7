// The review desk in a notebook: shows the queue, asks Python for what it shows, sends what a person decides.
//
// Texts of memories come in messages and stay in the page; nothing of them is in the widget's state, which a
// notebook saves. Every text is set as text, never as HTML. Python decides what everything means: what accepting
// does, what is masked, which differences are marked.
//
// The next proposals are fetched while one is read, so a key shows the next one at once; its decision is sent and
// confirmed meanwhile, and one that fails is shown and brought back. A key decides on the proposal that was on the
// screen when it was pressed, which the message names; without one it decides nothing.

const ROW_HEIGHT = 46; // pixels, as in desk.css: the queue is laid out by it
const PAGE_ROWS = 50; // rows asked for at a time
const ANSWER_MS = 8_000; // a kernel that is busy for longer than this is said to be
const REST_MS = 300; // without a key: counts are asked for then, as they take longer than a proposal
const PAGES_KEPT = 40; // pages of rows that are kept while somebody scrolls
const AHEAD = 8; // proposals fetched before somebody comes to them; more would wait if the kernel is gone
const DETAILS_KEPT = 200; // proposals that can be gone back to without asking
const DECISIONS = { accepted: "✓", edited: "✎", rejected: "✗", later: "◷", sent: "…" };
const SAID = { accepted: "You have accepted this.", edited: "You have edited this.", rejected: "You have rejected this.", later: "Put off." };
const DONE = { accept: "Accepted.", reject: "Rejected.", later: "Put off.", reset: "Open again." };
const DECIDE = { accept: "Accept", reject: "Reject" };
const STATES = { accept: "accepted", reject: "rejected", later: "later", reset: "" }; // after each of these

// key, button, action, and what it does, for the help
const KEYS = [
  ["a", "Accept", "accept", "do what the bold line says"],
  ["r", "Reject", "reject", "leave it as it is; it comes back only if its text changes"],
  ["l", "Later", "later", "put it last"],
  ["e", "Edit", "edit", "correct the text that stays, and accept"],
  ["x", "Reset", "reset", "take back what was decided on this proposal"],
  ["u", "Undo", "undo", "take back the last decision, on whichever proposal"],
  ["g", "Open group", "group", "decide on its memories one by one"],
  ["s", "Show secrets", "reveal", "until you go on"],
  ["w", "Whole text", "whole", "show also what was folded"],
  ["j", "Next", "next", "or arrow down"],
  ["k", "Previous", "previous", "or arrow up"],
  ["/", "Search", "search", "words, sources, or a kind such as stale/expired"],
  ["A", "Accept all listed", "accept_all", "of which few can be wrong; asks first"],
  ["R", "Reject all listed", "reject_all", "that are open; asks first"],
  ["?", "Keys", "help", "show or hide these lines"],
];

const NONE_LISTED = "No proposal is listed.";
const ARROWS = { ArrowDown: "next", ArrowUp: "previous" };

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

/** Show a text in pieces, of the kinds that Python names. */
function showPieces(pieces) {
  const tags = { removed: "del", added: "ins" };
  return pieces.map(({ text, as }) => make(tags[as] ?? "span", { class: `mf-${as}` }, text));
}

function render({ model, el }) {
  const line = makeLine(model, () => {
    state.failed.clear(); // what was said to have failed may have been done
    attempt(catchUp);
  });
  const state = {
    filter: {},
    search: "",
    list: 0, // grows with each list: an answer about a former one says nothing about this
    n: 0,
    total: 0, // of all proposals, listed or not
    rows: new Map(), // by place in the list, as are the details; null is asked for
    details: new Map(),
    at: 0,
    shown: null, // the proposal on the screen, about which keys decide; null while there is none
    seenAt: 0, // when it was painted, in milliseconds of the page: a key that is older was not about it
    drawn: "", // the id of the last proposal that was drawn
    bounded: "", // the id of the proposal that the bound and the offer are about
    sentence: "", // what was done, to be said with the proposal that follows
    dropped: "", // said of keys that came too early, until it was read out
    failed: new Map(), // why a decision was not made, by proposal
    pending: new Set(), // decisions that Python has not confirmed
    editing: null,
  };

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
  for (const [key, label, action, hint] of KEYS) {
    const button = make("button", { type: "button", class: `mf-${action}`, title: `${label}: ${hint} (key ${key})`, "aria-keyshortcuts": key }, label, make("kbd", { "aria-hidden": "true" }, key));
    button.addEventListener("click", (event) => act(action, event));
    buttons.append(button);
  }
  const legend = [["is what was found", "found"], ["is missing in the text that stays", "removed"], ["stands elsewhere in it", "moved"], ["is written", "added"]];
  help.append(
    make("b", {}, "Keys"),
    ...KEYS.map(([key, label, , hint]) => make("div", {}, make("kbd", {}, key), ` ${label}: `, make("small", {}, hint))),
    make("b", {}, "Colours"),
    ...legend.map(([text, as]) => make("div", {}, ...showPieces([{ text, as }]))),
  );

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
    state.shown = null;
    const list = ++state.list;
    const summary = await line.ask("settle", query());
    if (list !== state.list) return; // another filter was chosen meanwhile
    queue.scrollTop = 0;
    drop(summary.n_shown);
    showSummary(summary);
    show(0);
  }

  /** Forget what is known of the list: what was decided elsewhere, or grouped anew. */
  function drop(n) {
    state.list++;
    state.n = n;
    state.rows.clear();
    state.details.clear();
    spacer.style.height = `${n * ROW_HEIGHT}px`;
  }

  /** Take over what was changed elsewhere; the proposal on the screen stays, wherever in the list it is now. */
  async function catchUp() {
    const at = state.at;
    const place = await summarize();
    drop(state.n);
    if (state.editing) return showRows();
    show(state.at + (place ?? at) - at); // somebody may have gone on meanwhile
  }

  async function summarize() {
    const summary = await line.ask("summary", { ...query(), proposal: state.rows.get(state.at)?.id ?? "" });
    showSummary(summary);
    return summary.place;
  }

  let resting;
  function summarizeSoon() {
    clearTimeout(resting);
    resting = setTimeout(() => attempt(summarize), REST_MS);
  }

  function showSummary(summary) {
    root.classList.remove("mf-waiting"); // also where a cell decided before the first list came: Run All Cells
    state.n = summary.n_shown;
    state.total = summary.n_total;
    meter.firstChild.style.width = `${(100 * summary.n_decided) / Math.max(1, summary.n_total)}%`;
    progress.textContent = summary.progress;
    preview.replaceChildren(...summary.preview.map((sentence) => make("div", {}, sentence)));
    bound.textContent = summary.bound;
    state.bounded = summary.proposal;
    showFacets(summary.facets);
    showOffer(summary.offer);
  }

  /** Leave out what was said of another proposal: how many of its kind can be wrong, and the offer to accept them. */
  function dropBound() {
    bound.textContent = "";
    preview.querySelector(".mf-offer")?.parentElement.remove();
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
    button.addEventListener("click", () => attempt(() => regroup("accept_rest", { note: note.value, check: offer.check, kind: offer.kind, n: offer.n })));
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
      const list = state.list;
      await line.ask("page", { start, n: PAGE_ROWS }).then(
        ({ rows }) => list === state.list && rows.forEach((row, place) => state.rows.set(start + place, row)),
        (error) => {
          if (list === state.list) state.rows.delete(start);
          throw error;
        },
      );
      if (state.rows.size > PAGES_KEPT * PAGE_ROWS)
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
    element.addEventListener("click", () => show(place));
    return element;
  }

  /** Go to a place of the list: at once if it was fetched, else as soon as it comes. */
  function show(place, sentence = "") {
    state.editing = null;
    state.shown = null;
    if (!state.n) {
      root.classList.remove("mf-fetching");
      spacer.replaceChildren();
      const rest = state.total ? "Nothing here. Clear the filters to see the rest." : "There is nothing to decide: no proposal was made.";
      proposal.replaceChildren(make("p", {}, rest));
      disable((action) => !ANY_TIME.includes(action));
      return say(NONE_LISTED);
    }
    state.at = Math.max(0, Math.min(place, state.n - 1));
    const top = state.at * ROW_HEIGHT;
    if (top < queue.scrollTop) queue.scrollTop = top;
    else if (top + ROW_HEIGHT > queue.scrollTop + queue.clientHeight) queue.scrollTop = top + ROW_HEIGHT - queue.clientHeight;
    queue.setAttribute("aria-activedescendant", `mf-${line.view}-${state.at}`);
    attempt(showRows);
    const known = state.details.get(state.at);
    root.classList.toggle("mf-fetching", !known);
    state.sentence = sentence;
    if (known) draw(known);
    else if (sentence) say(sentence);
    for (let next = state.at; next <= Math.min(state.at + AHEAD, state.n - 1); next++) fetchDetail(next);
    summarizeSoon();
  }

  async function fetchDetail(place) {
    if (state.details.has(place)) return;
    state.details.set(place, null); // asked for
    const list = state.list;
    try {
      const detail = await line.ask("show", { place });
      if (list !== state.list) return;
      state.details.set(place, detail);
      if (place === state.at && !state.shown && !state.editing) draw(detail);
    } catch (error) {
      if (list !== state.list) return;
      state.details.delete(place);
      if (place === state.at) say(error.message);
    }
    for (const known of [...state.details.keys()].slice(0, -DETAILS_KEPT)) state.details.delete(known);
  }

  /** Put a proposal on the screen; keys decide about it from the moment when it is painted. */
  function draw(shown) {
    root.classList.remove("mf-fetching");
    if (state.drawn !== shown.id) note.value = shown.note; // a note that somebody is writing stays
    if (state.bounded !== shown.id) dropBound();
    state.drawn = shown.id;
    state.shown = shown;
    state.seenAt = Infinity;
    showProposal(shown);
    requestAnimationFrame(() =>
      setTimeout(() => {
        if (state.shown !== shown) return;
        state.seenAt = performance.now();
        const parts = [whyNotDecided(shown) || state.sentence, state.dropped, `${state.at + 1} of ${state.n}: ${shown.heading}.`, shown.accepting, SAID[shown.decision]];
        say(parts.filter(Boolean).join(" "));
        state.dropped = "";
      }),
    );
  }

  const whyNotDecided = (shown) => (state.failed.has(shown.id) ? `Not decided: ${state.failed.get(shown.id)}` : "");

  function showProposal(shown) {
    proposal.replaceChildren(
      make("h3", {}, shown.heading),
      make("p", { class: "mf-reason" }, shown.reason),
      make("p", { class: "mf-accepting" }, shown.accepting),
      ...(shown.losses ? [make("p", { class: "mf-failed" }, shown.losses)] : []),
      bound,
      ...(SAID[shown.decision] ? [make("p", { class: "mf-decision" }, SAID[shown.decision])] : []),
      ...(whyNotDecided(shown) ? [make("p", { class: "mf-failed" }, whyNotDecided(shown))] : []),
      make("div", { class: "mf-members" }, ...shown.members.map((member) => makeMember(shown, member))),
      ...shown.others.map((sentence) => make("p", { class: "mf-other" }, sentence)),
    );
    proposal.scrollTop = 0;
    const useless = {
      accept: !shown.can_accept,
      edit: !shown.can_edit,
      group: !shown.can_split,
      reveal: !shown.has_secrets,
      whole: !shown.members.some((member) => member.fields.some((field) => field.n_more || field.pieces.some((piece) => piece.as === "folded"))),
    };
    disable((action) => Boolean(useless[action]));
  }

  /** Disable the buttons that would do nothing now, and enable the others. */
  function disable(isUseless) {
    for (const [, , action] of KEYS) buttons.querySelector(`.mf-${action}`).disabled = isUseless(action);
  }

  function makeMember(shown, member) {
    const makeTake = (memory) => {
      const take = make("button", { type: "button", class: "mf-take", title: "Decide on this memory apart from the others" }, "Take out");
      take.addEventListener("click", () => attempt(() => regroup("split", { ...about(shown), memory })));
      return shown.can_split && member.role !== "stays" ? take : null;
    };
    const n = member.ids.length;
    const [first, ...more] = member.facts.map((facts, number) => make("div", { class: "mf-facts" }, make("small", {}, facts), makeTake(member.ids[number])));
    return make(
      "article",
      { class: `mf-member mf-${member.role}` },
      make("header", {}, make("b", {}, `${member.role}${n > 1 ? ` (${n} with this text)` : ""}`), first,
        more.length ? make("details", {}, make("summary", {}, make("small", {}, `${more.length} more`)), ...more) : null),
      ...member.fields.map(({ name, pieces, n_more }) =>
        make("div", { class: "mf-field", dir: "auto" }, make("small", {}, name), make("div", { class: "mf-text" }, ...showPieces(pieces),
          n_more ? make("small", {}, ` … ${n_more.toLocaleString("en")} more characters (key w)`) : null))),
    );
  }

  // ---- what is done

  /** Name the proposal that a message is about, as it was on the screen. */
  const about = (shown) => ({ proposal: shown.id, seen: shown.seen });

  /** Decide, and go on at once; Python confirms it meanwhile, or the proposal is brought back with the reason. */
  function decide(what) {
    const { shown, at, list } = state;
    const row = state.rows.get(at);
    const before = shown.decision;
    const written = note.value;
    state.failed.delete(shown.id);
    Object.assign(shown, { decision: STATES[what], note: what === "reset" ? "" : written });
    if (row) row.decision = "sent";
    const answer = line.ask(what, { ...about(shown), ...(what === "reset" ? {} : { note: written }) }).then(
      (done) => {
        if (row) row.decision = done.row.decision;
        attempt(showRows);
        return true;
      },
      (error) => {
        shown.decision = before;
        if (row) row.decision = before;
        state.failed.set(shown.id, error.message);
        if (list === state.list) show(Math.min(state.at, at));
        else say(`Not decided: ${error.message}`);
        return false;
      },
    );
    state.pending.add(answer);
    answer.finally(() => state.pending.delete(answer));
    goOn(DONE[what], what === "reset" ? 0 : 1);
  }

  function goOn(sentence, n = 1) {
    const isLast = n > 0 && state.at + 1 >= state.n;
    show(state.at + n, isLast ? `${sentence} This was the last one of the list.` : sentence);
    root.focus({ preventScroll: true });
  }

  /** Do what changes the list: nothing can be decided until it is shown anew. */
  async function regroup(what, details, before = []) {
    const { shown } = state;
    state.shown = null;
    try {
      const are = await Promise.all(before);
      if (!are.every(Boolean)) return state.shown ?? show(state.at); // it was about a decision that was not made
      const done = await line.ask(what, details);
      drop(done.n);
      show(done.place ?? state.at, done.sentence);
      root.focus({ preventScroll: true });
    } catch (error) {
      state.shown ??= shown;
      throw error;
    }
  }

  /** Ask if all that is listed and open is to be decided at once; nothing is decided before somebody says yes. */
  async function decideAll(what) {
    const { list } = state;
    const asked = await line.ask("weigh_all", { what });
    if (list !== state.list) return;
    if (!asked.n) return say(`Nothing that is listed can be ${STATES[what]} at once. ${asked.lines.join(" ")}`);
    const yes = make("button", { type: "button", class: `mf-${what}` }, `${DECIDE[what]} ${asked.n.toLocaleString("en")}`);
    const cancel = make("button", { type: "button" }, "Cancel");
    const finish = async () => {
      state.editing = null;
      await regroup("decide_all", { what, note: note.value, seen: asked.seen }).catch((error) => show(state.at, error.message));
    };
    yes.addEventListener("click", () => attempt(finish));
    cancel.addEventListener("click", () => show(state.at));
    state.editing = { save: () => attempt(finish) };
    proposal.replaceChildren(
      make("h3", {}, asked.heading),
      make("div", {}, yes, " ", cancel), // above the lines, which may be longer than the page
      ...asked.lines.map((sentence) => make("p", {}, sentence)),
    );
    proposal.scrollTop = 0;
    yes.focus({ preventScroll: true });
    say(`${asked.heading} Enter says yes, Escape cancels.`);
  }

  async function edit() {
    const { shown } = state;
    if (!shown.can_edit) return say("This proposal has no text to edit: open the group, and edit one of its memories.");
    const answer = await line.ask("fields", about(shown));
    if (state.shown !== shown) return; // somebody went on
    const fields = answer.fields.map(({ name, value }) => {
      const area = make("textarea", { "aria-label": name, rows: name === "content" ? "6" : "1", dir: "auto" });
      area.value = value;
      return [name, area.value, area]; // the browser's own ends of lines are no edit
    });
    const save = make("button", { type: "button" }, "Save and accept");
    const cancel = make("button", { type: "button" }, "Cancel");
    const finish = async () => {
      const values = Object.fromEntries(fields.filter(([, value, area]) => area.value !== value).map(([name, , area]) => [name, area.value]));
      const done = await line.ask("edit", { ...about(shown), note: note.value, values }); // refused values stay in the form
      if (state.rows.get(state.at)) state.rows.get(state.at).decision = done.row.decision;
      shown.decision = done.row.decision;
      goOn("Edited and accepted.");
    };
    save.addEventListener("click", () => attempt(finish));
    cancel.addEventListener("click", () => show(state.at));
    state.editing = { save: () => attempt(finish) };
    proposal.replaceChildren(
      make("h3", {}, "Correct the text that is kept"),
      ...fields.map(([name, , area]) => make("label", { class: "mf-edit-field" }, make("small", {}, name === "tags" ? "tags, one on a line" : name), area)),
      make("div", {}, save, " ", cancel),
    );
    (fields.find(([name]) => name === "content") ?? fields[0])[2].focus();
  }

  /** Show more of the same proposal, until somebody goes on. */
  async function showMore(details, sentence) {
    const { shown } = state;
    const more = await line.ask("describe", { ...about(shown), ...details });
    if (state.shown !== shown) return;
    state.sentence = sentence;
    draw(more);
  }

  const ACTIONS = {
    accept: () => (state.shown.can_accept ? decide("accept") : say("Only you know what is right here: edit or reject.")),
    reject: () => decide("reject"),
    later: () => decide("later"),
    reset: () => decide("reset"),
    undo: () => regroup("undo", {}, state.pending),
    accept_all: () => decideAll("accept"),
    reject_all: () => decideAll("reject"),
    group: () => (state.shown.can_split ? regroup("split", about(state.shown)) : say("This proposal is about one memory, or holds together.")),
    edit,
    reveal: () => (state.shown.has_secrets ? showMore({ reveal: true }, "Shown until you go on.") : say("Nothing is masked here.")),
    whole: () => showMore({ whole: true }, "The whole text is shown."),
    next: () => show(state.at + 1),
    previous: () => show(state.at - 1),
    search: () => search.focus(),
    help: () => (help.hidden = !help.hidden),
  };
  const ANY_TIME = ["undo", "search", "help", "next", "previous"]; // what is not about the proposal on the screen

  /** Do what a key or a button says, if it was pressed when what it is about was on the screen. */
  function act(action, event) {
    if (event.repeat && !["next", "previous"].includes(action)) return say("Press the key once for each proposal.");
    if (!ANY_TIME.includes(action)) {
      if (state.editing) return say("Save or cancel first.");
      if (!state.n) return say(NONE_LISTED);
      if (!state.shown || event.timeStamp < state.seenAt) {
        state.dropped = "Nothing was done: a key came before the proposal was on the screen.";
        return say(state.dropped);
      }
    }
    return attempt(ACTIONS[action]);
  }

  function onKey(event) {
    event.stopPropagation(); // the notebook has commands on the same letters: `a` inserts a cell
    const isTyping = ["INPUT", "TEXTAREA"].includes(event.target.tagName) && event.target.type !== "checkbox";
    if (event.key === "Escape") {
      if (state.editing) show(state.at);
      help.hidden = true;
      root.focus({ preventScroll: true });
    } else if (state.editing && event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      state.editing.save();
    } else if (!isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
      const found = KEYS.find(([key]) => key === event.key) ?? KEYS.find(([, , action]) => action === ARROWS[event.key]);
      if (event.target.tagName === "BUTTON" && [" ", "Enter"].includes(event.key) && event.repeat) return event.preventDefault();
      if (!found) return;
      event.preventDefault();
      act(found[2], event);
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
    changing = setTimeout(() => attempt(catchUp), REST_MS); // a cell may decide in a loop
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
