package render_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/kmsharness/kmsharness/conformance"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/report/render"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/internal/atomicfile"
)

// screenshotsEnv names a folder that keeps the screenshots.
const screenshotsEnv = "KMSHARNESS_SCREENSHOTS"

// browser is a headless Chromium with one tab. What the page complains of, and what it asks a network for, is collected.
type browser struct {
	t     *testing.T
	ctx   context.Context
	shots string

	mu         sync.Mutex
	complaints []string
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "headless-shell"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("no Chromium on this machine: install Debian's packages chromium and fonts-dejavu-core to test the page in a browser")
	}
	b := &browser{t: t, shots: os.Getenv(screenshotsEnv)}
	if b.shots == "" {
		b.shots = t.TempDir()
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("hide-scrollbars", true), chromedp.WSURLReadTimeout(2*time.Minute))
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // t's own ends before the browser is told to
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	b.ctx, cancel = chromedp.NewContext(ctx, chromedp.WithListener(b.listen))
	t.Cleanup(func() {
		if err := chromedp.Cancel(b.ctx); err != nil {
			t.Logf("end the browser: %v", err)
		}
		cancel()
	})
	call(b, network.Enable, network.EnableParams{})
	call(b, log.Enable, cdp.Empty{})
	return b
}

func (b *browser) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.complaints = append(b.complaints, e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			b.complaints = append(b.complaints, fmt.Sprintf("console.%s", e.Type))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError {
			b.complaints = append(b.complaints, e.Entry.Text)
		}
	case *network.EventRequestWillBeSent:
		if url := e.Request.URL; !strings.HasPrefix(url, "file:") && !strings.HasPrefix(url, "data:") && !strings.HasPrefix(url, "blob:") {
			b.complaints = append(b.complaints, "the page asked for "+url)
		}
	}
}

func (b *browser) quiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.complaints {
		b.t.Errorf("the browser complains: %s", c)
	}
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// call runs a command of the browser's protocol.
func call[P, R any](b *browser, command cdp.Command[P, R], params P) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, command, params); err != nil {
		b.t.Fatal(err)
	}
}

// open opens a page of a size and waits until it is drawn.
func (b *browser) open(file, hash string, width, height int64, dark bool) {
	b.t.Helper()
	scheme := map[bool]string{true: "dark", false: "light"}[dark]
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	var phone []chromedp.EmulateViewportOption
	if width < 600 {
		phone = append(phone, chromedp.EmulateMobile, chromedp.EmulateTouch)
	}
	b.do(chromedp.EmulateViewport(width, height, phone...), chromedp.Navigate("about:blank"), chromedp.Navigate("file://"+file+hash), b.ready())
}

// ready waits until what was asked for has been drawn.
func (b *browser) ready() chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		const drawn = `(typeof kmsharness === 'undefined' ? Promise.resolve() : kmsharness.ready).then(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true)))))`
		_, err := chromedp.Evaluate[bool](drawn, chromedp.EvalAwaitPromise)(ctx, t)
		return chromedp.Void{}, err
	}
}

func click(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.Click(chromedp.CSS(selector))
}

func eval[T any](b *browser, script string) T {
	b.t.Helper()
	out, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](script))
	if err != nil {
		b.t.Fatalf("%s: %v", script, err)
	}
	return out
}

