"use strict";
(() => {
  const all = (where, what) => [...where.querySelectorAll(what)];
  const make = (tag, kind, text) => {
    const made = document.createElement(tag);
    if (kind) made.className = kind;
    if (text) made.textContent = text;
    return made;
  };

  // Tables: a click on a column's head sorts by it, rising, falling, then as it was.
  const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
  const valueAt = (row, column) => {
    let at = 0;
    for (const cell of row.cells) {
      at += cell.colSpan;
      if (at > column) {
        if (cell.dataset.value) return cell.dataset.value;
        const own = cell.cloneNode(true);
        all(own, "small").forEach((small) => small.remove());
        return own.textContent.trim();
      }
    }
    return "";
  };
  const NUMBER = /^[<+]?-?[\d.,]*\d/;
  const number = (text) => {
    const found = NUMBER.exec(text.replace(/[−–]/g, "-"));
    return found ? parseFloat(found[0].replace(/[<+,]/g, "")) : NaN;
  };
  const sorted = (rows, column, falling) => {
    const keyed = rows.map((row) => ({ row, text: valueAt(row, column) }));
    const given = keyed.filter((one) => one.text && one.text !== "–");
    const empty = keyed.filter((one) => !given.includes(one));
    const numeric = given.every((one) => !Number.isNaN(number(one.text)));
    const order = numeric ? (a, b) => number(a.text) - number(b.text) : (a, b) => collator.compare(a.text, b.text);
    given.sort((a, b) => (falling ? order(b, a) : order(a, b)));
    return [...given, ...empty].map((one) => one.row);
  };
  const columnsOf = (table) => {
    const found = [];
    const taken = [];
    [...table.tHead.rows].forEach((row, level) => {
      let at = 0;
      for (const head of row.cells) {
        while ((taken[at] || 0) > level) at += 1;
        if (head.colSpan === 1) found.push([head, at]);
        for (let k = 0; k < head.colSpan; k += 1) taken[at + k] = level + head.rowSpan;
        at += head.colSpan;
      }
    });
    return found.filter(([head]) => head.scope === "col");
  };
  for (const table of all(document, "table.sortable")) {
    // Rows move within their body: its head stays above them, means below.
    const bodies = [...table.tBodies].map((body) => {
      const rows = [...body.rows];
      const of = (kind) => rows.filter((row) => row.classList.contains(kind));
      const [first, last] = [of("head"), of("mean")];
      return { body, first, last, moving: rows.filter((row) => !first.includes(row) && !last.includes(row)) };
    });
    if (bodies.every((one) => one.moving.length < 2)) continue;
    const heads = columnsOf(table);
    for (const [head, column] of heads) {
      const button = make("button", "sort");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const before = head.getAttribute("aria-sort");
        heads.forEach(([other]) => other.removeAttribute("aria-sort"));
        const way = { ascending: "descending", descending: null }[before];
        const next = way === undefined ? "ascending" : way;
        if (next) head.setAttribute("aria-sort", next);
        for (const { body, first, last, moving } of bodies) {
          body.append(...first, ...(next ? sorted(moving, column, next === "descending") : moving), ...last);
        }
      });
    }
  }

  // What is pointed at is told in one box, which moves to where it is needed.
  const tip = make("div", "tip");
  tip.id = "tip";
  tip.setAttribute("role", "tooltip");
  tip.hidden = true;
  document.body.append(tip);
  const hide = () => {
    tip.hidden = true;
    all(document, ".lit, .chosen").forEach((one) => one.classList.remove("lit", "chosen"));
  };
  const show = (target, parts) => {
    tip.replaceChildren(...parts);
    tip.hidden = false;
    const at = target.getBoundingClientRect();
    const page = document.documentElement.clientWidth;
    const left = Math.min(Math.max(at.left + at.width / 2 - tip.offsetWidth / 2, 8), page - tip.offsetWidth - 8);
    const above = at.top - tip.offsetHeight - 10;
    tip.style.left = `${Math.max(left, 8) + window.scrollX}px`;
    tip.style.top = `${(above > 4 ? above : at.bottom + 10) + window.scrollY}px`;
  };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
  });
  document.addEventListener("click", (event) => {
    if (!event.target.closest("svg.cloud, .heat td[data-full]")) hide();
  });

  // Points: the row of the table that tells of a point is what is shown; of a word also its translation's.
  const copied = (cell, kind) => {
    const part = make("p", kind);
    if (cell.lang) part.lang = cell.lang;
    part.dir = cell.dir;
    part.append(...cell.cloneNode(true).childNodes);
    return part;
  };
  const wordParts = (row) => {
    const [word, language] = row.cells;
    const who = copied(word, "who");
    who.append(" ", make("span", "", language.textContent));
    return [who, copied(row.cells[row.cells.length - 1], "said")];
  };
  const figureParts = (row) => {
    const heads = row.closest("table").tHead.rows[0].cells;
    return [...row.cells].map((cell, place) => {
      const part = copied(cell, place ? "" : "who");
      if (place) part.prepend(`${heads[place].textContent}: `);
      return part;
    });
  };
  for (const svg of all(document, "svg.cloud")) {
    const points = all(svg, "[data-k]");
    const plane = svg.closest(".planes") || svg;
    const centre = (point) => {
      const box = point.getBBox();
      return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
    };
    const rowOf = (point) => document.getElementById(`${svg.dataset.rows}-${point.dataset.k}`);
    const tell = (point) => {
      hide();
      const { g: group, k: number, l: link } = point.dataset;
      const light = (what, kind) => all(plane, what).forEach((one) => one.classList.add(kind));
      plane.classList.add("lit");
      light(`[data-k="${number}"]`, "lit");
      light(`[data-k="${number}"]`, "chosen");
      if (group !== undefined) light(`[data-g="${group}"]`, "lit");
      if (link !== undefined) light(`[data-l="${link}"]`, "chosen");
      const others = link === undefined ? [] : all(svg, `[data-k][data-l="${link}"]`).filter((one) => one !== point);
      show(point, [point, ...others].map(rowOf).flatMap(plane === svg ? figureParts : wordParts));
    };
    points.forEach((point, place) => {
      const title = point.querySelector("title");
      point.setAttribute("aria-label", title.textContent);
      point.setAttribute("aria-describedby", "tip");
      point.setAttribute("role", "img");
      point.setAttribute("tabindex", place ? "-1" : "0");
      title.remove();
      point.addEventListener("focus", () => tell(point));
      point.addEventListener("blur", hide);
      point.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        const ends = { Home: 0, End: points.length - 1 }[event.key];
        if (step === undefined && ends === undefined) return;
        event.preventDefault();
        const next = points[ends === undefined ? (place + step + points.length) % points.length : ends];
        point.setAttribute("tabindex", "-1");
        next.setAttribute("tabindex", "0");
        next.focus();
      });
    });
    const nearest = (event, reach) => {
      const matrix = svg.getScreenCTM();
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
      let best = null;
      let least = reach / matrix.a;
      for (const point of points) {
        const where = centre(point);
        const away = Math.hypot(where.x - at.x, where.y - at.y);
        if (away < least) [best, least] = [point, away];
      }
      return best;
    };
    let told = null;
    svg.addEventListener("pointermove", (event) => {
      if (event.pointerType === "touch") return;
      const point = nearest(event, 14);
      if (point === told) return;
      told = point;
      if (point) tell(point);
      else hide();
    });
    svg.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "touch") return;
      told = null;
      hide();
    });
    svg.addEventListener("click", (event) => {
      const point = nearest(event, 28);
      if (point) tell(point);
      else hide();
    });
  }

  // Heat maps: the cell in full, with the names of its row and column.
  for (const table of all(document, ".heat table")) {
    const [above, heads] = table.tHead.rows;
    const tell = (cell) => {
      const row = cell.parentElement.cells[0].textContent;
      const column = heads.cells[cell.cellIndex].textContent;
      const named = `${heads.cells[0].textContent} ${row}, ${above.cells[1].textContent} ${column}`;
      show(cell, [make("p", "who", cell.dataset.full), make("p", "", named)]);
    };
    all(table, "td[title]").forEach((cell) => {
      cell.dataset.full = cell.title;
      cell.removeAttribute("title");
    });
    table.addEventListener("pointerover", (event) => {
      if (event.pointerType !== "touch" && event.target.dataset.full) tell(event.target);
    });
    table.addEventListener("click", (event) => {
      if (event.target.dataset.full) tell(event.target);
    });
    table.addEventListener("pointerleave", hide);
  }

  // On paper everything is unfolded.
  let folded = [];
  addEventListener("beforeprint", () => {
    hide();
    folded = all(document, "details:not([open])");
    folded.forEach((one) => { one.open = true; });
  });
  addEventListener("afterprint", () => {
    folded.forEach((one) => { one.open = false; });
  });
})();
