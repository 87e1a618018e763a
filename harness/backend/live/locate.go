package live

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/kmsharness/kmsharness/harness/undertest"
	"github.com/kmsharness/kmsharness/internal/command"
)

// modulePath is where the programs are built from, if nobody built them before.
const modulePath = "github.com/kmsharness/kmsharness"

// errNotBuilt: a program of this project is nowhere, but may be built.
var errNotBuilt = errors.New("it is not beside this executable")

// locate is the path of a program that exists. The error says where it was looked for.
func locate(name string) (string, error) {
	if strings.ContainsRune(name, filepath.Separator) {
		return executable(name)
	}
	if !own(name) {
		path, err := exec.LookPath(name)
		if err != nil {
			return "", fmt.Errorf("no executable file of this name is on PATH (%s), and no program of this project has it", os.Getenv("PATH"))
		}
		return path, nil
	}
	if dir := os.Getenv(EnvPrograms); dir != "" {
		path, err := executable(filepath.Join(dir, name))
		if err != nil {
			return "", fmt.Errorf("%s=%s: %w", EnvPrograms, dir, err)
		}
		return path, nil
	}
	if self, err := os.Executable(); err == nil {
		if path, err := executable(filepath.Join(filepath.Dir(self), name)); err == nil {
			return path, nil
		}
	}
	return "", errNotBuilt
}

// executable is a path at which there is a program.
func executable(path string) (string, error) {
	found, err := exec.LookPath(path)
	if err == nil {
		return found, nil
	}
	if absolute, failed := filepath.Abs(path); failed == nil {
		path = absolute
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("there is no file %s", path)
	case errors.Is(err, syscall.EISDIR):
		return "", fmt.Errorf("%s is a directory", path)
	case errors.Is(err, fs.ErrPermission):
		return "", fmt.Errorf("%s is not executable", path)
	}
	return "", err
}

// moduleRoot is the directory of this project's go.mod, if the working directory is in it.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		text, failed := os.ReadFile(filepath.Join(dir, "go.mod"))
		if failed == nil && strings.HasPrefix(string(text), "module "+modulePath+"\n") {
			return dir, nil
		}
		if failed == nil || dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	return "", fmt.Errorf("%w, and cannot be built because the working directory is not in the module %s: set %s to the directory that has it (make build)",
		errNotBuilt, modulePath, EnvPrograms)
}

// Findable returns an error if a program cannot be found on this machine. Programs of this project that are still to be built pass.
func Findable(program, _ string) error {
	_, err := locate(program)
	if errors.Is(err, errNotBuilt) {
		_, err = moduleRoot()
	}
	return err
}

// CheckPrograms calls check for the programs of reporter and aggregator that a template names, with the program of this project that each
// replaces. The programs of an operator, of hooks, and of a plugin under test without an image run on this machine and must be there. A name with a
// placeholder is known only when the program is started, and passes.
func CheckPrograms(s undertest.System, check func(program, replaced string) error) error {
	if s.Operator.MountSockets && os.Geteuid() != 0 {
		return undertest.Wrong("operator.mountSockets", "a mount namespace needs root: run as root, or let the pre-flight program take its socket from {sockets}")
	}
	here := [][2]string{
		{"operator.command", s.Operator.Command}, {"operator.preflight", s.Operator.Preflight}, {"plugin.break", s.Plugin.Break}, {"plugin.restore", s.Plugin.Restore}, {"plugin.rotate", s.Plugin.Rotate},
	}
	if s.Plugin.Image == "" {
		here = append(here, [2]string{"plugin.command", s.Plugin.Command})
	}
	for _, field := range here {
		if err := checkProgram(field[0], field[1], "", Findable); err != nil {
			return err
		}
	}
	if err := checkProgram("reporter.command", s.Reporter.Command, DefaultReporter, check); err != nil {
		return err
	}
	return checkProgram("aggregator.command", s.Aggregator.Command, DefaultAggregator, check)
}

// checkProgram calls check for the program of the template in a field, with that of the template that it replaces.
func checkProgram(field, template, replaced string, check func(program, replaced string) error) error {
	program := undertest.ProgramOf(template)
	if program == "" || command.HasPlaceholder(program) {
		return nil
	}
	if err := check(program, undertest.ProgramOf(replaced)); err != nil {
		return undertest.Wrong(field, "program %q: %w", program, err)
	}
	return nil
}

// Own are the programs of this project that are used where the templates name no others.
func Own(s undertest.System) []string {
	programs := []string{PluginProgram}
	for _, text := range []string{orDefault(s.Reporter.Command, DefaultReporter), orDefault(s.Aggregator.Command, DefaultAggregator), orDefault(s.Operator.Command, DefaultOperator), orDefault(s.Operator.Preflight, DefaultPreflight)} {
		if name := undertest.ProgramOf(text); own(name) && !slices.Contains(programs, name) {
			programs = append(programs, name)
		}
	}
	return programs
}
