package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/history"
)

// usage is what processes of a role took while the steps of a run lasted.
type usage struct {
	processes int
	cpu       float64 // of one processor, by one process
	memory    int     // resident bytes of the largest, at the end
}

// meter reads processor time and memory of the processes that a history names. It fits a real control plane only: others name no process ids.
type meter struct {
	backend.Backend
	mu    sync.Mutex
	role  map[int]string
	began map[int]reading
	start time.Time
	roles map[string]usage
}

// reading is what /proc tells of a process.
type reading struct {
	cpu    time.Duration
	memory int
}

// Prepare implements backend.Backend.
func (m *meter) Prepare(ctx context.Context, spec backend.Spec) (backend.Environment, error) {
	m.mu.Lock()
	m.role, m.began, m.roles = map[int]string{}, map[int]reading{}, map[string]usage{}
	m.mu.Unlock()
	spec.Log.Subscribe(m.see) // for as long as the log is there
	return m.Backend.Prepare(ctx, spec)
}

func (m *meter) see(e history.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case e.Process != nil && e.Process.PID > 0:
		m.process(e.Process)
	case e.Phase != nil && e.Phase.Name == history.PhaseSteps:
		m.start = e.At
		for pid := range m.role {
			if r, err := readProcess(pid); err == nil {
				m.began[pid] = r
			}
		}
	case e.Phase != nil && e.Phase.Name == history.PhaseAfter && !m.start.IsZero():
		m.stop(e.At)
	}
}

func (m *meter) process(p *history.Process) {
	switch p.State {
	case history.ProcessStarted, history.ProcessReady, history.ProcessPaused, history.ProcessResumed:
		m.role[p.PID] = p.Role
	default:
		delete(m.role, p.PID)
	}
}

func (m *meter) stop(at time.Time) {
	for pid, began := range m.began {
		r, err := readProcess(pid)
		role, lives := m.role[pid]
		if err != nil || !lives {
			continue
		}
		u := m.roles[role]
		u.processes++
		u.cpu += (r.cpu - began.cpu).Seconds() / at.Sub(m.start).Seconds()
		u.memory = max(u.memory, r.memory)
		m.roles[role] = u
	}
	for role, u := range m.roles {
		u.cpu /= float64(u.processes)
		m.roles[role] = u
	}
}

func (m *meter) taken() map[string]usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.roles
}

func readProcess(pid int) (reading, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return reading{}, fmt.Errorf("read the processor time of process %d: %w", pid, err)
	}
	return parseStat(data)
}

// Fields of /proc/PID/stat behind the name, and their units (proc_pid_stat(5)).
const (
	statUser, statSystem, statResident = 11, 12, 21
	tick                               = 10 * time.Millisecond
)

// parseStat reads "PID (NAME) STATE PPID …", where NAME may hold anything.
func parseStat(data []byte) (reading, error) {
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) <= statResident {
		return reading{}, fmt.Errorf("/proc/PID/stat has %d fields behind the name, expected more than %d", len(fields), statResident)
	}
	var n [3]int
	for i, at := range []int{statUser, statSystem, statResident} {
		v, err := strconv.Atoi(fields[at])
		if err != nil {
			return reading{}, fmt.Errorf("/proc/PID/stat: field %d behind the name: %w", at, err)
		}
		n[i] = v
	}
	return reading{time.Duration(n[0]+n[1]) * tick, n[2] * os.Getpagesize()}, nil
}
