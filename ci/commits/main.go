// Command commits checks the messages of the commits since a baseline: the subject is "package: what changes", and a change of more than a
// few lines has a body that says why. It prints every commit that breaks a rule, in the order in which the commits were made.
//
// Without git history, or in a shallow clone that does not reach the baseline, it checks nothing and says so.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// baseline is the last commit from before these rules.
	baseline = "ccffc624b8cc7ece31350a8a9e2d14c8a6772569"
	// longestSubject is how much of a subject git log --oneline shows in a terminal of 80 columns.
	longestSubject = 72
	// changeWithoutBody is how many added and removed lines need no explanation.
	changeWithoutBody = 20
)

func main() {
	since := flag.String("since", baseline, "check the commits after this one")
	flag.Parse()
	if err := exec.Command("git", "merge-base", "--is-ancestor", *since, "HEAD").Run(); err != nil {
		fmt.Printf("skipped: commit %.7s is not an ancestor of HEAD here (no git history, or a shallow clone)\n", *since)
		return
	}
	commits, err := read(*since)
	if err != nil {
		fmt.Fprintf(os.Stderr, "commits: %v\n", err)
		os.Exit(2)
	}
	failed := false
	for _, c := range commits {
		for _, problem := range c.problems() {
			fmt.Printf("%.7s %q: %s\n", c.hash, c.subject, problem)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

// commit is what the rules need of a commit. changed counts its added and removed lines.
type commit struct {
	hash, subject, body string
	changed             int
}

// read returns the commits after since, oldest first, without merges.
func read(since string) ([]commit, error) {
	const format = "--format=%x01%H%x00%s%x00%b%x00"
	var stderr bytes.Buffer
	log := exec.Command("git", "log", "--reverse", "--no-merges", "--numstat", format, since+"..HEAD")
	log.Stderr = &stderr
	out, err := log.Output()
	if err != nil {
		return nil, fmt.Errorf("git log %s..HEAD: %w: %s", since, err, strings.TrimSpace(stderr.String()))
	}
	return parse(string(out))
}

// parse reads the output of git log in the format of read.
func parse(out string) (commits []commit, err error) {
	for i, record := range strings.Split(out, "\x01") {
		if i == 0 {
			continue // what precedes the first commit is empty
		}
		fields := strings.Split(record, "\x00")
		if len(fields) != 4 {
			return nil, fmt.Errorf("git log: %d fields in %q, expected 4", len(fields), record)
		}
		c := commit{hash: fields[0], subject: fields[1], body: fields[2]}
		for _, line := range strings.Split(fields[3], "\n") {
			columns := strings.SplitN(line, "\t", 3)
			for _, column := range columns[:len(columns)-1] {
				n, _ := strconv.Atoi(column) // "-" for a binary file
				c.changed += n
			}
		}
		commits = append(commits, c)
	}
	return commits, nil
}

var (
	form      = regexp.MustCompile(`^[a-z0-9.][A-Za-z0-9./_-]*(, [a-z0-9.][A-Za-z0-9./_-]*)*: \S`)
	unready   = regexp.MustCompile(`(?i)\b(wip|fixup|squash)\b`)
	wrongMood = regexp.MustCompile(`(?i): (add(s|ed|ing)|fix(es|ed|ing)|remov(es|ed|ing)|chang(es|ed|ing)|updat(es|ed|ing)|mov(es|ed|ing)|` +
		`renam(es|ed|ing)|mak(es|ing)|made|us(es|ed|ing)|implement(s|ed|ing)|introduc(es|ed|ing)|improv(es|ed|ing)|refactor(s|ed|ing)|` +
		`replac(es|ed|ing)|delet(es|ed|ing)|writ(es|ing)|wrote|rewrit(es|ing)|rewrote|split(s|ting)|merg(es|ed|ing))\b`)
	trailer = regexp.MustCompile(`^[A-Z][A-Za-z-]+: \S`)
)

func (c commit) problems() (all []string) {
	report := func(broken bool, rule string, args ...any) {
		if broken {
			all = append(all, fmt.Sprintf(rule, args...))
		}
	}
	length := utf8.RuneCountInString(c.subject)
	report(!form.MatchString(c.subject), `the subject has the form "package: what changes"`)
	report(length > longestSubject, "the subject has %d characters, at most %d are allowed", length, longestSubject)
	report(strings.Contains(c.subject, ";"), "the subject has a semicolon: make two commits, or name what they have in common")
	report(strings.HasSuffix(c.subject, "."), "the subject ends with a period")
	report(unready.MatchString(c.subject), "the subject marks an unfinished commit")
	report(wrongMood.MatchString(c.subject), `the subject is not in the imperative ("add", not "adds" or "added")`)
	report(c.changed > changeWithoutBody && !c.explained(), "%d lines change, and no body says why", c.changed)
	return all
}

// explained reports whether the body has a line that is not a trailer such as Signed-off-by.
func (c commit) explained() bool {
	for _, line := range strings.Split(c.body, "\n") {
		if line = strings.TrimSpace(line); line != "" && !trailer.MatchString(line) {
			return true
		}
	}
	return false
}
