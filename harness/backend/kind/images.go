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
	"github.com/kmsharness/kmsharness/harness/backend/operand"
	"github.com/kmsharness/kmsharness/harness/backend/pool"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/undertest"
)

// archives are the images of this project as files that nodes import. They are made of the programs at hand, without the
// engine and without a registry.
type archives struct {
	images images
	files  []string
}

// makeArchives writes them to dir.
func makeArchives(ctx context.Context, programs *cluster.Programs, dir string) (archives, error) {
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

// takeUnderTest puts the images of the system under test among the archives, and gives reporter and operator the command templates of their entrypoints.
func (a *archives) takeUnderTest(ctx context.Context, s *undertest.System, dir string) error {
	for _, of := range []struct {
		role, image, args string
		as, command       *string
	}{
		{history.RoleReporter, s.Reporter.Image, argsOr(s.Reporter.Args, cluster.DefaultReporter), &a.images.reporter, &s.Reporter.Command},
		{history.RoleOperator, s.Operator.Image, argsOr(s.Operator.Args, cluster.DefaultOperator), &a.images.operatorUnderTest, &s.Operator.Command},
		{history.RolePlugin, s.Plugin.Image, "", &a.images.pluginUnderTest, nil},
	} {
		if of.image == "" {
			continue
		}
		text, err := a.takeImage(ctx, of.image, filepath.Join(dir, of.role+"-under-test.tar"))
		if err == nil && of.command != nil {
			if *of.command, err = entrypoint(text); err == nil {
				*of.command += " " + of.args
			}
		}
		if err != nil {
			return fmt.Errorf("%s.image: %s: %w", of.role, of.image, err)
		}
		*of.as = of.image
	}
	return nil
}

// takeImage puts an image of the engine among the archives as a file, and gives its entrypoint as JSON.
func (a *archives) takeImage(ctx context.Context, image, file string) (entrypoint string, err error) {
	entrypoint, err = docker.Run(ctx, "image", "inspect", "--format", "{{json .Config.Entrypoint}}", image)
	if err != nil {
		return "", fmt.Errorf("%w: build it or pull it first", err)
	}
	a.files = append(a.files, file)
	_, err = docker.Run(ctx, "save", "--output", file, image)
	return entrypoint, err
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
