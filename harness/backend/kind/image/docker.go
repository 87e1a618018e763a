package image

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// An engine on the same machine answers in milliseconds; a registry names an image in a second or two, and how long its
// layers take is nobody's business.
const (
	engineTimeout = 10 * time.Second
	answerTimeout = 20 * time.Second
)

// Present says whether an image is on this machine. An engine that does not answer is an error.
func Present(ctx context.Context, image string) (bool, error) {
	id, err := ask(ctx, "image", "ls", "--quiet", "--no-trunc", "--filter", "reference="+withoutDigest(image))
	if err != nil || id == "" {
		return false, err
	}
	_, err = ask(ctx, "image", "inspect", "--format", "{{.Id}}", image)
	return err == nil, nil
}

// withoutDigest cuts what a filter does not know.
func withoutDigest(image string) string {
	name, _, _ := strings.Cut(image, "@")
	return name
}

// ask runs a docker command that is quick.
func ask(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, engineTimeout)
	defer cancel()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.Stderr, cmd.WaitDelay = &stderr, time.Second
	out, err := cmd.Output()
	if err != nil {
		return "", because("docker "+args[0], err, stderr.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// because puts docker's own words into one line.
func because(what string, err error, stderr string) error {
	if line := strings.Join(strings.Fields(stderr), " "); line != "" {
		return fmt.Errorf("%s: %w: %.300s", what, err, line)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Pull takes an image from its registry. It gives up soon if no registry answers, and waits as long as ctx does for one that
// has answered.
func Pull(ctx context.Context, image string) error { return pull(ctx, image, answerTimeout) }

func pull(ctx context.Context, image string, patience time.Duration) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	impatience := time.AfterFunc(patience, func() { cancel(fmt.Errorf("no answer from a registry within %v", patience)) })
	defer impatience.Stop()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "docker", "pull", image)
	cmd.Stderr, cmd.WaitDelay = &stderr, time.Second
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return because("docker pull", err, "")
	}
	// The first line says that the registry knows the image.
	lines := bufio.NewReader(out)
	if line, _ := lines.ReadString('\n'); line != "" {
		impatience.Stop()
	}
	_, copied := io.Copy(io.Discard, lines)
	if err := errors.Join(copied, cmd.Wait()); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return because("docker pull", err, stderr.String())
	}
	return nil
}
