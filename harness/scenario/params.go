package scenario

import (
	"maps"
	"time"
)

// Verbs are all actions, in the order in which they are shown.
func Verbs() []Verb {
	return []Verb{VerbInject, VerbRelease, VerbRotate, VerbKMS, VerbStart, VerbStop, VerbKill, VerbPause, VerbResume,
		VerbRestart, VerbLink, VerbRefuse, VerbWatches, VerbClock, VerbCredential, VerbNode, VerbEncryption, VerbAPIServer, VerbData, VerbCondition, VerbEntries, VerbAttempt}
}

// Text is a parameter that is a text, or "".
func (a Action) Text(name string) string {
	s, _ := a.Params[name].(string)
	return s
}

// Int is a parameter that is a whole number, or otherwise.
func (a Action) Int(name string, otherwise int) int {
	if i, ok := a.Params[name].(int); ok {
		return i
	}
	return otherwise
}

// Bool is a parameter that is true or false; one that is not there is false.
func (a Action) Bool(name string) bool {
	b, _ := a.Params[name].(bool)
	return b
}

// Texts is a parameter that is a list of texts, or nil.
func (a Action) Texts(name string) []string {
	s, _ := a.Params[name].([]string)
	return s
}

// Duration is a parameter that the engine has resolved, or 0.
func (a Action) Duration(name string) time.Duration {
	d, _ := a.Params[name].(time.Duration)
	return d
}

// Durations is a parameter that the engine has resolved and that has one duration per node, or nil.
func (a Action) Durations(name string) map[string]time.Duration {
	d, _ := a.Params[name].(map[string]time.Duration)
	return d
}

// With is a with one more parameter; a itself does not change.
func (a Action) With(name string, value any) Action {
	a.Params = maps.Clone(a.Params)
	a.set(name, value)
	return a
}
