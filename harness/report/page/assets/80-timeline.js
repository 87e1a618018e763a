// One timeline: what is chosen, and what keys, pointers and buttons do.
class Timeline {
  constructor(slot, t, name) {
    this.t = t;
    const copy = document.getElementById('timeline-template').content.cloneNode(true);
    slot.append(copy);
    this.slot = slot;
    const find = (s) => slot.querySelector(s);
    this.canvas = find('canvas.draw'); this.axis = find('canvas.axis'); this.box = find('.box'); this.search = find('input[type=search]');
    this.filter = new Filter(t);
    this.layout = new Layout(t, this.filter);
    this.painter = new Painter(this.canvas, this.axis, this.layout, this.filter);
    this.detail = new Detail(find('.event'), t);
    find('.rows').dataset.prefix = name;
    this.list = new List(find('.rows'), t, this.filter, (i) => this.chooseEvent(i, true));
    this.canvas.setAttribute('aria-label', 'Timeline of ' + name + ': ' + t.groups.length + ' lanes, ' + t.events.length + ' events, ' + t.marks.length + ' violations. Arrow keys choose an event, v the next violation.');
    find('.folded').textContent = (t.folded ? t.folded + ' of ' + t.total + ' events say the same as their neighbours and are folded into them. ' : '') +
      (t.cut ? 'Of ' + t.cut + ' long events only the beginning is shown. ' : '') + (t.folded || t.cut ? 'The history (history.jsonl, below) has everything.' : '');
    this.buttons(); this.lanes(find('.lanes')); this.keys(); this.pointers();
    this.search.addEventListener('input', () => { this.filter.setText(this.search.value); this.refilter(); });
    new ResizeObserver(() => this.resize()).observe(this.box);
    theme.listeners.push(() => { this.painter.colours = palette(); this.redraw(); });
    this.begin();
    this.resize(); this.refilter();
  }
  // At first the boot of the environment is out of sight, if it took long.
  begin() {
    const boot = this.t.states.find((s) => s.s === 'start' && s.t === 0);
    if (boot && boot.u > this.t.span * .15 && !this.t.marks.some((m) => m.t < boot.u)) this.layout.show(boot.u - this.t.span * .03, this.t.span + this.layout.margin);
  }
  buttons() {
    const act = { first: () => this.jump(0), prev: () => this.step(-1), next: () => this.step(1), in: () => this.zoom(.5), out: () => this.zoom(2), fit: () => { this.layout.fit(); this.redraw(); } };
    for (const b of this.slot.querySelectorAll('[data-do]')) b.addEventListener('click', () => act[b.dataset.do]());
    const quiet = this.slot.querySelector('[data-do=quiet]'), dull = this.t.rows.filter((r) => r.dull).length;
    quiet.hidden = !dull;
    const say = () => { quiet.textContent = (this.filter.dull ? 'Show ' : 'Hide ') + dull + ' quiet rows'; quiet.setAttribute('aria-pressed', String(!this.filter.dull)); };
    act.quiet = () => { this.filter.dull = !this.filter.dull; say(); this.layout.place(); this.resize(); };
    say();
    const none = this.t.marks.length === 0, jump = this.slot.querySelector('[data-do=first]');
    for (const name of ['first', 'prev', 'next']) this.slot.querySelector('[data-do=' + name + ']').disabled = none;
    if (none) jump.textContent = 'No violation'; else if (this.t.marks.some((m) => !m.excused)) jump.classList.add('main');
  }
  lanes(element) {
    this.t.groups.forEach((g, i) => {
      const label = document.createElement('label'), box = document.createElement('input');
      box.type = 'checkbox'; box.checked = true; box.dataset.lane = g.id;
      box.addEventListener('change', () => { this.filter.setLane(i, box.checked); this.layout.place(); this.resize(); this.refilter(); });
      label.append(box, ' ' + g.title);
      element.append(label);
    });
  }
  refilter() {
    const shown = this.filter.shown.length, all = this.t.events.length;
    this.slot.querySelector('.count').textContent = shown === all ? all + ' events' : shown + ' of ' + all + ' events';
    this.list.draw(); this.redraw();
  }
  resize() {
    const width = this.box.clientWidth;
    if (!width) return;
    this.layout.resize(width); this.painter.size(); this.draw(); this.list.draw();
  }
  redraw() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => { this.pending = 0; this.draw(); });
  }
  draw() { if (this.layout.gutter) this.painter.draw(this.chosen); }
  zoom(factor, at) {
    if (at === undefined && this.chosen) at = this.chosen.at;
    if (at !== undefined && (at < this.layout.from || at > this.layout.to)) at = undefined;
    this.layout.zoom(factor, at); this.redraw();
  }
  chooseEvent(i, scroll) {
    if (i === undefined || i < 0) return;
    const e = this.t.events[i];
    this.chosen = { event: i, at: e.t, row: e.r };
    this.layout.reveal(e.t);
    if (this.t.rows[e.r].dull && this.filter.dull) this.slot.querySelector('[data-do=quiet]').click();
    if (scroll) this.scrollTo(e.r);
    this.detail.event(i); this.list.show(i); this.redraw();
  }
  jump(i) {
    const m = this.t.marks[i];
    if (!m) return;
    this.chosen = { mark: i, at: m.t, row: m.x >= 0 ? m.x : m.r, event: m.e };
    const from = m.w ? Math.min(m.b || 0, m.t) : m.t, room = Math.max((m.t - from) * .3, this.t.span * .2, 200);
    this.layout.show(from - room, m.t + room);
    this.scrollTo(m.r);
    this.detail.mark(i); if (m.e >= 0) this.list.show(m.e); this.redraw();
    const top = this.slot.querySelector('.tools').getBoundingClientRect().top;
    if (top < 0 || top > innerHeight * .25) this.slot.querySelector('.tools').scrollIntoView();
    this.canvas.focus({ preventScroll: true });
  }
  step(by) {
    const n = this.t.marks.length;
    if (!n) return;
    const now = this.chosen && this.chosen.mark;
    this.jump(now === undefined ? (by > 0 ? 0 : n - 1) : (now + by + n) % n);
  }
  scrollTo(r) {
    const y = this.layout.tops[r];
    if (y < 0) return;
    const top = this.box.scrollTop, room = this.box.clientHeight - 40;
    if (y < top || y > top + room - this.layout.rowHeight * 2) this.box.scrollTop = Math.max(0, y - room / 3);
  }
  // The next event of the row that is chosen, or of a row beside it.
  walk(by, rows) {
    const t = this.t, l = this.layout;
    let r = this.chosen && this.chosen.row !== undefined ? this.chosen.row : l.tops.findIndex((y) => y >= 0);
    const at = this.chosen ? this.chosen.at : l.from;
    const inRow = (row) => t.byRow[row].events.filter((i) => this.filter.visible[i]);
    if (rows) {
      do r += rows; while (t.rows[r] && (l.tops[r] < 0 || !inRow(r).length));
      if (!t.rows[r]) return;
      const list = inRow(r), n = lowerBound(list, t.events, at), before = list[n - 1], after = list[n];
      const near = before === undefined || after !== undefined && t.events[after].t - at < at - t.events[before].t ? after : before;
      return this.chooseEvent(near, true);
    }
    const list = inRow(r), now = list.indexOf(this.chosen ? this.chosen.event : -1);
    if (!list.length) return this.walk(0, 1);
    this.chooseEvent(now >= 0 ? list[Math.min(Math.max(now + by, 0), list.length - 1)] : list[Math.min(Math.max(lowerBound(list, t.events, at) - (by < 0 ? 1 : 0), 0), list.length - 1)], true);
  }
  keys() {
    const act = {
      v: () => this.chosen && this.chosen.mark !== undefined ? this.step(1) : this.jump(0), V: () => this.step(-1), '+': () => this.zoom(.5), '=': () => this.zoom(.5), '-': () => this.zoom(2), '−': () => this.zoom(2),
      0: () => { this.layout.fit(); this.redraw(); }, '/': () => this.search.focus(),
    };
    this.key = (ev) => {
      if (ev.ctrlKey || ev.metaKey || ev.altKey || ev.target.closest('input, select, textarea') || !act[ev.key]) return false;
      ev.preventDefault(); act[ev.key](); return true;
    };
    const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    this.canvas.addEventListener('keydown', (ev) => {
      const a = arrows[ev.key], span = this.layout.to - this.layout.from;
      if (ev.key === 'Escape') { this.chosen = undefined; return this.redraw(); }
      if (ev.key === 'Home' || ev.key === 'End') { ev.preventDefault(); return this.chooseEvent(this.filter.shown.at(ev.key === 'Home' ? 0 : -1), true); }
      if (!a) return;
      ev.preventDefault();
      if (ev.shiftKey && a[0]) { this.layout.pan(a[0] * span * .15); return this.redraw(); }
      this.walk(a[0], a[1]);
    });
  }
  // What is below a pointer: a violation, an event near it, or what is going on there.
  hit(x, y) {
    const l = this.l = this.layout, t = this.t, r = l.rowAt(y);
    if (r < 0 || x < l.gutter) return null;
    if (t.marks.some((m) => m.r === r)) {
      const near = t.marks.map((m, i) => [m.r === r ? Math.abs(l.x(m.t) - x) : 1e9, i]).sort((a, b) => a[0] - b[0])[0];
      return near && near[0] < 14 ? { mark: near[1], text: t.marks[near[1]].id + ': ' + t.marks[near[1]].seen, at: t.marks[near[1]].t } : null;
    }
    const row = t.byRow[r], at = l.ms(x), around = (x2) => Math.abs(x2 - x);
    let best = -1;
    if (!row.bands.length && !row.windows.length) {
      const n = lowerBound(row.events, t.events, at);
      for (let k = Math.max(0, n - 40); k < Math.min(row.events.length, n + 40); k++) {
        const i = row.events[k], e = t.events[i];
        if (!this.filter.visible[i]) continue;
        const off = e.b !== undefined && at >= e.b && at <= e.t ? 0 : around(l.x(e.t));
        if (off < 7 && (best < 0 || off < around(l.x(t.events[best].t)))) best = i;
      }
    }
    if (best >= 0) return { event: best, text: t.events[best].s, at: t.events[best].t };
    for (const [list, name] of [[row.bands, 'in force'], [row.windows, 'judged'], [row.states, 'was so']]) {
      const x = list.find((s) => at >= s.t && at <= Math.max(s.u, s.x || 0, l.ms(l.x(s.t) + 4)));
      if (x) return { span: x, name, text: x.s, at: x.t };
    }
    return null;
  }
  tell(found) {
    if (found.mark !== undefined) this.detail.mark(found.mark);
    else if (found.span) this.detail.span(found.span, found.name);
    else this.detail.event(found.event);
  }
  pointers() {
    const held = new Map(), tip = document.createElement('div');
    tip.className = 'tip'; tip.hidden = true; this.slot.append(tip);
    let moved = 0, apart = 0;
    const place = (ev) => { const b = this.canvas.getBoundingClientRect(); return [ev.clientX - b.left, ev.clientY - b.top]; };
    const say = (ev) => {
      const found = this.hit(...place(ev));
      tip.hidden = !found;
      if (!found) return;
      const b = document.createElement('b'); b.textContent = offset(found.at);
      tip.replaceChildren(b, found.text.slice(0, 240));
      tip.style.left = Math.max(4, Math.min(ev.clientX + 14, innerWidth - tip.offsetWidth - 8)) + 'px';
      tip.style.top = (ev.clientY + 18 + tip.offsetHeight > innerHeight ? ev.clientY - tip.offsetHeight - 10 : ev.clientY + 18) + 'px';
      if (!this.chosen) this.tell(found);
    };
    this.canvas.addEventListener('pointerdown', (ev) => { held.set(ev.pointerId, [ev.clientX, ev.clientY]); moved = 0; apart = 0; this.canvas.setPointerCapture(ev.pointerId); });
    this.canvas.addEventListener('pointermove', (ev) => {
      const was = held.get(ev.pointerId);
      if (!was) return say(ev);
      tip.hidden = true;
      const span = this.layout.to - this.layout.from, wide = this.layout.width - this.layout.gutter;
      held.set(ev.pointerId, [ev.clientX, ev.clientY]);
      moved += Math.abs(ev.clientX - was[0]);
      if (held.size === 2) {
        const [a, b] = [...held.values()], now = Math.abs(a[0] - b[0]);
        if (apart > 8 && now > 8) this.layout.zoom(apart / now, this.layout.ms((a[0] + b[0]) / 2 - this.canvas.getBoundingClientRect().left));
        apart = now;
      } else this.layout.pan((was[0] - ev.clientX) / wide * span);
      this.redraw();
    });
    const up = (ev) => {
      if (held.delete(ev.pointerId) && moved < 5 && ev.type === 'pointerup') {
        const found = this.hit(...place(ev));
        if (!found) { this.chosen = undefined; this.redraw(); return; }
        if (found.mark !== undefined) return this.jump(found.mark);
        if (found.event !== undefined) return this.chooseEvent(found.event);
        this.chosen = { at: found.at, event: found.span.e, row: found.span.r }; this.tell(found); this.list.show(found.span.e); this.redraw();
      }
    };
    for (const name of ['pointerup', 'pointercancel']) this.canvas.addEventListener(name, up);
    this.canvas.addEventListener('pointerleave', () => { tip.hidden = true; });
    this.canvas.addEventListener('wheel', (ev) => {
      if (ev.ctrlKey || ev.metaKey) { ev.preventDefault(); this.layout.zoom(Math.exp(ev.deltaY * .004), this.layout.ms(place(ev)[0])); this.redraw(); }
      else if (Math.abs(ev.deltaX) > Math.abs(ev.deltaY) || ev.shiftKey) { ev.preventDefault(); this.layout.pan((ev.deltaX || ev.deltaY) / this.layout.width * (this.layout.to - this.layout.from)); this.redraw(); }
    }, { passive: false });
  }
}
