// Package docker runs the docker command, and says what went wrong on one line.
package docker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// Run runs a docker command and returns its output without the white space at its ends. An error has docker's own words.
func Run(ctx context.Context, args ...string) (string, error) { return Feed(ctx, nil, args...) }

// Feed is Run with input.
func Feed(ctx context.Context, input io.Reader, args ...string) (string, error) {
	var out, errs bytes.Buffer
	err := run(ctx, input, &out, &errs, args)
	if err == nil {
		return strings.TrimSpace(out.String()), nil
	}
	const most = 8 // words of the command line that an error repeats
	if len(args) > most {
		args = append(slices.Clone(args[:most]), "…")
	}
	return "", fmt.Errorf("docker %s: %w: %s", strings.Join(args, " "), err, end(errs.String()))
}

// Logs are the last lines of a container's output, on one line.
func Logs(ctx context.Context, container string) (string, error) {
	var out bytes.Buffer
	err := run(ctx, nil, &out, &out, []string{"logs", "--tail", "4", container})
	return end(out.String()), err
}

func run(ctx context.Context, input io.Reader, out, errs io.Writer, args []string) error {
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = input, out, errs, time.Second
	err := cmd.Run()
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// end is the last part of a command's output, on one line: kubeadm says what is wrong last.
func end(text string) string {
	const most = 600
	words := strings.Join(strings.Fields(text), " ")
	if len(words) > most {
		return "… " + strings.ToValidUTF8(words[len(words)-most:], "")
	}
	return words
}
