// Package envelope converts kube-apiserver's log lines about envelope encryption to the history's envelopes, so that an
// operation can be followed API server → plugin → remote KMS by its uid.
//
// The lines are those of k8s.io/apiserver's envelope.go at verbosity 6; --vmodule=envelope=6 enables them without the
// rest of that verbosity. harness/record/journal records the plugin's hop.
package envelope

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record"
)

// header is klog's: severity, month and day, time of day, thread id, file:line.
var header = regexp.MustCompile(`^I(\d{4} \d{2}:\d{2}:\d{2}\.\d{6})\s+\d+ envelope\.go:\d+\] (".*)$`)

// operations are those of klog's messages.
var operations = map[string]string{
	"encrypting content using envelope service": "encrypt", // a DEK source is sent to the plugin
	"decrypting content using envelope service": "decrypt", // a DEK source comes back from the plugin; Object says for whom
	"encrypting content using DEK":              "use",     // an object is sealed with the DEK whose Encrypt had this uid
}

// Decode reads one line of the log of the API server on node; a line about something else gives nil. klog
// writes local time without a year: now gives both. OK of the envelope means that the operation was begun; how it
// ended is the plugin's hop.
func Decode(node string, line string, now time.Time) (at time.Time, e *history.Envelope, err error) {
	m := header.FindStringSubmatch(line)
	if m == nil {
		return at, nil, nil
	}
	fields, err := parseFields(m[2])
	op := operations[fields[""]]
	if err == nil && op != "" {
		at, err = instant(m[1], now)
	}
	if err != nil {
		return at, nil, fmt.Errorf("log of API server %s: %w", node, err)
	}
	if op == "" {
		return at, nil, nil
	}
	return at, &history.Envelope{
		Hop: history.KubeAPIServer, Op: op, UID: fields["uid"], Node: node, Object: fields["key"], OK: true,
		For: history.EnvelopeRequest{Verb: fields["verb"], Group: fields["group"], Version: fields["version"], Resource: fields["resource"],
			Subresource: fields["subresource"], Namespace: fields["namespace"], Name: fields["name"]},
	}, nil
}

// instant completes klog's time with the year that brings it closest to now.
func instant(text string, now time.Time) (time.Time, error) {
	t, err := time.ParseInLocation("0102 15:04:05.000000", text, now.Location())
	if err != nil {
		return time.Time{}, fmt.Errorf("time %q: %w", text, err)
	}
	year := now.Year()
	if t.Month() == time.December && now.Month() == time.January {
		year--
	}
	return t.AddDate(year-t.Year(), 0, 0), nil
}

// parseFields reads klog's `"message" key="value" key=value …`; the message is stored under the empty key.
func parseFields(text string) (map[string]string, error) {
	fields := map[string]string{}
	message, rest, err := unquote(text)
	if err != nil {
		return nil, err
	}
	fields[""] = message
	for rest = strings.TrimLeft(rest, " "); rest != ""; rest = strings.TrimLeft(rest, " ") {
		key, value, ok := strings.Cut(rest, "=")
		if !ok {
			return nil, fmt.Errorf("field %q has no value", rest)
		}
		if !strings.HasPrefix(value, `"`) {
			fields[key], rest, _ = strings.Cut(value, " ")
			continue
		}
		if fields[key], rest, err = unquote(value); err != nil {
			return nil, err
		}
	}
	return fields, nil
}

func unquote(text string) (value, rest string, err error) {
	quoted, err := strconv.QuotedPrefix(text)
	if err != nil {
		return "", "", fmt.Errorf("%.80q is not quoted: %w", text, err)
	}
	value, err = strconv.Unquote(quoted)
	return value, text[len(quoted):], err
}

// Recorder records the envelopes of API server logs.
type Recorder struct {
	Sink record.Sink
	// Now gives the year and the time zone that klog leaves out; it must be the zone of the API servers.
	Now func() time.Time
}

// Line records one line of the log of the API server on node.
func (r *Recorder) Line(node string, line []byte) error {
	at, e, err := Decode(node, string(line), r.Now())
	if e != nil {
		r.Sink.Record(at, "log/"+node, e)
	}
	return err
}
