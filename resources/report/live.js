"use strict";
(async () => {
  const element = (id) => document.getElementById(id);
  const made = (tag, text, name) => {
    const it = document.createElement(tag);
    if (text !== undefined) it.textContent = text;
    if (name) it.className = name;
    return it;
  };

  // ---- the data: the length of a JSON text, the text, and arrays behind it
  let run;
  try {
    const packed = Uint8Array.from(atob(element("data").textContent.trim()), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    const buffer = await new Response(stream).arrayBuffer();
    const length = new DataView(buffer).getUint32(0, true);
    run = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
    const types = { f8: Float64Array, f4: Float32Array, u1: Uint8Array };
    for (const [name, [type, at, size]] of Object.entries(run.arrays))
      run.arrays[name] = new types[type](buffer, 4 + length + at, size);
  } catch (error) {
    element("trouble").textContent =
      "The data of this page cannot be read by this browser (" + error.message +
      "). Use one of 2023 or later, or ask for the file again.";
    element("trouble").hidden = false;
    return;
  }
  const arrays = run.arrays;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const colours = () => run.palettes[dark.matches ? "dark" : "light"];
  const still = { model: 0, row: 0, from: 0, to: run.duration, phase: -1, at: null, line: -1 };
  const state = { ...still };

  // ---- numbers
  const digits = (value, most = 4) =>
    Number.isFinite(value) ? String(Number(value.toPrecision(most))) : "–";
  const [factor, symbol] = run.time;
  const seconds = (value, span = state.to - state.from) => {
    const places = Math.max(0, Math.min(12, 3 - Math.floor(Math.log10(span / factor))));
    return ((run.start + value) / factor).toFixed(places) + " " + symbol;
  };
  const percent = (part) => (part >= 0.0995 ? Math.round(100 * part) : digits(100 * part, 1)) + " %";
  const level = (value) => digits(value, 4) + " " + run.unit;

  // ---- what is chosen
  const fits = () => run.models[state.model].fits;
  const fit = () => fits()[state.row];
  const showAsMade = () => {
    state.model = Math.max(0, run.models.findIndex((m) => m.key === run.shown.model));
    state.row = Math.max(0, fits().findIndex((f) => f.n === run.shown.n));
  };
  const counted = (n) => {
    const what = run.models[state.model].key === "budget" ? "parameter" : "phase";
    return n + " " + what + (n === 1 ? "" : "s");
  };
  const unbroken = (text) => text.replaceAll(" %", "\u00a0%");

  // The value of a phase at a time (s from the start of the run).
  const fitted = (found, k, t) => {
    const phase = found.phases[k], begin = found.breaks[k] - run.start;
    if (phase.kind < 3) return phase.curve.reduceRight((sum, c) => sum * (t - begin) + c, 0);
    const part = (t - begin) / (found.breaks[k + 1] - found.breaks[k]);
    const many = phase.curve.length;
    return phase.curve[Math.max(0, Math.min(many - 1, Math.floor(part * many)))];
  };

  // ---- the curve in columns: least, greatest and mean between two times
  const before = (edges, t) => {
    let low = 0, high = edges.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (edges[middle] <= t) low = middle; else high = middle;
    }
    return low;
  };
  const columns = arrays.low ? arrays.low.length : 0;
  const extremes = (a, b) => {
    let least = Infinity, most = -Infinity, sum = 0, time = 0;
    if (columns) {
      const width = run.duration / columns;
      const first = Math.max(0, Math.floor(a / width));
      const last = Math.min(columns - 1, Math.max(first, Math.ceil(b / width) - 1));
      for (let i = first; i <= last; i++) {
        least = Math.min(least, arrays.low[i]);
        most = Math.max(most, arrays.high[i]);
        sum += arrays.mean[i];
      }
      return [least, most, sum / (last - first + 1)];
    }
    const { edges, level: levels } = arrays;
    for (let i = before(edges, a); i < levels.length && (edges[i] < b || !time); i++) {
      const shared = Math.min(b, edges[i + 1]) - Math.max(a, edges[i]);
      if (shared <= 0 && time) continue;
      least = Math.min(least, levels[i]);
      most = Math.max(most, levels[i]);
      sum += levels[i] * Math.max(shared, 0);
      time += Math.max(shared, 0);
    }
    return [least, most, time ? sum / time : least];
  };
  const [lowest, highest] = extremes(0, run.duration);
  const top = Math.max(highest, 0.1 * run.capacity || highest) * (highest > 0.5 * run.capacity ? 1 : 1.08);
  const ceiling = run.capacity && highest > 0.5 * run.capacity ? run.capacity * 1.05 : top || 1;
  const floor = Math.min(0, lowest);

  // ---- painting
  const left = 64, right = 12, foot = 34;
  const sheet = (canvas) => {
    const scale = devicePixelRatio || 1, box = canvas.getBoundingClientRect();
    const wide = Math.round(box.width * scale), high = Math.round(box.height * scale);
    if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
    const pen = canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, box.width, box.height);
    pen.font = '12px "DejaVu Sans", Verdana, sans-serif';
    return [pen, box.width, box.height];
  };
  const ticks = (a, b, most) => {
    const rough = (b - a) / Math.max(1, most), power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough) || 10 * power;
    const found = [];
    for (let k = Math.ceil(a / step - 1e-9); k * step <= b + 1e-9 * step; k++) found.push(k * step);
    return found;
  };
  const x = (t, width) => left + ((t - state.from) / (state.to - state.from)) * (width - left - right);
  const timeAt = (pixel, width) =>
    state.from + ((pixel - left) / (width - left - right)) * (state.to - state.from);

  const timeAxis = (pen, width, height) => {
    const c = colours(), from = (run.start + state.from) / factor, to = (run.start + state.to) / factor;
    pen.textAlign = "center";
    pen.textBaseline = "top";
    for (const value of ticks(from, to, (width - left - right) / 90)) {
      const at = x(value * factor - run.start, width);
      pen.fillStyle = c.grid;
      pen.fillRect(at, 6, 1, height - foot - 6);
      pen.fillStyle = c.muted;
      const text = String(Number(value.toPrecision(10))), half = pen.measureText(text).width / 2;
      pen.fillText(text, Math.min(at, width - half), height - foot + 4);
    }
    pen.fillText("Time (" + symbol + ")", left + (width - left - right) / 2, height - 15);
  };

  const paintCurve = () => {
    const canvas = element("curve"), [pen, width, height] = sheet(canvas), c = colours();
    const y = (v) => height - foot - ((v - floor) / (ceiling - floor)) * (height - foot - 10);
    timeAxis(pen, width, height);
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const value of ticks(floor, ceiling, (height - foot) / 45)) {
      pen.fillStyle = c.grid;
      pen.fillRect(left, y(value), width - left - right, 1);
      pen.fillStyle = c.muted;
      pen.fillText(digits(value), left - 6, y(value));
    }
    pen.save();
    pen.translate(14, (height - foot) / 2);
    pen.rotate(-Math.PI / 2);
    pen.textAlign = "center";
    pen.fillText(run.axis, 0, 0);
    pen.restore();
    pen.save();
    pen.beginPath();
    pen.rect(left, 0, width - left - right, height - foot + 1);
    pen.clip();
    const count = Math.max(1, Math.round(width - left - right)), step = (state.to - state.from) / count;
    for (let k = 0; k < count; k++) {
      const [least, most, mean] = extremes(state.from + k * step, state.from + (k + 1) * step);
      pen.fillStyle = c.computing;
      pen.fillRect(left + k, y(mean), 1, y(floor) - y(mean));
      pen.fillStyle = c.curve;
      pen.fillRect(left + k, y(most) - 0.5, 1, Math.max(1, y(least) - y(most) + 1));
    }
    const found = fit(), breaks = found.breaks.map((t) => t - run.start);
    pen.lineWidth = 3;
    pen.strokeStyle = c.fit;
    found.phases.forEach((phase, k) => {
      const a = Math.max(breaks[k], state.from), b = Math.min(breaks[k + 1], state.to);
      if (a >= b) return;
      pen.beginPath();
      const points = phase.kind === 0 ? 1 : 64;
      for (let i = 0; i <= points; i++) {
        const t = a + ((b - a) * i) / points;
        pen[i ? "lineTo" : "moveTo"](x(t, width), y(fitted(found, k, Math.min(t, b - (b - a) * 1e-9))));
      }
      pen.stroke();
    });
    pen.textAlign = "center";
    pen.textBaseline = "top";
    breaks.forEach((t, k) => {
      if (k && k < breaks.length - 1) {
        const [low, high] = found.phases[k].range.map((v) => x(v - run.start, width));
        pen.globalAlpha = 0.15;
        pen.fillStyle = c.band;
        pen.fillRect(low, 0, Math.max(0, high - low), height - foot);
        pen.globalAlpha = 1;
        pen.fillStyle = c.breakpoint;
        for (let dash = 0; dash < height - foot; dash += 8) pen.fillRect(x(t, width) - 0.5, dash, 1.2, 5);
      }
      if (k === found.phases.length) return;
      const a = Math.max(left, x(t, width)), b = Math.min(width - right, x(breaks[k + 1], width));
      const called = k + 1 + (found.phases[k].name ? " " + found.phases[k].name : "");
      const text = pen.measureText(called).width < b - a - 6 ? called : String(k + 1);
      if (pen.measureText(text).width > b - a - 2) return;
      const half = pen.measureText(text).width / 2 + 3;
      pen.globalAlpha = 0.85;
      pen.fillStyle = c.background;
      pen.fillRect((a + b) / 2 - half, 2, 2 * half, 16);
      pen.globalAlpha = 1;
      pen.fillStyle = c.text;
      pen.fillText(text, (a + b) / 2, 4);
    });
    if (state.at !== null) {
      pen.fillStyle = c.accent;
      pen.fillRect(x(state.at, width), 0, 1, height - foot);
    }
    pen.restore();
    const view = state.to - state.from < run.duration * 0.999
      ? ", between " + seconds(state.from) + " and " + seconds(state.to) : "";
    canvas.setAttribute("aria-label", run.axis + " over time with " + found.phases.length +
      " phases" + view + "; the same in numbers stands in the table below");
  };

  const paintTimeline = () => {
    const canvas = element("timeline");
    if (!arrays.shares) {
      canvas.hidden = true;
      return;
    }
    const many = run.rows.length;
    const [pen, width, height] = sheet(canvas), c = colours();
    const ends = arrays.columns, cells = ends.length - 1, high = (height - foot) / many;
    const shades = run.classes.map((name) => c[name]);
    timeAxis(pen, width, height);
    const count = Math.max(1, Math.round(width - left - right)), step = (state.to - state.from) / count;
    const parts = new Float64Array(run.classes.length);
    const first = [];
    for (let k = 0; k <= count; k++) first.push(before(ends, Math.min(state.from + k * step, run.duration)));
    for (let row = 0; row < many; row++) {
      for (let k = 0; k < count; ) {
        const from = first[k], to = Math.max(first[k + 1], from + 1);
        // Pixels inside one column of the data are painted at once.
        let pixels = 1;
        while (to === from + 1 && k + pixels < count && first[k + pixels] === from &&
               first[k + pixels + 1] <= from) pixels++;
        parts.fill(0);
        for (let column = from; column < to && column < cells; column++)
          for (let kind = 0; kind < parts.length; kind++)
            parts[kind] += (ends[column + 1] - ends[column]) *
              arrays.shares[(kind * many + row) * cells + column];
        const length = 255 * (ends[Math.min(to, cells)] - ends[from]);
        let bottom = (row + 1) * high;
        for (let kind = 0; kind < parts.length; kind++) {
          const part = (parts[kind] / length) * (high > 3 ? high - 1 : high);
          if (part < 0.05) continue;
          pen.fillStyle = shades[kind];
          pen.fillRect(left + k, bottom - part, pixels, part);
          bottom -= part;
        }
        k += pixels;
      }
    }
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    pen.fillStyle = c.muted;
    for (let row = 0, last = -20; row < many; row++) {
      const middle = Math.max(7, (row + 0.5) * high);
      if (middle - last < 14) continue;
      pen.fillText(run.rows[row].slice(0, 9), left - 6, middle);
      last = middle;
    }
    pen.fillStyle = c.breakpoint;
    for (const t of fit().breaks.slice(1, -1))
      if (t - run.start > state.from && t - run.start < state.to)
        for (let dash = 0; dash < height - foot; dash += 8)
          pen.fillRect(x(t - run.start, width) - 0.5, dash, 1.2, 5);
    if (state.at !== null) {
      pen.fillStyle = c.accent;
      pen.fillRect(x(state.at, width), 0, 1, height - foot);
    }
    canvas.setAttribute("aria-label", "Timeline of " + many + " rows, the share of each activity over time");
  };

  // ---- words and table
  const shade = (account) => {
    const c = colours();
    if (account === 0) return c.computing;
    if (account <= 10) return account === 1 ? c.unmeasured : c.residual;
    return { 11: c.overhead, 12: c.overhead, 13: c.overhead, 14: c.io }[account] || c.idle;
  };
  // Of a curve alone nothing is known of what processors do.
  const explained = run.models.some((m) => m.fits.some((f) => f.phases.some((p) => p.accounts.length)));
  const head = () => {
    const row = made("tr");
    const titles = [["Phase"], ["From (" + symbol + ")", 1], ["Length (" + symbol + ")", 1], ["Kind"],
      ["Mean (" + run.unit + ")", 1], ...(run.capacity > 0 ? [["Efficiency", 1]] : []), ["RMS residual", 1],
      ...(explained ? [["Processor time"]] : [])];
    for (const [title, number] of titles) {
      const cell = made("th", title, number ? "number" : "");
      cell.scope = "col";
      row.append(cell);
    }
    element("heads").replaceChildren(row);
  };
  const mark = () => {
    for (const row of element("phases").rows)
      row.classList.toggle("here", row.dataset.phase === String(state.phase));
  };
  const write = () => {
    const found = fit();
    const shortest = Math.min(...found.phases.map((_, k) => found.breaks[k + 1] - found.breaks[k]));
    const slider = element("n");
    slider.max = fits().length - 1;
    slider.value = state.row;
    const named = counted(found.n);
    slider.setAttribute("aria-valuetext", named);
    element("number").value = String(found.n);
    element("model").value = String(state.model);
    const asMade = run.models[state.model].key === run.shown.model && found.n === run.shown.n;
    element("shown").disabled = asMade;
    const suggested = run.suggested && run.models[state.model].key === run.shown.model &&
      run.suggested[0] === found.n ? " Suggested: " + run.suggested[1] : "";
    element("fit").textContent = run.models[state.model].name + ", " + named + ": largest local L2 error " +
      digits(found.error) + " " + run.error_unit + "." + suggested +
      (run.note && !asMade ? " " + run.note : "");
    element("phases").replaceChildren(...found.phases.flatMap((phase, k) => {
      const row = made("tr");
      row.dataset.phase = k;
      const begin = found.breaks[k], length = found.breaks[k + 1] - begin;
      const cell = made("td"), button = made("button", String(k + 1));
      button.type = "button";
      button.setAttribute("aria-label", "Show phase " + (k + 1));
      button.addEventListener("click", () => showPhase(k));
      cell.append(button, " " + unbroken(phase.name));
      row.append(cell);
      const numbers = [seconds(begin - run.start, shortest).split(" ")[0],
        digits(length / factor), run.kinds[phase.kind], digits(phase.mean),
        ...(run.capacity > 0 ? [percent(phase.mean / run.capacity)] : []), digits(phase.rms, 3)];
      numbers.forEach((text, i) => row.append(made("td", text, i === 2 ? "" : "number")));
      if (!explained) return [row];
      const spent = made("td"), bar = made("div", undefined, "bar");
      bar.setAttribute("aria-hidden", "true");
      for (const [account, part] of phase.accounts) {
        const piece = made("div");
        piece.style.flexGrow = part;
        piece.style.background = shade(account);
        piece.title = run.accounts[account][0] + " " + percent(part) + ": " + run.accounts[account][1];
        bar.append(piece);
      }
      const most = phase.accounts.slice(0, 4);
      if (most.length) spent.append(bar);
      spent.append(unbroken(
        most.map(([account, part]) => run.accounts[account][0] + " " + percent(part)).join(", ")));
      row.append(spent);
      if (!phase.says) return [row];
      // Sentences are long: they have the table's width, so that it fits into a narrow window.
      const says = unbroken(phase.says.replace(/^Phase \d+.*? of the run: /, "")), below = made("tr", undefined, "says");
      const words = made("td", says.charAt(0).toUpperCase() + says.slice(1));
      row.className = "told";
      below.dataset.phase = k;
      words.colSpan = row.cells.length;
      below.append(words);
      return [row, below];
    }));
    mark();
  };

  let waiting = false;
  const paint = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      paintCurve();
      paintTimeline();
    });
  };
  const say = () => {
    if (state.at === null) return;
    const [least, most, mean] = extremes(state.at, state.at + (state.to - state.from) / 1000);
    const found = fit();
    const k = Math.max(0, found.breaks.findLastIndex((t, i) => t - run.start <= state.at &&
      i < found.phases.length));
    element("at").textContent = seconds(state.at) + ": " + (least === most ? level(mean) :
      digits(least) + " to " + level(most) + ", mean " + digits(mean)) + "; phase " + (k + 1) + ", fit " +
      digits(fitted(found, k, state.at)) + (state.line < 0 ? "" : "; " + run.row_names[state.line]);
  };
  const see = (from, to) => {
    const least = run.duration * 1e-9, span = Math.min(run.duration, Math.max(least, to - from));
    state.from = Math.max(0, Math.min(run.duration - span, from));
    state.to = state.from + span;
    paint();
  };
  const zoom = (by, about = (state.from + state.to) / 2) =>
    see(about - (about - state.from) * by, about + (state.to - about) * by);
  const move = (parts) => {
    const by = parts * (state.to - state.from);
    see(state.from + by, state.to + by);
  };
  const showPhase = (k) => {
    const [a, b] = [fit().breaks[k] - run.start, fit().breaks[k + 1] - run.start];
    state.phase = k;
    see(a - (b - a) * 0.05, b + (b - a) * 0.05);
    mark();
  };
  const choose = (change) => {
    change();
    state.phase = -1;
    write();
    paint();
  };

  // ---- hands
  run.models.forEach((model, k) => {
    const option = made("option", model.name);
    option.value = k;
    element("model").append(option);
  });
  element("model").addEventListener("change", (event) => choose(() => {
    const n = fit().n;
    state.model = Number(event.target.value);
    const same = fits().findIndex((f) => f.n >= n);
    state.row = same < 0 ? fits().length - 1 : same;
  }));
  element("n").addEventListener("input", (event) =>
    choose(() => { state.row = Number(event.target.value); }));
  element("shown").addEventListener("click", () => choose(showAsMade));
  element("in").addEventListener("click", () => zoom(0.5));
  element("out").addEventListener("click", () => zoom(2));
  element("earlier").addEventListener("click", () => move(-0.25));
  element("later").addEventListener("click", () => move(0.25));
  element("all").addEventListener("click", () => see(0, run.duration));
  const keys = { ArrowLeft: () => move(-0.1), ArrowRight: () => move(0.1), "+": () => zoom(0.7),
    "=": () => zoom(0.7), "-": () => zoom(1.4), Home: () => see(0, run.duration) };
  for (const canvas of [element("curve"), element("timeline")]) {
    let held = null;
    const inside = (event) => event.clientX - canvas.getBoundingClientRect().left;
    const wide = () => canvas.getBoundingClientRect().width;
    canvas.addEventListener("keydown", (event) => {
      if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      keys[event.key]();
    });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (event.shiftKey) move(Math.sign(event.deltaY || event.deltaX) * 0.1);
      else zoom(1.2 ** Math.sign(event.deltaY), timeAt(inside(event), wide()));
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      held = { pixel: inside(event), from: state.from, to: state.to };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointerup", () => { held = null; });
    canvas.addEventListener("pointercancel", () => { held = null; });
    canvas.addEventListener("pointerleave", () => { state.at = null; paint(); });
    canvas.addEventListener("pointermove", (event) => {
      if (held) {
        const by = ((held.pixel - inside(event)) / (wide() - left - right)) * (held.to - held.from);
        see(held.from + by, held.to + by);
      }
      const t = timeAt(inside(event), wide());
      state.at = t >= state.from && t <= state.to ? t : null;
      const box = canvas.getBoundingClientRect(), part = (event.clientY - box.top) / (box.height - foot);
      state.line = canvas.id === "timeline" && part < 1 ? Math.floor(part * run.rows.length) : -1;
      say();
      paint();
    });
  }
  dark.addEventListener("change", () => { legend(); write(); paint(); });
  addEventListener("resize", paint);
  const legend = () => {
    element("legend").replaceChildren(...(arrays.shares ? run.classes : []).flatMap((name) => {
      const box = made("i");
      box.style.background = colours()[name];
      return [box, run.activities[name]];
    }));
  };

  showAsMade();
  element("page").hidden = false;
  head();
  legend();
  write();
  paint();
  document.documentElement.dataset.ready = "1";
})();
