package kind

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// docker runs a docker command and gives what it prints. An error has docker's own words, on one line.
func docker(ctx context.Context, args ...string) (string, error) {
	return run(ctx, nil, "docker", args...)
}

// inside runs a command in a node's container, with input if it is not nil.
func inside(ctx context.Context, container string, input io.Reader, args ...string) (string, error) {
	words := []string{"exec", "--privileged"}
	if input != nil {
		words = append(words, "-i")
	}
	return run(ctx, input, "docker", append(append(words, container), args...)...)
}

func run(ctx context.Context, input io.Reader, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = input, &out, &errs
	err := cmd.Run()
	if err == nil {
		return strings.TrimSpace(out.String()), nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(short(args), " "), err, end(errs.String()))
}

// end is the last of what a command said, on one line: kubeadm says what is wrong last.
func end(text string) string {
	const most = 600
	words := strings.Join(strings.Fields(text), " ")
	if len(words) > most {
		return "… " + strings.ToValidUTF8(words[len(words)-most:], "")
	}
	return words
}

// short leaves out of a command line what nobody wants to read in an error.
func short(args []string) []string {
	const most = 8
	if len(args) > most {
		return append(append([]string(nil), args[:most]...), "…")
	}
	return args
}

// ErrNoEngine says that there is no container engine to make clusters with.
var ErrNoEngine = errors.New("no container engine answers: start one, on a bare Debian machine with: make engine")

// checkEngine says whether an engine answers.
func checkEngine(ctx context.Context) error {
	if _, err := docker(ctx, "version", "--format", "{{.Server.Version}}"); err != nil {
		return fmt.Errorf("%w (%w)", ErrNoEngine, err)
	}
	return nil
}