func (b *browser) shot(name string) {
	b.t.Helper()
	b.do(b.ready())
	data, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	err = atomicfile.WriteTo(filepath.Join(b.shots, name+".png"), func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// expect checks a fact of the page, given as JavaScript.
func (b *browser) expect(what, script string) {
	b.t.Helper()
	if !eval[bool](b, "!!("+script+")") {
		b.t.Errorf("not so: %s (%s)", what, script)
	}
}

// drawn counts the points of the timeline in a colour of the style sheet.
const drawn = `((name) => {
  const probe = document.createElement('canvas').getContext('2d');
  probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim(); probe.fillRect(0, 0, 1, 1);
  const [r, g, b] = probe.getImageData(0, 0, 1, 1).data, canvas = document.querySelector('section:not([hidden]) canvas.draw');
  const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  let n = 0;
  for (let i = 0; i < data.length; i += 4) if (data[i] === r && data[i + 1] === g && data[i + 2] === b) n++;
  return n;
})`

const timeline = `kmsharness.timelines.get(kmsharness.now)`

// A page is used as a person would use it: by keyboard, on a desk and on a phone, in the light and in the dark.
func TestPageInABrowser(t *testing.T) {
	b := newBrowser(t)
	out := t.TempDir()
	simulate(t, out, virtual.Options{}, "plugin-hangs", "node-cut-off", "kek-rotation")
	simulate(t, out, wrong(t), "plugin-unhealthy")
	file := write(t, render.Options{Dirs: []string{out}, Out: out}).Page

	b.open(file, "", 1400, 1000, false)
	b.expect("the summary is shown, and nothing else", `kmsharness.now.id === 'summary' && document.querySelectorAll('main > section:not([hidden])').length === 1`)
	b.expect("the matrix has a row for each scenario", `document.querySelectorAll('#matrix tbody th[scope=row]').length === 4`)
	b.shot("summary-light")
	b.do(click(`a[href="#sim.plugin-unhealthy"]`), chromedp.WaitVisible(chromedp.CSS(`section:not([hidden]) canvas.draw`)), b.ready())
	b.expect("the timeline has lanes for each node", timeline+`.t.groups.filter((g) => g.id.startsWith('node/')).length === 3`)
	b.expect("good and bad things are drawn", drawn+`('ok') > 500 && `+drawn+`('bad') > 50 && `+drawn+`('text') > 50`)
	b.shot("failed-light")

	b.do(chromedp.KeyEvent("v"), b.ready())
	b.expect("v goes to the first violation", timeline+`.chosen.mark === 0 && document.activeElement.matches('canvas.draw')`)
	b.expect("its window is in sight", `((l, m) => l.from < (m.w ? m.b || 0 : m.t) && m.t < l.to)(`+timeline+`.layout, `+timeline+`.t.marks[0])`)
	b.expect("what was seen and allowed is told", `document.querySelector('section:not([hidden]) .event .seen').textContent && document.querySelector('section:not([hidden]) .event .allowed').textContent`)
	b.shot("failed-violation-light")
	b.do(chromedp.KeyEvent("0"))
	b.shot("failed-whole-light")
	b.do(chromedp.KeyEvent("v"), b.ready())
	b.expect("v again goes to the next one", timeline+`.chosen.mark === 1`)
	few := eval[float64](b, timeline+`.layout.height`)
	b.do(click(`section:not([hidden]) [data-do=quiet]`), b.ready())
	if more := eval[float64](b, timeline+`.layout.height`); more <= few {
		t.Errorf("quiet rows take no room: %v without, %v with them", few, more)
	}
	b.do(chromedp.KeyEvent("v"), chromedp.KeyEvent(kb.Escape), chromedp.KeyEvent(kb.Home), b.ready())
	b.expect("an event is chosen by keyboard, and shown as JSON", timeline+`.chosen.event === 0 && JSON.parse(document.querySelector('section:not([hidden]) .event pre').textContent).kind === 'run'`)
	b.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowRight), b.ready())
	b.expect("arrows go on from there", timeline+`.chosen.event > 0`)
	b.do(chromedp.KeyEvent("0"), chromedp.KeyEvent("+"), b.ready())
	b.expect("+ zooms in", timeline+`.layout.to - `+timeline+`.layout.from < `+timeline+`.t.span * .6`)

	all := eval[int](b, timeline+`.filter.shown.length`)
	b.do(chromedp.KeyEvent("/"), chromedp.KeyEvent("cp-2 healthz"), b.ready())
	left := eval[int](b, timeline+`.filter.shown.length`)
	if left == 0 || left >= all {
		t.Errorf("%d of %d events are left by the filter", left, all)
	}
	b.expect("only what matches is listed", `[...document.querySelectorAll('section:not([hidden]) .rows .row')].every((r) => r.textContent.includes('cp-2'))`)
	b.expect("an empty filter shows all again", `((s) => { s.value = ''; s.dispatchEvent(new Event('input')); return `+timeline+`.filter.shown.length === `+fmt.Sprint(all)+`; })(document.querySelector('section:not([hidden]) input[type=search]'))`)
	before := eval[float64](b, timeline+`.layout.height`)
	b.do(click(`section:not([hidden]) details.filter summary`), click(`section:not([hidden]) input[data-lane="node/cp-3"]`), b.ready())
	if after := eval[float64](b, timeline+`.layout.height`); after >= before {
		t.Errorf("a lane that is switched off still takes room: %v before, %v after", before, after)
	}

	light := eval[string](b, `getComputedStyle(document.body).backgroundColor`)
	b.do(click(`#theme`), click(`#theme`), b.ready())
	b.expect("the switch makes it dark", `document.documentElement.dataset.theme === 'dark' && getComputedStyle(document.body).backgroundColor !== '`+light+`'`)
	b.do(click(`#theme`))

	b.open(file, "#sim.plugin-unhealthy", 1400, 1000, true)
	b.do(chromedp.KeyEvent("v"))
	b.shot("failed-violation-dark")
	b.open(file, "#sim.plugin-hangs", 1400, 1000, true)
	b.shot("passed-dark")
	b.open(file, "#sim.plugin-hangs", 1400, 1000, false)
	b.expect("a good run has no violation to go to", `document.querySelector('section:not([hidden]) [data-do=first]').disabled`)
	b.shot("passed-light")
	for hash, name := range map[string]string{"": "summary-phone", "#sim.plugin-unhealthy": "failed-phone", "#sim.plugin-hangs": "passed-phone"} {
		b.open(file, hash, 390, 844, name == "failed-phone")
		b.expect("nothing is wider than a phone", `document.documentElement.scrollWidth <= 390`)
		b.shot(name)
		if name == "failed-phone" {
			b.do(click(`section:not([hidden]) [data-do=first]`))
			b.shot("failed-phone-violation")
		}
	}
	b.quiet()
}

