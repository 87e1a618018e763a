package live

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Placeholders are what a command template may contain.
func Placeholders() []string {
	return []string{"sockets", "node", "kubeconfig", "interval", "jitter", "readTimeout", "writeTimeout", "metricsAddress",
		"contract", "operator", "instance", "leaderElect", "degradedInertia", "unknownStatus"}
}

// The commands of this project's own reporter and aggregator.
const (
	DefaultReporter = "kms-health-reporter --kms-sockets={sockets} --node-name={node} --kubeconfig={kubeconfig}" +
		" --interval={interval} --jitter={jitter} --read-timeout={readTimeout} --write-timeout={writeTimeout}" +
		" --metrics-address={metricsAddress} --contract={contract} --operator={operator}"
	DefaultAggregator = "kms-health-aggregator --kubeconfig={kubeconfig} --interval={interval} --operator={operator}" +
		" --metrics-address={metricsAddress} --leader-elect={leaderElect} --leader-elect-identity={instance}" +
		" --leader-elect-lease-duration=2s --leader-elect-renew-deadline=1500ms --leader-elect-retry-period=250ms" +
		" --degraded-inertia={degradedInertia} --unknown-status={unknownStatus}"
)

func orDefault(text, fallback string) string {
	if strings.TrimSpace(text) == "" {
		return fallback
	}
	return text
}

var placeholder = regexp.MustCompile(`\{([A-Za-z]+)\}`)

// template is a command whose words may contain placeholders.
type template []string

// parseTemplate splits a command at spaces; single or double quotes group. There is no shell behind it.
func parseTemplate(text string) (template, error) {
	words, err := SplitCommand(text)
	if err != nil {
		return nil, err
	}
	if len(words) == 0 {
		return nil, fmt.Errorf("command %q: expected a program and its arguments", text)
	}
	for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(Placeholders(), m[1]) {
			return nil, fmt.Errorf("command %q: placeholder {%s} is unknown: expected one of {%s}", text, m[1], strings.Join(Placeholders(), "} {"))
		}
	}
	return words, nil
}

// SplitCommand splits a command at spaces; single or double quotes group.
func SplitCommand(text string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord, quote := false, rune(0)
	for _, r := range text {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == ' ' || r == '\t' || r == '\n':
			if inWord {
				words = append(words, word.String())
				word.Reset()
			}
			inWord = false
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("command %q: a quote %c is not closed", text, quote)
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}

// fill replaces the placeholders. A value with spaces stays one word.
func (t template) fill(values map[string]string) (program string, args []string) {
	words := make([]string, len(t))
	for i, w := range t {
		words[i] = placeholder.ReplaceAllStringFunc(w, func(p string) string { return values[p[1:len(p)-1]] })
	}
	return words[0], words[1:]
}
