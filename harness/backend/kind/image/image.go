// Package image selects the node image of kind clusters: it has the names of the possible images, and the choice
// between them. ci/nodeimage builds one, harness/backend/kind makes clusters of it.
package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"sigs.k8s.io/kind/pkg/apis/config/defaults"

	"github.com/kmsharness/kmsharness/harness/assets"
	"github.com/kmsharness/kmsharness/harness/backend/kind/docker"
)

// Env names the image to take, whatever else there is.
const Env = "KIND_NODE_IMAGE"

// Official is the image that our version of kind takes by default; it can be pulled where there is internet.
const Official = defaults.Image

// Repository is where `make node-image` puts what it builds; the tag is the version of Kubernetes.
const Repository = "kmsharness/node"

// Built is the name of the image that `make node-image` builds.
func Built() (string, error) {
	programs, err := assets.Describe(assets.Node)
	if err != nil {
		return "", fmt.Errorf("name of the node image: %w", err)
	}
	return Repository + ":" + programs.Version, nil
}

// ErrNone says that there is no node image and none can be pulled.
var ErrNone = errors.New("no node image: run: make engine node-image")

// Resolve chooses, in this order: the user's own choice, the official image if it is on this machine, the one that was built
// here, the official one if it can be pulled. It says in a few words how it came to its choice.
//
// What is on the machine comes first, so that a machine that had to build does not ask the network again each time.
func Resolve(ctx context.Context) (image, how string, err error) {
	if own := os.Getenv(Env); own != "" {
		return own, "from " + Env, nil
	}
	built, err := Built()
	if err != nil {
		return "", "", err
	}
	for _, c := range []struct{ image, how string }{{Official, "kind's own, on this machine"}, {built, "built by make node-image"}} {
		present, err := Present(ctx, c.image)
		if err != nil {
			return "", "", fmt.Errorf("%w: look for %s: %w", ErrNone, c.image, err)
		}
		if present {
			return c.image, c.how, nil
		}
	}
	if err := Pull(ctx, Official); err != nil {
		return "", "", fmt.Errorf("%w (neither %s nor %s is on this machine; pull the first: %w)", ErrNone, Official, built, err)
	}
	return Official, "kind's own, pulled", nil
}

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
