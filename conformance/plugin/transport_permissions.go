package plugin

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kmsharness/kmsharness/conformance"
)

func socketPermissions() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-TRANSPORT-SOCKET-PERMISSIONS", Profile: conformance.Robustness,
			Title:       "others cannot use the socket",
			Rule:        "Not every user of the machine can connect to the socket: its mode, or that of a folder above it, denies it to others.",
			Source:      sourceDocs + ": a socket file has an ACL, unlike an abstract socket; unix(7): to connect takes write permission on the socket and search permission on its folders",
			Consequence: "kube-apiserver does not notice. Every local user can call Decrypt, with what is in etcd or in its backups.",
			Needs:       []conformance.Capability{SocketFile},
		},
		Run: func(_ context.Context, p *Plugin) error {
			path, err := filepath.EvalSymlinks(p.at.Address)
			if err != nil {
				return err
			}
			open, err := has(path, 0o002)
			for dir := filepath.Dir(path); err == nil && open; dir = filepath.Dir(dir) {
				if open, err = has(dir, 0o001); dir == filepath.Dir(dir) {
					break
				}
			}
			if err != nil || !open {
				return err
			}
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			return found("the mode of "+path, fmt.Sprintf("%v, and all folders above it can be searched by others", info.Mode()), "no write permission for others, or a folder that is closed to them")
		},
	}
}

// has reports whether the mode of a file has all of some bits.
func has(path string, bits fs.FileMode) (bool, error) {
	info, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	return info.Mode().Perm()&bits == bits, nil
}
