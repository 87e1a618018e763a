// Package testsext is kmsharness as an extension of openshift-tests: the JSON and the commands of github.com/openshift-eng/openshift-tests-extension, v1.1,
// without its dependencies. A test is a command of kmsharness; what it judges is not this package's business.
package testsext

import (
	"fmt"
	"time"
)

// apiVersion of the extension's JSON.
const apiVersion = "v1.1"

// extension is what info prints.
type extension struct {
	APIVersion string     `json:"apiVersion"`
	Source     source     `json:"source"`
	Component  component  `json:"component"`
	Suites     []suite    `json:"suites"`
	Images     []struct{} `json:"images"` // that tests need in the cluster; there is none
}

type source struct {
	Commit       string `json:"commit"`
	BuildDate    string `json:"build_date"`
	GitTreeState string `json:"git_tree_state"`
	SourceURL    string `json:"source_url,omitempty"`
}

type component struct {
	Product string `json:"product"`
	Kind    string `json:"type"`
	Name    string `json:"name"`
}

// suite has the tests that one of its qualifiers, expressions in CEL, accepts.
type suite struct {
	Name             string   `json:"name"`
	Description      string   `json:"description"`
	Parents          []string `json:"parents,omitempty"`
	Qualifiers       []string `json:"qualifiers,omitempty"`
	Parallelism      int      `json:"parallelism,omitempty"`
	ClusterStability string   `json:"clusterStability,omitempty"`
}

// spec is a test as list prints it.
type spec struct {
	Name                string              `json:"name"`
	Labels              map[string]struct{} `json:"labels"`
	Resources           resources           `json:"resources"`
	Source              string              `json:"source"`
	CodeLocations       []string            `json:"codeLocations,omitempty"`
	Lifecycle           string              `json:"lifecycle"`
	EnvironmentSelector selector            `json:"environmentSelector"`

	// args are of kmsharness, without its output folder. skip is why it cannot run; empty: it can.
	args func() (args []string, skip string)
}

// selector has expressions in CEL. No test of kmsharness depends on the cluster.
type selector struct {
	Include string `json:"include,omitempty"`
	Exclude string `json:"exclude,omitempty"`
}

type resources struct {
	Isolation struct {
		Mode string `json:"mode,omitempty"`
	} `json:"isolation"`
}

// Results of a test.
const (
	passed  = "passed"
	skipped = "skipped"
	failed  = "failed"
)

// result is what run-test and run-suite print of a test.
type result struct {
	Name      string   `json:"name"`
	Lifecycle string   `json:"lifecycle"`
	Duration  int64    `json:"duration"` // milliseconds
	StartTime dbTime   `json:"startTime"`
	EndTime   dbTime   `json:"endTime"`
	Result    string   `json:"result"`
	Output    string   `json:"output"`
	Error     string   `json:"error,omitempty"`
	Details   []detail `json:"details,omitempty"`
}

type detail struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// dbTime is an instant as databases import it.
type dbTime time.Time

const dbLayout = `"2006-01-02 15:04:05.000000 UTC"`

// MarshalJSON implements json.Marshaler.
func (t dbTime) MarshalJSON() ([]byte, error) {
	return []byte(time.Time(t).UTC().Format(dbLayout)), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *dbTime) UnmarshalJSON(text []byte) error {
	at, err := time.Parse(dbLayout, string(text))
	if err != nil {
		return fmt.Errorf("instant %s: %w", text, err)
	}
	*t = dbTime(at)
	return nil
}
