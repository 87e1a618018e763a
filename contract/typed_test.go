package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	operatorv1 "github.com/openshift/api/operator/v1"
	"sigs.k8s.io/yaml"
)

// schema is the part of an OpenAPI v3 schema that the typed list uses.
type schema struct {
	Type       string            `json:"type"`
	Format     string            `json:"format"`
	MinLength  *int              `json:"minLength"`
	MaxLength  *int              `json:"maxLength"`
	MinItems   *int              `json:"minItems"`
	MaxItems   *int              `json:"maxItems"`
	Enum       []string          `json:"enum"`
	Required   []string          `json:"required"`
	Properties map[string]schema `json:"properties"`
	Items      *schema           `json:"items"`
	MapKeys    []string          `json:"x-kubernetes-list-map-keys"`
}

// realList reads the schema of healthReports from the CRD that the OpenShift API module carries.
func realList(t testing.TB, file string, path ...string) schema {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/openshift/api").Output()
	if err != nil {
		t.Fatalf("find the OpenShift API module: %v", err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "payload-manifests", "crds", file))
	if err != nil {
		t.Fatal(err)
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema schema `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &crd); err != nil || len(crd.Spec.Versions) != 1 {
		t.Fatalf("%s: %d versions, %v", file, len(crd.Spec.Versions), err)
	}
	s := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	for _, name := range path {
		next, ok := s.Properties[name]
		if !ok {
			t.Fatalf("%s has no %s of %v", file, name, path)
		}
		s = next
	}
	return s
}

const (
	kubeAPIServerCRD  = "0000_20_kube-apiserver_01_kubeapiservers-TechPreviewNoUpgrade.crd.yaml"
	authenticationCRD = "0000_50_authentication_01_authentications-TechPreviewNoUpgrade.crd.yaml"
)

// violation is what the API server would say about one item; nil if it would take it.
func (s schema) violation(item TypedReport) error {
	b, err := json.Marshal(item)
	if err != nil {
		return err
	}
	var fields map[string]string
	if err := json.Unmarshal(b, &fields); err != nil {
		return err
	}
	for _, name := range s.Items.Required {
		if _, ok := fields[name]; !ok {
			return fmt.Errorf("%s is missing", name)
		}
	}
	for name, value := range fields {
		if err := s.Items.Properties[name].violatedBy(value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (s schema) violatedBy(value string) error {
	n := utf8.RuneCountInString(value)
	switch {
	case s.Type != "string":
		return fmt.Errorf("type %q is not in the CRD", s.Type)
	case s.MinLength != nil && n < *s.MinLength, s.MaxLength != nil && n > *s.MaxLength:
		return fmt.Errorf("%d characters", n)
	case len(s.Enum) > 0 && !slices.Contains(s.Enum, value):
		return fmt.Errorf("%q is none of %v", value, s.Enum)
	case s.Format == "date-time":
		_, err := time.Parse(time.RFC3339, value)
		return err
	case s.Format != "":
		return fmt.Errorf("format %s is not known to this test", s.Format)
	}
	return nil
}

// jsonFields of a struct: name, and whether it may be left out.
func jsonFields(v any) (names []string) {
	typ := reflect.TypeOf(v)
	for i := range typ.NumField() {
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func TestTypedReportIsTheRealType(t *testing.T) {
	list := realList(t, kubeAPIServerCRD, "status", "encryptionStatus", "healthReports")
	ours, real := jsonFields(TypedReport{}), jsonFields(operatorv1.KMSPluginHealthReport{})
	var inCRD []string
	for name := range list.Items.Properties {
		inCRD = append(inCRD, name)
	}
	slices.Sort(inCRD)
	if !slices.Equal(ours, real) || !slices.Equal(ours, inCRD) {
		t.Errorf("fields\nours   %v\ntype   %v\nin CRD %v", ours, real, inCRD)
	}
	at := []TypedReport{{"cp-1", "2", "Healthy", "2026-05-08T12:34:56Z", "kek-1", "d"}}
	b, err := json.Marshal(at)
	var back []operatorv1.KMSPluginHealthReport
	if err == nil {
		err = json.Unmarshal(b, &back)
	}
	if err != nil || back[0].NodeName != "cp-1" || back[0].KeyID != "2" || back[0].Status != operatorv1.KMSPluginHealthStatusHealthy ||
		!back[0].LastCheckedTime.Time.Equal(checked) || back[0].RemoteKeyID != "kek-1" || back[0].Detail != "d" {
		t.Errorf("%s is read by the real type as %+v, %v", b, back, err)
	}
}

func TestLimitsAreTheRealCRDs(t *testing.T) {
	for _, list := range []schema{
		realList(t, kubeAPIServerCRD, "status", "encryptionStatus", "healthReports"),
		realList(t, authenticationCRD, "status", "oauthAPIServer", "encryptionStatus", "healthReports"),
	} {
		p := list.Items.Properties
		for name, pair := range map[string][2]int{
			"items":  {MaxTypedReports, *list.MaxItems},
			"detail": {MaxDetailChars, *p["detail"].MaxLength}, "remoteKeyID": {MaxKEKIDBytes, *p["remoteKeyID"].MaxLength}, "keyID": {MaxKeyIDChars, *p["keyID"].MaxLength},
		} {
			if pair[0] != pair[1] {
				t.Errorf("%s: our limit %d, the CRD's %d", name, pair[0], pair[1])
			}
		}
		if !slices.Equal(list.MapKeys, []string{"nodeName", "keyID"}) {
			t.Errorf("list map keys %v", list.MapKeys)
		}
		for _, s := range []Status{StatusHealthy, StatusUnhealthy, StatusError} {
			if !slices.Contains(p["status"].Enum, typedStatus(s)) {
				t.Errorf("status %s is none of %v", typedStatus(s), p["status"].Enum)
			}
		}
	}
}

func TestTypedKeepsToTheCRDWhateverThePluginSent(t *testing.T) {
	list := realList(t, kubeAPIServerCRD, "status", "encryptionStatus", "healthReports")
	for name, tt := range map[string]struct {
		entry  Entry
		last   string
		remote string
	}{
		"healthy":                  {healthy("1", "kek-1"), "old", "kek-1"},
		"failed, known before":     {Entry{Status: StatusError, Detail: "down"}, "old", "old"},
		"failed, never known":      {Entry{Status: StatusError, Detail: "down"}, "", UnknownKEKID},
		"no detail":                {Entry{Status: StatusError}, "", UnknownKEKID},
		"detail of blanks":         {Entry{Status: StatusError, Detail: " \x00\n"}, "", UnknownKEKID},
		"detail of 1 MiB":          {Entry{Status: StatusUnhealthy, Detail: strings.Repeat("ä", 1<<20)}, "", UnknownKEKID},
		"kekID of 1024 bytes":      {Entry{Status: StatusUnhealthy, KEKID: strings.Repeat("k", 1024)}, "", strings.Repeat("k", 1024)},
		"kekID of 1025 bytes":      {Entry{Status: StatusUnhealthy, KEKID: strings.Repeat("k", 1025)}, "old", "old"},
		"kekID of invalid bytes":   {Entry{Status: StatusUnhealthy, KEKID: "\xff"}, "", "�"},
		"last kekID of 2000 bytes": {Entry{Status: StatusError}, strings.Repeat("k", 2000), UnknownKEKID},
		"last kekID of bad bytes":  {Entry{Status: StatusError}, "k\xff", "k�"},
	} {
		t.Run(name, func(t *testing.T) {
			e := tt.entry
			e.KeyID, e.LastChecked = "1", checked
			items, err := Report{Node: "cp-1", Entries: []Entry{e, healthy("2", "kek-2")}}.Typed(map[string]string{"1": tt.last})
			if err != nil {
				t.Fatal(err)
			}
			for _, item := range items {
				if err := list.violation(item); err != nil {
					t.Errorf("%+v: %v", item, err)
				}
			}
			if items[0].RemoteKeyID != tt.remote {
				t.Errorf("remoteKeyID %.40q, expected %.40q", items[0].RemoteKeyID, tt.remote)
			}
		})
	}
}

// TestViolationFindsBadItems is the known-bad subject of violation: what the API server would reject.
func TestViolationFindsBadItems(t *testing.T) {
	list := realList(t, kubeAPIServerCRD, "status", "encryptionStatus", "healthReports")
	good := TypedReport{"cp-1", "1", "Error", "2026-05-08T12:34:56Z", "kek", "d"}
	if err := list.violation(good); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*TypedReport){
		"status":            func(r *TypedReport) { r.Status = "error" },
		"empty remote":      func(r *TypedReport) { r.RemoteKeyID = "" },
		"long remote":       func(r *TypedReport) { r.RemoteKeyID = strings.Repeat("k", 1025) },
		"long detail":       func(r *TypedReport) { r.Detail = strings.Repeat("ä", 1025) },
		"empty keyID":       func(r *TypedReport) { r.KeyID = "" },
		"long node":         func(r *TypedReport) { r.NodeName = strings.Repeat("n", 254) },
		"time without zone": func(r *TypedReport) { r.LastCheckedTime = "2026-05-08T12:34:56" },
	} {
		bad := good
		spoil(&bad)
		if list.violation(bad) == nil {
			t.Errorf("%s passed", name)
		}
	}
}

func TestTypedRoundTrip(t *testing.T) {
	entries := []Entry{healthy("2", "kek-1"), {KeyID: "1", Status: StatusError, LastChecked: checked, Detail: "down"},
		{KeyID: "3", KEKID: "kek-3", Status: StatusUnhealthy, LastChecked: checked, Detail: "sealed"}, {KeyID: "4", Status: StatusUnhealthy, LastChecked: checked, Detail: "no key_id"}}
	items, err := Report{Node: "cp-1", Entries: entries}.Typed(map[string]string{"1": "kek-0"})
	if err != nil {
		t.Fatal(err)
	}
	for i, item := range items {
		if got, err := item.Untyped(); err != nil || !reflect.DeepEqual(got, entries[i]) {
			t.Errorf("%+v stands for %+v, %v, expected %+v", item, got, err, entries[i])
		}
	}
}

func TestUntypedRefusesMalformedItems(t *testing.T) {
	good := TypedReport{"cp-1", "1", "Error", "2026-05-08T12:34:56Z", "kek", "d"}
	for name, spoil := range map[string]func(*TypedReport){
		"status": func(r *TypedReport) { r.Status = "error\n" },
		"time":   func(r *TypedReport) { r.LastCheckedTime = "soon\n" },
		"keyID":  func(r *TypedReport) { r.KeyID = "" },
	} {
		bad := good
		spoil(&bad)
		if _, err := bad.Untyped(); !errors.Is(err, ErrMalformed) || regexp.MustCompile(`[\r\n]`).MatchString(err.Error()) {
			t.Errorf("%s: %v, expected one line that says malformed report", name, err)
		}
	}
}

func TestTypedRefusesWhatNobodyCouldMean(t *testing.T) {
	if _, err := (Report{Node: "cp-1", Entries: []Entry{healthy("1", "k"), healthy("1", "k")}}).Typed(nil); err == nil || !strings.Contains(err.Error(), "node cp-1") {
		t.Errorf("the same keyID twice: %v", err)
	}
}
