package kind

import (
	"fmt"
	"strings"

	"sigs.k8s.io/kind/pkg/log"
)

// logger passes what kind says to a progress function. It is kind's logger and its spinner's writer.
type logger struct{ progress func(string) }

var _ log.Logger = logger{}

func (l logger) Warn(message string)               { l.say(message) }
func (l logger) Warnf(format string, args ...any)  { l.say(fmt.Sprintf(format, args...)) }
func (l logger) Error(message string)              { l.say(message) }
func (l logger) Errorf(format string, args ...any) { l.say(fmt.Sprintf(format, args...)) }
func (l logger) V(level log.Level) log.InfoLogger  { return info{l, level == 0} }

// say leaves out the beginnings of steps: kind names each again when it is done.
func (l logger) say(text string) {
	begins := strings.Contains(text, "•")
	text = strings.Trim(text, " \n\r\t✓")
	if text != "" && !begins {
		l.progress("kind: " + text)
	}
}

// info is kind's progress at its lowest verbosity.
type info struct {
	logger
	enabled bool
}

func (i info) Info(message string) {
	if i.enabled {
		i.say(message)
	}
}
func (i info) Infof(format string, args ...any) { i.Info(fmt.Sprintf(format, args...)) }
func (i info) Enabled() bool                    { return i.enabled }
