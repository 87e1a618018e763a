// Drawing. Everything that is outside of the shown time is skipped, and ticks that would hide one another are drawn once.
const TICK = { quiet: 5, ok: 8, note: 10, warn: 12, unknown: 12, off: 10, bad: 15 };
const RANK = { quiet: 0, ok: 1, note: 2, off: 3, unknown: 4, warn: 5, bad: 6 };

class Painter {
  constructor(canvas, axis, layout, filter) {
    this.canvas = canvas; this.axis = axis; this.l = layout; this.filter = filter; this.t = layout.t;
    this.colours = palette();
    this.font = '11.5px system-ui, "DejaVu Sans", sans-serif';
  }
  size() {
    const ratio = Math.min(window.devicePixelRatio || 1, 2.5), l = this.l;
    this.ratio = ratio;
    for (const [canvas, height] of [[this.canvas, l.height], [this.axis, 30]]) {
      canvas.width = Math.round(l.width * ratio); canvas.height = Math.round(height * ratio);
      canvas.style.height = height + 'px';
    }
  }
  context(canvas) {
    const c = canvas.getContext('2d');
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.font = this.font; c.textBaseline = 'middle';
    return c;
  }
  draw(chosen) {
    const c = this.context(this.canvas), l = this.l, p = this.colours;
    this.c = c;
    c.fillStyle = p.bg; c.fillRect(0, 0, l.width, l.height);
    this.stripes();
    c.save();
    c.beginPath(); c.rect(l.gutter, 0, l.width - l.gutter, l.height); c.clip();
    this.grid(c, l.height, false);
    this.shades();
    this.t.rows.forEach((row, r) => { if (l.tops[r] >= 0) this.row(r); });
    this.marks(chosen);
    this.chosen(chosen);
    c.restore();
    this.labels();
    this.drawAxis(chosen);
  }
  stripes() {
    const c = this.c, l = this.l, p = this.colours;
    for (const head of l.heads) { c.fillStyle = p.panel2; c.fillRect(0, head.y, l.width, l.headHeight); }
    this.t.rows.forEach((row, r) => {
      if (l.tops[r] < 0 || r % 2) return;
      c.fillStyle = p.panel; c.fillRect(0, l.tops[r], l.width, l.rowHeight);
    });
  }
  labels() {
    const c = this.c, l = this.l, p = this.colours;
    c.fillStyle = p.line; c.fillRect(l.gutter - 1, 0, 1, l.height);
    for (const head of l.heads) {
      c.fillStyle = p.panel2; c.fillRect(0, head.y, l.gutter + 60, l.headHeight);
      c.fillStyle = p.text; c.font = '600 12.5px system-ui, "DejaVu Sans", sans-serif';
      c.fillText(this.t.groups[head.g].title, 8, head.y + l.headHeight / 2 + 1);
    }
    c.font = this.font; c.fillStyle = p.dim;
    this.t.rows.forEach((row, r) => { if (l.tops[r] >= 0) c.fillText(this.cut(row.title, l.gutter - 18), 14, l.tops[r] + l.rowHeight / 2 + 1); });
  }
  cut(text, width) {
    const c = this.c;
    if (width < 12) return '';
    if (c.measureText(text).width <= width) return text;
    let n = Math.max(1, Math.floor(text.length * width / c.measureText(text).width) - 1);
    while (n > 1 && c.measureText(text.slice(0, n) + '…').width > width) n--;
    return n < 2 ? '' : text.slice(0, n) + '…';
  }
  step() {
    const want = (this.l.to - this.l.from) / Math.max(2, (this.l.width - this.l.gutter) / 90);
    const power = Math.pow(10, Math.floor(Math.log10(want)));
    return [1, 2, 5, 10].map((n) => n * power).find((s) => s >= want);
  }
  grid(c, height, text) {
    const l = this.l, p = this.colours, step = this.step(), digits = Math.max(0, Math.min(3, Math.ceil(-Math.log10(step / 1000))));
    for (let at = Math.ceil(l.from / step) * step; at <= l.to; at += step) {
      const x = Math.round(l.x(at));
      c.fillStyle = p.line; c.fillRect(x, text ? height - 6 : 0, 1, text ? 6 : height);
      if (text) { c.fillStyle = p.dim; c.textAlign = 'center'; c.fillText(offset(at, digits), x, 12); c.textAlign = 'left'; }
    }
  }
  drawAxis(chosen) {
    const c = this.context(this.axis), l = this.l, p = this.colours;
    c.fillStyle = p.bg; c.fillRect(0, 0, l.width, 30);
    c.save(); c.beginPath(); c.rect(l.gutter, 0, l.width, 30); c.clip();
    this.grid(c, 30, true);
    for (const m of this.t.marks) this.triangle(c, l.x(m.t), 29, m.excused ? p.warn : p.bad, 5);
    c.restore();
    const at = chosen && chosen.at !== undefined ? chosen.at : undefined;
    c.fillStyle = p.dim;
    c.fillText(at === undefined ? 'since the start' : clock(this.t, at), 8, 15);
  }
  // Faults in force shade the lanes that they strike.
  shades() {
    const c = this.c, l = this.l, p = this.colours;
    for (const b of this.t.bands) {
      if (!b.f || b.u < l.from || b.t > l.to) continue;
      const x = l.x(b.t), w = Math.max(2, l.x(b.u) - x);
      for (const head of l.heads) {
        if (b.g && b.g.length && !b.g.includes(head.g)) continue;
        if (!b.g && head.g === 0) continue;
        c.fillStyle = p.shade; c.fillRect(x, head.y + l.headHeight, w, head.end - head.y - l.headHeight);
        c.fillStyle = p.warn; c.globalAlpha = .55;
        c.fillRect(x, head.y + l.headHeight, 1, head.end - head.y - l.headHeight);
        c.fillRect(x + w, head.y + l.headHeight, 1, head.end - head.y - l.headHeight);
        c.globalAlpha = 1;
      }
    }
  }
  row(r) {
    const row = this.t.byRow[r], y = this.l.tops[r];
    for (const s of row.states) this.state(s, y);
    for (const b of row.bands) this.band(b, y);
    for (const w of row.windows) this.window(w, y);
    if (!row.bands.length && !row.windows.length) this.ticks(row, y);
  }
  box(from, to) {
    const l = this.l;
    if (to < l.from || from > l.to) return null;
    const x = Math.max(l.x(from), l.gutter - 2), end = Math.min(l.x(to), l.width + 2);
    return [x, Math.max(end - x, 2)];
  }
  state(s, y) {
    const b = this.box(s.t, s.u), c = this.c, p = this.colours, h = this.l.rowHeight;
    if (!b) return;
    c.globalAlpha = this.filter.says(s.s) || !this.filter.active ? 1 : .35;
    c.fillStyle = p[s.c + 'Soft']; c.fillRect(b[0], y + 2, b[1], h - 4);
    c.fillStyle = p[s.c]; c.fillRect(b[0], y + 2, b[1], 2); c.fillRect(b[0], y + 2, 1.5, h - 4);
    if (s.c === 'unknown' || s.c === 'bad') this.hatch(b, y, h, p[s.c], s.c === 'bad' ? 9 : 5);
    if (b[1] > 22) { c.fillStyle = p[s.c === 'quiet' ? 'dim' : s.c]; c.fillText(this.cut(s.s, b[1] - 8), b[0] + 5, y + h / 2 + 2); }
    c.globalAlpha = 1;
  }
  hatch([x, w], y, h, colour, gap) {
    const c = this.c;
    c.save(); c.beginPath(); c.rect(x, y + 4, w, h - 6); c.clip();
    c.globalAlpha *= .28; c.strokeStyle = colour; c.lineWidth = 1; c.beginPath();
    const end = Math.min(x + w, this.l.width) + h;
    for (let at = x - x % gap; at < end; at += gap) { c.moveTo(at, y); c.lineTo(at - h, y + h); }
    c.stroke(); c.restore();
  }
  band(b, y) {
    const box = this.box(b.t, b.u), c = this.c, p = this.colours, h = this.l.rowHeight;
    if (!box) return;
    c.fillStyle = p[b.c + 'Soft']; c.fillRect(box[0], y + 2, box[1], h - 4);
    c.strokeStyle = p[b.c]; c.lineWidth = 1; c.strokeRect(box[0] + .5, y + 2.5, Math.max(1, box[1] - 1), h - 5);
    this.beside(b, box, y, p[b.c]);
  }
  // The name of something stands in it, or beside it where there is nothing else.
  beside(b, box, y, colour) {
    const c = this.c, l = this.l, row = this.t.byRow[b.r], list = row.bands.length ? row.bands : row.windows;
    const next = list[list.indexOf(b) + 1];
    const room = (next ? Math.max(l.x(next.t), box[0]) : l.width) - box[0] - 6;
    const inside = box[1] - 8;
    c.fillStyle = colour;
    if (inside > 60 || c.measureText(b.s).width < inside) c.fillText(this.cut(b.s, inside), box[0] + 5, y + l.rowHeight / 2 + 1);
    else if (room - box[1] > 24) c.fillText(this.cut(b.s, room - box[1]), box[0] + box[1] + 4, y + l.rowHeight / 2 + 1);
  }
  window(w, y) {
    const c = this.c, p = this.colours, h = this.l.rowHeight;
    const whole = this.box(w.t, Math.max(w.u, w.x)), took = this.box(w.t, w.x), allowed = this.box(w.t, w.u);
    if (!whole) return;
    // No line crosses the words: the frame is that of the row.
    if (took) { c.fillStyle = p[w.c + 'Soft']; c.fillRect(took[0], y + 2, took[1], h - 4); c.fillStyle = p[w.c]; c.fillRect(took[0] + took[1] - 2, y + 2, 2.5, h - 4); }
    if (allowed) { c.strokeStyle = p.allowed; c.strokeRect(allowed[0] + .5, y + 1.5, Math.max(1, allowed[1] - 1), h - 3); }
    // The words stand in what it took or behind it, where there is more room.
    const behind = took ? whole[0] + whole[1] - took[0] - took[1] : 0;
    this.beside(w, !took ? whole : behind > took[1] ? [took[0] + took[1], behind] : took, y, p[w.c === 'ok' ? 'dim' : w.c]);
  }
  ticks(row, y) {
    const l = this.l, c = this.c, p = this.colours, list = row.events, events = this.t.events, h = l.rowHeight;
    let lastX = -9, lastRank = -1;
    for (let n = lowerBound(list, events, l.from - row.longest); n < list.length; n++) {
      const e = events[list[n]];
      if ((e.b || e.t) > l.to && e.t > l.to) break;
      if (!this.filter.visible[list[n]]) continue;
      const x = Math.round(l.x(e.t)), rank = RANK[e.c], from = e.b === undefined ? x : Math.max(l.x(e.b), l.gutter - 2), tall = TICK[e.c];
      if (x === lastX && rank <= lastRank && x - from < 1.5 && !e.n) continue;
      lastX = x; lastRank = rank;
      c.fillStyle = p[e.c];
      if (x - from > 3) { c.globalAlpha = .45; c.fillRect(from, y + h / 2 - 2, x - from, 4); c.globalAlpha = 1; c.fillRect(from, y + h / 2 - 4, 1, 8); }
      if (e.n) this.folded(e, x, y, h);
      c.fillRect(x - 1, y + (h - tall) / 2, e.c === 'bad' ? 3 : 2, tall);
    }
  }
  folded(e, x, y, h) {
    const c = this.c, to = this.l.x(e.u);
    c.globalAlpha = .5;
    for (let at = x + 3; at < Math.min(to, this.l.width); at += 4) c.fillRect(at, y + h / 2 - 1, 2, 2);
    c.globalAlpha = 1;
    if (to - x > 40) { const text = '×' + (e.n + 1); c.fillText(text, x + 6, y + h / 2 - 4); }
  }
  triangle(c, x, y, colour, size) {
    c.fillStyle = colour; c.beginPath(); c.moveTo(x - size, y - size * 1.7); c.lineTo(x + size, y - size * 1.7); c.lineTo(x, y); c.fill();
  }
  marks(chosen) {
    const rest = this.t.marks.filter((m, i) => !chosen || chosen.mark !== i);
    for (const m of rest) this.markWindow(m, false);
    for (const m of rest) this.mark(m, false);
    if (chosen && chosen.mark !== undefined && chosen.mark >= 0) { this.markWindow(this.t.marks[chosen.mark], true); this.mark(this.t.marks[chosen.mark], true); }
  }
  // The window that was allowed: beside the violation, and where it shows.
  markWindow(m, chosen) {
    const c = this.c, l = this.l, p = this.colours, h = l.rowHeight, b = m.w ? this.box(m.b || 0, m.u) : null;
    if (!b) return;
    const own = l.tops[m.r], there = m.x >= 0 && chosen ? l.tops[m.x] : -1;
    c.strokeStyle = p.allowed; c.lineWidth = chosen ? 2 : 1;
    if (own >= 0) {
      c.fillStyle = p.okSoft; c.fillRect(b[0], own + 3, b[1], h - 6);
      c.strokeRect(b[0] + .5, own + 2.5, Math.max(1, b[1] - 1), h - 5);
      c.fillStyle = p.allowed; c.fillText(this.cut('allowed until ' + offset(m.u), b[1] - 16), b[0] + 5, own + h / 2 + 1);
    }
    if (there >= 0) c.strokeRect(b[0] + .5, there + 1.5, Math.max(1, b[1] - 1), h - 3);
    c.lineWidth = 1;
  }
  // A violation: a line through everything, a triangle and its name.
  mark(m, chosen) {
    const c = this.c, l = this.l, p = this.colours, colour = m.excused ? p.warn : p.bad, h = l.rowHeight, x = l.x(m.t), y = l.tops[m.r];
    c.globalAlpha = chosen ? .9 : .3; c.fillStyle = colour;
    c.fillRect(x - (chosen ? 1 : .5), 0, chosen ? 2 : 1, l.height);
    c.globalAlpha = 1;
    if (y < 0) return;
    this.triangle(c, x, y + h - 2, colour, chosen ? 7 : 5);
    const next = this.t.marks.find((o) => o.r === m.r && o.t > m.t), name = m.id + (m.where ? ' ' + m.where : '');
    const right = (next && !chosen ? l.x(next.w ? Math.min(next.b || 0, next.t) : next.t) : l.width) - x - 14;
    const left = right < 40 && x - l.gutter > 90, text = this.cut(name, left ? x - l.gutter - 20 : right);
    if (!text) return;
    const wide = c.measureText(text).width, at = left ? x - 12 - wide : x + 11;
    c.fillStyle = p.bg; c.fillRect(at - 2, y + 2, wide + 4, h - 4);
    c.fillStyle = colour; c.fillText(text, at, y + h / 2 + 1);
  }
  chosen(chosen) {
    if (!chosen || chosen.event === undefined || chosen.event < 0) return;
    const e = this.t.events[chosen.event], l = this.l, c = this.c, p = this.colours, y = l.tops[e.r];
    if (y < 0) return;
    c.strokeStyle = p.focus; c.lineWidth = 2; c.strokeRect(l.x(e.b === undefined ? e.t : e.b) - 4, y + .5, l.x(e.t) - l.x(e.b === undefined ? e.t : e.b) + 8, l.rowHeight - 1); c.lineWidth = 1;
    c.globalAlpha = .5; c.fillStyle = p.focus; c.fillRect(l.x(e.t) - .5, 0, 1, l.height); c.globalAlpha = 1;
  }
}
