package encryption

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// Log has the lines that kube-apiserver's envelope code writes about operations, in the log of the API server whose they are. klog knows one log
// for the process: an operation's uid tells, once a plugin is called with it, whose it is.
type Log struct {
	mu      sync.Mutex
	pending map[string]string    // the line of a call that is about to be made, by uid
	of      map[string]io.Writer // whose a uid is
}

// NewLog takes klog's lines from now on, until another takes them.
func NewLog() *Log {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	_ = flags.Set("vmodule", "envelope=6") // it is a valid one
	l := &Log{pending: map[string]string{}, of: map[string]io.Writer{}}
	klog.SetLogger(logr.New(sink{l}))
	return l
}

// called records which API server calls a plugin with a uid.
func (l *Log) called(uid string, log io.Writer) {
	if l == nil || log == nil {
		return
	}
	l.mu.Lock()
	line := l.pending[uid]
	delete(l.pending, uid)
	l.of[uid] = log
	l.mu.Unlock()
	if line != "" {
		_, _ = io.WriteString(log, line) // as kube-apiserver, which goes on without
	}
}

// wrote passes a line to the log of the API server that the uid belongs to.
func (l *Log) wrote(message, uid, line string) {
	l.mu.Lock()
	log := l.of[uid]
	if message != usesDEK {
		l.pending[uid], log = line, nil // the call follows
	}
	l.mu.Unlock()
	if log != nil {
		_, _ = io.WriteString(log, line)
	}
}

// usesDEK is the message about an object that is sealed without a call: the uid is that of the call that made the DEK.
const usesDEK = "encrypting content using DEK"

// sink implements logr.LogSink.
type sink struct{ log *Log }

func (sink) Init(logr.RuntimeInfo) {}

func (sink) Enabled(int) bool { return true }

func (s sink) Info(_ int, message string, keysAndValues ...any) {
	if !strings.HasPrefix(message, "encrypting content") && !strings.HasPrefix(message, "decrypting content") {
		return
	}
	var line strings.Builder
	fmt.Fprintf(&line, "I%s       1 envelope.go:1] %q", time.Now().Format("0102 15:04:05.000000"), message)
	uid := ""
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		key, value := fmt.Sprint(keysAndValues[i]), fmt.Sprint(keysAndValues[i+1])
		if key == "uid" {
			uid = value
		}
		fmt.Fprintf(&line, " %s=%q", key, value)
	}
	line.WriteByte('\n')
	s.log.wrote(message, uid, line.String())
}

func (sink) Error(error, string, ...any) {}

func (s sink) WithValues(...any) logr.LogSink { return s }

func (s sink) WithName(string) logr.LogSink { return s }
