package assets

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// EnvAssets is where Kubernetes' own test tools look first.
const EnvAssets = "KUBEBUILDER_ASSETS"

// fromEnvironment is the user's own choice: an error if it is incomplete, never something else instead.
func fromEnvironment(ctx context.Context) (Binaries, bool, error) {
	dir := os.Getenv(EnvAssets)
	if dir == "" {
		return Binaries{}, false, nil
	}
	b, err := InDir(ctx, dir)
	if err != nil {
		return Binaries{}, false, fmt.Errorf("%s is %q: %w; set it to a directory with etcd and kube-apiserver, or unset it", EnvAssets, dir, err)
	}
	b.Origin = "from " + EnvAssets + "=" + dir
	return b, true, nil
}

// InDir takes the programs from a directory that has both, and asks kube-apiserver for its version.
func InDir(ctx context.Context, dir string) (Binaries, error) {
	b, err := inDir(dir)
	if err == nil {
		b.Version, err = askVersion(ctx, b.KubeAPIServer)
	}
	if err != nil {
		return Binaries{}, err
	}
	b.Origin = "from " + dir
	b.EncryptionPoll = strings.HasSuffix(b.Version, versionSuffix)
	return b, nil
}

// inDir fails unless both programs are there.
func inDir(dir string) (Binaries, error) {
	b := Binaries{Etcd: filepath.Join(dir, "etcd"), KubeAPIServer: filepath.Join(dir, "kube-apiserver")}
	for _, path := range []string{b.Etcd, b.KubeAPIServer} {
		if _, err := exec.LookPath(path); err != nil {
			return Binaries{}, err
		}
	}
	return b, nil
}

// askTimeout is generous for a program that starts in 0.2 s from a cold disk.
const askTimeout = 30 * time.Second

// askVersion runs kube-apiserver --version ("Kubernetes v1.37.1").
func askVersion(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", path, err)
	}
	version, ok := strings.CutPrefix(strings.TrimSpace(string(out)), "Kubernetes ")
	if !ok {
		return "", fmt.Errorf("%s --version: expected \"Kubernetes v…\", got %.80q", path, out)
	}
	return version, nil
}
