package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestLogKeepsTheLastEntriesAndWritesAll(t *testing.T) {
	var out bytes.Buffer
	l := New[Call](3, &out)
	for range 5 {
		l.Append(Call{Method: "Status"})
	}
	got, _ := l.After(0, 10)
	if len(got) != 3 || got[0].Seq != 3 || got[2].Seq != 5 {
		t.Errorf("in memory: %+v, want numbers 3..5", got)
	}
	if got, next := l.After(3, 1); len(got) != 1 || next != 4 || got[0].Seq != 4 {
		t.Errorf("After(3, 1) = %+v, want number 4", got)
	}
	if got, next := l.After(5, 10); len(got) != 0 || next != 5 {
		t.Errorf("After(5) = %+v, want nothing", got)
	}
	if n := strings.Count(out.String(), "\n"); n != 5 {
		t.Errorf("%d lines written, want 5", n)
	}
}

func TestLogWritesOneLineInOneWrite(t *testing.T) {
	w := &writes{}
	l := New[Call](1, w)
	l.Append(Call{Healthz: "two\nlines\x00\xff"})
	if len(w.all) != 1 || strings.Count(w.all[0], "\n") != 1 || !json.Valid([]byte(w.all[0])) {
		t.Errorf("writes: %q", w.all)
	}
	w.err = errors.New("disk full")
	l.Append(Call{})
	l.Append(Call{})
	if err := l.Err(); err == nil || !strings.Contains(err.Error(), "line 2: disk full") {
		t.Errorf("Err() = %v", err)
	}
}

type writes struct {
	all []string
	err error
}

func (w *writes) Write(b []byte) (int, error) {
	w.all = append(w.all, string(b))
	return len(b), w.err
}

func TestWait(t *testing.T) {
	l := New[Call](4, nil)
	var waiting sync.WaitGroup
	for range 3 {
		waiting.Go(func() {
			if err := l.Wait(context.Background(), 1); err != nil || l.Last() != 2 {
				t.Errorf("Wait(1) = %v at %d", err, l.Last())
			}
		})
	}
	l.Append(Call{})
	l.Append(Call{})
	waiting.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if err := l.Wait(ctx, 2); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Wait for what never comes: %v", err)
	}
}

func TestTextIsCutBetweenCharacters(t *testing.T) {
	for _, s := range []string{strings.Repeat("é", MaxText), "x" + strings.Repeat("世", MaxText), strings.Repeat("a", MaxText+1)} {
		got := Text(s)
		if len(got) > MaxText || len(got) < MaxText-3 || !utf8.ValidString(got) || !strings.HasPrefix(s, got) {
			t.Errorf("Text(%.8q…) has %d bytes, valid %t", s, len(got), utf8.ValidString(got))
		}
	}
	if s := strings.Repeat("k", MaxText); Text(s) != s {
		t.Error("a legal key_id was cut")
	}
}

func TestStream(t *testing.T) {
	l := New[Call](10, nil)
	for _, method := range []string{"Status", "Encrypt", "Status", "Status"} {
		l.Append(Call{Method: method})
	}
	status := func(c Call) bool { return c.Method == "Status" }
	var out bytes.Buffer
	if err := Stream(context.Background(), l, Query{After: 1, Limit: 1}, status, &out, nil); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), `{"seq":3,`) || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("streamed %q, want the line with number 3", out.String())
	}
}

func TestStreamFollows(t *testing.T) {
	l := New[Call](10, nil)
	ctx, cancel := context.WithCancel(context.Background())
	lines := &lines{enough: 3, cancel: cancel}
	l.Append(Call{})
	var appending sync.WaitGroup
	appending.Go(func() { l.Append(Call{}); l.Append(Call{}) })
	if err := Stream(ctx, l, Query{Follow: true}, nil, lines, nil); err != nil {
		t.Fatal(err)
	}
	appending.Wait()
	if lines.n != 3 {
		t.Errorf("%d lines followed, want 3 without a repetition", lines.n)
	}
}

type lines struct {
	n, enough int
	cancel    func()
}

func (l *lines) Write(b []byte) (int, error) {
	if l.n++; l.n == l.enough {
		l.cancel()
	}
	return len(b), nil
}

// The line that is written by hand is the one that encoding/json would write.
func TestAppendJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := func(name string) string {
			return rapid.StringN(0, 12, 40).Draw(t, name) + rapid.SampledFrom([]string{"", "\xff", "<\"\\\n\x00\u2028"}).Draw(t, "tail")
		}
		at := time.UnixMicro(rapid.Int64Range(0, 4e15).Draw(t, "at")).UTC()
		c := Call{Seq: rapid.Uint64().Draw(t, "seq"), Node: s("node"), KeyID: s("keyID"), Method: s("method"), UID: s("uid"), Began: at,
			Ended: at.Add(time.Second), LatencyMS: float64(rapid.Int64Range(0, 1e12).Draw(t, "latency")) / 1000, Outcome: Answered, Code: s("code"),
			Detail: s("detail"), Version: s("version"), Healthz: s("healthz"), HealthzBytes: rapid.IntRange(0, 9).Draw(t, "healthzBytes"),
			KEKID: s("kekID"), KEKIDBytes: rapid.IntRange(0, 9).Draw(t, "kekIDBytes"), Unreadable: rapid.Bool().Draw(t, "unreadable"),
			NoticedKEKID: s("noticed"), RequestKEKID: s("request"), Faults: rapid.SliceOfN(rapid.String(), 0, 3).Draw(t, "faults")}
		want, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.AppendJSON(nil); string(got) != string(want) {
			t.Fatalf("\n%s, want\n%s", got, want)
		}
	})
}
