// Command pause holds a pod's namespaces until it is told to stop, and buries the children that the pod's containers leave to
// it. It stands in for the registry's pause image.
package main

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

func main() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGCHLD)
	for s := range signals {
		if s != unix.SIGCHLD {
			return
		}
		bury()
	}
}

// bury waits for all children that have ended; one signal may stand for several.
func bury() {
	for {
		if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); pid <= 0 || err != nil {
			return
		}
	}
}
