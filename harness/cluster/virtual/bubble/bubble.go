// Package bubble runs a function in virtual time (testing/synctest), from a seed: time passes when nothing else is to be done, and what the
// libraries of a control plane leave to chance comes from the seed. It works in tests and in ordinary programs.
//
// Rules for what runs in a bubble: it has no real socket, pipe or child process, because a goroutine that waits for one stops the clock. It
// holds no mutex while it waits. All its goroutines end before the function returns. Reading and writing files is harmless.
package bubble

import (
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	oldrand "math/rand"
	mathrand "math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	"golang.org/x/sys/unix"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// Begin is when time begins in every bubble.
func Begin() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

// Main is the rest of an ordinary program, which can run bubbles. body ends the process.
func Main(body func()) {
	testing.Init()
	_ = flag.CommandLine.Parse(nil) // the flags of tests stay as they are
	restore := divert()
	testing.Main(all, []testing.InternalTest{{Name: "program", F: func(*testing.T) { restore(); body() }}}, nil, nil)
}

func all(string, string) (bool, error) { return true, nil }

// divert lets package testing tell of a panic on stderr, until restore is called: stdout belongs to what runs.
func divert() (restore func()) {
	stdout := os.Stdout
	os.Stdout = os.Stderr
	return func() { os.Stdout = stdout }
}

// one lets a process have one bubble at a time: what prepare and divert set is the process's.
var one sync.Mutex

// Run runs f in virtual time from a seed, in a test or in a program that began with Main, and returns when f and all goroutines that it started
// have ended: those that only sleep have an hour. A panic of theirs ends the process. The process has one thread meanwhile.
// A clock that stands still for as long as Stalled ends it too, after what waits was written to stderr.
// Another waits until it is over.
func Run(seed uint64, f func()) error {
	one.Lock()
	defer one.Unlock()
	ran := false
	restore := divert()
	defer restore()
	testing.RunTests(all, []testing.InternalTest{{Name: "bubble", F: func(t *testing.T) {
		restore()
		if ran { // in a test that go test repeats
			return
		}
		ran = true
		run(t, seed, func(*testing.T) { f() })
	}}})
	if !ran {
		return errors.New("virtual time: the program did not begin with bubble.Main")
	}
	return nil
}

// Test is Run for a test, of which f is a part.
func Test(t *testing.T, seed uint64, f func(t *testing.T)) {
	t.Helper()
	one.Lock()
	defer one.Unlock()
	t.Run("", func(t *testing.T) { run(t, seed, f) })
}

func run(t *testing.T, seed uint64, f func(t *testing.T)) {
	defer prepare(seed)()
	beat, end := watch(Stalled, processorTime, os.Stderr, os.Exit)
	defer end()
	synctest.Test(t, func(t *testing.T) {
		over := make(chan struct{})
		var beating sync.WaitGroup
		beating.Go(func() {
			ticker := time.NewTicker(beatEvery)
			defer ticker.Stop()
			for {
				beat()
				select {
				case <-ticker.C:
				case <-over:
					return
				}
			}
		})
		defer time.Sleep(linger)
		defer beating.Wait()
		defer close(over)
		f(t)
	})
}

// beatEvery is short enough that what is done in it takes less than Stalled: a migration makes thousands of requests in a virtual second.
const beatEvery = time.Second / 4

// linger is left, at the end of a bubble, to goroutines that only sleep before they end, as some of kube-apiserver's do.
const linger = time.Hour

// prepare sets what is global in a process and would lead from one bubble into another, or draws from chance that no seed decides.
func prepare(seed uint64) (restore func()) {
	if !strings.Contains(os.Getenv("GODEBUG"), settings) {
		_ = os.Setenv("GODEBUG", strings.TrimPrefix(os.Getenv("GODEBUG")+","+settings, ",")) // a valid name does not fail
	}
	//lint:ignore SA1019 wait.Jitter and others draw from what nothing else seeds
	oldrand.Seed(int64(seed) + 1)
	uuid.SetRand(NewReader(seed, 1))
	reader := rand.Reader
	rand.Reader = NewReader(seed, 2)
	klog.SetLogger(logr.Discard())
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = handlers[:1] // the second sleeps until a time of the last bubble, or of the real world
	procs := runtime.GOMAXPROCS(1)
	collected, limited := debug.SetGCPercent(garbage), debug.SetMemoryLimit(memory)
	environment := os.Environ() // which programs set for libraries
	return func() {
		debug.SetGCPercent(collected)
		debug.SetMemoryLimit(limited)
		runtime.GOMAXPROCS(procs)
		os.Clearenv()
		for _, e := range environment {
			name, value, _ := strings.Cut(e, "=")
			_ = os.Setenv(name, value) // it was one
		}
		utilruntime.ErrorHandlers = handlers
		rand.Reader = reader
		uuid.SetRand(nil)
		klog.ClearLogger()
	}
}

// settings of Go: package math/rand takes a seed, and TLS agrees on keys without a quantum computer in mind, which takes a third of the time.
const settings = "randseednop=0,tlsmlkem=0,tlssecpmlkem=0"

// garbage is how much a bubble may have before it is collected, in hundredths of what is in use: some 15 MB, after hours of 30 s intervals 100.
const garbage = 400

// memory is what the heap of a process with a bubble may have, as far as it can be kept to, in bytes: above it is collected more often. The program itself
// takes some 70 MB more.
const memory = 120 << 20

// NewReader is bytes that a seed and a stream decide. It is safe for concurrent use.
func NewReader(seed, stream uint64) io.Reader {
	var key [32]byte
	for i := range 8 {
		key[i], key[8+i] = byte(seed>>(8*i)), byte(stream>>(8*i))
	}
	return &reader{from: mathrand.NewChaCha8(key)}
}

type reader struct {
	mu   sync.Mutex
	from *mathrand.ChaCha8
}

func (r *reader) Read(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.from.Read(b)
}

// Stalled is how long, in real time, a bubble's clock may stand still while its goroutines wait, or have a processor for half of it. It is noticed
// half as late again at most.
const Stalled = 20 * time.Second

// ExitStalled is the exit code of a process whose bubble has stalled.
const ExitStalled = 3

// looks is how often the clock is looked at before it is said to stand still. They are few: a goroutine outside the bubble that wakes may change
// the order in which those inside run.
const looks = 2

// watch ends the process if beat is not called for as long as limit. On a machine where many others compute, a goroutine that could go on may have
// no processor for long: then it counts what the process used of one.
func watch(limit time.Duration, used func() time.Duration, stderr io.Writer, exit func(int)) (beat, end func()) {
	var beats atomic.Int64
	over := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		ticker := time.NewTicker(limit / looks)
		defer ticker.Stop()
		last, still, from, before := int64(-1), 0, used(), ""
		for {
			select {
			case <-over:
				return
			case <-ticker.C:
			}
			if now := beats.Load(); now != last {
				last, still, from, before = now, 0, used(), ""
				continue
			}
			who, waits := culprits()
			waits = waits && who == before
			before = who
			if still++; still >= looks && (waits || used()-from > limit/2) {
				fmt.Fprintf(stderr, "virtual time stands still: expected what waits in a bubble to wait for something in it. It waits for something outside, or goes on without end:\n%s", who)
				exit(ExitStalled)
				return
			}
		}
	})
	return func() { beats.Add(1) }, func() { close(over); watching.Wait() }
}

