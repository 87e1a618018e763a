// What is shown: the lanes that are chosen, and the events that hold every word of the filter.
class Filter {
  constructor(t) { this.t = t; this.hidden = new Set(); this.dull = t.rows.some((r) => r.dull); this.words = []; this.apply(); }
  hides(row) { return this.hidden.has(row.g) || this.dull && row.dull; }
  setText(text) { this.words = text.toLowerCase().split(/\s+/).filter(Boolean); this.apply(); }
  setLane(group, on) { if (on) this.hidden.delete(group); else this.hidden.add(group); this.apply(); }
  get active() { return this.words.length > 0; }
  matches(e) {
    if (!this.active) return true;
    e.low = e.low || (this.t.rows[e.r].title + ' ' + this.t.groups[this.t.rows[e.r].g].title + ' ' + e.k + ' ' + e.s + ' ' + e.j).toLowerCase();
    return this.words.every((w) => e.low.includes(w));
  }
  says(text) { const low = text.toLowerCase(); return !this.active || this.words.every((w) => low.includes(w)); }
  apply() {
    this.shown = [];
    this.visible = new Uint8Array(this.t.events.length);
    this.t.events.forEach((e, i) => {
      if (this.hidden.has(this.t.rows[e.r].g) || !this.matches(e)) return;
      this.visible[i] = 1;
      this.shown.push(i);
    });
  }
}
