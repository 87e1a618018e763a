package main

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// rewriteFile changes a spec in place, or leaves it alone if there is nothing to change.
func rewriteFile(path string, kind specKind, l limits) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, err := rewrite(old, kind, l)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, info.Mode().Perm())
}

// rewrite takes out of a spec what the host cannot grant. What it has no opinion on stays as it is, big numbers included.
func rewrite(text []byte, kind specKind, l limits) ([]byte, error) {
	var spec map[string]any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&spec); err != nil {
		return nil, err
	}
	process := spec
	if kind == containerSpec {
		process, _ = spec["process"].(map[string]any)
	}
	if process != nil {
		fixCapabilities(process, l)
		fixOOMScore(process, l)
		delete(process, "rlimits") // what cannot be raised stays as the engine has it
	}
	return json.Marshal(spec)
}

func fixCapabilities(process map[string]any, l limits) {
	sets, _ := process["capabilities"].(map[string]any)
	for name, set := range sets {
		list, ok := set.([]any)
		if !ok {
			continue
		}
		sets[name] = slices.DeleteFunc(list, func(c any) bool {
			text, ok := c.(string)
			return ok && !l.grants(text)
		})
	}
}

func fixOOMScore(process map[string]any, l limits) {
	number, ok := process["oomScoreAdj"].(json.Number)
	if !ok {
		return
	}
	if score, err := number.Int64(); err == nil && score < l.oomScore {
		process["oomScoreAdj"] = l.oomScore
	}
}

// limits is what this host can grant.
type limits struct {
	bounding uint64 // capabilities: one bit each
	oomScore int64  // lower scores need CAP_SYS_RESOURCE
}

func hostLimits() (limits, error) {
	var bounding uint64
	for bit := range capabilities { // one that the kernel does not know is not granted
		if has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(bit), 0, 0, 0); err == nil && has == 1 {
			bounding |= 1 << bit
		}
	}
	score, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		return limits{}, err
	}
	oom, err := strconv.ParseInt(strings.TrimSpace(string(score)), 10, 64)
	return limits{bounding: bounding, oomScore: oom}, err
}

// capabilities by number, as in linux/capability.h.
var capabilities = strings.Fields(`CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE
	NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT
	SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE
	MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE`)

// grants says whether the bounding set has a capability. What it does not know it leaves to runc.
func (l limits) grants(name string) bool {
	for bit, known := range capabilities {
		if name == "CAP_"+known {
			return l.bounding&(1<<bit) != 0
		}
	}
	return true
}
