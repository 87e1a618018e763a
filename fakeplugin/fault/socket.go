package fault

import (
	"io/fs"
	"time"
)

// File is what a client finds at the socket's path.
type File string

const (
	FileServed  File = "served"  // the plugin's socket, and the plugin listens
	FileStale   File = "stale"   // the plugin's socket, and nobody listens: connect says ECONNREFUSED
	FileMissing File = "missing" // nothing: ENOENT
	FileDecoy   File = "decoy"   // a regular file
	FileSilent  File = "silent"  // a foreign socket that accepts and never says a word
)

// Socket is the state of the plugin's socket. The zero value of Mode and the flags is the good state.
type Socket struct {
	File    File
	HangUp  bool         // accept connections and close them at once
	Mode    *fs.FileMode // nil: the configured one
	Renewed string       // changes when the socket must be made anew, under a new inode
	Cut     string       // changes when the existing connections must be closed
	Exit    *int         // the process ends with this code
}

// rank orders the states of the file: the worse one wins.
func (f File) rank() int {
	switch f {
	case FileStale:
		return 1
	case FileSilent:
		return 2
	case FileDecoy:
		return 3
	case FileMissing:
		return 4
	default:
		return 0
	}
}

func (s *Socket) worsen(f File) {
	if f.rank() > s.File.rank() {
		s.File = f
	}
}

// DecideSocket is the state of the socket under the faults in force.
func DecideSocket(active []Active, now time.Time) Socket {
	s := Socket{File: FileServed}
	for _, a := range active {
		if a.Fault.definition.socket != nil && !a.Over(now) {
			a.Fault.definition.socket(a, &s)
		}
	}
	return s
}
