package image

import (
	"context"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/kind/docker"
)

// engineTimeout bounds the answer of an engine on the same machine, which takes milliseconds.
const engineTimeout = 10 * time.Second

// Present reports whether an image is on this machine. An engine that does not answer is an error.
func Present(ctx context.Context, image string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, engineTimeout)
	defer cancel()
	_, err := docker.Run(ctx, "image", "inspect", "--format", "{{.Id}}", image)
	if err != nil && strings.Contains(err.Error(), "No such image") {
		return false, nil
	}
	return err == nil, err
}

// Pull takes an image from its registry. The engine itself gives up after some seconds if no registry answers.
func Pull(ctx context.Context, image string) error {
	_, err := docker.Run(ctx, "pull", "--quiet", image)
	return err
}
