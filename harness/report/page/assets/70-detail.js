// What is chosen or pointed at, in words and as it stands in the history.
class Detail {
  constructor(element, t) { this.t = t; this.head = element.querySelector('h3'); this.what = element.querySelector('.what'); this.pre = element.querySelector('pre'); }
  lines(list) {
    this.what.replaceChildren(...list.filter((x) => x[1]).flatMap(([name, text, kind]) => {
      const line = document.createElement('div');
      const label = document.createElement('span'); label.className = 'dim'; label.textContent = name ? name + ' ' : '';
      const value = document.createElement('span'); value.textContent = text; if (kind) value.className = kind;
      line.append(label, value);
      return [line];
    }));
    this.what.classList.remove('dim');
  }
  raw(event) {
    this.pre.hidden = event === undefined || event < 0;
    if (this.pre.hidden) return;
    const text = this.t.events[event].j;
    try { this.pre.textContent = JSON.stringify(JSON.parse(text), null, 2); } catch { this.pre.textContent = text; }
  }
  event(i) {
    const e = this.t.events[i], row = this.t.rows[e.r];
    this.head.textContent = e.s;
    this.lines([['at', offset(e.t) + ' (' + clock(this.t, e.t) + ')' + (e.b !== undefined ? ', since ' + offset(e.b) : '')],
      ['lane', this.t.groups[row.g].title + ', ' + row.title + ': ' + row.help],
      ['folded', e.n ? e.n + ' more like it, until ' + offset(e.u) + '; all are in the history' : '']]);
    this.raw(i);
  }
  mark(i) {
    const m = this.t.marks[i];
    this.head.textContent = '▼ ' + m.id + (m.where ? ' ' + m.where : '') + ' at ' + offset(m.t) + ' (' + clock(this.t, m.t) + '), ' + (i + 1) + ' of ' + this.t.marks.length;
    this.lines([['seen', m.seen, m.excused ? 'excused' : 'seen'], ['allowed', m.allowed, 'allowed'],
      ['window', m.w ? 'from ' + offset(m.b || 0) + ' until ' + offset(m.u) + ', ' + ((m.u - (m.b || 0)) / 1000).toFixed(3) + 's were allowed' : ''],
      ['excused', m.excused],
      [m.e >= 0 ? 'the event that shows it' : '', m.e >= 0 ? this.t.events[m.e].s : 'nothing happened: the absence of an event is the violation']]);
    this.raw(m.e);
  }
  span(x, name) {
    this.head.textContent = x.s;
    this.lines([[name, 'from ' + offset(x.t) + ' to ' + offset(x.x === undefined ? x.u : x.x) + ', ' + (((x.x === undefined ? x.u : x.x) - x.t) / 1000).toFixed(3) + 's'],
      ['allowed', x.x === undefined ? '' : 'until ' + offset(x.u), 'allowed']]);
    this.raw(x.e);
  }
}
