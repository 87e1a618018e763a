package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/harness/backend/apiservers"
	"github.com/kmsharness/kmsharness/harness/history"
)

// statusAfter is how long after its start an API server asked for Status, as long as it ran.
func (l *lab) statusAfter(start time.Time) (all []time.Duration) {
	for _, e := range l.w.log.Events() {
		if c := e.Call; c != nil && c.Method == string(fault.Status) {
			all = append(all, c.Began.Sub(start).Round(time.Second))
		}
	}
	return all
}

func holds(t *testing.T, what string, got error, want ...string) {
	t.Helper()
	for _, part := range want {
		if got == nil || !strings.Contains(got.Error(), part) {
			t.Errorf("%s: %v, expected %q", what, got, part)
		}
	}
}

func TestStatusIsAskedEveryMinuteAndEvery10sOfOneThatFails(t *testing.T) {
	l := newLab(t)
	start := l.w.k.Now()
	l.started()
	l.pass(90 * time.Second)
	l.inject("grpc-status", map[string]any{"code": "Internal", "method": "Status"})
	l.pass(55 * time.Second) // fails at 120, is asked again at 130 and 140
	l.release()
	l.pass(100 * time.Second) // well at 150, next at 180 and 240
	want := "[0s 1m0s 2m0s 2m10s 2m20s 2m30s 3m0s 4m0s]"
	if got := fmt.Sprint(l.statusAfter(start)); got != want {
		t.Errorf("asked after %s, expected %s", got, want)
	}
}

// One key is made at the start, and one for each other key_id; nothing else makes one, however much is written.
func TestOneKeyForEachKeyID(t *testing.T) {
	l := newLab(t).started()
	for i := range 1000 {
		if err := l.write(fmt.Sprint(i), "value"); err != nil {
			t.Fatal(err)
		}
	}
	l.pass(24 * time.Hour)
	if n := l.calls(fault.Encrypt); n != 1 {
		t.Errorf("%d keys in a day, expected 1", n)
	}
	for range 3 {
		if _, err := (remote{l.w.kms}).Rotate(l.w.ctx, apiservers.RemoteKey("", "1"), 0); err != nil {
			t.Fatal(err)
		}
		l.w.kmsChanged()
		l.pass(61 * time.Second)
	}
	if n := l.calls(fault.Encrypt); n != 4 {
		t.Errorf("%d keys after three rotations, expected 4", n)
	}
}

// Writes stop three minutes after the last Status that was any good. What that is depends on kubernetes/kubernetes#138950.
func TestWritesStopWhenTheKeyExpires(t *testing.T) {
	for name, c := range map[string]struct {
		fault     string
		params    map[string]any
		unhealthy Unhealthy
		stop      bool
	}{
		"an error":                         {"grpc-status", map[string]any{"code": "Internal", "method": "Status"}, UnhealthyExtends, true},
		"a hang":                           {"hang", map[string]any{"method": "Status"}, UnhealthyExtends, true},
		"no key_id":                        {"key-id-empty", map[string]any{"method": "Status"}, UnhealthyExtends, true},
		"not well, and extended":           {"healthz", map[string]any{"text": "not well"}, UnhealthyExtends, false},
		"not well, and coasting":           {"healthz", map[string]any{"text": "not well"}, UnhealthyCoasts, true},
		"another version, and extended":    {"version", map[string]any{"version": "v3"}, UnhealthyCoasts, false},
		"Encrypt fails, which nobody asks": {"grpc-status", map[string]any{"code": "Internal", "method": "Encrypt"}, UnhealthyExtends, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.w.unhealthy = c.unhealthy
			l.started()
			l.pass(30 * time.Second)
			l.inject(c.fault, c.params)
			l.pass(2*time.Minute + 29*time.Second) // the last good Status was the first
			if err := l.write("early", "value"); err != nil {
				t.Errorf("before the key expires: %v", err)
			}
			l.pass(2 * time.Second)
			err := l.write("late", "value")
			if c.stop {
				holds(t, "after the key expired", err, "Internal error occurred: encryptedDEKSource with keyID hash \"sha256:", " expired at 2026-01-01T00:03:00Z (current time is 2026-01-01T00:03:01Z)")
			} else if err != nil {
				t.Errorf("although the key is extended: %v", err)
			}
			if err := l.get("early"); err != nil {
				t.Errorf("a read of a key in memory: %v", err)
			}
			l.release()
			l.pass(40 * time.Second)
			if err := l.write("again", "value"); err != nil {
				t.Errorf("after it was well again: %v", err)
			}
		})
	}
}

