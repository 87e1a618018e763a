package container

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// Engine reads one line of docker events in JSON. A line that is about nothing of interest gives nil: docker's own filter takes all
// containers whose names begin with the one that it is given, so those of other nodes are among them.
func Engine(node, name string, line []byte) (at time.Time, c *history.Container, err error) {
	var l struct {
		Type, Action string
		Actor        struct{ Attributes map[string]string }
		TimeNano     int64 `json:"timeNano"`
	}
	if err := json.Unmarshal(line, &l); err != nil {
		return at, nil, fmt.Errorf("events of the container engine: %w", err)
	}
	state := engineState(l.Action)
	if l.Type != "container" || l.Actor.Attributes["name"] != name || state == "" {
		return at, nil, nil
	}
	if l.TimeNano <= 0 {
		return at, nil, fmt.Errorf("events of the container engine: %s without a time", l.Action)
	}
	c = &history.Container{Node: node, Name: name, State: state}
	if code, err := strconv.Atoi(l.Actor.Attributes["exitCode"]); err == nil {
		c.ExitCode = &code
	}
	if signal := l.Actor.Attributes["signal"]; signal != "" {
		c.Detail = "signal " + signal
	}
	return time.Unix(0, l.TimeNano), c, nil
}

// engineState is the history's word; a command that runs in a container is no change of it.
func engineState(action string) string {
	switch action {
	case "start":
		return history.ContainerStarted
	case "die":
		return history.ContainerExited
	case "kill":
		return history.ContainerSignal
	case "pause":
		return history.ContainerPaused
	case "unpause":
		return history.ContainerUnpaused
	case "oom":
		return history.ContainerOOM
	}
	return ""
}