// processorTime is what this process has used of processors.
func processorTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // of oneself it does not fail
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// culprits are the goroutines of bubbles that keep time from passing, and whether there are some and all of them wait.
func culprits() (who string, wait bool) {
	buf := make([]byte, 4<<20)
	var out []string
	ready := false
	for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		header, _, _ := strings.Cut(g, "\n")
		if strings.Contains(header, "synctest bubble") && !strings.Contains(header, "(durable)") {
			out = append(out, strings.TrimSpace(g)+"\n")
			ready = ready || strings.Contains(header, "[running") || strings.Contains(header, "[runnable")
		}
	}
	return strings.Join(out, "\n"), len(out) > 0 && !ready
}

// leastDescriptor is one that no process has, but for the folder.
const leastDescriptor = 900

// MakeFolder makes a folder for the programs of a bubble, of which a process has one at a time. Its path is the same in all processes: programs put
// paths into messages.
func MakeFolder() (dir string, remove func() error, err error) {
	real, err := os.MkdirTemp("", "kmsharness-virtual-")
	if err != nil {
		return "", nil, err
	}
	opened, err := os.Open(real)
	if err != nil {
		return "", nil, errors.Join(err, os.Remove(real))
	}
	defer opened.Close()
	fd, err := unix.FcntlInt(opened.Fd(), unix.F_DUPFD_CLOEXEC, leastDescriptor)
	if err != nil {
		return "", nil, errors.Join(err, os.Remove(real))
	}
	remove = func() error { return errors.Join(unix.Close(fd), os.RemoveAll(real)) }
	dir = fmt.Sprintf("/proc/self/fd/%d/virtual", fd)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", nil, errors.Join(err, remove())
	}
	return dir, remove, nil
}
