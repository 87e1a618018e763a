// Theme: as the system says, or as chosen. A page on a disk may have no storage; then the choice lasts as long as the page.
const theme = {
  order: ['auto', 'light', 'dark'],
  listeners: [],
  read() { try { return localStorage.getItem('kmsharness-theme') || 'auto'; } catch { return 'auto'; } },
  keep(name) { try { localStorage.setItem('kmsharness-theme', name); } catch { /* not kept */ } },
  set(name) {
    if (!this.order.includes(name)) name = 'auto';
    if (name === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    const button = document.getElementById('theme');
    button.textContent = 'Theme: ' + name;
    button.dataset.now = name;
    this.changed();
  },
  changed() { for (const f of this.listeners) f(); },
  start() {
    const button = document.getElementById('theme');
    button.hidden = false;
    button.addEventListener('click', () => {
      const next = this.order[(this.order.indexOf(button.dataset.now) + 1) % this.order.length];
      this.keep(next);
      this.set(next);
    });
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.changed());
    this.set(this.read());
  },
};

// The colours of the style sheet, for the canvas.
function palette() {
  const style = getComputedStyle(document.documentElement);
  const get = (name) => style.getPropertyValue('--' + name).trim();
  const p = { bg: get('bg'), panel: get('panel'), panel2: get('panel2'), line: get('line'), text: get('text'), dim: get('dim'), shade: get('shade'), allowed: get('allowed'), focus: get('focus') };
  for (const c of ['ok', 'bad', 'warn', 'unknown', 'off', 'note', 'quiet']) { p[c] = get(c); p[c + 'Soft'] = get(c + '-soft'); }
  return p;
}
