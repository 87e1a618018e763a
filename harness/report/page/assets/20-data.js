// A timeline is packed into the page: base64 of gzip of JSON.
async function unpack(id) {
  const text = document.getElementById(id).textContent.trim();
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return index(JSON.parse(await new Response(stream).text()));
}

// What drawing and looking up need, once for each timeline.
function index(t) {
  for (const list of ['groups', 'rows', 'events', 'states', 'bands', 'windows', 'marks']) t[list] = t[list] || [];
  t.byRow = t.rows.map(() => ({ events: [], states: [], bands: [], windows: [], longest: 0 }));
  t.events.forEach((e, i) => {
    const row = t.byRow[e.r];
    row.events.push(i);
    row.longest = Math.max(row.longest, (e.u || e.t) - e.t, e.t - (e.b || e.t));
  });
  for (const list of ['states', 'bands', 'windows']) for (const x of t[list]) t.byRow[x.r][list].push(x);
  // The order of a list is that of when something ended; drawing wants the order of when it began.
  for (const row of t.byRow) for (const list of ['states', 'bands', 'windows']) row[list].sort((a, b) => a.t - b.t);
  return t;
}

// Place in a sorted list of indexes of events: the first one not before an instant.
function lowerBound(list, events, at) {
  let low = 0, high = list.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (events[list[mid]].t < at) low = mid + 1; else high = mid;
  }
  return low;
}

function offset(ms, digits = 3) { return (ms < 0 ? '−' : '+') + (Math.abs(ms) / 1000).toFixed(digits) + 's'; }
function clock(t, ms) { return new Date(Date.parse(t.began) + ms).toISOString().slice(11, 23) + 'Z'; }
