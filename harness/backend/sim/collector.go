package sim

import (
	"os"
	"runtime"
	"runtime/debug"
)

// SpareCollector lets memory grow to five times what is in use, and to 640 MiB in any case: a simulation uses little, and makes much
// garbage. Who sets GOGC decides himself. restore puts things back.
func SpareCollector() (restore func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	before := debug.SetGCPercent(400)
	ballast := make([]byte, 128<<20) // it counts as in use and is never touched
	return func() {
		runtime.KeepAlive(ballast)
		debug.SetGCPercent(before)
	}
}
