package kind

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/kmsharness/kmsharness/harness/backend/live"
)

// takeReporterImage puts an image of the engine among the archives and gives the command template of its reporter.
func (a *archives) takeReporterImage(ctx context.Context, o Options, dir string) (command string, err error) {
	text, err := docker(ctx, "image", "inspect", "--format", "{{json .Config.Entrypoint}}", o.ReporterImage)
	if err != nil {
		return "", fmt.Errorf("--reporter-image: %w: build it or pull it first", err)
	}
	program, err := entrypoint(text)
	if err != nil {
		return "", fmt.Errorf("--reporter-image %s: %w", o.ReporterImage, err)
	}
	file := filepath.Join(dir, "reporter-under-test.tar")
	if _, err := docker(ctx, "save", "--output", file, o.ReporterImage); err != nil {
		return "", fmt.Errorf("--reporter-image: %w", err)
	}
	a.files, a.images.reporter = append(a.files, file), o.ReporterImage
	return program + " " + reporterArgs(o), nil
}

// entrypoint is what an image runs, as words of a command template. hold runs it directly, so it has to be a path.
func entrypoint(text string) (string, error) {
	var words []string
	if err := json.Unmarshal([]byte(text), &words); err != nil {
		return "", fmt.Errorf("its entrypoint is %.100s, expected a list of words", text)
	}
	if len(words) == 0 || !strings.HasPrefix(words[0], "/") {
		return "", errors.New("expected an entrypoint that is an absolute path")
	}
	for i, w := range words {
		words[i] = "'" + w + "'"
	}
	return strings.Join(words, " "), nil
}

// reporterArgs are those that were given, or those of this project's reporter.
func reporterArgs(o Options) string {
	if o.ReporterArgs != "" {
		return o.ReporterArgs
	}
	_, args, _ := strings.Cut(live.DefaultReporter, " ")
	return args
}
