"use strict";
(() => {
  /* Looks: each has a colour (--c0 to --c7), a dash for lines, a hatch for areas, and a marker for curves,
     so that lines can be told apart without their colours. */
  const DASHES = [[], [], [8, 4], [2, 3], [10, 3, 2, 3], [5, 3], [14, 4], [1, 3]];
  const HATCHES = ["", "", "rise", "fall", "dots", "cross", "level", "upright"];
  const MARKERS = ["circle", "square", "up", "diamond", "cross", "down", "ring", "plus"];
  const MARGIN = { left: 58, right: 14, top: 20, bottom: 34 };
  const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;

  const root = document.documentElement;
  const charts = [];
  const time = { full: null, from: 0, to: 0, cursor: null }; /* all charts over time share it */

  /* Texts */

  const group = (text) => text.replace(/\B(?=(\d{3})+(?!\d))/g, "\u2009");
  const whole = (v) => group(String(Math.round(v)));
  const stamp = (ms) => new Date(ms).toISOString().slice(0, 19).replace("T", " ");
  const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

  function length(ms) {
    for (const [unit, name] of [[DAY, "d"], [HOUR, "h"], [MINUTE, "m"]]) {
      if (ms >= unit) return trim(ms / unit) + name;
    }
    return trim(ms / SECOND) + "s";
  }
  const trim = (v) => (v < 10 && v % 1 ? v.toFixed(1).replace(/\.0$/, "") : whole(v));

  /* Numbers come as texts of differences; an empty one is 0. */
  function numbers(text) {
    const parts = text.split(",");
    const values = new Float64Array(parts.length);
    let sum = 0;
    for (let i = 0; i < parts.length; i++) {
      sum += +parts[i];
      values[i] = sum;
    }
    return values;
  }

  /* The last place whose number is at most v; -1 if there is none. */
  function placeOf(values, v) {
    let low = -1, high = values.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (values[middle] <= v) low = middle; else high = middle;
    }
    return low;
  }

  /* Looks */

  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const ink = (look) => colour("--c" + (look % 8));

  function fillArea(ctx, look, scale) {
    ctx.globalAlpha = look % 8 ? 0.32 : 0.13;
    ctx.fillStyle = ink(look);
    ctx.fill();
    const hatch = HATCHES[look % 8];
    if (hatch) {
      ctx.globalAlpha = 0.5;
      ctx.fillStyle = pattern(ctx, hatch, ink(look), scale);
      ctx.fill();
    }
    ctx.globalAlpha = 1;
  }

  function pattern(ctx, hatch, style, scale) {
    const tile = document.createElement("canvas"), n = 6 * scale;
    tile.width = tile.height = n;
    const t = tile.getContext("2d");
    t.strokeStyle = t.fillStyle = style;
    t.lineWidth = scale;
    const line = (x, y, u, v) => { t.beginPath(); t.moveTo(x * n, y * n); t.lineTo(u * n, v * n); t.stroke(); };
    if (hatch === "rise" || hatch === "cross") { line(0, 1, 1, 0); line(-0.5, 0.5, 0.5, -0.5); line(0.5, 1.5, 1.5, 0.5); }
    if (hatch === "fall" || hatch === "cross") { line(0, 0, 1, 1); line(-0.5, 0.5, 0.5, 1.5); line(0.5, -0.5, 1.5, 0.5); }
    if (hatch === "level") line(0, 0.5, 1, 0.5);
    if (hatch === "upright") line(0.5, 0, 0.5, 1);
    if (hatch === "dots") t.fillRect(n / 3, n / 3, n / 3, n / 3);
    const p = ctx.createPattern(tile, "repeat");
    p.setTransform(new DOMMatrix().scale(1 / scale));
    return p;
  }

  function marker(ctx, look, x, y) {
    const r = 3.5, shape = MARKERS[look % 8];
    const path = (...points) => { ctx.moveTo(x + points[0] * r, y + points[1] * r); for (let i = 2; i < points.length; i += 2) ctx.lineTo(x + points[i] * r, y + points[i + 1] * r); };
    ctx.setLineDash([]);
    ctx.beginPath();
    if (shape === "circle" || shape === "ring") ctx.arc(x, y, r, 0, 7);
    if (shape === "square") ctx.rect(x - r, y - r, 2 * r, 2 * r);
    if (shape === "up") { path(-1, 1, 0, -1, 1, 1); ctx.closePath(); }
    if (shape === "down") { path(-1, -1, 0, 1, 1, -1); ctx.closePath(); }
    if (shape === "diamond") { path(0, -1.2, 1.2, 0, 0, 1.2, -1.2, 0); ctx.closePath(); }
    if (shape === "cross") { path(-1, -1, 1, 1); path(-1, 1, 1, -1); }
    if (shape === "plus") { path(-1.2, 0, 1.2, 0); path(0, -1.2, 0, 1.2); }
    ctx.strokeStyle = ctx.fillStyle = ink(look);
    if (["ring", "cross", "plus"].includes(shape)) ctx.stroke(); else ctx.fill();
  }

  /* Ticks */

  function step(range, most) {
    const raw = range / Math.max(most, 1);
    const ten = Math.pow(10, Math.floor(Math.log10(raw)));
    return ten * [1, 2, 5, 10].find((m) => m * ten >= raw * 0.999);
  }

  const TIMES = [1, 2, 5, 10, 20, 50, 100, 200, 500, SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND, 30 * SECOND, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 30 * MINUTE,
    HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY];

  /* Ticks over time have a fine name, and one for what it is in: the day, or the year. */
  function timeTicks(from, to, most) {
    const least = (to - from) / Math.max(most, 1), every = TIMES.find((t) => t >= least), ticks = [];
    if (!every) return monthTicks(from, to, least / (30 * DAY));
    for (let t = Math.ceil(from / every) * every; t <= to; t += every) {
      const text = stamp(t), date = new Date(t);
      const dayName = MONTHS[date.getUTCMonth()] + " " + date.getUTCDate();
      const clock = every < SECOND ? date.toISOString().slice(14, 23) : text.slice(11, every < MINUTE ? 19 : 16);
      ticks.push(every < DAY ? { v: t, fine: clock, within: dayName + ", " + text.slice(0, 4) } : { v: t, fine: dayName, within: text.slice(0, 4) });
    }
    return ticks;
  }

  function monthTicks(from, to, least) {
    const every = [1, 2, 3, 6, 12, 24, 60, 120].find((m) => m >= least) || 240, ticks = [];
    const first = new Date(from), year = first.getUTCFullYear();
    for (let m = Math.ceil(first.getUTCMonth() / every) * every; ; m += every) {
      const t = Date.UTC(year, m, 1), date = new Date(t);
      if (t > to) return ticks;
      if (t >= from) ticks.push({ v: t, fine: MONTHS[date.getUTCMonth()], within: String(date.getUTCFullYear()) });
    }
  }

  const LENGTHS = [SECOND, 10 * SECOND, MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, DAY, 10 * DAY, 100 * DAY, 1000 * DAY];

  function logTicks(from, to, unit, most) {
    let all = LENGTHS;
    if (unit === "factor") {
      all = [];
      for (let d = 3; d <= to; d++) all.push(...(most > 3 * (to - from) ? [1, 2, 5] : [1]).map((m) => m * Math.pow(10, d)));
    }
    return all.map((v) => ({ v: Math.log10(v), fine: unit === "factor" ? whole(v / 1000) : length(v), within: "" })).filter((t) => t.v >= from - 1e-9 && t.v <= to + 1e-9);
  }

  /* A chart is a figure of the page with two canvases: the back has the drawing, the front the cursor. */

  class Chart {
    constructor(spec) {
      this.spec = spec;
      this.figure = document.getElementById(spec.id);
      this.plot = this.figure.querySelector(".plot");
      this.back = this.canvas("back");
      this.front = this.canvas("front");
      this.isTime = spec.kind === "time";
      this.lines = spec.lines.map((l) => ({ ...l, shown: true, y: numbers(l.y) }));
      if (this.isTime) this.readTimes(); else this.readShares();
      this.describe();
      this.legend();
      this.listen();
    }

    canvas(name) {
      const c = document.createElement("canvas");
      c.className = name;
      this.plot.append(c);
      return c;
    }

    readTimes() {
      this.t = numbers(this.spec.at).map((v) => v * this.spec.tick);
      this.end = this.spec.end * this.spec.tick;
      this.view = time;
      const begin = this.t[0];
      time.full = time.full ? [Math.min(time.full[0], begin), Math.max(time.full[1], this.end)] : [begin, this.end];
      this.pile();
    }

    readShares() {
      let last = 4;
      for (const l of this.lines) {
        l.x = numbers(l.x).map(Math.log10);
        l.y = l.y.map((n) => (100 * n) / l.count);
        last = Math.max(last, l.x[l.x.length - 1]);
      }
      this.view = { full: [3, last], from: 3, to: last, cursor: null };
    }

    /* pile puts the shown areas on each other. */
    pile() {
      let under = null;
      for (const l of this.lines) {
        l.top = l.y;
        if (!l.stack || !l.shown) continue;
        if (under) l.top = l.y.map((v, i) => v + under[i]);
        under = l.top;
      }
    }

    describe() {
      this.front.tabIndex = 0;
      this.front.setAttribute("role", "img");
      const axes = this.spec.y + (this.spec.below ? ", and " + this.spec.below + "," : "");
      const names = this.lines.map((l) => l.name).join(", ");
      this.front.setAttribute("aria-label", `${this.figure.querySelector("figcaption").textContent}: ${axes} over ${this.spec.x}; ${names}`);
    }

    legend() {
      const box = this.figure.querySelector(".legend");
      this.readout = document.createElement("div");
      this.readout.className = "at";
      box.append(this.readout);
      for (const l of this.lines) {
        const b = document.createElement("button"), name = document.createElement("span");
        l.swatch = document.createElement("canvas");
        l.output = document.createElement("output");
        name.textContent = l.name;
        b.type = "button";
        b.setAttribute("aria-pressed", "true");
        b.append(l.swatch, name, l.output);
        b.addEventListener("click", () => {
          l.shown = !l.shown;
          b.setAttribute("aria-pressed", String(l.shown));
          if (this.isTime) this.pile();
          this.draw();
        });
        box.append(b);
      }
      this.reset = document.createElement("button");
      this.reset.type = "button";
      this.reset.className = "reset";
      this.reset.textContent = "show all";
      this.reset.addEventListener("click", () => this.zoom(...this.view.full));
      this.plot.append(this.reset);
    }

    /* Places on the canvas */

    measure() {
      this.w = this.plot.clientWidth;
      this.h = this.plot.clientHeight;
      this.scale = Math.max(1, Math.min(3, window.devicePixelRatio || 1));
      this.left = MARGIN.left;
      this.right = Math.max(this.w - MARGIN.right, this.left + 10);
      this.ceiling = MARGIN.top;
      this.ground = this.h - MARGIN.bottom;
    }

    /* parts are one above the other; the lower has what would dwarf the rest. */
    parts() {
      const axis = this.spec, middle = Math.round(this.ceiling + (this.ground - this.ceiling) * 0.6);
      if (!axis.below) return [{ top: this.ceiling, bottom: this.ground, name: axis.y, lines: this.lines }];
      return [
        { top: this.ceiling, bottom: middle - 8, name: axis.y, lines: this.lines.filter((l) => !l.below) },
        { top: middle + 22, bottom: this.ground, name: axis.below, lines: this.lines.filter((l) => l.below) },
      ];
    }

    paper(canvas) {
      const w = Math.round(this.w * this.scale), h = Math.round(this.h * this.scale), ctx = canvas.getContext("2d");
      if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
      ctx.setTransform(this.scale, 0, 0, this.scale, 0, 0);
      ctx.clearRect(0, 0, this.w, this.h);
      return ctx;
    }

    x(v) { return this.left + ((v - this.view.from) / (this.view.to - this.view.from || 1)) * (this.right - this.left); }
    y(v) { return this.bottom - (v / this.highest) * (this.bottom - this.top); }
    at(px) {
      const v = this.view.from + ((px - this.left) / (this.right - this.left)) * (this.view.to - this.view.from);
      return Math.min(Math.max(v, this.view.from), this.view.to);
    }

    /* Drawing */

    draw() {
      this.measure();
      if (this.w < 80) return;
      const ctx = this.paper(this.back);
      if (this.isTime) this.range();
      for (const part of this.parts()) this.drawPart(ctx, part);
      this.swatches();
      this.drawFront();
      this.reset.hidden = this.view.from === this.view.full[0] && this.view.to === this.view.full[1];
    }

    drawPart(ctx, part) {
      Object.assign(this, { top: part.top, bottom: part.bottom });
      this.scaleY(part.lines);
      this.axes(ctx, part.name);
      ctx.save();
      ctx.beginPath();
      ctx.rect(this.left, this.top - 2, this.right - this.left + 1, this.bottom - this.top + 4);
      ctx.clip();
      if (this.isTime) { this.areas(ctx, part.lines); this.steps(ctx, part.lines); } else this.curves(ctx);
      ctx.restore();
    }

    /* range finds the points that are in view. */
    range() {
      this.first = Math.max(placeOf(this.t, this.view.from), 0);
      this.last = Math.max(placeOf(this.t, this.view.to), this.first);
    }

    scaleY(lines) {
      let most = this.isTime ? 0 : 100;
      if (this.isTime) {
        for (const l of lines) {
          if (l.shown) for (let i = this.first; i <= this.last; i++) if (l.top[i] > most) most = l.top[i];
        }
      }
      const unit = this.spec.divide, rows = Math.max(2, Math.floor((this.bottom - this.top) / 32));
      let every = step(Math.max(most, unit === 1 ? 1 : unit / 100), rows);
      if (unit === 1) every = Math.max(1, every);
      if (!this.isTime) every = rows > 3 ? 25 : 50;
      this.every = every;
      this.highest = this.isTime ? Math.max(every, most) * 1.04 : 100;
    }

    axes(ctx, name) {
      const soft = colour("--soft"), grid = colour("--grid");
      ctx.font = "11px " + getComputedStyle(root).fontFamily;
      ctx.lineWidth = 1;
      ctx.textBaseline = "middle";
      ctx.textAlign = "right";
      const decimals = Math.max(0, Math.ceil(-Math.log10(this.every / this.spec.divide) - 1e-9));
      for (let v = 0; v <= this.highest; v += this.every) {
        const y = Math.round(this.y(v)) + 0.5;
        rule(ctx, v ? grid : soft, this.left, y, this.right, y);
        ctx.fillStyle = soft;
        ctx.fillText(group((v / this.spec.divide).toFixed(decimals)), this.left - 7, y);
      }
      ctx.textAlign = "left";
      ctx.fillText(name, 0, this.top - 13);
      ctx.textAlign = "right";
      if (this.bottom === this.ground) ctx.fillText(this.spec.x, this.right, this.bottom + 26);
      this.ticks(ctx, soft, grid);
    }

    ticks(ctx, soft, grid) {
      const most = (this.right - this.left) / 80;
      const ticks = this.isTime ? timeTicks(this.view.from, this.view.to, most) : logTicks(this.view.from, this.view.to, this.spec.unit, most);
      const named = this.right - ctx.measureText(this.spec.x).width - 10; /* there the axis has its name */
      let within = "", free = 0, freeBelow = 0;
      ctx.textAlign = "center";
      for (const tick of ticks) {
        const x = Math.round(this.x(tick.v)) + 0.5;
        rule(ctx, grid, x, this.top, x, this.bottom);
        if (this.bottom < this.ground) continue;
        rule(ctx, soft, x, this.bottom, x, this.bottom + 4);
        ctx.fillStyle = soft;
        const half = ctx.measureText(tick.fine).width / 2;
        const place = Math.min(x, this.w - half);
        if (place - half > free) { ctx.fillText(tick.fine, place, this.bottom + 12); free = place + half + 6; }
        const below = ctx.measureText(tick.within).width;
        if (tick.within !== within && x - half > freeBelow) {
          within = tick.within;
          ctx.textAlign = "left";
          const start = x - half;
          if (start + below < named) ctx.fillText(within, start, this.bottom + 26);
          freeBelow = start + below + 8;
          ctx.textAlign = "center";
        }
      }
    }

    /* columns answers, for each pixel column, the means of some lists of values over its time. */
    columns(lists) {
      const n = Math.ceil(this.right - this.left), weight = new Float64Array(n), sums = lists.map(() => new Float64Array(n));
      for (let i = this.first; i <= this.last; i++) {
        const end = i + 1 < this.t.length ? this.t[i + 1] : this.end;
        const a = Math.max(this.x(this.t[i]) - this.left, 0), b = Math.min(this.x(end) - this.left, n);
        for (let c = Math.floor(a); c < b; c++) {
          const part = Math.min(b, c + 1) - Math.max(a, c);
          weight[c] += part;
          for (let k = 0; k < lists.length; k++) sums[k][c] += part * lists[k][i];
        }
      }
      return { weight, sums };
    }

    /* dense tells that several points share a pixel column. */
    dense() { return this.last - this.first > 2 * (this.right - this.left); }

    /* areas draws the piled areas by their means. */
    areas(ctx, lines) {
      const piled = lines.filter((l) => l.stack && l.shown);
      const { weight, sums } = this.columns(piled.map((l) => l.top));
      piled.forEach((l, k) => this.area(ctx, l, sums[k], k ? sums[k - 1] : null, weight, k === piled.length - 1));
    }

    area(ctx, line, sums, below, weight, uppermost) {
      const height = (list, c) => (list ? this.y(list[c] / weight[c]) : this.bottom);
      const first = weight.findIndex((w) => w > 0);
      if (first < 0) return;
      let last = weight.length - 1;
      while (!(weight[last] > 0)) last--;
      const across = (list, from, to, by) => { for (let c = from; c !== to; c += by) { const y = height(list, c); ctx.lineTo(this.left + c + (by > 0 ? 0 : 1), y); ctx.lineTo(this.left + c + (by > 0 ? 1 : 0), y); } };
      ctx.beginPath();
      across(sums, first, last + 1, 1);
      across(below, last, first - 1, -1);
      ctx.closePath();
      fillArea(ctx, line.look, this.scale);
      ctx.setLineDash([]);
      ctx.lineWidth = 1;
      ctx.strokeStyle = ink(line.look);
      ctx.beginPath();
      if (uppermost && !this.dense()) this.path(ctx, line.top); else across(sums, first, last + 1, 1);
      ctx.stroke();
      if (uppermost && this.dense()) this.band(ctx, line, line.top);
    }

    steps(ctx, lines) {
      for (const l of lines) {
        if (l.stack || !l.shown) continue;
        if (this.dense()) this.band(ctx, l, l.y);
        this.pen(ctx, l);
        ctx.beginPath();
        if (this.dense()) this.middle(ctx, l.y); else this.path(ctx, l.y);
        ctx.stroke();
      }
      ctx.setLineDash([]);
    }

    pen(ctx, l) {
      ctx.setLineDash(DASHES[l.look % 8]);
      ctx.lineWidth = l.look === 0 ? 1.25 : 1.75;
      ctx.strokeStyle = ink(l.look);
    }

    /* band shades each pixel column from its least value to its largest. */
    band(ctx, l, values) {
      ctx.globalAlpha = 0.28;
      ctx.fillStyle = ink(l.look);
      let column = this.left - 1, least = 0, most = 0, now = values[this.first];
      const flush = () => { if (column >= this.left) ctx.fillRect(column, this.y(most), 1, Math.max(1, this.y(least) - this.y(most))); };
      for (let i = this.first; i <= this.last; i++) {
        const x = Math.floor(Math.max(this.x(this.t[i]), this.left)), v = values[i];
        if (x !== column) { flush(); column = x; least = Math.min(now, v); most = Math.max(now, v); }
        least = Math.min(least, v);
        most = Math.max(most, v);
        now = v;
      }
      flush();
      ctx.globalAlpha = 1;
    }

    /* middle draws the means of the pixel columns. */
    middle(ctx, values) {
      const { weight, sums } = this.columns([values]);
      for (let c = 0; c < weight.length; c++) if (weight[c] > 0) ctx.lineTo(this.left + c + 0.5, this.y(sums[0][c] / weight[c]));
    }

    /* path draws steps; of the points of one pixel column it shows the least and the largest. */
    path(ctx, values) {
      let column = -1, least = 0, most = 0, now = values[this.first], began = false;
      const flush = () => {
        if (column < 0) return;
        if (began) ctx.lineTo(column, this.y(before)); else ctx.moveTo(column, this.y(least));
        began = true;
        if (least !== most || now !== before) {
          ctx.lineTo(column, this.y(least));
          ctx.lineTo(column, this.y(most));
          ctx.lineTo(column, this.y(now));
        }
        before = now;
      };
      let before = now;
      for (let i = this.first; i <= this.last; i++) {
        const x = Math.round(Math.max(this.x(this.t[i]), this.left)) + 0.5, v = values[i];
        if (x !== column) { flush(); column = x; least = most = v; }
        if (v < least) least = v;
        if (v > most) most = v;
        now = v;
      }
      flush();
      ctx.lineTo(Math.min(this.x(this.end), this.right), this.y(now));
    }

    curves(ctx) {
      this.lines.forEach((l, k) => {
        if (!l.shown) return;
        this.pen(ctx, l);
        ctx.beginPath();
        for (let i = 0; i < l.x.length; i++) ctx.lineTo(this.x(l.x[i]), this.y(l.y[i]));
        ctx.lineTo(this.right, this.y(l.y[l.y.length - 1]));
        ctx.stroke();
        for (let x = this.left + 24 + k * 13; x < this.right; x += 110) marker(ctx, l.look, x, this.y(this.shareAt(l, this.at(x))));
      });
      ctx.setLineDash([]);
    }

    /* shareAt is where the curve is between the points that are known. */
    shareAt(l, x) {
      const i = placeOf(l.x, x);
      if (i < 0) return 0;
      if (i + 1 >= l.x.length) return l.y[i];
      return l.y[i] + ((x - l.x[i]) / (l.x[i + 1] - l.x[i])) * (l.y[i + 1] - l.y[i]);
    }

    swatches() {
      for (const l of this.lines) {
        const c = l.swatch, ctx = c.getContext("2d");
        c.width = 30 * this.scale;
        c.height = 13 * this.scale;
        ctx.setTransform(this.scale, 0, 0, this.scale, 0, 0);
        if (l.stack) {
          ctx.beginPath();
          ctx.rect(0.5, 1.5, 29, 10);
          fillArea(ctx, l.look, this.scale);
          ctx.strokeStyle = ink(l.look);
          ctx.stroke();
          continue;
        }
        this.pen(ctx, l);
        ctx.beginPath();
        ctx.moveTo(0, 6.5);
        ctx.lineTo(30, 6.5);
        ctx.stroke();
        if (!this.isTime) marker(ctx, l.look, 15, 6.5);
      }
    }

    /* The front: cursor, read-out, and what is being dragged over */

    drawFront() {
      const ctx = this.paper(this.front), v = this.view.cursor;
      if (this.drag && Math.abs(this.drag.to - this.drag.from) > 3) {
        ctx.fillStyle = colour("--accent");
        ctx.globalAlpha = 0.18;
        ctx.fillRect(Math.min(this.drag.from, this.drag.to), this.ceiling, Math.abs(this.drag.to - this.drag.from), this.ground - this.ceiling);
        ctx.globalAlpha = 1;
      }
      if (v !== null && v >= this.view.from && v <= this.view.to) {
        const x = Math.round(this.x(v)) + 0.5;
        rule(ctx, colour("--ink"), x, this.ceiling, x, this.ground);
      }
      if (this.isTime) this.readTime(v); else this.readShare(v);
    }

    readTime(v) {
      const i = v === null || v > this.end ? -1 : placeOf(this.t, v);
      this.readout.textContent = v === null ? `${stamp(this.view.from)} to ${stamp(this.view.to)} UTC` : stamp(v) + " UTC";
      for (const l of this.lines) l.output.textContent = i < 0 ? "" : this.value(l.y[i]);
    }

    readShare(v) {
      const ms = v === null ? 0 : Math.pow(10, v);
      const where = this.spec.unit === "factor" ? "at most " + (ms / 1000).toFixed(1) : "at most " + length(ms);
      this.readout.textContent = v === null ? "in brackets: how many jobs; point at the chart for shares" : where;
      for (const l of this.lines) l.output.textContent = v === null ? `(${whole(l.count)})` : this.shareAt(l, v).toFixed(1) + "\u2009%";
    }

    value(v) { return this.spec.divide === 1 ? whole(v) : group((v / this.spec.divide).toFixed(2)); }

    /* What hands do */

    listen() {
      const f = this.front, px = (e) => e.clientX - f.getBoundingClientRect().left;
      const inside = (x) => Math.min(Math.max(x, this.left), this.right);
      f.addEventListener("pointerdown", (e) => {
        if (e.button) return;
        this.drag = { from: inside(px(e)), to: inside(px(e)) };
        f.setPointerCapture(e.pointerId);
      });
      f.addEventListener("pointermove", (e) => {
        if (this.drag) this.drag.to = inside(px(e));
        this.point(this.at(px(e)));
      });
      f.addEventListener("pointerup", () => {
        const d = this.drag;
        this.drag = null;
        if (d && Math.abs(d.to - d.from) > 3) this.zoom(this.at(Math.min(d.from, d.to)), this.at(Math.max(d.from, d.to)));
        else this.drawFront();
      });
      f.addEventListener("pointercancel", () => { this.drag = null; this.drawFront(); });
      f.addEventListener("pointerleave", () => { if (!this.drag) this.point(null); });
      f.addEventListener("dblclick", () => this.zoom(...this.view.full));
      f.addEventListener("keydown", (e) => this.key(e));
      f.addEventListener("blur", () => { this.readout.removeAttribute("aria-live"); this.point(null); });
      new ResizeObserver(() => this.draw()).observe(this.plot);
    }

    key(e) {
      const v = this.view, middle = v.cursor === null ? (v.from + v.to) / 2 : v.cursor;
      const pixel = ((v.to - v.from) / (this.right - this.left)) * (e.shiftKey ? 25 : 1);
      const keys = {
        ArrowLeft: () => this.point(Math.max(middle - pixel, v.from)), ArrowRight: () => this.point(Math.min(middle + pixel, v.to)),
        "+": () => this.zoomBy(middle, 0.5), "=": () => this.zoomBy(middle, 0.5), "-": () => this.zoomBy(middle, 2),
        0: () => this.zoom(...v.full), Escape: () => this.zoom(...v.full),
      };
      if (!keys[e.key] || e.ctrlKey || e.metaKey || e.altKey) return;
      e.preventDefault();
      this.readout.setAttribute("aria-live", "polite");
      keys[e.key]();
    }

    point(v) {
      this.view.cursor = v;
      for (const c of this.together()) c.drawFront();
    }

    together() { return this.isTime ? charts.filter((c) => c.isTime) : [this]; }

    zoomBy(middle, factor) { this.zoom(middle - (middle - this.view.from) * factor, middle + (this.view.to - middle) * factor); }

    zoom(from, to) {
      const [first, last] = this.view.full, least = this.isTime ? 10 : 0.01;
      from = Math.max(from, first);
      to = Math.min(to, last);
      if (to - from < least && to - from < last - first) return this.drawFront();
      this.view.from = from;
      this.view.to = to;
      for (const c of this.together()) c.draw();
    }
  }

  function rule(ctx, style, x, y, u, v) {
    ctx.strokeStyle = style;
    ctx.beginPath();
    ctx.moveTo(x, y);
    ctx.lineTo(u, v);
    ctx.stroke();
  }

  root.classList.add("drawn");
  for (const spec of JSON.parse(document.getElementById("data").textContent)) charts.push(new Chart(spec));
  if (time.full) {
    if (time.full[0] === time.full[1]) time.full[1] += SECOND;
    [time.from, time.to] = time.full;
  }
  const all = () => charts.forEach((c) => c.draw());
  for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", all);
  all();
})();
