// Package command reads commands that a person wrote as one text: a program and its arguments, with placeholders. There is no shell behind them.
package command

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var placeholder = regexp.MustCompile(`\{([A-Za-z]+)\}`)

// Template is a command whose words may contain placeholders such as {socket}.
type Template []string

// Parse splits a command as Split does. Placeholders other than those that are known are an error.
func Parse(text string, known ...string) (Template, error) {
	words, err := Split(text)
	if err != nil {
		return nil, err
	}
	if len(words) == 0 {
		return nil, fmt.Errorf("command %q: expected a program and its arguments", text)
	}
	for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(known, m[1]) {
			return nil, fmt.Errorf("command %q: placeholder {%s} is unknown: expected one of {%s}", text, m[1], strings.Join(known, "} {"))
		}
	}
	return words, nil
}

// HasPlaceholder reports whether a text contains any placeholder.
func HasPlaceholder(text string) bool { return placeholder.MatchString(text) }

// Has reports whether the template contains the placeholder name.
func (t Template) Has(name string) bool {
	return slices.ContainsFunc(t, func(word string) bool { return strings.Contains(word, "{"+name+"}") })
}

// Fill replaces the placeholders. A value with spaces stays one word. A placeholder without a value becomes empty.
func (t Template) Fill(values map[string]string) (program string, args []string) {
	words := make([]string, len(t))
	for i, w := range t {
		words[i] = placeholder.ReplaceAllStringFunc(w, func(p string) string { return values[p[1:len(p)-1]] })
	}
	return words[0], words[1:]
}

// Split splits a command at spaces. Single or double quotes group words.
func Split(text string) ([]string, error) {
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
