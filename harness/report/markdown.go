package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/internal/text"

	"github.com/kmsharness/kmsharness/contract"
)

// maxMarkdown keeps a summary below what hosts of pull requests take as one comment.
const maxMarkdown = 60000

// Limits of what Markdown shows.
const (
	maxTableRows  = 30  // of what did not pass
	maxCell       = 160 // characters of a text in a table
	maxParagraph  = 900 // of a text in a list
	maxListed     = 20  // failures of one scenario
	maxReproduced = 2000
)

// Markdown is all results for a comment on a pull request: what did not pass first, then the counts; details are folded.
func (s Summary) Markdown(coverage string) string {
	var b strings.Builder
	broken := s.broken()
	fmt.Fprintf(&b, "### %s\n\n", s.markdownTitle())
	brokenTable(&b, broken)
	fmt.Fprintf(&b, "**%s** on %s in %s\n", s.Counts(), escape(strings.Join(s.backends(), ", "), maxCell), text.Tenths(s.Took))
	if coverage != "" {
		fmt.Fprintf(&b, "\n%s\n", escape(coverage, maxParagraph))
	}
	if waits := s.WaitsText(); waits != "" {
		fmt.Fprintf(&b, "\n%s\n", escape(strings.ReplaceAll(waits, "\n", "; "), maxParagraph))
	}
	all := allTable(s.sorted())
	left := maxMarkdown - b.Len() - len(all)
	for i, r := range broken {
		text := details(r)
		if left -= len(text); left < 0 {
			fmt.Fprintf(&b, "\nDetails of %d more are in %s.\n", len(broken)-i, result.PageFile)
			break
		}
		b.WriteString(text)
	}
	if left += maxMarkdown / 2; left > 0 {
		b.WriteString(all)
	}
	return b.String()
}

func (s Summary) markdownTitle() string {
	switch n := len(s.broken()); {
	case s.ran() == 0 && n == 0:
		return "❌ kmsharness: " + s.nothingJudged()
	case n > 0:
		return fmt.Sprintf("❌ kmsharness: %d of %d did not pass", n, len(s.Results)-s.Count(result.NotSupported)-s.Count(result.NotBegun))
	default:
		return fmt.Sprintf("✅ kmsharness: all %d passed", s.ran())
	}
}

func (s Summary) broken() (out []result.Result) {
	for _, r := range s.sorted() {
		if r.Status.Bad() {
			out = append(out, r)
		}
	}
	return out
}

func (s Summary) backends() (out []string) {
	for _, r := range s.Results {
		if !slices.Contains(out, r.On()) {
			out = append(out, r.On())
		}
	}
	if len(out) == 0 {
		out = append(out, s.backend())
	}
	return out
}

func brokenTable(b *strings.Builder, broken []result.Result) {
	if len(broken) == 0 {
		return
	}
	b.WriteString("| scenario | on | first | at | seen |\n|---|---|---|---|---|\n")
	for _, r := range broken[:min(len(broken), maxTableRows)] {
		id, at, seen := string(r.Status), "", strings.Join(r.Reasons, "; ")
		if len(r.Failures) > 0 {
			f := r.Failures[0]
			id, seen = strings.TrimSpace(f.Code()+" "+f.Where), f.Seen
			if !f.At.IsZero() {
				at = fmt.Sprintf("+%.3fs", f.Offset.Seconds())
			}
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", escape(r.Scenario, maxCell), escape(r.On(), maxCell), escape(id, maxCell), at, escape(seen, maxCell))
	}
	if more := len(broken) - maxTableRows; more > 0 {
		fmt.Fprintf(b, "\nand %d more\n", more)
	}
	b.WriteString("\n")
}

func details(r result.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n<details><summary>%s on %s: %s</summary>\n\n", escape(r.Scenario, maxCell), escape(r.On(), maxCell), r.Status)
	if r.Title != "" {
		fmt.Fprintf(&b, "%s\n\n", escape(r.Title, maxParagraph))
	}
	for _, reason := range r.Reasons {
		fmt.Fprintf(&b, "- %s\n", escape(reason, maxParagraph))
	}
	for _, f := range r.Failures[:min(len(r.Failures), maxListed)] {
		fmt.Fprintf(&b, "- **%s**\n", escape(heading(f), maxCell))
		fmt.Fprintf(&b, "  - seen: %s\n", escape(f.Seen, maxParagraph))
		if f.Allowed != "" {
			fmt.Fprintf(&b, "  - allowed: %s\n", escape(f.Allowed, maxParagraph))
		}
		if f.Because != "" {
			fmt.Fprintf(&b, "  - because: %s\n", escape(f.Because, maxParagraph))
		}
	}
	if more := len(r.Failures) - maxListed; more > 0 {
		fmt.Fprintf(&b, "- and %d more\n", more)
	}
	if r.Reproduce != "" {
		fmt.Fprintf(&b, "\n```\n%s\n```\n", strings.ReplaceAll(contract.SafeText(r.Reproduce, maxReproduced), "```", "` ` `"))
	}
	b.WriteString("\n</details>\n")
	return b.String()
}

func heading(f result.Failure) string {
	text := strings.TrimSpace(f.Code() + " " + f.Where)
	if !f.At.IsZero() {
		text += fmt.Sprintf(" at +%.3fs", f.Offset.Seconds())
	}
	if f.More > 0 {
		text += fmt.Sprintf(", and %d more of it", f.More)
	}
	return text
}

func allTable(results []result.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n<details><summary>All %d results</summary>\n\n| area | scenario | on | result | time |\n|---|---|---|---|---|\n", len(results))
	for _, r := range results {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", escape(r.Area, maxCell), escape(r.Scenario, maxCell), escape(r.On(), maxCell), r.StatusText(), text.Tenths(r.Took))
	}
	b.WriteString("\n</details>\n")
	return b.String()
}

// escape makes a text of others one line of plain Markdown: plugins may say anything, and it must neither draw tables nor call people.
func escape(s string, most int) string {
	s = contract.SafeText(s, most)
	return strings.NewReplacer("\\", "\\\\", "|", "\\|", "`", "\\`", "*", "\\*", "_", "\\_", "~", "\\~", "[", "\\[", "]", "\\]", "#", "\\#", "!", "\\!",
		"<", "&lt;", ">", "&gt;", "&", "&amp;", "@", "@\u200b").Replace(s)
}
