package container

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// timeLayout of ctr events: Go's time.Time as text.
const timeLayout = "2006-01-02 15:04:05.999999999 -0700 MST"

// Containerd reads one line of ctr events: a time, a namespace, a topic, and JSON. Of the container it knows the id, the state and the exit code. A line
// that is about nothing of interest, such as an image or the end of a command in a container, gives nil.
func Containerd(line []byte) (at time.Time, id string, c *history.Container, err error) {
	words := strings.SplitN(string(line), " ", 7)
	if len(words) != 7 || !strings.HasPrefix(words[6], "{") {
		return at, "", nil, fmt.Errorf("events of containerd: expected a time, a namespace, a topic and JSON, got %.100q", line)
	}
	state := taskStates[words[5]]
	if state == "" {
		return at, "", nil, nil
	}
	at, err = time.Parse(timeLayout, strings.Join(words[:4], " "))
	if err != nil {
		return at, "", nil, fmt.Errorf("events of containerd: %w", err)
	}
	var task struct {
		ContainerID string `json:"container_id"`
		ID          string `json:"id"` // of the process that ended
		ExitStatus  int    `json:"exit_status"`
	}
	if err := json.Unmarshal([]byte(words[6]), &task); err != nil {
		return at, "", nil, fmt.Errorf("events of containerd: %s: %w", words[5], err)
	}
	if task.ContainerID == "" {
		return at, "", nil, fmt.Errorf("events of containerd: %s without a container", words[5])
	}
	c = &history.Container{State: state}
	if state == history.ContainerExited {
		if task.ID != task.ContainerID {
			return at, "", nil, nil
		}
		c.ExitCode = &task.ExitStatus
	}
	return at, task.ContainerID, c, nil
}

// taskStates are the history's words, by topic.
var taskStates = map[string]string{
	"/tasks/start":   history.ContainerStarted,
	"/tasks/exit":    history.ContainerExited,
	"/tasks/paused":  history.ContainerPaused,
	"/tasks/resumed": history.ContainerUnpaused,
	"/tasks/oom":     history.ContainerOOM,
}

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
	state := engineStates[l.Action]
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

// engineStates are the history's words, by action; a command that runs in a container is no change of it.
var engineStates = map[string]string{
	"start":   history.ContainerStarted,
	"die":     history.ContainerExited,
	"kill":    history.ContainerSignal,
	"pause":   history.ContainerPaused,
	"unpause": history.ContainerUnpaused,
	"oom":     history.ContainerOOM,
}