// Who asks for the health of a plugin gets what was found 20 s ago at most, and 3 s ago at most of one that fails.
func TestHealthIsBelievedForAWhile(t *testing.T) {
	l := newLab(t).started()
	l.inject("grpc-status", map[string]any{"code": "FailedPrecondition", "text": "key disabled", "method": "Status"})
	const first = `internal server error: kms-provider-0: failed to perform status section of the healthz check for KMS Provider kms-1, error: rpc error: code = FailedPrecondition desc = key disabled`
	const later = `internal server error: kms-provider-0: rpc error: code = FailedPrecondition desc = key disabled`
	l.pass(19 * time.Second)
	if got := l.health(); got != "" {
		t.Errorf("after 19 s: %q, expected that it is still believed to be well", got)
	}
	l.pass(2 * time.Second)
	if got := l.health(); got != first {
		t.Errorf("asked anew: %q, expected %q", got, first)
	}
	l.release()
	l.pass(2 * time.Second)
	if got := l.health(); got != later {
		t.Errorf("2 s later: %q, expected %q", got, later)
	}
	l.pass(2 * time.Second)
	if got := l.health(); got != "" {
		t.Errorf("4 s later: %q, expected that it is well", got)
	}
}

// A key that Encrypt seals under another KEK than Status names is thrown away, and the old one goes on until it expires.
func TestAKeyOfAnotherKEKIsRefused(t *testing.T) {
	l := newLab(t).started()
	if err := l.write("old", "value"); err != nil {
		t.Fatal(err)
	}
	l.inject("key-id-mismatch", map[string]any{"key-id": "another", "method": "Status"})
	l.pass(61 * time.Second)
	err := l.envelope.loaded.providers[0].last.err
	holds(t, "the health of it", err, "kmsv2 Provider kms-1 is not healthy, error: failed to rotate DEK uid=", "useSeed=true, errState=<nil>, errGen=<nil>",
		`statusKeyIDHash="`+hashOf("another")+`"`, `encryptKeyIDHash="`+hashOf(l.w.secrets["old"].kekID)+`"`, "expirationTimestamp=2026-01-01T00:03:00Z")
	if err := l.write("coasting", "value"); err != nil || l.w.secrets["coasting"].uid != l.w.secrets["old"].uid {
		t.Errorf("%v, expected a write with the old key", err)
	}
	l.pass(3 * time.Minute)
	holds(t, "after it expired", l.write("late", "value"), "expired at")
}

// An API server starts without its plugin. Nothing encrypted can be read or written before the plugin has been there.
func TestColdStartWithoutAPlugin(t *testing.T) {
	l := newLab(t).started()
	if err := l.write("old", "value"); err != nil {
		t.Fatal(err)
	}
	l.end(history.ProcessKilled, "")
	l.plugin.end(history.ProcessStopped, "")
	l.plugin.stale = false
	l.started()
	holds(t, "a write", l.write("new", "value"), "Internal error occurred: got unexpected nil transformer")
	holds(t, "a read", l.get("old"), "StorageError: corrupt object", "got unexpected nil transformer")
	l.plugin.start(func() {})
	l.pass(40 * time.Second) // measured on a real one: 39 s
	if err := l.get("old"); err != nil {
		t.Errorf("40 s after the plugin came: %v", err)
	}
}

// A key that is not in memory needs the plugin.
func TestAKeyThatIsNotInMemoryNeedsThePlugin(t *testing.T) {
	l := newLab(t).started()
	if err := l.write("old", "value"); err != nil {
		t.Fatal(err)
	}
	l.end(history.ProcessKilled, "")
	l.started()
	l.inject("grpc-status", map[string]any{"code": "Internal", "text": "HSM gone", "method": "Decrypt"})
	holds(t, "a read", l.get("old"), "failed to decrypt DEK, error: rpc error: code = Internal desc = HSM gone")
	l.release()
	if err := l.get("old"); err != nil {
		t.Fatal(err)
	}
	l.inject("hang", map[string]any{"method": "all"})
	if err := l.get("old"); err != nil {
		t.Errorf("a key in memory: %v", err)
	}
}

// gRPC dials ever later, so a plugin that was away for long is noticed late.
func TestAPluginThatComesBackIsNoticedLate(t *testing.T) {
	noticed := func(unavailable time.Duration) time.Duration {
		l := newLab(t).started()
		l.pass(30 * time.Second)
		l.plugin.end(history.ProcessKilled, "")
		l.pass(unavailable)
		l.plugin.start(func() {})
		back := l.w.k.Now()
		for l.health() != "" {
			l.pass(time.Second)
		}
		return l.w.k.Now().Sub(back)
	}
	short, long := noticed(time.Second), noticed(3*time.Minute)
	t.Logf("noticed after %v and %v", short, long)
	if short > 25*time.Second || long < short || long > 2*time.Minute {
		t.Errorf("noticed after %v and %v, expected within 25 s after a moment, and later after three minutes", short, long)
	}
}
