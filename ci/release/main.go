// Command release describes the files of a release: an SBOM in SPDX, from what the go command recorded in the programs, and a manifest for krew. release.sh
// makes the files.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/kmsharness/kmsharness/internal/atomicfile"
)

func main() {
	version := flag.String("version", "", "of the release")
	created := flag.Int64("created", 0, "time of its commit, in seconds since 1970")
	programs := flag.String("programs", "", "folder with NAME/bin/PROGRAM of each archive")
	out := flag.String("out", "", "folder with the archives NAME.tar.gz")
	flag.Parse()
	if err := run(*version, time.Unix(*created, 0).UTC(), *programs, *out); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(version string, created time.Time, programs, out string) error {
	files, err := filepath.Glob(filepath.Join(programs, "*", "bin", "*"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("%d programs in %s, expected NAME/bin/PROGRAM: %w", len(files), programs, err)
	}
	doc, err := sbom(version, created, programs, files)
	if err != nil {
		return err
	}
	if err := atomicfile.WriteJSON(filepath.Join(out, "kmsharness-"+version+".spdx.json"), doc, 0o644); err != nil {
		return err
	}
	archives, err := filepath.Glob(filepath.Join(out, "kmsharness-*.tar.gz"))
	if err != nil {
		return err
	}
	manifest, err := krew(version, archives)
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(out, "kmsharness.yaml"), manifest, 0o644)
}

// Types of SPDX 2.3, as far as they are needed.
type (
	document struct {
		SPDXVersion       string         `json:"spdxVersion"`
		DataLicense       string         `json:"dataLicense"`
		SPDXID            string         `json:"SPDXID"`
		Name              string         `json:"name"`
		DocumentNamespace string         `json:"documentNamespace"`
		CreationInfo      creation       `json:"creationInfo"`
		Packages          []spdxPackage  `json:"packages"`
		Relationships     []relationship `json:"relationships"`
	}
	creation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		SPDXID           string     `json:"SPDXID"`
		Name             string     `json:"name"`
		VersionInfo      string     `json:"versionInfo"`
		DownloadLocation string     `json:"downloadLocation"`
		FilesAnalyzed    bool       `json:"filesAnalyzed"`
		Checksums        []checksum `json:"checksums,omitempty"`
		ExternalRefs     []external `json:"externalRefs,omitempty"`
	}
	checksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	external struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	relationship struct {
		From string `json:"spdxElementId"`
		Type string `json:"relationshipType"`
		To   string `json:"relatedSpdxElement"`
	}
)

const (
	home     = "https://github.com/kmsharness/kmsharness"
	spdxRoot = "SPDXRef-DOCUMENT"
)

// sbom lists programs, and the modules that are in each.
func sbom(version string, created time.Time, root string, programs []string) (document, error) {
	d := document{
		SPDXVersion: "SPDX-2.3", DataLicense: "CC0-1.0", SPDXID: spdxRoot, Name: "kmsharness-" + version, DocumentNamespace: home + "/releases/download/" + version + "/spdx",
		CreationInfo: creation{created.Format(time.RFC3339), []string{"Organization: kmsharness"}},
	}
	modules := map[string]spdxPackage{}
	for _, file := range programs {
		info, err := buildinfo.ReadFile(file)
		if err != nil {
			return d, fmt.Errorf("SBOM: %w", err)
		}
		sum, err := sha256Of(file)
		if err != nil {
			return d, fmt.Errorf("SBOM: %w", err)
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return d, fmt.Errorf("SBOM: %w", err)
		}
		p := spdxPackage{SPDXID: id(filepath.ToSlash(name)), Name: filepath.ToSlash(name), VersionInfo: version, DownloadLocation: home, Checksums: []checksum{{"SHA256", sum}}}
		d.Packages = append(d.Packages, p)
		d.Relationships = append(d.Relationships, relationship{spdxRoot, "DESCRIBES", p.SPDXID})
		for _, m := range append([]*debug.Module{{Path: "std", Version: info.GoVersion}}, info.Deps...) {
			if m.Replace != nil {
				m = m.Replace
			}
			module := spdxPackage{SPDXID: id(m.Path + "@" + m.Version), Name: m.Path, VersionInfo: m.Version, DownloadLocation: "NOASSERTION",
				ExternalRefs: []external{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + m.Path + "@" + m.Version}}}
			modules[module.SPDXID] = module
			d.Relationships = append(d.Relationships, relationship{p.SPDXID, "DEPENDS_ON", module.SPDXID})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		d.Packages = append(d.Packages, modules[name])
	}
	return d, nil
}

// id has letters, digits, "." and "-" alone.
func id(name string) string {
	return "SPDXRef-" + strings.Map(func(r rune) rune {
		if r == '.' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, name)
}

func sha256Of(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return fmt.Sprintf("%x", h.Sum(nil)), err
}

// krew is the manifest with which kubectl krew installs an archive.
func krew(version string, archives []string) ([]byte, error) {
	var platforms []map[string]any
	for _, file := range archives {
		sum, err := sha256Of(file)
		if err != nil {
			return nil, fmt.Errorf("krew manifest: %w", err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".tar.gz")
		platforms = append(platforms, map[string]any{
			"selector": map[string]any{"matchLabels": map[string]string{"os": "linux", "arch": name[strings.LastIndex(name, "-")+1:]}},
			"uri":      home + "/releases/download/" + version + "/" + filepath.Base(file), "sha256": sum, "bin": "kmsharness",
			"files": []map[string]string{{"from": name + "/bin/kmsharness", "to": "."}, {"from": name + "/LICENSE", "to": "."}},
		})
	}
	return yaml.Marshal(map[string]any{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2", "kind": "Plugin", "metadata": map[string]string{"name": "kmsharness"},
		"spec": map[string]any{"version": version, "homepage": home, "shortDescription": "Judge the health of KMS v2 encryption",
			"description": "Observes a running cluster, certifies KMS v2 plugins, and tests control planes with KMS v2 encryption.\n", "platforms": platforms},
	})
}
