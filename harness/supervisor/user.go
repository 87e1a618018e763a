package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// protectedFolder lets root in, and the group that the folder has, which is the harness's.
const protectedFolder = 0o770

// parseUser reads UID:GID. Root can enter every folder, so that it is no user for a program.
func parseUser(text string) (*syscall.Credential, error) {
	uid, gid, _ := strings.Cut(text, ":")
	user, err1 := strconv.ParseUint(uid, 10, 32)
	group, err2 := strconv.ParseUint(gid, 10, 32)
	if err := errors.Join(err1, err2); err != nil || user == 0 || group == 0 {
		return nil, errors.New("expected UID:GID, two numbers that are not 0")
	}
	return &syscall.Credential{Uid: uint32(user), Gid: uint32(group)}, nil
}

// protect takes the folders of the control socket and of the journal from the program: it is another user, and in another group. The owner of a folder
// could open it again, so root becomes the owner.
func (o Options) protect() error {
	if o.User == nil {
		return nil
	}
	for _, dir := range []string{filepath.Dir(o.Control.Address), filepath.Dir(o.Journal)} {
		info, err := os.Stat(dir)
		if err != nil {
			return fmt.Errorf("--user: %w", err)
		}
		if is, ok := info.Sys().(*syscall.Stat_t); ok && is.Gid == o.User.Gid {
			return fmt.Errorf("--user: %s belongs to the group %d of the program", dir, is.Gid)
		}
		if err := errors.Join(os.Chown(dir, 0, -1), os.Chmod(dir, protectedFolder)); err != nil {
			return fmt.Errorf("--user: keep the program out of %s: %w", dir, err)
		}
	}
	return nil
}
