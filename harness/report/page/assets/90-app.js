// The page: which part is shown, by its address.
const app = {
  timelines: new Map(),
  sections: [...document.querySelectorAll('main > section')],
  start() {
    document.documentElement.classList.add('js');
    theme.start();
    for (const b of document.querySelectorAll('button.show')) {
      const section = b.closest('section.run');
      if (!section) continue;
      b.hidden = false;
      b.addEventListener('click', async () => (await this.timeline(section)).jump(Number(b.dataset.mark)));
    }
    addEventListener('hashchange', () => this.route());
    addEventListener('keydown', (ev) => { const t = this.timelines.get(this.now); if (t && !ev.defaultPrevented) t.key(ev); });
    return this.route();
  },
  async route() {
    const runs = this.sections.filter((s) => s.classList.contains('run'));
    const id = decodeURIComponent(location.hash.slice(1));
    let section = this.sections.find((s) => s.id === id);
    if (!section) section = runs.length === 1 && id !== 'summary' ? runs[0] : this.sections[0];
    for (const s of this.sections) s.hidden = s !== section;
    this.now = section;
    if (id) scrollTo(0, 0);
    if (section.querySelector('.slot')) await this.timeline(section);
  },
  async timeline(section) {
    if (!this.timelines.has(section)) {
      const slot = section.querySelector('.slot');
      this.timelines.set(section, null);
      try {
        this.timelines.set(section, new Timeline(slot, await unpack('data-' + section.dataset.run), section.id));
      } catch (err) {
        slot.textContent = 'This browser could not draw the timeline: ' + err;
        throw err;
      }
    }
    return this.timelines.get(section);
  },
  // How long drawing takes, for the test of the page: full views, and zooming through them.
  measure(frames) {
    const t = this.timelines.get(this.now), times = [];
    for (let i = 0; i < frames; i++) {
      const width = t.t.span * (i % 4 === 0 ? 1 : 1 / (1 + i % 40));
      t.layout.show((i / frames) * (t.t.span - width), (i / frames) * (t.t.span - width) + width);
      const began = performance.now();
      t.draw();
      t.canvas.getContext('2d').getImageData(0, 0, 1, 1); // what was asked for has been drawn
      times.push(performance.now() - began);
    }
    t.layout.fit(); t.draw();
    times.sort((a, b) => a - b);
    return { median: times[times.length >> 1], p95: times[Math.floor(times.length * .95)], max: times[times.length - 1], frames };
  },
};
window.kmsharness = app;
app.ready = app.start();
