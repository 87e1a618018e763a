package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/backend/local"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/internal/poll"
	"github.com/kmsharness/kmsharness/internal/program"
)

// flushEvery is how old the history file may be while an environment is up, so that it can be read beside it.
const flushEvery = time.Second

const upSource = "up"

// serve is an environment from its boot until ctx ends.
func (f *upFlags) serve(ctx context.Context, w io.Writer, place upPlace) (err error) {
	if f.stateFD != 0 { // programs of the environment must not keep it open
		unix.CloseOnExec(f.stateFD)
	}
	held, err := place.take()
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, held.Close()) }()
	b, err := local.New(local.Options{System: f.sut})
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, closeBackend(ctx, b)) }()
	file, err := os.Create(filepath.Join(place.file("run"), result.HistoryFile))
	if err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	defer func() { err = cmp.Or(err, file.Close()) }()
	log := history.NewLog(file)
	env, err := b.Prepare(ctx, backend.Spec{Scenario: f.scenario(), Seed: 1, Log: log, OutDir: place.file("run"), Progress: program.Lines(w)})
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted while booting")
	}
	if err != nil {
		return err
	}
	heading := env.RunMetadata()
	heading.Scenario, heading.Plugin = f.scenario().Name, f.sut.Plugin.Implementation()
	log.Record(time.Now(), upSource, &heading)
	if err := f.ready(w, env, file.Name()); err != nil {
		return errors.Join(err, endUp(ctx, env, log))
	}
	if err := flush(ctx, log); err != nil {
		return errors.Join(err, endUp(ctx, env, log))
	}
	fmt.Fprintln(w, "ending")
	return endUp(ctx, env, log)
}

// ready tells everybody who waits for it.
func (f *upFlags) ready(w io.Writer, env backend.Environment, historyFile string) error {
	described, ok := env.(*live.Environment)
	if !ok {
		return fmt.Errorf("describe the environment: the backend cannot, it is a %T", env)
	}
	d, err := described.Describe()
	if err != nil {
		return err
	}
	for _, n := range d.Nodes { // the write key first, as everywhere
		slices.SortFunc(n.Plugins, func(a, b live.PluginDescription) int {
			return slices.Index(f.keyIDs, a.KeyID) - slices.Index(f.keyIDs, b.KeyID)
		})
	}
	s := upState{PID: os.Getpid(), History: historyFile, Description: d}
	if err := s.print(w); err != nil {
		return err
	}
	if f.stateFD == 0 {
		return nil
	}
	state := os.NewFile(uintptr(f.stateFD), "state")
	return errors.Join(json.NewEncoder(state).Encode(s), state.Close())
}

// flush keeps the history file fresh until ctx ends.
func flush(ctx context.Context, log *history.Log) error {
	err := poll.Until(ctx, flushEvery, func() (bool, error) { return false, log.Flush() })
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("write the history: %w", err)
}

// endUp ends the environment and its history, although ctx is over.
func endUp(ctx context.Context, env backend.Environment, log *history.Log) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	end := history.End{Complete: true}
	finished := env.Finish(ctx)
	if finished != nil {
		end = history.End{Problem: finished.Error()}
	}
	log.Record(time.Now(), upSource, &end)
	return errors.Join(finished, log.Flush(), env.Release(ctx, false))
}
