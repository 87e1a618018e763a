package check

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// FuzzRun: whatever history.Read accepts is judged without a panic, and printed.
func FuzzRun(f *testing.F) {
	if testing.Short() {
		f.Skip("long: make simulations")
	}
	for _, build := range fine() {
		f.Add(lines(f, build()[:60]))
	}
	for _, k := range knownBad() {
		if events := k.build(); len(events) > 0 {
			f.Add(lines(f, events[max(0, len(events)-40):]))
		}
	}
	head := lines(f, faulty(nil, "")[:1])
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, input := range [][]byte{text, append(head[:len(head):len(head)], text...)} {
			events, err := history.Read(bytes.NewReader(input))
			if err != nil {
				continue
			}
			if err := Print(io.Discard, Run(events)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func lines(t testing.TB, events []history.Event) []byte {
	var b bytes.Buffer
	for _, e := range events {
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	return b.Bytes()
}

// TestRunIsPure: the same events give the same verdict, also after a round trip through a file and in another order
// of recording.
func TestRunIsPure(t *testing.T) {
	events := fine()["error"]()
	want, _ := json.Marshal(Run(events))
	read, err := history.Read(bytes.NewReader(lines(t, events)))
	if err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(Run(read))
	if !bytes.Equal(want, got) {
		t.Errorf("verdict after a round trip:\n%s\nbefore:\n%s", got, want)
	}
	for i := 1; i+2 < len(read); i += 2 { // a recorder that was late; the run's event stays first, its end last
		read[i], read[i+1] = read[i+1], read[i]
	}
	got, _ = json.Marshal(Run(read))
	if !bytes.Equal(want, got) {
		t.Error("the order of recording changes the verdict")
	}
}

// TestRunWithoutPayloads: events that no reader would accept do no harm either.
func TestRunWithoutPayloads(t *testing.T) {
	if v := Run([]history.Event{{Kind: history.KindRun}, {Kind: history.KindObject}, {Kind: "?"}}); v.OK {
		t.Error("passed")
	}
}

// BenchmarkRun judges 100 000 events of three nodes.
func BenchmarkRun(b *testing.B) {
	w := newWorld(3, "2", "1")
	for i := 1; i < 100; i++ {
		fault := []string{"error", ""}[i%2]
		w.at(sec*10*time.Duration(i), func(w *world) { w.fault("cp-2/1", fault) })
	}
	w.boot()
	events := w.finish(sec * 8400)
	b.ReportMetric(float64(len(events)), "events")
	b.ReportAllocs()
	for b.Loop() {
		if v := Run(events); len(v.Invariants) == 0 {
			b.Fatal("nothing judged")
		}
	}
}
