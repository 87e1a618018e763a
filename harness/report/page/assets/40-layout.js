// Where rows are, and which instant is where.
class Layout {
  constructor(t, filter) {
    this.t = t; this.filter = filter;
    this.from = 0; this.to = t.span; this.width = 800;
    this.margin = t.span * 0.01 + 1;
    this.fit();
  }
  resize(width) {
    this.width = width;
    this.small = width < 620;
    this.gutter = this.small ? 96 : 148;
    this.rowHeight = matchMedia('(pointer: coarse)').matches ? 22 : 19;
    this.headHeight = 22;
    this.place();
  }
  place() {
    let y = 0, group = -1;
    this.tops = []; this.heads = [];
    this.t.rows.forEach((row, i) => {
      if (this.filter.hides(row)) { this.tops[i] = -1; return; }
      if (row.g !== group) {
        group = row.g;
        this.heads.push({ g: group, y, end: y });
        y += this.headHeight;
      }
      this.tops[i] = y;
      y += this.rowHeight;
      this.heads[this.heads.length - 1].end = y;
    });
    this.height = y + 6;
  }
  x(ms) { return this.gutter + (ms - this.from) / (this.to - this.from) * (this.width - this.gutter - 8); }
  ms(x) { return this.from + (x - this.gutter) / (this.width - this.gutter - 8) * (this.to - this.from); }
  rowAt(y) { return this.tops.findIndex((top) => top >= 0 && y >= top && y < top + this.rowHeight); }
  show(from, to) {
    const least = 0.05, low = -this.margin, high = this.t.span + this.margin;
    let span = Math.min(Math.max(to - from, least), high - low);
    from = Math.min(Math.max(from + (to - from - span) / 2, low), high - span);
    this.from = from; this.to = from + span;
  }
  fit() { this.show(-this.margin, this.t.span + this.margin); }
  zoom(factor, at = (this.from + this.to) / 2) { this.show(at - (at - this.from) * factor, at + (this.to - at) * factor); }
  pan(ms) { this.show(this.from + ms, this.to + ms); }
  reveal(at) { const span = this.to - this.from; if (at < this.from + span * .04 || at > this.to - span * .04) this.show(at - span / 2, at + span / 2); }
}