// Words that Chromium broke, or that reach out of the page.
const broken = `((width) => {
  const bad = [], range = document.createRange(), walk = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
  for (let n; (n = walk.nextNode());) {
    if (!n.parentElement.offsetParent || n.parentElement.closest('script, style, template, code, small, dd, .rows')) continue;
    for (const m of n.data.matchAll(/[A-Za-z]+/g)) {
      range.setStart(n, m.index); range.setEnd(n, m.index + m[0].length);
      if (range.getClientRects().length > 1) bad.push(m[0]);
    }
  }
  if (document.documentElement.scrollWidth > width) bad.push('the page is ' + document.documentElement.scrollWidth + ' pixels wide');
  return bad.join(', ');
})`

// Both pages can be read on a wide and on a narrow screen, in the light and in the dark, and what is excused looks otherwise than what failed.
func TestPagesOfBothWidths(t *testing.T) {
	b := newBrowser(t)
	out := t.TempDir()
	simulate(t, out, virtual.Options{}, "key-id-flip-flops")
	run := write(t, render.Options{Dirs: []string{out}, Out: out}).Page
	report, err := conformance.ReadReport("../../../conformance/reports/kleidi.yaml", func(string) []conformance.Check { return nil })
	if err != nil {
		t.Fatal(err)
	}
	report.Reproduce = reproduce
	var text bytes.Buffer
	if err := report.WriteHTML(&text); err != nil {
		t.Fatal(err)
	}
	certificate := filepath.Join(out, "report.html")
	if err := os.WriteFile(certificate, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, width := range []int64{1400, 500} {
		for _, dark := range []bool{false, true} {
			scheme := map[bool]string{true: "dark", false: "light"}[dark]
			b.open(run, "#sim.key-id-flip-flops", width, 1000, dark)
			b.shot(fmt.Sprintf("run-%d-%s", width, scheme))
			if bad := eval[string](b, fmt.Sprint(broken, "(", width, ")")); bad != "" {
				t.Errorf("the page of a run, %d pixels wide: %s", width, bad)
			}
			b.expect("what is excused is no failure", `getComputedStyle(document.querySelector('section:not([hidden]) li.excused .seen')).color !== getComputedStyle(document.querySelector('section:not([hidden]) .legend span:last-child')).color`)
			background := eval[string](b, `getComputedStyle(document.body).backgroundColor`)
			b.do(chromedp.Navigate("file://" + certificate))
			b.shot(fmt.Sprintf("conformance-%d-%s", width, scheme))
			if bad := eval[string](b, fmt.Sprint(broken, "(", width, ")")); bad != "" {
				t.Errorf("the page of a conformance report, %d pixels wide: %s", width, bad)
			}
			b.expect("both pages have one look", `getComputedStyle(document.body).backgroundColor === '`+background+`'`)
		}
	}
	b.quiet()
}

// tenThousand is a history of ten thousand events, no two of which say the same.
func tenThousand(t *testing.T, dir string) {
	t.Helper()
	simulate(t, dir, virtual.Options{}, "plugin-hangs")
	path := filepath.Join(dir, "plugin-hangs", result.HistoryFile)
	events, err := history.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	end := events[len(events)-1]
	began := events[0].At
	events = events[:len(events)-2]
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	l := history.NewLog(file)
	for _, e := range events {
		l.Append(e)
	}
	for i := len(events); i < 9999; i++ {
		at := began.Add(time.Duration(i) * time.Millisecond) // the scenario takes ten seconds
		l.Record(at, "test", &history.Call{Node: fmt.Sprintf("cp-%d", i%3+1), KeyID: "1", Method: "Status", Began: at.Add(-time.Duration(i%40) * time.Millisecond), Ended: at, Took: time.Millisecond, Outcome: "ok", Code: "OK", Healthz: []string{"ok", fmt.Sprint("sealed ", i)}[i%2]})
	}
	l.Append(end)
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// maxFrame is how long drawing may take at the median. Sixty frames a second would be 16 ms; a machine that does other things at the
// same time, without a GPU, gets some more.
const maxFrame = 50.0

func TestTenThousandEventsStaySmooth(t *testing.T) {
	b := newBrowser(t)
	out := t.TempDir()
	tenThousand(t, out)
	b.open(write(t, render.Options{Dirs: []string{out}, Out: out}).Page, "#sim.plugin-hangs", 1400, 1000, false)
	b.expect("all are there", timeline+`.t.events.length === 10000 && `+timeline+`.t.folded === 0`)
	took := eval[struct{ Median, P95, Max, Frames float64 }](b, `kmsharness.measure(120)`)
	t.Logf("10000 events: a frame takes %.1f ms at the median, %.1f ms at the 95th percentile, %.1f ms at most, of %.0f", took.Median, took.P95, took.Max, took.Frames)
	if took.Median > maxFrame {
		t.Errorf("a frame takes %.1f ms at the median, expected at most %.0f", took.Median, maxFrame)
	}
	if rows := eval[int](b, `document.querySelectorAll('section:not([hidden]) .rows .row').length`); rows == 0 || rows > 100 {
		t.Errorf("%d rows of the list exist, expected only those in sight", rows)
	}
	b.shot("ten-thousand-events")
	b.quiet()
}
