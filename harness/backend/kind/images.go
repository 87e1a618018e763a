package kind

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	containers "github.com/kmsharness/kmsharness/ci/images"
	"github.com/kmsharness/kmsharness/ci/images/archive"
	"github.com/kmsharness/kmsharness/harness/assets"
	"github.com/kmsharness/kmsharness/harness/backend/kind/docker"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/backend/operand"
	"github.com/kmsharness/kmsharness/harness/backend/pool"
	"github.com/kmsharness/kmsharness/harness/history"
)

// archives are the images of this project as files that nodes import. They are made of the programs at hand, without the
// engine and without a registry.
type archives struct {
	images images
	files  []string
}

// makeArchives writes them to dir.
func makeArchives(ctx context.Context, programs *live.Programs, dir string) (archives, error) {
	var a archives
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return a, err
	}
	names := map[string]string{}
	for _, d := range containers.Definitions() {
		var file, name string
		path, err := programs.Find(ctx, d.Program)
		if err == nil {
			file, name, err = writeArchive(path, dir, d)
		}
		if err != nil {
			return a, fmt.Errorf("image of the %s: %w", d.Name, err)
		}
		a.files, names[d.Name] = append(a.files, file), name
	}
	a.images = images{plugin: names["plugin"], reporter: names["reporter"], aggregator: names["aggregator"]}
	return a, nil
}

// writeArchive makes the archive of one program.
func writeArchive(path, dir string, d containers.Definition) (file, name string, err error) {
	program, err := os.ReadFile(path)
	if err != nil {
		return "", "", err
	}
	image, err := archive.Assemble(d, program)
	if err != nil {
		return "", "", err
	}
	if name, err = archive.ContentName(d, image); err != nil {
		return "", "", err
	}
	text, err := archive.Of(image, name)
	if err != nil {
		return "", "", err
	}
	file = filepath.Join(dir, d.Name+".tar")
	return file, name, os.WriteFile(file, text, 0o644)
}

// archivesFor are those that nodes of a shape need.
func (b *Backend) archivesFor(ctx context.Context, s pool.Shape, dir string, progress func(string)) (archives, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(s.APIServers()) == 0 {
		return b.archives, nil
	}
	with := b.archives
	with.files = slices.Clone(with.files)
	programs, err := assets.Obtain(ctx, assets.SampleAPIServer, progress)
	if err != nil {
		return with, err
	}
	file, name, err := writeArchive(programs.Path(assets.SampleAPIServerProgram), filepath.Join(dir, "images"), containers.SampleAPIServer())
	if err != nil {
		return with, fmt.Errorf("image of sample-apiserver: %w", err)
	}
	with.files, with.images.apiServer = append(with.files, file), name
	return with, nil
}

// takeReporterImage puts an image of the engine among the archives and gives the command template of its reporter.
func (a *archives) takeReporterImage(ctx context.Context, o Options, dir string) (command string, err error) {
	a.images.reporter = o.Reporter.Image
	return a.takeProgram(ctx, history.RoleReporter, o.Reporter.Image, argsOr(o.Reporter.Args, live.DefaultReporter), dir)
}

// takeOperatorImage puts an image of the engine among the archives and gives the command template of its operator.
func (a *archives) takeOperatorImage(ctx context.Context, o Options, dir string) (command string, err error) {
	a.images.operatorUnderTest = o.Operator.Image
	return a.takeProgram(ctx, history.RoleOperator, o.Operator.Image, argsOr(o.Operator.Args, live.DefaultOperator), dir)
}

// takeProgram puts the image of the program of a role among the archives and gives the command template of its entrypoint with arguments.
func (a *archives) takeProgram(ctx context.Context, role, image, args, dir string) (command string, err error) {
	field := role + ".image"
	text, err := a.takeImage(ctx, field, image, filepath.Join(dir, role+"-under-test.tar"))
	if err != nil {
		return "", err
	}
	program, err := entrypoint(text)
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", field, image, err)
	}
	return program + " " + args, nil
}

// takePluginImage puts the image of the plugin under test among the archives.
func (a *archives) takePluginImage(ctx context.Context, image, dir string) error {
	_, err := a.takeImage(ctx, "plugin.image", image, filepath.Join(dir, "plugin-under-test.tar"))
	a.images.pluginUnderTest = image
	return err
}

// takeImage puts an image of the engine, which a flag names, among the archives as a file, and gives its entrypoint as JSON.
func (a *archives) takeImage(ctx context.Context, flag, image, file string) (entrypoint string, err error) {
	entrypoint, err = docker.Run(ctx, "image", "inspect", "--format", "{{json .Config.Entrypoint}}", image)
	if err != nil {
		return "", fmt.Errorf("%s: %w: build it or pull it first", flag, err)
	}
	if _, err := docker.Run(ctx, "save", "--output", file, image); err != nil {
		return "", fmt.Errorf("%s: %w", flag, err)
	}
	a.files = append(a.files, file)
	return entrypoint, nil
}

// entrypoint is what an image runs, as words of a command template. The supervisor runs it directly, so it has to be a path.
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

// argsOr are arguments that were given, or those of the command template of this project's program.
func argsOr(given, own string) string {
	if given != "" {
		return given
	}
	_, args, _ := strings.Cut(own, " ")
	return args
}

// provide makes an image that an operator chose for its plugins this project's plugin, on a node where it is not missing.
func (a archives) provide(ctx context.Context, c container, node, image string) error {
	if operand.CannotStart(node, image) != "" {
		return nil
	}
	if _, err := c.ctr(ctx, "images", "tag", "--force", containers.Registry+a.images.plugin, image); err != nil {
		return fmt.Errorf("tag the image %s: %w", image, err)
	}
	return nil
}
