// The list of events. Only the rows in sight exist.
class List {
  constructor(element, t, filter, choose) {
    this.element = element; this.t = t; this.filter = filter; this.height = 22;
    element.addEventListener('scroll', () => this.draw());
    element.addEventListener('click', (ev) => { const row = ev.target.closest('.row'); if (row) choose(Number(row.dataset.event)); });
    element.addEventListener('keydown', (ev) => {
      const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 12, PageUp: -12 }[ev.key];
      if (!step || !filter.shown.length) return;
      ev.preventDefault(); ev.stopPropagation();
      const at = filter.shown.indexOf(this.now);
      choose(filter.shown[Math.min(Math.max(at + step, 0), filter.shown.length - 1)]);
    });
    this.fill = document.createElement('div');
    element.append(this.fill);
  }
  draw() {
    const shown = this.filter.shown, from = Math.max(0, Math.floor(this.element.scrollTop / this.height) - 5);
    const to = Math.min(shown.length, from + Math.ceil(this.element.clientHeight / this.height) + 10);
    this.fill.style.height = shown.length * this.height + 'px';
    const rows = [];
    for (let n = from; n < to; n++) rows.push(this.row(shown[n], n));
    this.fill.replaceChildren(...rows);
    this.element.setAttribute('aria-activedescendant', rows.some((r) => r.dataset.event === String(this.now)) ? this.id(this.now) : '');
  }
  id(event) { return this.element.dataset.prefix + '-event-' + event; }
  row(event, n) {
    const e = this.t.events[event], row = document.createElement('div'), at = document.createElement('b');
    row.className = 'row'; row.id = this.id(event); row.dataset.event = event;
    row.setAttribute('role', 'option'); row.setAttribute('aria-selected', String(event === this.now));
    row.setAttribute('aria-posinset', n + 1); row.setAttribute('aria-setsize', this.filter.shown.length);
    row.style.top = n * this.height + 'px'; row.style.borderLeftColor = 'var(--' + e.c + ')';
    at.textContent = offset(e.t);
    row.append(at, (e.n ? '×' + (e.n + 1) + ' ' : '') + e.s);
    return row;
  }
  show(event) {
    this.now = event;
    const n = this.filter.shown.indexOf(event);
    if (n >= 0) {
      const top = n * this.height, box = this.element;
      if (top < box.scrollTop || top > box.scrollTop + box.clientHeight - this.height) box.scrollTop = Math.max(0, top - box.clientHeight / 2);
    }
    this.draw();
  }
}
