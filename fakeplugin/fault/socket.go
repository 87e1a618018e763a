package fault

import (
	"io/fs"
	"slices"
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

// worsen changes the state of the file, unless that is worse already.
func (s *Socket) worsen(f File) {
	fromGoodToBad := []File{FileServed, FileStale, FileSilent, FileDecoy, FileMissing}
	if slices.Index(fromGoodToBad, f) > slices.Index(fromGoodToBad, s.File) {
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
